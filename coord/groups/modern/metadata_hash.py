"""A number that changes when the topics a group reads change: come, go, grow, or move to other racks (KIP-1101).

It stands in the record of the group's epoch, so that a coordinator that has just loaded the group can tell whether its
target assignment still fits. Source: Kafka 4.4 `org.apache.kafka.coordinator.group.Utils`.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coord.groups.topics import Topic, Topics


def group_hash(names: Iterable[str], topics: Topics) -> int:
    """Of all topics subscribed to; those that do not exist do not count. 0 when there is none; a signed long."""
    found = [topic for topic in map(topics.by_name, sorted(set(names))) if topic is not None]
    if not found:
        return 0
    digest = blake2b(digest_size=8)
    for topic in found:
        digest.update(_describe(topic))
    return int.from_bytes(digest.digest(), "little", signed=True)


def _describe(topic: Topic) -> bytes:
    racks = ";".join(",".join(sorted(of_partition)) for of_partition in topic.racks)
    return topic.topic_id + f"{topic.name}:{topic.partitions}:{racks}\n".encode()
