"""The share coordinator of one partition of `__share_group_state` (KIP-932, rule G5).

A pure state machine, see `coord.machine`. It keeps the durable state of share partitions for the brokers that deliver
their records. A request with an older leader epoch than the highest so far gets FENCED_LEADER_EPOCH, a write with an
older state epoch FENCED_STATE_EPOCH. A write appends an update record; after a number of updates, and for a partition
without writes, it appends a snapshot, so that the log before the oldest of the last snapshots can be deleted
(`prune_to`). An event concerns one share partition and replies with its partition result in the API's response.
Source: Kafka 4.4 `ShareCoordinatorShard`, `ShareCoordinatorOffsetsManager`, `ShareCoordinatorService`.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from barnabas.coord.coordinator import APPEND_ERRORS, Coordinator
from barnabas.coord.machine import Result
from barnabas.coord.share_state import records
from barnabas.coord.share_state.batches import NO_OFFSET, state_batches
from barnabas.coord.share_state.changes import (
    Change,
    complete_count,
    leader_change,
    repeated_snapshot,
    snapshot,
    update,
)
from barnabas.coord.share_state.state import NO_COUNT, ShareState
from barnabas.coord.timers import Timers
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.groups.share_state import (
    DeleteShareGroupStateResponsePartitionResult,
    InitializeShareGroupStateResponsePartitionResult,
    ReadShareGroupStateResponsePartitionResult,
    ReadShareGroupStateResponseStateBatch,
    ReadShareGroupStateSummaryResponsePartitionResult,
    WriteShareGroupStateResponsePartitionResult,
)
from barnabas.wire.messages.records.coordinator_records import ShareSnapshotValue

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Mapping

    from barnabas.coord.machine import CoordinatorRecord, Moment, Ticket
    from barnabas.coord.share_state.config import ShareStateConfig
    from barnabas.coord.share_state.key import SharePartitionKey
    from barnabas.wire.messages.groups.share_state import (
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


class PartitionResult(Protocol):
    """The fields that the partition results of the five APIs have in common."""

    error_code: int
    error_message: str | None


P = TypeVar("P", bound=PartitionResult)


class ShareStateResult(Result):
    """A result that may request deletion of the beginning of the state partition's log."""

    __slots__ = ("prune_to",)

    def __init__(self) -> None:
        super().__init__()
        self.prune_to: int | None = None
        """Records before this offset may be deleted once the records of this result are committed."""


class ShareCoordinator(Coordinator):
    """All share partitions whose state is in one partition of `__share_group_state`."""

    append_errors: ClassVar = {
        **APPEND_ERRORS,
        ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    }
    result_class = ShareStateResult

    def __init__(self, config: ShareStateConfig, partition_count: Callable[[Uuid], int]) -> None:
        """`partition_count` returns the number of partitions of a topic id, 0 for an unknown one."""
        super().__init__()
        self.states: dict[SharePartitionKey, ShareState] = {}
        self._config = config
        self._partition_count = partition_count
        self._end_offset = 0
        self._pruned_to = 0
        self._prune_at = config.records_per_prune

    # ---- load, replay, unload

    def replay(self, key: bytes, value: bytes | None, at: Moment, offset: int) -> None:
        """Apply the record at `offset` of the log."""
        self._end_offset = offset + 1
        if offset >= self._prune_at:
            self._prune_at = offset + self._config.records_per_prune
            self._timers.set(_PRUNING, at.now)
        read = records.read_key(key)
        if read is None:
            return
        record_type, share_key = read
        if value is None:
            self.states.pop(share_key, None)
            return
        state = self.states.get(share_key)
        if state is None:
            state = self.states[share_key] = ShareState()
        if record_type == records.SHARE_SNAPSHOT:
            state.apply_snapshot(records.read_snapshot(value), offset)
        else:
            state.apply_update(records.read_update(value))
        self._timers.set_if_unset(_COLD_SNAPSHOTS, at.now + self._config.cold_snapshot_interval_ms / 1000)
        self._timers.set_if_unset(_PRUNING, at.now + self._config.prune_interval_ms / 1000)

    def loaded(self, _at: Moment) -> ShareStateResult:
        """The whole log has been replayed: remove the state of topics that were deleted in the meantime."""
        result = ShareStateResult()
        self._remove({key for key in self.states if not self._partition_count(key.topic_id)}, result)
        return result

    def unload(self, _at: Moment) -> ShareStateResult:
        """The partition has another coordinator now: drop all state. Nothing is written and no request waits."""
        self.states.clear()
        self._timers = Timers()
        return ShareStateResult()

    # ---- the five requests

    def initialize(
        self, key: SharePartitionKey, request: InitializeShareGroupStateRequestPartitionData, ticket: Ticket, at: Moment
    ) -> ShareStateResult:
        """InitializeShareGroupState: create a share partition, or reset its start offset under a newer state epoch."""

        def snapshot_of_new_state() -> CoordinatorRecord:
            if request.state_epoch < 0:
                raise KafkaError(ErrorCode.INVALID_REQUEST, NEGATIVE_STATE_EPOCH)
            state = self.states.get(key)
            if state is not None and state.state_epoch > request.state_epoch:
                raise _fenced_state(key, state, request.state_epoch)
            self._check_topic(key)
            value = ShareSnapshotValue(
                snapshot_epoch=0 if state is None else state.snapshot_epoch + 1,
                state_epoch=request.state_epoch,
                leader_epoch=0,
                start_offset=request.start_offset,
                delivery_complete_count=NO_COUNT if request.start_offset == NO_OFFSET else 0,
                create_timestamp=at.now_ms,
                write_timestamp=at.now_ms,
            )
            return records.snapshot_record(key, value)

        return self._handle(key, InitializeShareGroupStateResponsePartitionResult, snapshot_of_new_state, ticket)

    def write(
        self, key: SharePartitionKey, request: WriteShareGroupStateRequestPartitionData, ticket: Ticket, at: Moment
    ) -> ShareStateResult:
        """WriteShareGroupState: store new states of records and the new start offset."""

        def record_of_write() -> CoordinatorRecord:
            if request.leader_epoch < 0:
                raise KafkaError(ErrorCode.INVALID_REQUEST, NEGATIVE_LEADER_EPOCH)
            if request.state_epoch < 0:
                raise KafkaError(ErrorCode.INVALID_REQUEST, NEGATIVE_STATE_EPOCH)
            batches = state_batches(request.state_batches)
            for batch in batches:
                if batch.last_offset < batch.first_offset:
                    raise KafkaError(ErrorCode.INVALID_REQUEST, BACKWARD_BATCH)
            state = self._initialized(key, UNINITIALIZED_WRITE)
            _check_leader(key, state, request.leader_epoch)
            if state.state_epoch > request.state_epoch:
                raise _fenced_state(key, state, request.state_epoch)
            self._check_topic(key)
            start_offset = max(request.start_offset, state.start_offset)
            count = complete_count(state, request.start_offset, request.delivery_complete_count)
            return self._record(key, state, Change(batches, start_offset, count, state.leader_epoch), at)

        return self._handle(key, WriteShareGroupStateResponsePartitionResult, record_of_write, ticket)

    def read(
        self, key: SharePartitionKey, request: ReadShareGroupStateRequestPartitionData, ticket: Ticket, at: Moment
    ) -> ShareStateResult:
        """ReadShareGroupState: the whole state, for a new leader of the partition; earlier leaders are fenced."""
        response = ReadShareGroupStateResponsePartitionResult(partition=key.partition)

        def record_of_new_leader() -> CoordinatorRecord | None:
            if request.leader_epoch < 0:
                raise KafkaError(ErrorCode.INVALID_REQUEST, NEGATIVE_LEADER_EPOCH)
            state = self._initialized(key, UNINITIALIZED_READ)
            _check_leader(key, state, request.leader_epoch)
            self._check_topic(key)
            response.state_epoch = state.state_epoch
            response.start_offset = state.start_offset
            response.state_batches = [ReadShareGroupStateResponseStateBatch(**b._asdict()) for b in state.batches]
            if request.leader_epoch == state.leader_epoch_fence:
                return None
            logger.info("Share partition %s has a new leader, epoch: %d", key, request.leader_epoch)
            return self._record(key, state, leader_change(state, request.leader_epoch), at)

        return self._handle(key, ReadShareGroupStateResponsePartitionResult, record_of_new_leader, ticket, response)

    def read_summary(self, key: SharePartitionKey, ticket: Ticket) -> ShareStateResult:
        """ReadShareGroupStateSummary: start offset, epochs and count of finished records; fences nothing."""
        response = ReadShareGroupStateSummaryResponsePartitionResult(partition=key.partition, start_offset=NO_OFFSET)

        def fill_response() -> None:
            self._check_topic(key)
            state = self.states.get(key)
            if state is not None:
                response.state_epoch = state.state_epoch
                response.leader_epoch = state.leader_epoch
                response.start_offset = state.start_offset
                response.delivery_complete_count = state.delivery_complete_count

        return self._handle(key, ReadShareGroupStateSummaryResponsePartitionResult, fill_response, ticket, response)

    def delete(self, key: SharePartitionKey, ticket: Ticket) -> ShareStateResult:
        """DeleteShareGroupState: remove a share partition; an unknown one is not an error."""

        def tombstone() -> CoordinatorRecord | None:
            self._check_topic(key)
            return records.tombstone(key) if key in self.states else None

        return self._handle(key, DeleteShareGroupStateResponsePartitionResult, tombstone, ticket)

    def topics_deleted(self, topic_ids: Collection[Uuid]) -> ShareStateResult:
        """Remove the state of the partitions of deleted topics."""
        result = ShareStateResult()
        self._remove({key for key in self.states if key.topic_id in topic_ids}, result)
        return result

    # ---- time

    def _due(self, job: Hashable, at: Moment, result: ShareStateResult) -> None:
        """Write the snapshots that are due, and determine the offset before which the log is not needed."""
        if job == _COLD_SNAPSHOTS:
            result.records += cold_snapshots(self.states, self._config.cold_snapshot_interval_ms, at)
            interval_ms = self._config.cold_snapshot_interval_ms
        else:
            self._prune(result)
            result.records += old_snapshots(self.states, self._end_offset - self._config.records_per_prune, at)
            interval_ms = self._config.prune_interval_ms
        if self.states:  # otherwise the next record sets it
            self._timers.set(job, at.now + interval_ms / 1000)

    def _prune(self, result: ShareStateResult) -> None:
        needed = first_needed_offset(self.states, self._end_offset)
        if needed > self._pruned_to:
            self._pruned_to = result.prune_to = needed

    # ---- shared by the requests

    def _handle(
        self,
        key: SharePartitionKey,
        result_type: Callable[..., Any],
        change: Callable[[], CoordinatorRecord | None],
        ticket: Ticket,
        response: Any = None,
    ) -> ShareStateResult:
        """The result of one request: `change` returns the record to append or raises the error to answer."""
        result = ShareStateResult()
        error_response = partial(error_result, result_type, key.partition)
        try:
            if key.partition < 0:
                raise KafkaError(ErrorCode.INVALID_REQUEST, NEGATIVE_PARTITION)
            record = change()
        except KafkaError as error:
            result.reply(ticket, error_response(error.code, error.message))
            return result
        if record is not None:
            result.records.append(record)
        result.reply(ticket, result_type(partition=key.partition) if response is None else response, error_response)
        return result

    def _initialized(self, key: SharePartitionKey, message: str) -> ShareState:
        state = self.states.get(key)
        if state is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, message)
        return state

    def _check_topic(self, key: SharePartitionKey) -> None:
        if key.partition >= self._partition_count(key.topic_id):
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def _record(self, key: SharePartitionKey, state: ShareState, change: Change, at: Moment) -> CoordinatorRecord:
        """An update, or a snapshot when the number of updates since the last one has reached the limit."""
        is_due = state.updates >= self._config.updates_per_snapshot
        return snapshot(key, state, change, at) if is_due else update(key, state, change)

    def _remove(self, keys: Collection[SharePartitionKey], result: ShareStateResult) -> None:
        result.records += [records.tombstone(key) for key in sorted(keys)]


def error_result(result_type: Callable[..., P], partition: int, error: ErrorCode, message: str | None = None) -> P:
    """A partition result with an error."""
    return result_type(partition=partition, error_code=int(error), error_message=message)


def _check_leader(key: SharePartitionKey, state: ShareState, leader_epoch: int) -> None:
    if state.leader_epoch_fence > leader_epoch:
        logger.warning(
            "Share partition %s: request leader epoch is smaller than last recorded, current: %d, requested: %d",
            key,
            state.leader_epoch_fence,
            leader_epoch,
        )
        raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)


def _fenced_state(key: SharePartitionKey, state: ShareState, state_epoch: int) -> KafkaError:
    logger.info(
        "Share partition %s: request state epoch is smaller than last recorded, current: %d, requested: %d",
        key,
        state.state_epoch,
        state_epoch,
    )
    return KafkaError(ErrorCode.FENCED_STATE_EPOCH)


def cold_snapshots(
    states: Mapping[SharePartitionKey, ShareState], interval_ms: int, at: Moment
) -> list[CoordinatorRecord]:
    """Snapshots of the partitions whose last snapshot is `interval_ms` old or older.

    None when the last snapshot of every partition is a repeated one: without writes the log does not grow.
    """
    if all(state.create_timestamp_ms != state.write_timestamp_ms for state in states.values()):
        return []
    return [
        repeated_snapshot(key, state, at)
        for key, state in states.items()
        if at.now_ms - state.write_timestamp_ms >= interval_ms
    ]


def old_snapshots(states: Mapping[SharePartitionKey, ShareState], before: int, at: Moment) -> list[CoordinatorRecord]:
    """Snapshots of the partitions whose last snapshot is at an offset below `before`."""
    return [
        repeated_snapshot(key, state, at)
        for key, state in states.items()
        if state.snapshot_offset is not None and state.snapshot_offset < before
    ]


def first_needed_offset(states: Mapping[SharePartitionKey, ShareState], end_offset: int) -> int:
    """The lowest offset of a last snapshot, `end_offset` when there is none."""
    offsets = [state.snapshot_offset for state in states.values()]
    return min((offset for offset in offsets if offset is not None), default=end_offset)
