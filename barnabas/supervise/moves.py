"""Moves replicas and leaders of partitions as a plan says (`balance`), and tells what is left, with the reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic, sleep

from barnabas.client.admin.cluster import describe_cluster
from barnabas.client.admin.reassignments import elect_leaders, ongoing, reassign
from barnabas.client.admin.topics import list_topics
from barnabas.client.cluster import Cluster
from barnabas.supervise.balance import Assignment, Partition, Placed

POLL_S = 0.2
ELECT_S = 1.0
"""After what time leaders that are not elected yet are asked for again, seconds."""
SETTLE_S = 10.0
"""How long leaders are waited for when no replica moves any more, seconds."""


def not_moved(placed: Placed, replicas: list[int] | None) -> str | None:
    """Why a partition is not as it was planned; None if it is, or nothing was planned."""
    if replicas is None or (list(placed.replicas) == replicas and placed.leader == replicas[0]):
        return None
    if list(placed.replicas) != replicas:
        return f"its replicas are {ids(placed.replicas)}, not yet {ids(replicas)}"
    is_in_sync = replicas[0] in placed.in_sync
    return f"{_leader(placed)}, not {replicas[0]}" + ("" if is_in_sync else f": {replicas[0]} is not in sync")


def not_drained(placed: Placed, broker: int, replicas: bool) -> str | None:
    """What a partition still has on a broker; None if nothing."""
    if placed.leader == broker:
        if list(placed.replicas) == [broker]:
            return f"broker {broker} has its only replica; --replicas moves it"
        able = [replica for replica in placed.in_sync if replica != broker]
        return f"broker {broker} leads it" + ("" if able else ": no other replica is in sync")
    if replicas and broker in placed.replicas:
        return f"broker {broker} has a replica of it: they are {ids(placed.replicas)}"
    return None


def _leader(placed: Placed) -> str:
    return "it has no leader" if placed.leader < 0 else f"broker {placed.leader} leads it"


def current_places(client: Cluster) -> tuple[dict[Partition, Placed], list[int]]:
    """Where all partitions are, and the brokers that are online."""
    return placed_partitions(client), [
        described.broker_id for described in describe_cluster(client).brokers if not described.is_fenced
    ]


def placed_partitions(client: Cluster) -> dict[Partition, Placed]:
    """Where all partitions are."""
    return {
        (topic.name or "", partition.partition_index): Placed(
            list(partition.replica_nodes), partition.leader_id, list(partition.isr_nodes)
        )
        for topic in list_topics(client)
        for partition in topic.partitions
    }


def carry_out(
    client: Cluster,
    plan: Assignment,
    timeout_s: float,
    problem_of: Callable[[Partition, Placed], str | None],
    progress: Callable[[str], None],
) -> dict[Partition, str]:
    """Reassign, wait until the new replicas are in sync, have the first ones elected; what is left then, and why.

    `problem_of` says it of a partition; None: nothing. `progress` gets a sentence whenever partitions have moved.
    """
    current, end = placed_partitions(client), monotonic() + timeout_s
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
            progress(f"{len(moves) - moving} of {len(moves)} partitions are moved")
            noted = moving
        placed = placed_partitions(client)
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


def ids(nodes: Sequence[int]) -> str:
    """`1,2,3`."""
    return ",".join(map(str, nodes))
