"""OffsetCommits to one partition of `__consumer_offsets` that a turn writes as one batch (rule G2).

As Kafka's coordinators do with their adaptive linger time (`group.coordinator.append.linger.ms=-1`, KAFKA-19826): what
is waiting is collected into a batch, and nothing waits for more. A commit is checked when its request is read, and its
response goes into the connection's output; its record is written and replayed, with all others, before the output is
sent (`Loop.write_gathered`). If the write fails, the response to each of them becomes an error and none has an effect.

Commits do not depend on one another: what decides about one are members and generations, which commits do not change.
Invariant: every other event of the coordinator is handled after the write (`CoordinatorRuntime.handle`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from barnabas.broker.coordinators.runtime import log_unwritten
from barnabas.coord.groups.committed_offset import USUAL_SIZE, usual_value
from barnabas.wire.batches.batch_builder import batch_of_bodies
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.coordinators.runtime import CoordinatorRuntime
    from barnabas.broker.coordinators.shard import Shard
    from barnabas.broker.net.connection import Connection
    from barnabas.coord.cluster.topic_image import TopicImage
    from barnabas.coord.groups.coordinator import GroupCoordinator
    from barnabas.coord.machine import Moment
    from barnabas.wire.messages.groups.offsets import OffsetCommitRequest

MOST_BYTES: Final = 64 * 1024
"""How many bytes of records are gathered at most."""
RECORD_BYTES: Final = USUAL_SIZE + 32
"""What a record takes beside its key."""


class UsualCommit(Protocol):
    """An OffsetCommit without metadata to one partition, and the responses to it."""

    request: OffsetCommitRequest
    api_version: int
    index: int
    """Of the partition."""
    key: bytes
    """Of the record."""
    record_head: bytes

    def response(self, correlation_id: int) -> bytes:
        """The frame of the response without an error."""

    def failed(self, correlation_id: int, error: ErrorCode) -> bytes:
        """The frame of the response with an error."""


Accepted: TypeAlias = tuple[UsualCommit, str, bytes, "Connection", int, bytes]
"""A commit: the topic's name, the record's value, and the response: its connection, correlation id and frame."""


class GatheredCommits:
    """The commits to one coordinator that are not written yet."""

    __slots__ = ("_at", "_commits", "_coordinators", "_most_bytes", "_shard", "_size")

    def __init__(
        self, coordinators: CoordinatorRuntime[GroupCoordinator], shard: Shard[GroupCoordinator], at: Moment
    ) -> None:
        self._coordinators = coordinators
        self._shard = shard
        self._at = at
        self._commits: list[Accepted] = []
        self._size = 0
        self._most_bytes = min(MOST_BYTES, shard.partition.log.config.max_message_bytes // 2)

    def has_room_for(self, commit: UsualCommit) -> bool:
        """Whether a commit may be added."""
        return self._size + len(commit.key) + RECORD_BYTES <= self._most_bytes

    def add(
        self,
        commit: UsualCommit,
        topic: TopicImage,
        offset: int,
        leader_epoch: int,
        at: Moment,
        connection: Connection,
        correlation_id: int,
    ) -> bytes:
        """Add a commit that the coordinator has accepted; the frame of its response."""
        value = usual_value(offset, leader_epoch, at.now_ms, topic.topic_id)
        response = commit.response(correlation_id)
        self._commits.append((commit, topic.name, value, connection, correlation_id, response))
        self._size += len(commit.key) + RECORD_BYTES
        return response

    def write(self) -> None:
        """Write and replay all commits; if that fails, all responses become errors."""
        error = self.append()
        if error:
            for commit, _, _, connection, correlation_id, response in self._commits:
                connection.replace(response, commit.failed(correlation_id, error))

    def append(self) -> ErrorCode:
        """Append and replay the records; the error that clients get, or NONE."""
        shard, coordinators = self._shard, self._coordinators
        shard.gathered = None
        if not coordinators.is_current(shard):
            return ErrorCode.NOT_COORDINATOR
        partition, coordinator, commits, at = shard.partition, shard.coordinator, self._commits, self._at
        try:
            try:
                if partition.is_closed or not partition.is_leader or partition.leader_epoch != shard.leader_epoch:
                    raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
                batch = batch_of_bodies(at.now_ms, [commit.record_head + value for commit, _, value, *_ in commits])
                info = partition.append(memoryview(bytearray(batch)), at.now, origin="coordinator", is_checked=True)
            except KafkaError as error:
                log_unwritten(partition, error)
                return coordinator.append_errors.get(error.code, error.code)
            log_offset = info.first_offset
            for commit, topic, value, *_ in commits:
                coordinator.replay_commit(commit.request.group_id, topic, commit.index, (commit.key, value), log_offset)
                log_offset += 1
        except Exception as failure:
            coordinators.fail(shard, "Appending or replaying commits", failure)
            return ErrorCode.NOT_COORDINATOR
        return ErrorCode.NONE
