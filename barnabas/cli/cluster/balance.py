"""`barnabas cluster drain|rebalance`: leaders and replicas moved between brokers, with a plan first.

Both look at what is there in the end: what is left is told, with the reason, and the exit code is 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from time import monotonic, sleep

import click

from barnabas.cli.cluster.directory import cluster_dir_option, known_cluster, optional_cluster_dir_option
from barnabas.cli.failure import FAILED
from barnabas.cli.options.parameters import bootstrap_option, connect, own_timeout_option, yes_option
from barnabas.client.admin.cluster import describe_cluster
from barnabas.client.admin.reassignments import elect_leaders, ongoing, reassign
from barnabas.client.admin.topics import list_topics
from barnabas.client.cluster import Cluster
from barnabas.supervise import drains
from barnabas.supervise.balance import Assignment, Partition, Placed, is_so
from barnabas.supervise.balance import drain as plan_drain
from barnabas.supervise.balance import rebalance as plan_rebalance
from barnabas.supervise.control import look
from barnabas.terminal.notes import note, say
from barnabas.terminal.question import ask
from barnabas.terminal.tables import show_rows

POLL_S = 0.2
ELECT_S = 1.0
"""After what time leaders that are not elected yet are asked for again, seconds."""
SETTLE_S = 10.0
"""How long leaders are waited for when no replica moves any more, seconds."""
PLAN_ROWS = 20
"""Rows of a plan, and of what is left, that are shown."""
WAIT = "How long to wait until the partitions have moved."


@click.command()
@click.argument("broker", metavar="NODE", type=int)
@cluster_dir_option
@click.option("--replicas", is_flag=True, help="Move its replicas too, so that it can be removed.")
@click.option("--undo", is_flag=True, help="Give back what was moved away.")
@own_timeout_option(600.0, WAIT)
def drain(broker: int, data_dir: str, replicas: bool, undo: bool, timeout_s: float) -> int:
    """Move the leaders, and with --replicas the replicas, of a broker to the others, and show the progress.

    The broker stays in the cluster: 'barnabas cluster stop' stops it then. --undo gives everything back. Exit 1 if
    something is left, which is listed.
    """
    known = look(data_dir, note)
    known.node(broker)
    with connect(known.bootstrap, timeout_s) as client:
        current, brokers = _current(client)
        if undo:
            before = drains.load(data_dir, broker)
            plan = {one: to for one, to in before.items() if one in current and not is_so(current[one], to)}
            left = _carry_out(client, plan, timeout_s, lambda one, placed: _not_so(placed, plan.get(one)))
        else:
            others = [one for one in brokers if one != broker and one not in drains.drained(known)]
            plan = plan_drain(current, broker, others, replicas=replicas)
            drains.save(data_dir, broker, {one: list(current[one].replicas) for one in plan})
            left = _carry_out(client, plan, timeout_s, lambda _, placed: _not_drained(placed, broker, replicas))
    if left:
        note(f"broker {broker} {'has not everything back' if undo else 'is not drained'}: {_count(left)} left")
        return _show_left(left)
    if undo:
        drains.forget(data_dir, broker)
    say(f"broker {broker} has {_count(plan)} back" if undo else f"broker {broker} is drained of {_count(plan)}")
    return 0


@click.command()
@optional_cluster_dir_option
@bootstrap_option
@click.option("--dry-run", is_flag=True, help="Show the plan only.")
@yes_option
@own_timeout_option(600.0, WAIT)
def rebalance(data_dir: str | None, bootstrap: str, dry_run: bool, yes: bool, timeout_s: float) -> int:
    """Spread replicas and leaders evenly over the brokers; the plan is shown first.

    With the directory of the cluster, drained brokers get none, and those they have move to the others. Exit 1 if
    something is left, which is listed.
    """
    known = known_cluster(data_dir)
    left_out = set() if known is None else drains.drained(known)
    with connect(bootstrap if known is None else known.bootstrap, timeout_s) as client:
        current, brokers = _current(client)
        plan = plan_rebalance(current, [one for one in brokers if one not in left_out])
        if not plan:
            say("leaders and replicas are spread evenly already")
            return 0
        rows: list[dict[str, object]] = [
            {
                "partition": f"{topic}-{index}",
                "leader": current[topic, index].leader,
                "replicas": _ids(current[topic, index].replicas),
                "then_leader": wanted[0],
                "then_replicas": _ids(wanted),
            }
            for (topic, index), wanted in plan.items()
        ]
        show_rows(rows[:PLAN_ROWS], "table")
        if len(rows) > PLAN_ROWS:
            note(f"and {len(rows) - PLAN_ROWS} more")
        if dry_run:
            return 0
        ask(f"Move {_count(plan)}?", yes)
        left = _carry_out(client, plan, timeout_s, lambda one, placed: _not_so(placed, plan.get(one)))
    if left:
        note(f"{len(plan) - len(left)} of {_count(plan)} are moved: {_count(left)} left")
        return _show_left(left)
    say(f"{_count(plan)} {'is' if len(plan) == 1 else 'are'} moved")
    return 0


def _ids(nodes: Sequence[int]) -> str:
    return ",".join(map(str, nodes))


def _count(partitions: Sized) -> str:
    return f"{len(partitions)} partition{'s'[: len(partitions) != 1]}"


def _show_left(left: dict[Partition, str]) -> int:
    for (topic, index), reason in list(left.items())[:PLAN_ROWS]:
        note(f"{topic}-{index}: {reason}")
    if len(left) > PLAN_ROWS:
        note(f"and {len(left) - PLAN_ROWS} more")
    return FAILED


def _not_so(placed: Placed, wanted: list[int] | None) -> str | None:
    """Why a partition is not as it was planned; None if it is, or nothing was planned."""
    if wanted is None or (list(placed.replicas) == wanted and placed.leader == wanted[0]):
        return None
    if list(placed.replicas) != wanted:
        return f"its replicas are {_ids(placed.replicas)}, not yet {_ids(wanted)}"
    is_in_sync = wanted[0] in placed.in_sync
    return f"{_leader(placed)}, not {wanted[0]}" + ("" if is_in_sync else f": {wanted[0]} is not in sync")


def _not_drained(placed: Placed, broker: int, replicas: bool) -> str | None:
    """What a partition still has on a broker; None if nothing."""
    if placed.leader == broker:
        if list(placed.replicas) == [broker]:
            return f"broker {broker} has its only replica; --replicas moves it"
        able = [one for one in placed.in_sync if one != broker]
        return f"broker {broker} leads it" + ("" if able else ": no other replica is in sync")
    if replicas and broker in placed.replicas:
        return f"broker {broker} has a replica of it: they are {_ids(placed.replicas)}"
    return None


def _leader(placed: Placed) -> str:
    return "it has no leader" if placed.leader < 0 else f"broker {placed.leader} leads it"


def _current(client: Cluster) -> tuple[dict[Partition, Placed], list[int]]:
    """Where all partitions are, and the brokers that are online."""
    return _placed(client), [one.broker_id for one in describe_cluster(client).brokers if not one.is_fenced]


def _placed(client: Cluster) -> dict[Partition, Placed]:
    return {
        (topic.name or "", one.partition_index): Placed(list(one.replica_nodes), one.leader_id, list(one.isr_nodes))
        for topic in list_topics(client)
        for one in topic.partitions
    }


def _carry_out(
    client: Cluster, plan: Assignment, timeout_s: float, left_of: Callable[[Partition, Placed], str | None]
) -> dict[Partition, str]:
    """Reassign, wait until the new replicas are in sync, have the first ones elected; what is left then, and why.

    `left_of` says it of a partition; None: nothing.
    """
    current, end = _placed(client), monotonic() + timeout_s
    moves = {one: to for one, to in plan.items() if one in current and list(current[one].replicas) != to}
    if moves:
        reassign(client, moves)
    told, settled, elect_at = -1, monotonic() + SETTLE_S, 0.0
    while True:
        moving = sum(one in moves for one in ongoing(client)) if moves else 0
        if moving and moving != told:
            note(f"{len(moves) - moving} of {len(moves)} partitions are moved")
            told = moving
        placed = _placed(client)
        left = {one: reason for one, at in placed.items() if (reason := left_of(one, at)) is not None}
        now = monotonic()
        settled = now + SETTLE_S if moving else settled
        if now > min(end, settled) or not (moving or left.keys() & plan.keys()):
            return left
        unled = [one for one in left.keys() & plan.keys() if set(placed[one].replicas) == set(plan[one])]
        if unled and now >= elect_at:
            elect_leaders(client, unled)
            elect_at = now + ELECT_S
        sleep(POLL_S)
