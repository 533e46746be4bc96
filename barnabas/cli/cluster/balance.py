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
@click.option("--undo", is_flag=True, help="Move the drained partitions back.")
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
            plan = {
                partition: to
                for partition, to in before.items()
                if partition in current and not is_so(current[partition], to)
            }
            unmoved = _carry_out(
                client, plan, timeout_s, lambda partition, placed: _problem(placed, plan.get(partition))
            )
        else:
            others = [other for other in brokers if other != broker and other not in drains.drained(known)]
            plan = plan_drain(current, broker, others, replicas=replicas)
            drains.save(data_dir, broker, {partition: list(current[partition].replicas) for partition in plan})
            unmoved = _carry_out(client, plan, timeout_s, lambda _, placed: _not_drained(placed, broker, replicas))
    if unmoved:
        note(f"broker {broker} {'has not everything back' if undo else 'is not drained'}: {_count(unmoved)} left")
        return _show_unmoved(unmoved)
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
        plan = plan_rebalance(current, [broker for broker in brokers if broker not in left_out])
        if not plan:
            say("leaders and replicas are spread evenly already")
            return 0
        rows: list[dict[str, object]] = [
            {
                "partition": f"{topic}-{index}",
                "leader": current[topic, index].leader,
                "replicas": _ids(current[topic, index].replicas),
                "then_leader": replicas[0],
                "then_replicas": _ids(replicas),
            }
            for (topic, index), replicas in plan.items()
        ]
        show_rows(rows[:PLAN_ROWS], "table")
        if len(rows) > PLAN_ROWS:
            note(f"and {len(rows) - PLAN_ROWS} more")
        if dry_run:
            return 0
        ask(f"Move {_count(plan)}?", yes)
        unmoved = _carry_out(client, plan, timeout_s, lambda partition, placed: _problem(placed, plan.get(partition)))
    if unmoved:
        note(f"{len(plan) - len(unmoved)} of {_count(plan)} are moved: {_count(unmoved)} left")
        return _show_unmoved(unmoved)
    say(f"{_count(plan)} {'is' if len(plan) == 1 else 'are'} moved")
    return 0


def _ids(nodes: Sequence[int]) -> str:
    return ",".join(map(str, nodes))


def _count(partitions: Sized) -> str:
    return f"{len(partitions)} partition{'s'[: len(partitions) != 1]}"


def _show_unmoved(unmoved: dict[Partition, str]) -> int:
    for (topic, index), reason in list(unmoved.items())[:PLAN_ROWS]:
        note(f"{topic}-{index}: {reason}")
    if len(unmoved) > PLAN_ROWS:
        note(f"and {len(unmoved) - PLAN_ROWS} more")
    return FAILED


def _problem(placed: Placed, replicas: list[int] | None) -> str | None:
    """Why a partition is not as it was planned; None if it is, or nothing was planned."""
    if replicas is None or (list(placed.replicas) == replicas and placed.leader == replicas[0]):
        return None
    if list(placed.replicas) != replicas:
        return f"its replicas are {_ids(placed.replicas)}, not yet {_ids(replicas)}"
    is_in_sync = replicas[0] in placed.in_sync
    return f"{_leader(placed)}, not {replicas[0]}" + ("" if is_in_sync else f": {replicas[0]} is not in sync")


def _not_drained(placed: Placed, broker: int, replicas: bool) -> str | None:
    """What a partition still has on a broker; None if nothing."""
    if placed.leader == broker:
        if list(placed.replicas) == [broker]:
            return f"broker {broker} has its only replica; --replicas moves it"
        able = [replica for replica in placed.in_sync if replica != broker]
        return f"broker {broker} leads it" + ("" if able else ": no other replica is in sync")
    if replicas and broker in placed.replicas:
        return f"broker {broker} has a replica of it: they are {_ids(placed.replicas)}"
    return None


def _leader(placed: Placed) -> str:
    return "it has no leader" if placed.leader < 0 else f"broker {placed.leader} leads it"


def _current(client: Cluster) -> tuple[dict[Partition, Placed], list[int]]:
    """Where all partitions are, and the brokers that are online."""
    return _placed(client), [
        described.broker_id for described in describe_cluster(client).brokers if not described.is_fenced
    ]


def _placed(client: Cluster) -> dict[Partition, Placed]:
    return {
        (topic.name or "", partition.partition_index): Placed(
            list(partition.replica_nodes), partition.leader_id, list(partition.isr_nodes)
        )
        for topic in list_topics(client)
        for partition in topic.partitions
    }


def _carry_out(
    client: Cluster, plan: Assignment, timeout_s: float, problem_of: Callable[[Partition, Placed], str | None]
) -> dict[Partition, str]:
    """Reassign, wait until the new replicas are in sync, have the first ones elected; what is left then, and why.

    `problem_of` says it of a partition; None: nothing.
    """
    current, end = _placed(client), monotonic() + timeout_s
    moves = {
        partition: to
        for partition, to in plan.items()
        if partition in current and list(current[partition].replicas) != to
    }
    if moves:
        reassign(client, moves)
    noted, settled, elect_at = -1, monotonic() + SETTLE_S, 0.0
    while True:
        moving = sum(partition in moves for partition in ongoing(client)) if moves else 0
        if moving and moving != noted:
            note(f"{len(moves) - moving} of {len(moves)} partitions are moved")
            noted = moving
        placed = _placed(client)
        unmoved = {
            partition: reason for partition, at in placed.items() if (reason := problem_of(partition, at)) is not None
        }
        now = monotonic()
        settled = now + SETTLE_S if moving else settled
        if now > min(end, settled) or not (moving or unmoved.keys() & plan.keys()):
            return unmoved
        unled = [
            partition
            for partition in unmoved.keys() & plan.keys()
            if set(placed[partition].replicas) == set(plan[partition])
        ]
        if unled and now >= elect_at:
            elect_leaders(client, unled)
            elect_at = now + ELECT_S
        sleep(POLL_S)
