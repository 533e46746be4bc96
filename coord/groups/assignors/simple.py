"""The `simple` assignor of share groups: several members may read a partition; few partitions move (KIP-932).

Partitions with the same subscribers get equally many readers: one, or if there are more members than partitions, as
many as are needed to give each member a partition. The shares of members in such a set of partitions differ by at most
one. If all members subscribe to the same topics, the set is all partitions; otherwise each topic is a set of its own,
and members that have more of one topic get less of the next.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from barnabas.coord.groups.assignors.spec import Assignment, MemberSpec, same_subscription, subscribed_topics

if TYPE_CHECKING:
    from collections.abc import Mapping

    from barnabas.wire.types import Uuid

    TopicPartition = tuple[Uuid, int]

NAME = "simple"


def assign(members: Mapping[str, MemberSpec], topics: Mapping[Uuid, int]) -> Assignment:
    """Every partition of a subscribed topic to at least one member, every member of a topic with partitions to one."""
    subscribed = subscribed_topics(members, topics)
    order = sorted(members)
    held: dict[str, set[TopicPartition]] = {member_id: set() for member_id in order}
    if same_subscription(members):
        _share(members, order, [(topic, index) for topic, size in subscribed.items() for index in range(size)], held)
    else:
        for topic, size in subscribed.items():
            subscribers = [member_id for member_id in order if topic in members[member_id].subscribed]
            _share(members, subscribers, [(topic, index) for index in range(size)], held)
    return {member_id: _by_topic(held[member_id]) for member_id in members}


def _by_topic(partitions: set[TopicPartition]) -> dict[Uuid, frozenset[int]]:
    grouped: dict[Uuid, set[int]] = {}
    for topic, index in partitions:
        grouped.setdefault(topic, set()).add(index)
    return {topic: frozenset(indexes) for topic, indexes in grouped.items()}


def _share(
    members: Mapping[str, MemberSpec],
    order: list[str],
    partitions: list[TopicPartition],
    held: dict[str, set[TopicPartition]],
) -> None:
    """Assign `partitions` to the members of `order`, in addition to what each holds of others."""
    if partitions:
        readers = -(-len(order) // len(partitions))
        sharing = _Sharing(partitions, readers)
        shares = {member_id: sharing.keep(members[member_id]) for member_id in order}
        quota, extra = divmod(readers * len(partitions), len(order))
        by_wish = sorted(order, key=lambda member_id: (len(held[member_id]), -len(shares[member_id])))
        quotas = {member_id: quota + (rank < extra) for rank, member_id in enumerate(by_wish)}
        for member_id in order:
            sharing.trim(shares[member_id], quotas[member_id])
        sharing.start_filling()
        for member_id in order:
            sharing.fill(shares[member_id], quotas[member_id])
        for member_id in order:
            while len(shares[member_id]) < quotas[member_id]:
                sharing.swap(member_id, shares)
        for member_id in order:
            held[member_id] |= shares[member_id]


class _Sharing:
    """How many readers each partition still needs."""

    def __init__(self, partitions: list[TopicPartition], readers: int) -> None:
        self._needed = dict.fromkeys(partitions, readers)
        self._topics = {topic for topic, _ in partitions}
        self._queue: deque[TopicPartition] = deque()

    def keep(self, member: MemberSpec) -> set[TopicPartition]:
        """The partitions that the member has and that still need a reader."""
        needed = self._needed
        share = set()
        for topic in self._topics & member.assigned.keys():
            for index in member.assigned[topic]:
                partition = (topic, index)
                if needed.get(partition):
                    needed[partition] -= 1
                    share.add(partition)
        return share

    def trim(self, share: set[TopicPartition], quota: int) -> None:
        """Release what the member has over its quota, first partitions that others read too."""
        over = len(share) - quota
        if over > 0:
            for partition in sorted(share, key=lambda partition: (-self._needed[partition], partition))[-over:]:
                share.remove(partition)
                self._needed[partition] += 1

    def start_filling(self) -> None:
        """Queue the partitions that need readers, each once; a partition that needs more is appended again."""
        self._queue.extend(partition for partition, needed in self._needed.items() if needed)

    def fill(self, share: set[TopicPartition], quota: int) -> None:
        """Fill the member's quota with partitions that need readers and that it does not read."""
        passed = []
        while len(share) < quota and self._queue:
            partition = self._queue.popleft()
            if partition in share:
                passed.append(partition)
            else:
                self._take(partition, share)
        self._queue.extendleft(reversed(passed))

    def _take(self, partition: TopicPartition, share: set[TopicPartition]) -> None:
        share.add(partition)
        self._needed[partition] -= 1
        if self._needed[partition]:
            self._queue.append(partition)

    def swap(self, member_id: str, shares: dict[str, set[TopicPartition]]) -> None:
        """The member reads all partitions that still need readers: another member takes one for one of its own.

        There always is such a member: one that does not read the partition, since that needs a reader, and has its full
        share, since otherwise it would have taken it; so it has a partition that this member does not have.
        """
        share = shares[member_id]
        partition = self._queue.popleft()
        giver = next(theirs for theirs in shares.values() if partition not in theirs)
        given_away = min(giver - share)
        giver.remove(given_away)
        share.add(given_away)
        self._take(partition, giver)
