"""Plans of `barnabas cluster drain` and `rebalance`: which replicas and which leader each partition gets. Pure.

The first replica is the preferred leader, and the plan is that it leads. Plans use the present leaders: after a failure
the leader is often another replica. A plan has only the partitions whose replicas or leader change; it moves
as few replicas as it can, and keeps the number of replicas of each partition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

Partition = tuple[str, int]
Assignment = dict[Partition, list[int]]
"""The replicas of partitions."""


class Placed(NamedTuple):
    """Where a partition is."""

    replicas: Sequence[int]
    leader: int
    """-1 if it has none."""
    in_sync: Sequence[int]


class Impossible(Exception):  # noqa: N818 - a condition
    """There is no such plan; the text is one sentence."""


def drain(current: Mapping[Partition, Placed], broker: int, others: Collection[int], *, replicas: bool) -> Assignment:
    """Take the leaderships of a broker away, and with `replicas` its replicas. Impossible if too few brokers remain.

    A partition that cannot have another leader is left out. A leadership goes to a replica in sync, since a new one has
    no records yet: to the preferred leader, else to the broker that leads least.
    """
    leads: Counter[int] = Counter(placed.leader for placed in current.values())
    held: Counter[int] = Counter(replica for placed in current.values() for replica in placed.replicas)
    plan: Assignment = {}
    for partition, placed in sorted(current.items()):
        if broker not in placed.replicas:
            continue
        replicas_after = list(placed.replicas)
        if replicas:
            target = _new_home(partition, placed, broker, others, held)
            held[target] += 1
            replicas_after[replicas_after.index(broker)] = target
        remaining = [replica for replica in placed.replicas if replica != broker]
        able = (
            [replica for replica in remaining if replica in placed.in_sync and replica in others]
            or remaining
            or replicas_after
        )
        leader = _next_leader(placed, able, leads)
        if placed.leader == broker:
            leads[leader] += 1
        replicas_after = [leader, *(replica for replica in replicas_after if replica != leader)]
        if leader != broker and (replicas_after != list(placed.replicas) or placed.leader == broker):
            plan[partition] = replicas_after
    return plan


def _new_home(partition: Partition, placed: Placed, broker: int, others: Collection[int], held: Counter[int]) -> int:
    """The broker that gets the replica of `broker`. Impossible if there is none."""
    free = [other for other in others if other not in placed.replicas]
    if not free:
        name = f"{partition[0]}-{partition[1]}"
        raise Impossible(f"{name} has {len(placed.replicas)} replicas, and no other broker can have that of {broker}")
    return min(free, key=lambda other: (held[other], other))


def _next_leader(placed: Placed, able: Sequence[int], leads: Counter[int]) -> int:
    """The preferred leader, or the present leader, if able; else the replica that leads least."""
    for candidate in (placed.replicas[0], placed.leader):
        if candidate in able:
            return candidate
    return min(able, key=lambda other: (leads[other], other))


def rebalance(current: Mapping[Partition, Placed], brokers: Collection[int]) -> Assignment:
    """Spread replicas, then leaders, so that these brokers differ by one at most where that is possible.

    Other brokers lead nothing that one of these can lead.
    """
    plan = {partition: list(placed.replicas) for partition, placed in sorted(current.items())}
    _spread_replicas(plan, brokers)
    _spread_leaders(plan, brokers)
    return {partition: placed for partition, placed in plan.items() if not is_so(current[partition], placed)}


def is_so(placed: Placed, replicas: Sequence[int]) -> bool:
    """Whether a partition has these replicas, the first as its leader."""
    return list(placed.replicas) == list(replicas) and placed.leader == replicas[0]


def _spread_replicas(plan: Assignment, brokers: Collection[int]) -> None:
    """Move one replica at a time from the broker that holds most to the one that holds least."""
    held: Counter[int] = Counter(dict.fromkeys(brokers, 0))
    for placed in plan.values():
        held.update(placed)
    moved = True
    while moved:
        moved = False
        for least in sorted(brokers, key=lambda broker: (held[broker], broker)):
            most = max(held, key=lambda broker: (broker not in brokers, held[broker], -broker))
            if held[most] - held[least] < 2 and most in brokers:
                return
            movable = next((p for p, placed in plan.items() if most in placed and least not in placed), None)
            if movable is None or not held[most]:
                continue
            plan[movable] = [least if broker == most else broker for broker in plan[movable]]
            held[most] -= 1
            held[least] += 1
            if not held[most] and most not in brokers:
                del held[most]
            moved = True
            break


def _spread_leaders(plan: Assignment, brokers: Collection[int]) -> None:
    """Change the order of replicas until no leader can be handed to a broker that leads two fewer, by any chain."""
    leads: Counter[int] = Counter(dict.fromkeys(brokers, 0))
    for placed in plan.values():
        leads[placed[0]] += 1
    for partition, placed in plan.items():
        able = [broker for broker in placed if broker in brokers]
        if able and placed[0] not in brokers:
            _hand_on(plan, leads, partition, min(able, key=lambda broker: (leads[broker], broker)))
    for left_out in set(leads).difference(brokers):
        del leads[left_out]
    while (chain := _chain(plan, leads)) is not None:
        for partition, leader in chain:
            _hand_on(plan, leads, partition, leader)


def _hand_on(plan: Assignment, leads: Counter[int], partition: Partition, leader: int) -> None:
    placed = plan[partition]
    leads[placed[0]] -= 1
    leads[leader] += 1
    plan[partition] = [leader, *(broker for broker in placed if broker != leader)]


def _chain(plan: Assignment, leads: Counter[int]) -> list[tuple[Partition, int]] | None:
    """Partitions to hand on, from a broker that leads most to one that leads at least two fewer."""
    by_leader: dict[int, list[Partition]] = {}
    for partition, placed in plan.items():
        by_leader.setdefault(placed[0], []).append(partition)
    for start in sorted(leads, key=lambda broker: -leads[broker]):
        ways: dict[int, list[tuple[Partition, int]]] = {start: []}
        queue = [start]
        for broker in queue:
            if leads[start] - leads[broker] >= 2:
                return ways[broker]
            for partition in by_leader.get(broker, ()):
                for other in plan[partition][1:]:
                    if other not in ways and other in leads:
                        ways[other] = [*ways[broker], (partition, other)]
                        queue.append(other)
    return None
