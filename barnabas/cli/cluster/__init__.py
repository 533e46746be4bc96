"""`barnabas cluster`: its commands, one module for each kind of work."""

from __future__ import annotations

import click

from barnabas.cli.command_groups import LazyGroup

COMMANDS = {
    "info": (
        "barnabas.cli.cluster.info:info",
        "Show the cluster's id, controller, features and brokers, and how many topics and partitions it has.",
    ),
    "health": (
        "barnabas.cli.cluster.info:health",
        "Exit 0 if every partition has a leader and all its replicas, and 1 if not; the problems are listed.",
    ),
    "status": (
        "barnabas.cli.cluster.status:status",
        "Show each broker: whether it is online, draining, fenced or offline, its partitions, lag and load.",
    ),
    "start": (
        "barnabas.cli.cluster.nodes:start",
        "Start a node that was stopped or has died, and wait until it serves.",
    ),
    "stop": (
        "barnabas.cli.cluster.nodes:stop",
        "Stop a node as SIGTERM does: a broker hands its leaderships over first.",
    ),
    "kill": ("barnabas.cli.cluster.nodes:kill", "Kill a node with SIGKILL, as a crash does."),
    "add": ("barnabas.cli.cluster.nodes:add", "Start another broker with the next id, and wait until it serves."),
    "pid": ("barnabas.cli.cluster.nodes:pid", "Print a node's process id; exit 3 if it does not run."),
    "drain": (
        "barnabas.cli.cluster.balance:drain",
        "Move the leaders, and with --replicas the replicas, of a broker to the others, and show the progress.",
    ),
    "rebalance": (
        "barnabas.cli.cluster.balance:rebalance",
        "Spread replicas and leaders evenly over the brokers; the plan is shown first.",
    ),
}


@click.group(cls=LazyGroup, lazy=COMMANDS)
def cluster() -> None:
    """Show a cluster and its brokers; start, stop, drain and balance the brokers of 'barnabas serve --brokers'."""
