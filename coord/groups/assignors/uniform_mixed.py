"""The `uniform` assignor for members that subscribe to different topics (KIP-848).

Each topic in turn is balanced: its partitions are assigned to the subscribers that have the fewest partitions of all
topics; of equal choices the one that moves fewest partitions is taken. This is repeated until no topic changes. Then no
owner of a partition has two partitions more than any other subscriber of that topic. Every round that moves partitions
makes the sum of the squares of the loads smaller, so it terminates; long chains of topics that share members pairwise
may take many rounds, and are a little uneven when the maximum is reached.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.coord.groups.assignors.spec import Assignment, MemberSpec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from barnabas.wire.types import Uuid

ROUNDS = 32
"""Maximum number of rounds; Kafka's is 16."""


def assign(members: Mapping[str, MemberSpec], topics: Mapping[Uuid, int]) -> Assignment:
    """Keep present assignments, assign the rest topic by topic, then balance."""
    shares = _Shares(members, topics)
    for topic in shares.hardest_first():
        shares.assign_unowned(topic)
    for _ in range(ROUNDS):
        if not sum(map(shares.level, shares.hardest_first())):
            break
    return shares.assignment()


class _Shares:
    """An assignment in progress: partitions by topic and owner, and the number of partitions of each member."""

    def __init__(self, members: Mapping[str, MemberSpec], topics: Mapping[Uuid, int]) -> None:
        self._members = members
        self._loads = dict.fromkeys(sorted(members), 0)
        self._unowned = {topic: set(range(size)) for topic, size in topics.items()}
        self._owners: dict[Uuid, dict[str, set[int]]] = {topic: {} for topic in topics}
        self._subscribers: dict[Uuid, list[str]] = {topic: [] for topic in topics}
        for member_id in self._loads:
            self._keep(member_id, members[member_id])
        self._order = sorted(topics, key=lambda topic: (-topics[topic] / len(self._subscribers[topic]), topic))

    def _keep(self, member_id: str, member: MemberSpec) -> None:
        for topic in member.subscribed & self._owners.keys():
            self._subscribers[topic].append(member_id)
            mine = self._unowned[topic].intersection(member.assigned.get(topic, ()))
            if mine:
                self._owners[topic][member_id] = mine
                self._unowned[topic] -= mine
                self._loads[member_id] += len(mine)

    def hardest_first(self) -> Iterable[Uuid]:
        """Topics with the most partitions per subscriber first; the others can balance what remains uneven."""
        return self._order

    def assign_unowned(self, topic: Uuid) -> None:
        """Assign unowned partitions to the subscribers with the fewest."""
        if self._unowned[topic]:
            self._move_to_shares(topic, self._shares_with_more(topic, len(self._unowned[topic])))

    def level(self, topic: Uuid) -> bool:
        """Balance the topic; whether partitions moved."""
        owners = self._owners[topic]
        loads = self._loads
        if max(map(loads.__getitem__, owners)) - min(map(loads.__getitem__, self._subscribers[topic])) <= 1:
            return False
        for member_id, mine in owners.items():
            loads[member_id] -= len(mine)
        shares = self._even_shares(topic, sum(map(len, owners.values())))
        for member_id, mine in owners.items():
            loads[member_id] += len(mine)
        self._move_to_shares(topic, shares)
        return True

    def _shares_with_more(self, topic: Uuid, count: int) -> dict[str, int]:
        """Shares of the topic when `count` more partitions are assigned to the least loaded subscribers."""
        shares = self._even_shares(topic, count)
        for member_id, mine in self._owners[topic].items():
            shares[member_id] = shares.get(member_id, 0) + len(mine)
        return shares

    def _even_shares(self, topic: Uuid, count: int) -> dict[str, int]:
        """How many of `count` partitions each subscriber gets so that loads are even; subscribers with none are absent.

        Some subscribers get one less: the ones with the fewest partitions of the topic.
        """
        loads = self._loads
        owners = self._owners[topic]
        order = sorted(self._subscribers[topic], key=loads.__getitem__)
        level, below, capacity = _level([loads[member_id] for member_id in order], count)
        shares = {member_id: level - loads[member_id] for member_id in order[:below]}
        surplus = capacity - count
        if surplus:
            none: set[int] = set()
            gains = sorted(shares, key=lambda member_id: len(owners.get(member_id, none)) - shares[member_id])
            for member_id in gains[:surplus]:
                shares[member_id] -= 1
        return {member_id: share for member_id, share in shares.items() if share}

    def _move_to_shares(self, topic: Uuid, shares: dict[str, int]) -> None:
        """Move partitions until every member has its share of the topic."""
        owners = self._owners[topic]
        pool = self._unowned[topic]
        for member_id in sorted(owners):
            mine = owners[member_id]
            over = len(mine) - shares.get(member_id, 0)
            if over > 0:
                leaving = sorted(mine)[-over:]
                mine.difference_update(leaving)
                pool.update(leaving)
                self._loads[member_id] -= over
                if not mine:
                    del owners[member_id]
        free = iter(sorted(pool))
        for member_id in sorted(shares):
            mine = owners.setdefault(member_id, set())
            missing = shares[member_id] - len(mine)
            mine.update([next(free) for _ in range(missing)])
            self._loads[member_id] += missing
        pool.clear()

    def assignment(self) -> Assignment:
        """The resulting assignment."""
        assignment: Assignment = {member_id: {} for member_id in self._members}
        for topic, owners in self._owners.items():
            for member_id, mine in owners.items():
                assignment[member_id][topic] = frozenset(mine)
        return assignment


def _level(loads: list[int], count: int) -> tuple[int, int, int]:
    """The lowest even load after adding `count` to the ascending `loads`; how many are below it; how many it takes."""
    total = 0
    for below in range(1, len(loads) + 1):
        total += loads[below - 1]
        if below == len(loads) or below * loads[below] - total >= count:
            break
    level = -((-count - total) // below)
    while below > 1 and loads[below - 1] >= level:
        below -= 1
        total -= loads[below]
    return level, below, below * level - total
