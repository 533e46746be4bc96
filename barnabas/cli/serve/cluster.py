"""The options of `barnabas serve --brokers N`, from what argparse has found."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping

from barnabas.cli.serve import UsageError, host_and_port, sets
from barnabas.supervise.options import MAX_BROKERS, OURS, ClusterOptions

_OF_ONE_NODE = re.compile(r"(\d+):(.+)", re.DOTALL)
DEFAULT_LISTEN = "127.0.0.1:9092"


def cluster_options(given: argparse.Namespace, environment: Mapping[str, str]) -> ClusterOptions:
    """The options of a cluster. UsageError, one sentence, when they cannot be understood."""
    if given.in_container:
        raise UsageError("--in-container is for one broker; in containers each node of a cluster has its own")
    everyone, one_node = _sets(given.set)
    host, port = host_and_port(given.listen or DEFAULT_LISTEN)
    return ClusterOptions(
        brokers=_count(given.brokers),
        host=host.removeprefix("[").removesuffix("]"),
        port=port,
        data_dir=given.data_dir,
        sets=everyone,
        node_sets=one_node,
        config_file=given.config,
        environment=environment,
        profile=given.profile or "dev",
        ready_file=given.ready_file,
        log_level=given.log_level,
        restarts=given.restart,
        controllers=given.controllers or OURS,
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
        found = _OF_ONE_NODE.fullmatch(text)
        if found is None:
            everyone.append(text)
        else:
            one_node.setdefault(int(found[1]), []).append(found[2])
    return sets(everyone), {node_id: sets(own) for node_id, own in one_node.items()}
