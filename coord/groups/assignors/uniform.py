"""The `uniform` assignor, Kafka's default: an even assignment that moves few partitions (KIP-848).

If all members subscribe to the same topics, their shares differ by at most one partition, and the least possible number
of partitions moves. Otherwise see `uniform_mixed`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.coord.groups.assignors import uniform_mixed
from barnabas.coord.groups.assignors.spec import Assignment, MemberSpec, same_subscription, subscribed_topics

if TYPE_CHECKING:
    from collections.abc import Mapping

    from barnabas.wire.types import Uuid

NAME = "uniform"


def assign(members: Mapping[str, MemberSpec], topics: Mapping[Uuid, int]) -> Assignment:
    """Keep partitions up to each member's quota, then assign the rest to members below it."""
    if not members:
        return {}
    subscribed = subscribed_topics(members, topics)
    if same_subscription(members):
        return _Shares(members, subscribed).assign()
    return uniform_mixed.assign(members, subscribed)


class _Shares:
    """An assignment in progress."""

    def __init__(self, members: Mapping[str, MemberSpec], topics: Mapping[Uuid, int]) -> None:
        self._members = members
        self._unowned = {topic: set(range(size)) for topic, size in topics.items()}
        self._total = sum(topics.values())
        self._assigned: dict[str, dict[Uuid, frozenset[int]]] = {}

    def assign(self) -> Assignment:
        order = sorted(self._members)
        counts = {member_id: self._keep(member_id) for member_id in order}
        quota, extra = divmod(self._total, len(order))
        by_count = sorted(order, key=counts.__getitem__, reverse=True)
        quotas = {member_id: quota + (place < extra) for place, member_id in enumerate(by_count)}
        for member_id in order:
            if counts[member_id] > quotas[member_id]:
                self._revoke(member_id, quotas[member_id])
        pool = iter([(topic, index) for topic, unowned in self._unowned.items() for index in sorted(unowned)])
        for member_id in order:
            missing = quotas[member_id] - counts[member_id]
            if missing > 0:
                self._give(member_id, [next(pool) for _ in range(missing)])
        return {member_id: self._assigned[member_id] for member_id in self._members}

    def _keep(self, member_id: str) -> int:
        """Keep the member's partitions of the topics; of two owners of a partition the first keeps it."""
        assigned = self._assigned[member_id] = {}
        count = 0
        for topic, partitions in self._members[member_id].assigned.items():
            unowned = self._unowned.get(topic)
            if unowned is None:
                continue
            mine = partitions if partitions <= unowned else partitions & unowned
            if mine:
                assigned[topic] = mine
                unowned -= mine
                count += len(mine)
        return count

    def _revoke(self, member_id: str, quota: int) -> None:
        """Release what the member has over its quota: the last partitions of the last topics."""
        assigned = self._assigned[member_id]
        for topic in sorted(assigned):
            indexes = assigned[topic]
            if len(indexes) > quota:
                staying = frozenset(sorted(indexes)[:quota])
                self._unowned[topic] |= indexes - staying
                if staying:
                    assigned[topic] = staying
                else:
                    del assigned[topic]
                quota = 0
            else:
                quota -= len(indexes)

    def _give(self, member_id: str, partitions: list[tuple[Uuid, int]]) -> None:
        gained: dict[Uuid, list[int]] = {}
        for topic, index in partitions:
            gained.setdefault(topic, []).append(index)
        assigned = self._assigned[member_id]
        for topic, indexes in gained.items():
            assigned[topic] = assigned.get(topic, frozenset()).union(indexes)
