"""Plans of `barnabas cluster drain` and `rebalance`: which replicas each partition gets. Pure.

The first replica is the preferred leader. A plan has only the partitions that change; it moves as few replicas as it
can, and keeps the number of replicas of each partition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

Partition = tuple[str, int]
Assignment = dict[Partition, list[int]]
"""The replicas of partitions."""


class Impossible(Exception):  # noqa: N818 - a condition
    """There is no such plan; the text is one sentence."""


def drain(
    current: Mapping[Partition, Sequence[int]], broker: int, others: Collection[int], *, replicas: bool
) -> Assignment:
    """Take the leaderships of a broker away, and with `replicas` its replicas. Impossible if too few brokers remain.

    A leadership goes to the replica whose broker leads least, since a new replica has no records yet.
    """
    leads: Counter[int] = Counter(placed[0] for placed in current.values())
    held: Counter[int] = Counter(one for placed in current.values() for one in placed)
    plan: Assignment = {}
    for partition, placed in sorted(current.items()):
        if broker not in placed:
            continue
        wanted = list(placed)
        if replicas:
            free = [other for other in others if other not in placed]
            if not free:
                name = f"{partition[0]}-{partition[1]}"
                raise Impossible(f"{name} has {len(placed)} replicas, and no other broker can have that of {broker}")
            target = min(free, key=lambda other: (held[other], other))
            held[target] += 1
            wanted[wanted.index(broker)] = target
        if placed[0] == broker:
            remaining = [one for one in placed if one != broker] or wanted
            leader = min(remaining, key=lambda other: (leads[other], other))
            leads[leader] += 1
            wanted = [leader, *(one for one in wanted if one != leader)]
        if wanted != list(placed):
            plan[partition] = wanted
    return plan


def rebalance(current: Mapping[Partition, Sequence[int]], brokers: Collection[int]) -> Assignment:
    """Spread replicas, then preferred leaders, so that brokers differ by one at most where that is possible."""
    wanted = {partition: list(placed) for partition, placed in sorted(current.items())}
    _spread_replicas(wanted, brokers)
    _spread_leaders(wanted, brokers)
    return {partition: placed for partition, placed in wanted.items() if placed != list(current[partition])}


def _spread_replicas(wanted: Assignment, brokers: Collection[int]) -> None:
    """Move one replica at a time from the broker that holds most to the one that holds least."""
    held: Counter[int] = Counter(dict.fromkeys(brokers, 0))
    for placed in wanted.values():
        held.update(placed)
    moved = True
    while moved:
        moved = False
        for least in sorted(brokers, key=lambda one: (held[one], one)):
            most = max(held, key=lambda one: (one not in brokers, held[one], -one))
            if held[most] - held[least] < 2 and most in brokers:
                return
            found = next((p for p, placed in wanted.items() if most in placed and least not in placed), None)
            if found is None or not held[most]:
                continue
            wanted[found] = [least if one == most else one for one in wanted[found]]
            held[most] -= 1
            held[least] += 1
            if not held[most] and most not in brokers:
                del held[most]
            moved = True
            break


def _spread_leaders(wanted: Assignment, brokers: Collection[int]) -> None:
    """Change the order of replicas until no leader can be handed to a broker that leads two fewer, by any chain."""
    leads: Counter[int] = Counter(dict.fromkeys(brokers, 0))
    for placed in wanted.values():
        leads[placed[0]] += 1
    while (chain := _chain(wanted, leads)) is not None:
        for partition, leader in chain:
            placed = wanted[partition]
            leads[placed[0]] -= 1
            leads[leader] += 1
            wanted[partition] = [leader, *(one for one in placed if one != leader)]


def _chain(wanted: Assignment, leads: Counter[int]) -> list[tuple[Partition, int]] | None:
    """Partitions to hand on, from a broker that leads most to one that leads at least two fewer."""
    by_leader: dict[int, list[Partition]] = {}
    for partition, placed in wanted.items():
        by_leader.setdefault(placed[0], []).append(partition)
    for start in sorted(leads, key=lambda one: -leads[one]):
        ways: dict[int, list[tuple[Partition, int]]] = {start: []}
        queue = [start]
        for broker in queue:
            if leads[start] - leads[broker] >= 2:
                return ways[broker]
            for partition in by_leader.get(broker, ()):
                for other in wanted[partition][1:]:
                    if other not in ways and other in leads:
                        ways[other] = [*ways[broker], (partition, other)]
                        queue.append(other)
    return None
