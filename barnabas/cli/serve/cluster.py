"""The options of `barnabas serve --brokers N`, from what argparse has found."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping

from barnabas.cli.serve import UsageError, host_and_port, sets
from barnabas.supervise.options import MAX_BROKERS, OURS, ClusterOptions

_OF_ONE_NODE = re.compile(r"(\d+):(.+)", re.DOTALL)
DEFAULT_LISTEN = "127.0.0.1:9092"


def cluster_options(args: argparse.Namespace, environment: Mapping[str, str]) -> ClusterOptions:
    """The options of a cluster. UsageError, one sentence, when they cannot be understood."""
    if args.in_container:
        raise UsageError("--in-container is for one broker; in containers each node of a cluster has its own")
    everyone, one_node = _sets(args.set)
    host, port = host_and_port(args.listen or DEFAULT_LISTEN)
    return ClusterOptions(
        brokers=_count(args.brokers),
        host=host.removeprefix("[").removesuffix("]"),
        port=port,
        data_dir=args.data_dir,
        sets=everyone,
        node_sets=one_node,
        config_file=args.config,
        environment=environment,
        profile=args.profile or "dev",
        ready_file=args.ready_file,
        log_level=args.log_level,
        restarts=args.restart,
        controllers=args.controllers or OURS,
    )


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= MAX_BROKERS):
        raise UsageError(f"--brokers must be a number between 1 and {MAX_BROKERS}, not {text!r}")
    return int(text)


def _sets(texts: list[str]) -> tuple[dict[str, str], dict[int, dict[str, str]]]:
    """The keys for all nodes, and those for one by its id."""
    everyone: list[str] = []
    one_node: dict[int, list[str]] = {}
    for text in texts:
        match = _OF_ONE_NODE.fullmatch(text)
        if match is None:
            everyone.append(text)
        else:
            one_node.setdefault(int(match[1]), []).append(match[2])
    return sets(everyone), {node_id: sets(own) for node_id, own in one_node.items()}
