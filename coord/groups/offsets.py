"""The committed offsets of the groups of one coordinator (rules G2, G7; KIP-211, KIP-496, KIP-848).

Invariant: the store has exactly the offsets of the records in the log; only `put` and `remove`, called by replay,
change it. An offset is stored with the id of its topic, so that a topic does not get the offsets of a deleted one of
its name. Expiry is in `coord.groups.expiry`.
"""

from __future__ import annotations

from sys import intern
from typing import TYPE_CHECKING

from barnabas.coord.groups import records
from barnabas.coord.groups.committed_offset import CommittedOffset, checked, decoded
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.groups.offsets import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from barnabas.wire.messages.records.coordinator_records import OffsetCommitKey, OffsetCommitValue
from barnabas.wire.types import ZERO_UUID, Uuid

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from barnabas.coord.machine import CoordinatorRecord, Moment
    from barnabas.wire.messages.groups.offsets import (
        OffsetCommitRequest,
        OffsetCommitRequestPartition,
        OffsetCommitRequestTopic,
        OffsetFetchRequestTopics,
    )

NO_OFFSET = -1
MAX_TIMESTAMP = 2**63 - 1
DEFAULT_RETENTION = -1


class OffsetStore:
    """Offsets by group, topic and partition, as the values of their records (`coord.groups.committed_offset`)."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[str, dict[int, bytes]]] = {}
        """No dictionary in it is empty."""

    def get(self, group_id: str, topic: str, partition: int, topic_id: Uuid = ZERO_UUID) -> CommittedOffset | None:
        """The offset, unless there is none or it belongs to another topic of that name."""
        try:
            offset = decoded(self._groups[group_id][topic][partition])
        except KeyError:
            return None
        committed_to = offset.topic_id
        if topic_id != committed_to and ZERO_UUID not in (topic_id, committed_to):
            return None
        return offset

    def of_group(self, group_id: str) -> dict[str, dict[int, bytes]]:
        """All offsets of a group by topic and partition, to be `decoded`; read-only."""
        return self._groups.get(group_id, {})

    def count(self, group_id: str) -> int:
        """How many offsets a group has."""
        return sum([len(partitions) for partitions in self._groups.get(group_id, {}).values()])

    def put(self, group_id: str, topic: str, partition: int, value: bytes) -> dict[int, bytes]:
        """Apply the record of an offset; returns the offsets of the group in the topic. Raises ProtocolError."""
        return self.put_plain(group_id, topic, partition, checked(value))

    def put_plain(self, group_id: str, topic: str, partition: int, value: bytes) -> dict[int, bytes]:
        """As `put`, for a value that was just made."""
        topics = self._groups.get(group_id)
        if topics is None:
            topics = self._groups[group_id] = {}
        partitions = topics.get(topic)
        if partitions is None:
            partitions = topics[intern(topic)] = {}  # thousands of groups may read the same topics
        partitions[partition] = value
        return partitions

    def remove(self, group_id: str, topic: str, partition: int) -> None:
        """Apply the tombstone of an offset."""
        topics = self._groups.get(group_id)
        partitions = topics.get(topic) if topics is not None else None
        if topics is None or partitions is None:
            return
        partitions.pop(partition, None)
        if not partitions:
            del topics[topic]
        if not topics:
            del self._groups[group_id]

    def tombstones(self, group_id: str) -> list[CoordinatorRecord]:
        """The records that remove every offset of a group."""
        return [
            records.offset_tombstone(group_id, topic, partition)
            for topic, partitions in self.of_group(group_id).items()
            for partition in partitions
        ]

    def topic_tombstones(self, topics: Mapping[str, Uuid]) -> Iterator[CoordinatorRecord | None]:
        """The records that remove all groups' offsets of these topics, but not of other topics of the same names.

        None is between the groups. The offsets may be removed meanwhile.
        """
        for group_id in list(self._groups):
            committed = self._groups.get(group_id, {})
            for topic in sorted(committed.keys() & topics.keys()):
                topic_id = topics[topic]
                for partition, value in list(committed.get(topic, {}).items()):
                    committed_to = decoded(value).topic_id
                    if ZERO_UUID in (topic_id, committed_to) or committed_to == topic_id:
                        yield records.offset_tombstone(group_id, topic, partition)
            yield None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OffsetStore) and self._groups == other._groups

    __hash__ = None  # type: ignore[assignment]


# ---- OffsetCommit


def commit(
    request: OffsetCommitRequest, metadata_max_bytes: int, at: Moment
) -> tuple[list[CoordinatorRecord], OffsetCommitResponse]:
    """The records of a commit that the group has accepted, and its response."""
    retention_ms = request.retention_time_ms
    expire_ms = NO_OFFSET if retention_ms == DEFAULT_RETENTION else min(at.now_ms + retention_ms, MAX_TIMESTAMP)
    commit_records: list[CoordinatorRecord] = []
    response = OffsetCommitResponse()
    for topic in request.topics:
        answers = []
        for partition in topic.partitions:
            error = ErrorCode.NONE
            if _is_longer(partition.committed_metadata or "", metadata_max_bytes):
                error = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                commit_records.append(_commit_record(request.group_id, topic, partition, at.now_ms, expire_ms))
            answers.append(
                OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=int(error))
            )
        response.topics.append(OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=answers))
    return commit_records, response


def commit_error(request: OffsetCommitRequest, error: ErrorCode) -> OffsetCommitResponse:
    """The response with the same error for every partition."""
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=int(error))
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _commit_record(
    group_id: str,
    topic: OffsetCommitRequestTopic,
    partition: OffsetCommitRequestPartition,
    now_ms: int,
    expire_ms: int,
) -> CoordinatorRecord:
    value = OffsetCommitValue(
        offset=partition.committed_offset,
        leader_epoch=partition.committed_leader_epoch,
        metadata=partition.committed_metadata or "",
        commit_timestamp=now_ms,
        expire_timestamp=expire_ms,
        topic_id=topic.topic_id,
    )
    key = OffsetCommitKey(group=group_id, topic=topic.name, partition=partition.partition_index)
    return records.offset_commit(key, value)


def _is_longer(text: str, limit: int) -> bool:
    """Whether Java's `String.length()`, UTF-16 units, exceeds the limit, as Kafka counts the metadata of an offset."""
    return len(text) > limit or (not text.isascii() and len(text.encode("utf-16-le")) > 2 * limit)


# ---- OffsetFetch


def fetch(store: OffsetStore, group_id: str, topics: list[OffsetFetchRequestTopics]) -> list[OffsetFetchResponseTopics]:
    """The requested offsets; -1 for a partition without one."""
    return [
        OffsetFetchResponseTopics(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=[
                fetched(partition, store.get(group_id, topic.name, partition, topic.topic_id))
                for partition in topic.partition_indexes
            ],
        )
        for topic in topics
    ]


def fetched(partition: int, committed: CommittedOffset | None) -> OffsetFetchResponsePartitions:
    """The response for the offset of a partition."""
    if committed is None:
        return OffsetFetchResponsePartitions(partition_index=partition, committed_offset=NO_OFFSET, metadata="")
    return OffsetFetchResponsePartitions(
        partition_index=partition,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
    )


def unstable(partition: int) -> OffsetFetchResponsePartitions:
    """The response for an offset that an open transaction may change."""
    error = int(ErrorCode.UNSTABLE_OFFSET_COMMIT)
    return OffsetFetchResponsePartitions(
        partition_index=partition, committed_offset=NO_OFFSET, metadata="", error_code=error
    )
