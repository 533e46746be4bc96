"""`--data-dir` of the commands that work with the nodes of `barnabas serve --brokers`."""

from __future__ import annotations

import click

from barnabas.cli.options.parameters import Function
from barnabas.supervise.control import look
from barnabas.supervise.state import ClusterState
from barnabas.terminal.notes import note

HELP = "The directory of the cluster: --data-dir of 'barnabas serve --brokers', or the one that it has printed."


def cluster_dir_option(command: Function) -> Function:
    """`--data-dir`, required."""
    return click.option("--data-dir", metavar="DIR", required=True, help=HELP)(command)


def optional_cluster_dir_option(command: Function) -> Function:
    """`--data-dir`, instead of `-b`."""
    return click.option("--data-dir", metavar="DIR", help=f"{HELP} Without it, -b is the address of the cluster.")(
        command
    )


def known_cluster(data_dir: str | None) -> ClusterState | None:
    """The cluster of a directory with the nodes that run now; None without a directory."""
    if data_dir is None:
        return None
    return look(data_dir, note)
