"""What consumers of the classic protocol tell each other through the coordinator, read and written by the coordinator.

In a consumer group with classic members, and when a group changes its protocol, the coordinator takes the part of the
leader: it reads the subscriptions in JoinGroup and writes the assignments for SyncGroup (rule G4; KIP-848). Topics have
names there and ids here. A newer version of a structure begins with the newest that is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from barnabas.wire.errors import ProtocolError
from barnabas.wire.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
)
from barnabas.wire.schema import Message

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from barnabas.coord.groups.modern.partitions import Partitions
    from barnabas.coord.groups.topics import Topics
    from barnabas.wire.messages.consumer_protocol import ConsumerProtocolSubscriptionTopicPartition
    from barnabas.wire.types import Uuid

NEWEST = 3

M = TypeVar("M", bound=Message)


def read_subscription(metadata: bytes) -> ConsumerProtocolSubscription:
    """The metadata of a member for one of its protocols. ProtocolError when it is none."""
    return _read(ConsumerProtocolSubscription, metadata)


def read_assignment(assignment: bytes) -> ConsumerProtocolAssignment:
    """What a leader gave a member; nothing, when it is empty. ProtocolError when it is none."""
    return _read(ConsumerProtocolAssignment, assignment) if assignment else ConsumerProtocolAssignment()


def write_assignment(partitions: Mapping[Uuid, Iterable[int]], topics: Topics, metadata: bytes) -> bytes:
    """An assignment as the member reads it whose metadata this is. Topics that do not exist any more are left out."""
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
    """Partitions by topic id; topics that do not exist are left out."""
    found: Partitions = {}
    for entry in entries:
        topic = topics.by_name(entry.topic)
        if topic is not None and entry.partitions:
            found[topic.topic_id] = found.get(topic.topic_id, frozenset()).union(entry.partitions)
    return found


def _read(message: type[M], data: bytes) -> M:
    parsed, _ = message.codec(min(_version(data), NEWEST)).parse(data, 2)
    return parsed


def _version(data: bytes) -> int:
    version = int.from_bytes(data[:2], "big", signed=True)
    if len(data) < 2 or version < 0:
        raise ProtocolError("no version of the consumer protocol")
    return version
