"""`barnabas cluster drain|rebalance`: leaders and replicas moved between brokers, with a plan first."""

from __future__ import annotations

from time import monotonic, sleep
from typing import TYPE_CHECKING

import click

from barnabas.cli.cluster.directory import cluster_dir_option, optional_cluster_dir_option
from barnabas.cli.parameters import bootstrap_option, connect, own_timeout_option, yes_option
from barnabas.client.errors import TimedOut
from barnabas.terminal.notes import note, say
from barnabas.terminal.question import ask
from barnabas.terminal.tables import show_rows

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster
    from barnabas.cluster.balance import Assignment

POLL_S = 0.2
PLAN_ROWS = 20
"""Rows of a plan that are shown."""
WAIT = "How long to wait until the partitions have moved."


@click.command()
@click.argument("broker", metavar="NODE", type=int)
@cluster_dir_option
@click.option("--replicas", is_flag=True, help="Move its replicas too, so that it can be removed.")
@click.option("--undo", is_flag=True, help="Give back what was moved away.")
@own_timeout_option(600.0, WAIT)
def drain(broker: int, data_dir: str, replicas: bool, undo: bool, timeout_s: float) -> None:
    """Move the leaders, and with --replicas the replicas, of a broker to the others, and show the progress.

    The broker stays in the cluster: 'barnabas cluster stop' stops it then. --undo gives everything back.
    """
    from barnabas.cluster import drains, state
    from barnabas.cluster.balance import drain as plan_drain

    known = state.read(data_dir)
    known.node(broker)
    with connect(known.bootstrap, timeout_s) as client:
        current, brokers = _current(client)
        if undo:
            before = drains.load(data_dir, broker)
            plan = {one: placed for one, placed in before.items() if current.get(one, placed) != placed}
        else:
            others = [one for one in brokers if one != broker and one not in drains.drained(known)]
            plan = plan_drain(current, broker, others, replicas=replicas)
            drains.save(data_dir, broker, {one: current[one] for one in plan})
        _carry_out(client, plan, timeout_s)
    if undo:
        drains.forget(data_dir, broker)
    count = f"{len(plan)} partition{'s'[: len(plan) != 1]}"
    say(f"broker {broker} has {count} back" if undo else f"broker {broker} is drained of {count}")


@click.command()
@optional_cluster_dir_option
@bootstrap_option
@click.option("--dry-run", is_flag=True, help="Show the plan only.")
@yes_option
@own_timeout_option(600.0, WAIT)
def rebalance(data_dir: str | None, bootstrap: str, dry_run: bool, yes: bool, timeout_s: float) -> None:
    """Spread replicas and leaders evenly over the brokers; the plan is shown first.

    With the directory of the cluster, drained brokers get none, and those they have move to the others.
    """
    from barnabas.cluster import drains, state
    from barnabas.cluster.balance import rebalance as plan_rebalance

    known = None if data_dir is None else state.read(data_dir)
    left_out = set() if known is None else drains.drained(known)
    with connect(bootstrap if known is None else known.bootstrap, timeout_s) as client:
        current, brokers = _current(client)
        plan = plan_rebalance(current, [one for one in brokers if one not in left_out])
        if not plan:
            say("leaders and replicas are spread evenly already")
            return
        rows = [
            {"partition": f"{topic}-{index}", "replicas": _ids(current[topic, index]), "then": _ids(wanted)}
            for (topic, index), wanted in plan.items()
        ]
        show_rows(rows[:PLAN_ROWS], "table")
        if len(rows) > PLAN_ROWS:
            note(f"and {len(rows) - PLAN_ROWS} partitions more")
        if dry_run:
            return
        ask(f"Move {len(plan)} partitions?", yes)
        _carry_out(client, plan, timeout_s)
    say(f"{len(plan)} partitions are moved")


def _ids(nodes: list[int]) -> str:
    return ",".join(map(str, nodes))


def _current(client: Cluster) -> tuple[Assignment, list[int]]:
    """The replicas of all partitions, preferred leaders first, and the brokers that are online."""
    from barnabas.client.admin import list_topics
    from barnabas.client.admin_cluster import describe_cluster

    placed = {
        (topic.name or "", one.partition_index): list(one.replica_nodes)
        for topic in list_topics(client)
        for one in topic.partitions
    }
    return placed, [one.broker_id for one in describe_cluster(client).brokers if not one.is_fenced]


def _carry_out(client: Cluster, plan: Assignment, timeout_s: float) -> None:
    """Reassign, wait until the new replicas are in sync, and elect the preferred leaders."""
    from barnabas.client.reassignments import elect_leaders, ongoing, reassign

    if not plan:
        return
    deadline = monotonic() + timeout_s
    reassign(client, plan)
    told = -1
    while left := sum(one in plan for one in ongoing(client)):
        if left != told:
            note(f"{len(plan) - left} of {len(plan)} partitions are moved")
            told = left
        if monotonic() > deadline:
            raise TimedOut(f"{left} of {len(plan)} partitions have not moved in {timeout_s:g} s; they go on moving")
        sleep(POLL_S)
    failed = elect_leaders(client, list(plan))
    for (topic, index), error in failed.items():
        note(f"{topic}-{index} keeps its leader for now: {error.name}")
