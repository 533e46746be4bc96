"""`barnabas cluster`: its commands, one module for each kind of work."""

from __future__ import annotations

import click

from barnabas.cli.command_groups import LazyGroup

COMMANDS = {
    "info": ("barnabas.cli.cluster.info:info", ""),
    "health": ("barnabas.cli.cluster.info:health", ""),
    "status": ("barnabas.cli.cluster.status:status", ""),
    "start": ("barnabas.cli.cluster.nodes:start", ""),
    "stop": ("barnabas.cli.cluster.nodes:stop", ""),
    "kill": ("barnabas.cli.cluster.nodes:kill", ""),
    "add": ("barnabas.cli.cluster.nodes:add", ""),
    "pid": ("barnabas.cli.cluster.nodes:pid", ""),
    "drain": ("barnabas.cli.cluster.balance:drain", ""),
    "rebalance": ("barnabas.cli.cluster.balance:rebalance", ""),
}


@click.group(cls=LazyGroup, lazy=COMMANDS)
def cluster() -> None:
    """Show a cluster and its brokers; start, stop, drain and balance the brokers of 'barnabas serve --brokers'."""
