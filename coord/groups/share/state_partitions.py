"""The partitions that the share coordinator keeps state of for a group (ShareGroupStatePartitionMetadata, KIP-932).

A partition is assigned once its state is initialized. The share coordinator may fail, so each step is recorded before
it begins: partitions whose state is being initialized, topics whose state is being deleted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple

from barnabas.wire.messages.records.coordinator_records import (
    ShareGroupStatePartitionMetadataValue,
    ShareGroupStatePartitionMetadataValueTopicInfo,
    TopicPartitionsInfo,
)

if TYPE_CHECKING:
    from barnabas.coord.groups.modern.partitions import Partitions
    from barnabas.coord.groups.topics import Topics
    from barnabas.wire.types import Uuid

UNKNOWN_TOPIC_NAME = "UNKNOWN"
_NOTHING: Partitions = {}


class StatePartitions(NamedTuple):
    """The content of one record."""

    initializing: Partitions = _NOTHING
    initialized: Partitions = _NOTHING
    deleting: frozenset[Uuid] = frozenset()

    def begun(self, partitions: Partitions) -> StatePartitions:
        """Initializing the state of `partitions` begins."""
        return StatePartitions(plus(self.initializing, partitions), self.initialized, self.deleting - set(partitions))

    def ended(self, done: Partitions, failed: Partitions) -> StatePartitions:
        """Initializing has ended: the state of `done` is initialized, the state of `failed` is not."""
        remaining = minus(minus(self.initializing, done), failed)
        return StatePartitions(remaining, plus(self.initialized, done), self.deleting)

    def deletion_begun(self, topic_ids: Collection[Uuid]) -> StatePartitions:
        """Deleting the state of these topics begins."""
        return StatePartitions(
            without(self.initializing, topic_ids), without(self.initialized, topic_ids), self.deleting | set(topic_ids)
        )

    def without_topics(self, topic_ids: Collection[Uuid]) -> StatePartitions:
        """These topics have no state any more."""
        return StatePartitions(
            without(self.initializing, topic_ids), without(self.initialized, topic_ids), self.deleting - set(topic_ids)
        )

    @property
    def topic_ids(self) -> set[Uuid]:
        """All topics."""
        return {*self.initializing, *self.initialized, *self.deleting}

    def whole(self, topic_id: Uuid) -> int:
        """How many partitions of a topic, from the first on, are initialized; these can be assigned."""
        initialized = self.initialized.get(topic_id, frozenset())
        count = len(initialized)
        if count and max(initialized) + 1 == count:
            return count
        return next((index for index in range(count) if index not in initialized), count)

    def as_value(self, topics: Topics) -> ShareGroupStatePartitionMetadataValue:
        """The record's value; the names of topics are informative."""
        return ShareGroupStatePartitionMetadataValue(
            initializing_topics=_as_list(self.initializing, topics),
            initialized_topics=_as_list(self.initialized, topics),
            deleting_topics=[
                ShareGroupStatePartitionMetadataValueTopicInfo(topic_id=topic_id, topic_name=_name(topic_id, topics))
                for topic_id in sorted(self.deleting)
            ],
        )


def _as_list(partitions: Partitions, topics: Topics) -> list[TopicPartitionsInfo]:
    return [
        TopicPartitionsInfo(topic_id=topic_id, topic_name=_name(topic_id, topics), partitions=sorted(indexes))
        for topic_id, indexes in sorted(partitions.items())
    ]


def _name(topic_id: Uuid, topics: Topics) -> str:
    topic = topics.by_id(topic_id)
    return UNKNOWN_TOPIC_NAME if topic is None else topic.name


def plus(some: Partitions, more: Partitions) -> Partitions:
    """All partitions of both."""
    return {
        topic_id: some.get(topic_id, frozenset()) | more.get(topic_id, frozenset()) for topic_id in {**some, **more}
    }


def minus(some: Partitions, fewer: Mapping[Uuid, frozenset[int]]) -> Partitions:
    """The partitions of `some` that `fewer` does not have."""
    remaining = {topic_id: indexes - fewer.get(topic_id, frozenset()) for topic_id, indexes in some.items()}
    return {topic_id: indexes for topic_id, indexes in remaining.items() if indexes}


def without(some: Partitions, topic_ids: Collection[Uuid]) -> Partitions:
    """The partitions of all other topics."""
    return {topic_id: indexes for topic_id, indexes in some.items() if topic_id not in topic_ids}
