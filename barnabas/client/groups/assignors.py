"""The assignors `range` and `roundrobin`, which every consumer knows: who of a group reads what (KIP-54's neighbours).

The leader of a group runs the one that the coordinator has chosen. Members are ordered by instance id, then member id,
as in Kafka's AbstractPartitionAssignor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle

from barnabas.client.offsets import TopicPartition

Subscriptions = Mapping[str, Sequence[str]]
"""The topics of each member, in the order of the members."""


def assign_range(subscriptions: Subscriptions, partition_counts: Mapping[str, int]) -> dict[str, list[TopicPartition]]:
    """For each topic a run of partitions for each member; the first members get one more."""
    assigned: dict[str, list[TopicPartition]] = {member: [] for member in subscriptions}
    for topic in sorted({topic for topics in subscriptions.values() for topic in topics}):
        members = [member for member, topics in subscriptions.items() if topic in topics]
        size, larger = divmod(partition_counts.get(topic, 0), len(members))
        start = 0
        for number, member in enumerate(members):
            end = start + size + (number < larger)
            assigned[member] += [(topic, index) for index in range(start, end)]
            start = end
    return assigned


def assign_round_robin(
    subscriptions: Subscriptions, partition_counts: Mapping[str, int]
) -> dict[str, list[TopicPartition]]:
    """All partitions in order, each to the next member that has subscribed to its topic."""
    assigned: dict[str, list[TopicPartition]] = {member: [] for member in subscriptions}
    members = cycle(subscriptions)
    for topic in sorted({topic for topics in subscriptions.values() for topic in topics}):
        for index in range(partition_counts.get(topic, 0)):
            member = next(one for one in members if topic in subscriptions[one])
            assigned[member].append((topic, index))
    return assigned


ASSIGNORS = {"range": assign_range, "roundrobin": assign_round_robin}
