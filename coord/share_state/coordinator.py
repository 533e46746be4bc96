"""The share coordinator of one partition of `__share_group_state` (KIP-932, rule G5).

A pure state machine, see `coord.machine`. It keeps the state of share partitions for those who deliver their records,
and fences: who writes or reads with an older leader epoch than there was gets FENCED_LEADER_EPOCH, who writes about an
older state FENCED_STATE_EPOCH. A write is an update record; after so many of them, and for a partition that lies still,
a snapshot follows, so that what is in the log before the oldest of the last snapshots can be deleted (`prune_to`).
An event is about one share partition and replies with the partition's result of the API's response.
Source: Kafka 4.4 `ShareCoordinatorShard`, `ShareCoordinatorOffsetsManager`, `ShareCoordinatorService`.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from barnabas.coord.machine import Moment, Result
from barnabas.coord.share_state import records
from barnabas.coord.share_state.batches import NO_OFFSET, state_batches
from barnabas.coord.share_state.changes import Change, complete_count, nothing_but, snapshot, snapshot_again, update
from barnabas.coord.share_state.state import NO_COUNT, ShareState
from barnabas.coord.timers import Timers
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.coordinator_records import ShareSnapshotValue
from barnabas.wire.messages.share_state import (
    DeleteShareGroupStateResponsePartitionResult,
    InitializeShareGroupStateResponsePartitionResult,
    ReadShareGroupStateResponsePartitionResult,
    ReadShareGroupStateResponseStateBatch,
    ReadShareGroupStateSummaryResponsePartitionResult,
    WriteShareGroupStateResponsePartitionResult,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from barnabas.coord.machine import CoordinatorRecord, Ticket
    from barnabas.coord.share_state.config import ShareStateConfig
    from barnabas.coord.share_state.key import SharePartitionKey
    from barnabas.wire.messages.share_state import (
        InitializeShareGroupStateRequestPartitionData,
        ReadShareGroupStateRequestPartitionData,
        WriteShareGroupStateRequestPartitionData,
    )
    from barnabas.wire.types import Uuid

logger = logging.getLogger("kafka.coordinator.share.ShareCoordinator")

UNINITIALIZED_WRITE = "Write operation on uninitialized share partition not allowed."
UNINITIALIZED_READ = "Read operation on uninitialized share partition not allowed."
NEGATIVE_PARTITION = "The partition id cannot be a negative number."
NEGATIVE_LEADER_EPOCH = "The leader epoch cannot be a negative number."
NEGATIVE_STATE_EPOCH = "The state epoch cannot be a negative number."
BACKWARD_BATCH = "A state batch cannot end before it begins."

_COLD_SNAPSHOTS = "snapshot"
_PRUNING = "prune"

_APPEND_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""What is answered when the coordinator's own append fails; any other error is answered as it is."""


class PartitionResult(Protocol):
    """What the partition results of the five APIs have in common."""

    error_code: int
    error_message: str | None


P = TypeVar("P", bound=PartitionResult)


class ShareStateResult(Result):
    """A result that may ask for the state partition's log to be cut off."""

    __slots__ = ("prune_to",)

    def __init__(self) -> None:
        super().__init__()
        self.prune_to: int | None = None
        """Records before this offset may be deleted once what is written is committed."""


class ShareCoordinator:
    """All share partitions whose state falls on one partition of `__share_group_state`."""

    def __init__(self, config: ShareStateConfig, partition_count: Callable[[Uuid], int]) -> None:
        """`partition_count` tells how many partitions the topic of an id has, 0 when there is none."""
        self.states: dict[SharePartitionKey, ShareState] = {}
        self._config = config
        self._partition_count = partition_count
        self._timers = Timers()
        self._end_offset = 0
        self._pruned_to = 0
        self._prune_at = config.records_per_prune

    # ---- load, replay, unload

    def replay(self, key: bytes, value: bytes | None, at: Moment, offset: int) -> None:
        """One record is in the log at `offset`: take over what it says."""
        self._end_offset = offset + 1
        if offset >= self._prune_at:
            self._prune_at = offset + self._config.records_per_prune
            self._timers.set(_PRUNING, at.now)
        read = records.read_key(key)
        if read is None:
            return
        record_type, about = read
        if value is None:
            self.states.pop(about, None)
            return
        state = self.states.get(about)
        if state is None:
            state = self.states[about] = ShareState()
        if record_type == records.SHARE_SNAPSHOT:
            state.take_snapshot(records.read_snapshot(value), offset)
        else:
            state.take_update(records.read_update(value))
        self._arm(_COLD_SNAPSHOTS, self._config.cold_snapshot_interval_ms, at)
        self._arm(_PRUNING, self._config.prune_interval_ms, at)

    def _arm(self, job: str, interval_ms: int, at: Moment) -> None:
        if self._timers.deadline(job) is None:
            self._timers.set(job, at.now + interval_ms / 1000)

    def loaded(self, _at: Moment) -> ShareStateResult:
        """The whole log has been replayed: the state of topics that were deleted meanwhile goes."""
        result = ShareStateResult()
        self._forget({about for about in self.states if not self._partition_count(about.topic_id)}, result)
        return result

    def unload(self, _at: Moment) -> ShareStateResult:
        """The partition has gone elsewhere: nothing is written, and nobody waits."""
        self.states.clear()
        self._timers = Timers()
        return ShareStateResult()

    def append_failed(self, result: Result, error: ErrorCode, at: Moment) -> Result:
        """The records of `result` could not be appended: what to do and answer instead of it."""
        return result.failed(_APPEND_ERRORS.get(error, error), at)

    def commit_failed(self, result: Result, error: ErrorCode) -> Result:
        """The records of `result` are in the log and were replayed, but will not become durable: what to answer."""
        return result.failed_replies(_APPEND_ERRORS.get(error, error))

    # ---- the five requests

    def initialize(
        self, about: SharePartitionKey, asked: InitializeShareGroupStateRequestPartitionData, ticket: Ticket, at: Moment
    ) -> ShareStateResult:
        """Begin a share partition, or begin it anew at another offset with a state epoch that fences the old state."""

        def begin() -> CoordinatorRecord:
            if asked.state_epoch < 0:
                raise KafkaError(ErrorCode.INVALID_REQUEST, NEGATIVE_STATE_EPOCH)
            state = self.states.get(about)
            if state is not None and state.state_epoch > asked.state_epoch:
                raise _fenced_state(about, state, asked.state_epoch)
            self._check_topic(about)
            value = ShareSnapshotValue(
                snapshot_epoch=0 if state is None else state.snapshot_epoch + 1,
                state_epoch=asked.state_epoch,
                leader_epoch=0,
                start_offset=asked.start_offset,
                delivery_complete_count=NO_COUNT if asked.start_offset == NO_OFFSET else 0,
                create_timestamp=at.now_ms,
                write_timestamp=at.now_ms,
            )
            return records.snapshot_record(about, value)

        return self._answer(about, InitializeShareGroupStateResponsePartitionResult, begin, ticket)

    def write(
        self, about: SharePartitionKey, asked: WriteShareGroupStateRequestPartitionData, ticket: Ticket, at: Moment
    ) -> ShareStateResult:
        """Keep what has become of records, and the new start offset."""

        def keep() -> CoordinatorRecord:
            if asked.leader_epoch < 0:
                raise KafkaError(ErrorCode.INVALID_REQUEST, NEGATIVE_LEADER_EPOCH)
            if asked.state_epoch < 0:
                raise KafkaError(ErrorCode.INVALID_REQUEST, NEGATIVE_STATE_EPOCH)
            batches = state_batches(asked.state_batches)
            if any(batch.last_offset < batch.first_offset for batch in batches):
                raise KafkaError(ErrorCode.INVALID_REQUEST, BACKWARD_BATCH)
            state = self._initialized(about, UNINITIALIZED_WRITE)
            _check_leader(about, state, asked.leader_epoch)
            if state.state_epoch > asked.state_epoch:
                raise _fenced_state(about, state, asked.state_epoch)
            self._check_topic(about)
            start_offset = max(asked.start_offset, state.start_offset)
            count = complete_count(state, asked.start_offset, asked.delivery_complete_count)
            return self._record(about, state, Change(batches, start_offset, count, state.leader_epoch), at)

        return self._answer(about, WriteShareGroupStateResponsePartitionResult, keep, ticket)

    def read(
        self, about: SharePartitionKey, asked: ReadShareGroupStateRequestPartitionData, ticket: Ticket, at: Moment
    ) -> ShareStateResult:
        """Everything that is kept, for a new leader of the partition; leaders before it are fenced off from now on."""
        answer = ReadShareGroupStateResponsePartitionResult(partition=about.partition)

        def fence() -> CoordinatorRecord | None:
            if asked.leader_epoch < 0:
                raise KafkaError(ErrorCode.INVALID_REQUEST, NEGATIVE_LEADER_EPOCH)
            state = self._initialized(about, UNINITIALIZED_READ)
            _check_leader(about, state, asked.leader_epoch)
            self._check_topic(about)
            answer.state_epoch = state.state_epoch
            answer.start_offset = state.start_offset
            answer.state_batches = [ReadShareGroupStateResponseStateBatch(**b._asdict()) for b in state.batches]
            if asked.leader_epoch == state.leader_epoch_fence:
                return None
            logger.info("The state of %s is read by a leader of epoch %d", about, asked.leader_epoch)
            return self._record(about, state, nothing_but(state, asked.leader_epoch), at)

        return self._answer(about, ReadShareGroupStateResponsePartitionResult, fence, ticket, answer)

    def read_summary(self, about: SharePartitionKey, ticket: Ticket) -> ShareStateResult:
        """Start offset and epochs, for who shows or judges a group's position; nobody is fenced."""
        answer = ReadShareGroupStateSummaryResponsePartitionResult(partition=about.partition, start_offset=NO_OFFSET)

        def look() -> None:
            self._check_topic(about)
            state = self.states.get(about)
            if state is not None:
                answer.state_epoch = state.state_epoch
                answer.leader_epoch = state.leader_epoch
                answer.start_offset = state.start_offset
                answer.delivery_complete_count = state.delivery_complete_count

        return self._answer(about, ReadShareGroupStateSummaryResponsePartitionResult, look, ticket, answer)

    def delete(self, about: SharePartitionKey, ticket: Ticket) -> ShareStateResult:
        """Forget a share partition; one that is not there is no error."""

        def forget() -> CoordinatorRecord | None:
            self._check_topic(about)
            return records.tombstone(about) if about in self.states else None

        return self._answer(about, DeleteShareGroupStateResponsePartitionResult, forget, ticket)

    def topics_deleted(self, topic_ids: Collection[Uuid]) -> ShareStateResult:
        """Topics are gone: so is what is kept of their partitions."""
        result = ShareStateResult()
        self._forget({about for about in self.states if about.topic_id in topic_ids}, result)
        return result

    # ---- time

    def next_deadline(self) -> float | None:
        """When `tick` has something to do."""
        return self._timers.next_deadline()

    def tick(self, at: Moment) -> ShareStateResult:
        """Snapshots of partitions that lie still, and the offset up to which nothing in the log is needed."""
        result = ShareStateResult()
        while (job := self._timers.pop_due(at.now)) is not None:
            if job == _COLD_SNAPSHOTS:
                self._snapshot_cold(at, result)
                interval_ms = self._config.cold_snapshot_interval_ms
            else:
                self._prune(result)
                self._snapshot_left_behind(at, result)
                interval_ms = self._config.prune_interval_ms
            if self.states:  # otherwise the next record arms it
                self._timers.set(job, at.now + interval_ms / 1000)
        return result

    def _snapshot_cold(self, at: Moment, result: ShareStateResult) -> None:
        """Write anew what has had no snapshot for a while: it would keep the log from being deleted.

        When nothing but repeated snapshots is left nothing moves any more, and nothing is written.
        """
        if all(state.create_timestamp_ms != state.write_timestamp_ms for state in self.states.values()):
            return
        for about, state in self.states.items():
            if at.now_ms - state.write_timestamp_ms >= self._config.cold_snapshot_interval_ms:
                result.records.append(snapshot_again(about, state, at))

    def _snapshot_left_behind(self, at: Moment, result: ShareStateResult) -> None:
        """Write anew what was last written many records ago, so that the log stays short between two intervals too."""
        horizon = self._end_offset - self._config.records_per_prune
        for about, state in self.states.items():
            if state.snapshot_offset is not None and state.snapshot_offset < horizon:
                result.records.append(snapshot_again(about, state, at))

    def _prune(self, result: ShareStateResult) -> None:
        offsets = [state.snapshot_offset for state in self.states.values()]
        needed = min((offset for offset in offsets if offset is not None), default=self._end_offset)
        if needed > self._pruned_to:
            self._pruned_to = result.prune_to = needed

    # ---- parts of the answers

    def _answer(
        self,
        about: SharePartitionKey,
        result_type: Callable[..., Any],
        change: Callable[[], CoordinatorRecord | None],
        ticket: Ticket,
        answer: Any = None,
    ) -> ShareStateResult:
        """The result of one request: what `change` gives is written, what it raises is answered."""
        result = ShareStateResult()
        refuse = partial(refused, result_type, about.partition)
        try:
            if about.partition < 0:
                raise KafkaError(ErrorCode.INVALID_REQUEST, NEGATIVE_PARTITION)
            record = change()
        except KafkaError as error:
            result.reply(ticket, refuse(error.code, error.message))
            return result
        if record is not None:
            result.records.append(record)
        result.reply(ticket, result_type(partition=about.partition) if answer is None else answer, refuse)
        return result

    def _initialized(self, about: SharePartitionKey, otherwise: str) -> ShareState:
        state = self.states.get(about)
        if state is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, otherwise)
        return state

    def _check_topic(self, about: SharePartitionKey) -> None:
        if about.partition >= self._partition_count(about.topic_id):
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def _record(self, about: SharePartitionKey, state: ShareState, change: Change, at: Moment) -> CoordinatorRecord:
        """An update, or a snapshot when there have been so many updates."""
        is_due = state.updates >= self._config.updates_per_snapshot
        return snapshot(about, state, change, at) if is_due else update(about, state, change)

    def _forget(self, keys: Collection[SharePartitionKey], result: ShareStateResult) -> None:
        result.records += [records.tombstone(about) for about in sorted(keys)]


def refused(result_type: Callable[..., P], partition: int, error: ErrorCode, message: str | None = None) -> P:
    """A partition's result that carries an error."""
    return result_type(partition=partition, error_code=int(error), error_message=message)


def _check_leader(about: SharePartitionKey, state: ShareState, leader_epoch: int) -> None:
    if state.leader_epoch_fence > leader_epoch:
        logger.warning(
            "A leader of epoch %d asks for the state of %s, which one of epoch %d has",
            leader_epoch,
            about,
            state.leader_epoch_fence,
        )
        raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)


def _fenced_state(about: SharePartitionKey, state: ShareState, state_epoch: int) -> KafkaError:
    logger.info(
        "A request with state epoch %d about %s comes after state epoch %d", state_epoch, about, state.state_epoch
    )
    return KafkaError(ErrorCode.FENCED_STATE_EPOCH)
