"""One partition as read by one share group: members acquire records and acknowledge them (KIP-932, rule G5).

A pure state machine; `now` is monotonic seconds. What has to survive a restart is returned as a `StateChange`. Its
transitions block other ones immediately; they become final with `committed` and are undone by `failed`. Acquired is not
a durable state: after a restart such records are available. Locks expire in `tick`, at `next_deadline`. Source: Kafka
4.4 `SharePartition`, whose lists of batches and of single offsets are runs here (rule G6).
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from barnabas.coord.share_partitions.acquisition import Acquisition
from barnabas.coord.share_partitions.change import DELIVERED_TOO_OFTEN, REJECTED, DeadLetters, StateChange
from barnabas.coord.share_partitions.states import AcknowledgeType, RecordState
from barnabas.coord.share_partitions.window import NEVER, Run, Undo, Window
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from barnabas.coord.groups.settings import GroupSettings
    from barnabas.coord.share_partitions.acknowledgement import Acknowledgement
    from barnabas.coord.share_partitions.acquisition import Acquired, AcquireRequest
    from barnabas.coord.share_state.batches import StateBatch

NOT_FOUND = "Batch record not found. The request batch offsets are not found in the cache."
PAST_ACQUIRED = "Batch record not found. The {} offset in request is past acquired records."
NOT_ACQUIRED = "The batch cannot be acknowledged. The batch is not in the acquired state."
OFFSET_NOT_ACQUIRED = "The offset cannot be acknowledged. The offset is not acquired."
NOT_OWNER = "Member is not the owner of batch record"
NOT_OWNER_OF_OFFSET = "Member is not the owner of offset"
NO_RENEWAL = "Renewing acquisition locks is not enabled for the group."

_STATE_AFTER = {
    AcknowledgeType.GAP: RecordState.ARCHIVED,
    AcknowledgeType.ACCEPT: RecordState.ACKNOWLEDGED,
    AcknowledgeType.RELEASE: RecordState.AVAILABLE,
    AcknowledgeType.REJECT: RecordState.ARCHIVED,
}


class _Lock(NamedTuple):
    """Records of this range are released at `deadline` if their lock still ends then."""

    deadline: float
    first: int
    last: int


class SharePartition:
    """The records of one partition that a share group is processing."""

    def __init__(
        self,
        settings: Callable[[], GroupSettings],
        start_offset: int,
        state_epoch: int,
        state: Iterable[StateBatch] = (),
    ) -> None:
        """Start with the durable state; ValueError when it is inconsistent.

        Offsets without a state that are below one with a state are available.
        """
        self.state_epoch = state_epoch
        self._settings = settings
        self._window = window = Window(start_offset)
        self._locks: list[_Lock] = []
        self._may_have_available = False  # False: no run is available
        for first, last, record_state, delivery_count in state:
            if not window.end_offset <= first <= last:
                raise ValueError(
                    f"durable state of {first}-{last}, but the next range must begin at {window.end_offset} or above"
                )
            if first > window.end_offset:
                window.append(Run(window.end_offset, first - 1, RecordState.AVAILABLE, 0))
            known = RecordState(record_state)
            if known is RecordState.ACQUIRED:
                raise ValueError(f"durable state of {first}-{last} is Acquired, which is never written")
            window.append(Run(first, last, known, delivery_count))
            self._may_have_available = True
        window.advance()

    # ---- state

    @property
    def start_offset(self) -> int:
        """The first record that is not finished (SPSO)."""
        return self._window.start_offset

    @property
    def end_offset(self) -> int:
        """The offset after the last record that was acquired (SPEO)."""
        return self._window.end_offset

    @property
    def delivery_complete_count(self) -> int:
        """How many records from the start offset on are finished."""
        return self._window.finished

    def runs(self) -> tuple[Run, ...]:
        """All records of the window, in order."""
        return self._window.runs()

    def next_fetch_offset(self) -> int:
        """The offset to read the log from for records that can be acquired."""
        if self._may_have_available:
            for run in self._window.runs():
                if run.is_available:
                    return run.first
            self._may_have_available = False
        return self._window.end_offset

    def can_acquire(self) -> bool:
        """Whether there are available records, or the window may grow."""
        window = self._window
        return (
            self.next_fetch_offset() != window.end_offset
            or len(window) < self._settings().share_partition_max_record_locks
        )

    def dead_letters(self) -> list[DeadLetters]:
        """Records in state Archiving: their write to the dead-letter queue has to be repeated after a restart."""
        return [
            DeadLetters(run.first, run.last, run.delivery_count, "")
            for run in self._window.runs()
            if run.state is RecordState.ARCHIVING and run.undo is None
        ]

    # ---- acquiring

    def acquire(self, request: AcquireRequest, now: float) -> list[Acquired]:
        """Acquire records for a member and lock them; the ranges acquired."""
        settings = self._settings()
        deadline = now + settings.share_record_lock_duration_ms / 1000
        acquired = Acquisition(self._window, settings, request, deadline).run()
        self._may_have_available = self._may_have_available or request.is_strict
        if acquired:
            self._lock(deadline, acquired[0].first, acquired[-1].last)
        self._window.advance()
        return acquired

    def _lock(self, deadline: float, first: int, last: int) -> None:
        heappush(self._locks, _Lock(deadline, first, last))

    # ---- acknowledgements

    def acknowledge(self, member_id: str, acknowledgements: Sequence[Acknowledgement], now: float) -> StateChange:
        """Apply all acknowledgements of a member, or none of them.

        KafkaError(INVALID_RECORD_STATE or INVALID_REQUEST) when one of them is not possible.
        Records before the start offset are ignored. The change is empty when there is nothing to write.
        """
        window = self._window
        acknowledgements = [
            acknowledgement for acknowledgement in acknowledgements if acknowledgement.last >= window.start_offset
        ]
        for acknowledgement in acknowledgements:
            self._check(member_id, acknowledgement)
        for before, acknowledgement in pairwise(acknowledgements):
            if before.last == acknowledgement.first and before.type is not AcknowledgeType.RENEW:
                (run,) = window.touching(before.last, before.last)
                was_batch = run.batch == (run.first, run.last) and before.first <= run.first
                raise KafkaError(ErrorCode.INVALID_RECORD_STATE, NOT_ACQUIRED if was_batch else OFFSET_NOT_ACQUIRED)
        change = StateChange()
        settings = self._settings()
        for acknowledgement in acknowledgements:
            first = max(acknowledgement.first, window.start_offset)
            if acknowledgement.type is AcknowledgeType.RENEW:
                self._renew(first, acknowledgement.last, now + settings.share_record_lock_duration_ms / 1000)
                continue
            for run in window.within(first, acknowledgement.last):
                self._step(change, run, self._next_state(run, acknowledgement.type, settings), acknowledgement.type)
        return change

    def _check(self, member_id: str, acknowledgement: Acknowledgement) -> None:
        window = self._window
        if not window:
            raise KafkaError(ErrorCode.INVALID_RECORD_STATE, NOT_FOUND)
        if acknowledgement.last >= window.end_offset:
            end = "first" if acknowledgement.first >= window.end_offset else "last"
            raise KafkaError(ErrorCode.INVALID_REQUEST, PAST_ACQUIRED.format(end))
        for run in window.touching(max(acknowledgement.first, window.start_offset), acknowledgement.last):
            is_batch = run.batch == (run.first, run.last)
            if run.state is not RecordState.ACQUIRED:
                raise KafkaError(ErrorCode.INVALID_RECORD_STATE, NOT_ACQUIRED if is_batch else OFFSET_NOT_ACQUIRED)
            if run.member_id != member_id:
                raise KafkaError(ErrorCode.INVALID_RECORD_STATE, NOT_OWNER if is_batch else NOT_OWNER_OF_OFFSET)
        if acknowledgement.type is AcknowledgeType.RENEW and not self._settings().share_renew_acknowledge_enable:
            raise KafkaError(ErrorCode.INVALID_RECORD_STATE, NO_RENEWAL)

    def _renew(self, first: int, last: int, deadline: float) -> None:
        for run in self._window.within(first, last):
            run.deadline = deadline
        self._window.merge(first, last)
        self._lock(deadline, first, last)

    @staticmethod
    def _next_state(run: Run, kind: AcknowledgeType, settings: GroupSettings) -> RecordState:
        if kind is AcknowledgeType.RELEASE:
            return _state_after_release(run, settings)
        if kind is AcknowledgeType.REJECT and settings.errors_deadletterqueue_topic_name:
            return RecordState.ARCHIVING
        return _STATE_AFTER[kind]

    def _step(self, change: StateChange, run: Run, state: RecordState, kind: AcknowledgeType | None) -> None:
        """Make a transition that can be undone."""
        run.undo = Undo(change, run.state, run.member_id)
        self._apply(change, run, state, kind)

    def _apply(self, change: StateChange, run: Run, state: RecordState, kind: AcknowledgeType | None) -> None:
        self._window.become(run, state)
        change.add(run.first, run.last, state, run.delivery_count)
        if state is RecordState.ARCHIVING:
            reason = REJECTED if kind is AcknowledgeType.REJECT else DELIVERED_TOO_OFTEN
            change.dead_letters.append(DeadLetters(run.first, run.last, run.delivery_count, reason))

    def release(self, member_id: str) -> StateChange:
        """Release all records of a member that has left, or whose session has ended."""
        change = StateChange()
        settings = self._settings()
        for run in self._window.runs():
            if run.state is RecordState.ACQUIRED and run.member_id == member_id:
                self._step(change, run, _state_after_release(run, settings), None)
        return change

    def archived(self, first: int, last: int) -> StateChange:
        """Finish records that are in the dead-letter queue, or whose write to it has failed for good."""
        change = StateChange()
        for run in self._window.within(first, last):
            if run.state is RecordState.ARCHIVING:
                self._apply(change, run, RecordState.ARCHIVED, None)
        self._window.merge(first, last)
        self._window.advance()
        return change

    # ---- writing

    def committed(self, change: StateChange) -> None:
        """A change is written: its transitions are final, and the start of the window may move."""
        window = self._window
        for first, last, state, _ in change.batches:
            for run in window.touching(first, last):
                if run.undo is not None and run.undo.change is change:
                    run.undo = None
                    run.deadline = NEVER
            if state == RecordState.AVAILABLE:
                self._may_have_available = True
            window.merge(first, last)
        window.advance()
        while self._locks and self._locks[0].last < window.start_offset:
            heappop(self._locks)

    def failed(self, change: StateChange, now: float) -> None:
        """A change could not be written: undo it; records whose lock has expired in the meantime are released."""
        limit = self._settings().share_delivery_count_limit
        for first, last, _, _ in change.batches:
            for run in self._window.touching(first, last):
                if run.undo is None or run.undo.change is not change:
                    continue
                _, state, member_id = run.undo
                run.undo = None
                self._window.restore(run, state, member_id)
                if run.deadline <= now:
                    is_at_limit = run.delivery_count >= limit
                    self._window.become(run, RecordState.ARCHIVED if is_at_limit else RecordState.AVAILABLE)
                    run.deadline = NEVER
                    self._may_have_available = self._may_have_available or not is_at_limit
            self._window.merge(first, last)
        self._window.advance()

    # ---- time and the log

    def next_deadline(self) -> float | None:
        """When the next lock may expire (monotonic seconds), or None."""
        return self._locks[0].deadline if self._locks else None

    def tick(self, now: float) -> StateChange:
        """Release the records whose lock has expired. The change cannot be undone."""
        change = StateChange()
        settings = self._settings()
        while self._locks and self._locks[0].deadline <= now:
            _, first, last = heappop(self._locks)
            for run in self._window.touching(first, last):
                if run.state is RecordState.ACQUIRED and run.deadline <= now:
                    self._apply(change, run, _state_after_release(run, settings), None)
                    run.deadline = NEVER
            self._window.merge(first, last)
        if change.makes_available:
            self._may_have_available = True
        self._window.advance()
        return change

    def move_log_start(self, offset: int) -> None:
        """Remove records below the new log start offset from the window."""
        if offset <= self._window.start_offset:
            return
        self._window.drop_below(offset)
        self._locks = [lock for lock in self._locks if lock.last >= offset]
        heapify(self._locks)
        self._window.advance()


def _state_after_release(run: Run, settings: GroupSettings) -> RecordState:
    """The state of a record that its member releases or does not finish."""
    if run.delivery_count < settings.share_delivery_count_limit:
        return RecordState.AVAILABLE
    return RecordState.ARCHIVING if settings.errors_deadletterqueue_topic_name else RecordState.ARCHIVED
