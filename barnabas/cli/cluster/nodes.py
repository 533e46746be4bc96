"""`barnabas cluster start|stop|kill|add|pid`: nodes of a cluster of `barnabas serve --brokers`, by their ids."""

from __future__ import annotations

from typing import Any

import click

from barnabas.cli.cluster.directory import cluster_dir_option
from barnabas.client.errors import ClientError
from barnabas.supervise.control import ask, look
from barnabas.terminal.notes import note, say


def _ask(data_dir: str, command: str, **arguments: Any) -> dict[str, Any]:
    return ask(data_dir, command, **arguments)


@click.command()
@click.argument("node", metavar="NODE", type=int)
@cluster_dir_option
def start(node: int, data_dir: str) -> None:
    """Start a node that was stopped or has died, and wait until it serves."""
    result = _ask(data_dir, "start", node=node)
    say(f"{result['role']} {node} runs on {result['address']} (pid {result['pid']})")


@click.command()
@click.argument("node", metavar="NODE", type=int)
@cluster_dir_option
def stop(node: int, data_dir: str) -> None:
    """Stop a node as SIGTERM does: a broker hands its leaderships over first.

    Waits for its end; exit 1 if that was no clean stop.
    """
    result = _ask(data_dir, "stop", node=node)
    if result["state"] != "stopped":
        raise ClientError(
            f"{result['role']} {node} (pid {result['pid']}) ended, but not by a clean stop: {result['detail']}; "
            f"its output is {result['log']}"
        )
    say(f"{result['role']} {node} (pid {result['pid']}) is stopped ({result['detail']})")


@click.command()
@click.argument("node", metavar="NODE", type=int)
@cluster_dir_option
def kill(node: int, data_dir: str) -> None:
    """Kill a node with SIGKILL, as a crash does."""
    result = _ask(data_dir, "kill", node=node)
    say(f"{result['role']} {node} (pid {result['pid']}) is killed")


@click.command()
@cluster_dir_option
def add(data_dir: str) -> None:
    """Start another broker with the next id, and wait until it serves.

    It has no partitions at first: 'barnabas cluster rebalance' gives it some.
    """
    result = _ask(data_dir, "add")
    say(f"broker {result['node_id']} runs on {result['address']} (pid {result['pid']})")
    note(f"'barnabas cluster rebalance --data-dir {data_dir}' moves partitions to it")


@click.command()
@click.argument("node", metavar="NODE", type=int)
@cluster_dir_option
def pid(node: int, data_dir: str) -> int:
    """Print a node's process id; exit 3 if it does not run."""
    state = look(data_dir, note).node(node)
    if state.pid is None:
        note(f"{state.name} does not run{f' ({state.detail})' if state.detail else ''}")
        return 3
    click.echo(state.pid)
    return 0
