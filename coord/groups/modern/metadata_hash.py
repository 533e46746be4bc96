"""The metadata hash of a group, which changes with the ids, partitions and racks of the group's topics (KIP-1101).

It is part of the record of the group epoch, so that a coordinator that has loaded the group can find out whether the
topics have changed since the assignment. It is computed as in Kafka. Source: Kafka 4.4
`org.apache.kafka.coordinator.group.Utils`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from struct import pack
from typing import TYPE_CHECKING

from xxhash import xxh3_64_intdigest

if TYPE_CHECKING:
    from barnabas.coord.groups.topics import Topic, Topics

_VERSION = b"\0"


def group_hash(names: Iterable[str], topics: Topics) -> int:
    """The hash of all topics of these names that exist, a signed long; 0 for none."""
    existing = [topic for topic in map(topics.by_name, sorted(set(names))) if topic is not None]
    if not existing:
        return 0
    return _signed(xxh3_64_intdigest(b"".join(pack("<Q", topic_hash(topic)) for topic in existing)))


@lru_cache(maxsize=1024)
def topic_hash(topic: Topic) -> int:
    """The hash of one topic: id, name, partitions, and the racks of their replicas; unsigned."""
    high, low = int.from_bytes(topic.topic_id[:8], "big"), int.from_bytes(topic.topic_id[8:], "big")
    data = bytearray(_VERSION + pack("<QQ", high, low) + _text(topic.name) + pack("<i", topic.partitions))
    racks = topic.racks or (frozenset(),) * topic.partitions
    for index, of_partition in enumerate(racks):
        data += pack("<i", index)
        for rack in sorted(of_partition):
            data += pack("<i", _utf16_length(rack)) + _text(rack)
    return xxh3_64_intdigest(data)


def _text(text: str) -> bytes:
    """The UTF-16 characters, then their number."""
    return text.encode("utf-16-le", "surrogatepass") + pack("<i", _utf16_length(text))


def _utf16_length(text: str) -> int:
    return len(text) + sum(1 for character in text if character > "\uffff")


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value
