"""The embedded consumer protocol: the subscriptions in JoinGroup and the assignments in SyncGroup of classic consumers.

In a consumer group with classic members, and when a group is converted, the coordinator acts as the leader: it reads
the subscriptions and writes the assignments (rule G4; KIP-848). The protocol has names of topics where the coordinator
has ids. A structure of a newer version begins with the fields of the newest known one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from barnabas.wire.errors import ProtocolError
from barnabas.wire.messages.groups.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
)
from barnabas.wire.schema import Message

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from barnabas.coord.groups.modern.partitions import Partitions
    from barnabas.coord.groups.topics import Topics
    from barnabas.wire.messages.groups.consumer_protocol import ConsumerProtocolSubscriptionTopicPartition
    from barnabas.wire.types import Uuid

NEWEST = 3

M = TypeVar("M", bound=Message)


def read_subscription(metadata: bytes) -> ConsumerProtocolSubscription:
    """Read a member's metadata for one of its protocols. Raises ProtocolError."""
    return _read(ConsumerProtocolSubscription, metadata)


def read_assignment(assignment: bytes) -> ConsumerProtocolAssignment:
    """Read a member's assignment by a leader; empty bytes are an empty assignment. Raises ProtocolError."""
    return _read(ConsumerProtocolAssignment, assignment) if assignment else ConsumerProtocolAssignment()


def write_assignment(partitions: Mapping[Uuid, Iterable[int]], topics: Topics, metadata: bytes) -> bytes:
    """Write an assignment in the version of the member's metadata. Deleted topics are omitted."""
    version = min(_version(metadata), NEWEST)
    assigned = [
        ConsumerProtocolAssignmentTopicPartition(topic=topic.name, partitions=sorted(partitions[topic.topic_id]))
        for topic in map(topics.by_id, partitions)
        if topic is not None
    ]
    message = ConsumerProtocolAssignment(assigned_partitions=sorted(assigned, key=lambda entry: entry.topic))
    return version.to_bytes(2, "big") + message.encode(version)


def by_topic_id(
    entries: Iterable[ConsumerProtocolAssignmentTopicPartition | ConsumerProtocolSubscriptionTopicPartition],
    topics: Topics,
) -> Partitions:
    """Partitions by topic id; topics that do not exist are omitted."""
    partitions: Partitions = {}
    for entry in entries:
        topic = topics.by_name(entry.topic)
        if topic is not None and entry.partitions:
            partitions[topic.topic_id] = partitions.get(topic.topic_id, frozenset()).union(entry.partitions)
    return partitions


def _read(message: type[M], data: bytes) -> M:
    parsed, _ = message.codec(min(_version(data), NEWEST)).parse(data, 2)
    return parsed


def _version(data: bytes) -> int:
    version = int.from_bytes(data[:2], "big", signed=True)
    if len(data) < 2 or version < 0:
        raise ProtocolError("no version of the consumer protocol")
    return version
