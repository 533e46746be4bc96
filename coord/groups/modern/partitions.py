"""Partitions by topic id, and the lists of them in requests, responses and records.

Every such list is made of structs with `topic_id` and `partitions`; each message has its own class for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, TypeVar

from barnabas.wire.types import Uuid

Partitions = dict[Uuid, frozenset[int]]
"""Partitions by topic id, without empty sets."""


class TopicPartitions(Protocol):
    """One entry of such a list."""

    topic_id: Uuid
    partitions: list[int]


T = TypeVar("T", bound=TopicPartitions, covariant=True)


class TopicPartitionsClass(Protocol[T]):
    """The class of the entries of one message."""

    def __call__(self, *, topic_id: Uuid, partitions: list[int]) -> T:
        """Make an entry."""


def as_partitions(entries: Iterable[TopicPartitions]) -> Partitions:
    """The partitions of a list in a message."""
    partitions: Partitions = {}
    for entry in entries:
        if entry.partitions:
            partitions[entry.topic_id] = partitions.get(entry.topic_id, frozenset()) | frozenset(entry.partitions)
    return partitions


def as_list(partitions: Mapping[Uuid, Iterable[int]], entry: TopicPartitionsClass[T]) -> list[T]:
    """The list for a message, made of `entry`, with the partitions in order."""
    return [entry(topic_id=topic_id, partitions=sorted(indexes)) for topic_id, indexes in partitions.items()]
