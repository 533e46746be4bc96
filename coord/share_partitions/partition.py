"""One partition as one share group reads it: gives records to members and takes their acknowledgements (KIP-932, G5).

A pure state machine: moments come in as `now`, monotonic seconds. What is to outlast a restart leaves as a
`StateChange`; its steps hold back others at once, and count when the caller says `committed`, while `failed` takes them
back. Being acquired is not written: a restart finds such records available again. Locks end through `tick`, at
`next_deadline`. Source: Kafka 4.4 `SharePartition`, whose lists of batches and of single offsets are runs here (G6).
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
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
    from barnabas.coord.share_partitions.acquisition import Acquired, Wish
    from barnabas.coord.share_state.batches import StateBatch

NOT_FOUND = "Batch record not found. The request batch offsets are not found in the cache."
PAST_ACQUIRED = "Batch record not found. The last offset in request is past acquired records."
NOT_ACQUIRED = "The batch cannot be acknowledged. The batch is not in the acquired state."
NOT_OWNER = "Member is not the owner of batch record"
NO_RENEWAL = "Renewing acquisition locks is not enabled for the group."

_BECOMES = {
    AcknowledgeType.GAP: RecordState.ARCHIVED,
    AcknowledgeType.ACCEPT: RecordState.ACKNOWLEDGED,
    AcknowledgeType.RELEASE: RecordState.AVAILABLE,
    AcknowledgeType.REJECT: RecordState.ARCHIVED,
}


class _Lock(NamedTuple):
    """Records of this range are to be given back at `deadline`, if they are still locked until then."""

    deadline: float
    first: int
    last: int


class SharePartition:
    """The records of one partition that a share group is at work on."""

    def __init__(
        self,
        settings: Callable[[], GroupSettings],
        start_offset: int,
        state_epoch: int,
        state: Iterable[StateBatch] = (),
    ) -> None:
        """Begin where the kept state says; ValueError when it makes no sense.

        Offsets that nothing is kept of but that lie before some that something is kept of, are available.
        """
        self.state_epoch = state_epoch
        self._settings = settings
        self._window = window = Window(start_offset)
        self._locks: list[_Lock] = []
        self._seeks_free = False  # whether some run may be free
        for first, last, record_state, delivery_count in state:
            if not window.end_offset <= first <= last:
                raise ValueError(f"kept state of {first}-{last} behind {window.end_offset}")
            if first > window.end_offset:
                window.append(Run(window.end_offset, first - 1, RecordState.AVAILABLE, 0))
            known = RecordState(record_state)
            if known is RecordState.ACQUIRED:
                raise ValueError(f"kept state of {first}-{last} says that it is acquired")
            window.append(Run(first, last, known, delivery_count))
            self._seeks_free = True
        window.advance()

    # ---- what there is

    @property
    def start_offset(self) -> int:
        """The first record that is not done with: SPSO."""
        return self._window.start_offset

    @property
    def end_offset(self) -> int:
        """Behind the last record that has been given out: SPEO."""
        return self._window.end_offset

    @property
    def delivery_complete_count(self) -> int:
        """How many records from the start offset on are done with."""
        return self._window.finished

    def runs(self) -> tuple[Run, ...]:
        """All records of the window, in order."""
        return self._window.runs()

    def next_fetch_offset(self) -> int:
        """Where to read the log for records that a member may be given."""
        if self._seeks_free:
            for run in self._window.runs():
                if run.is_free:
                    return run.first
            self._seeks_free = False
        return self._window.end_offset

    def can_acquire(self) -> bool:
        """Whether there are records to give back out, or room for more."""
        window = self._window
        return (
            self.next_fetch_offset() != window.end_offset
            or len(window) < self._settings().share_partition_max_record_locks
        )

    def dead_letters(self) -> list[DeadLetters]:
        """Records that were on their way to the dead-letter queue when the state was kept."""
        return [
            DeadLetters(run.first, run.last, run.delivery_count, "")
            for run in self._window.runs()
            if run.state is RecordState.ARCHIVING and run.undo is None
        ]

    # ---- giving out

    def acquire(self, wish: Wish, now: float) -> list[Acquired]:
        """Give records of the log to a member, as much as it wishes for, and lock them."""
        settings = self._settings()
        deadline = now + settings.share_record_lock_duration_ms / 1000
        acquired = Acquisition(self._window, settings, wish, deadline).run()
        self._seeks_free = self._seeks_free or wish.is_strict
        if acquired:
            self._lock(deadline, acquired[0].first, acquired[-1].last)
        self._window.advance()
        return acquired

    def _lock(self, deadline: float, first: int, last: int) -> None:
        heappush(self._locks, _Lock(deadline, first, last))

    # ---- acknowledgements

    def acknowledge(self, member_id: str, said: Sequence[Acknowledgement], now: float) -> StateChange:
        """Take what a member says, all of it or, with KafkaError INVALID_RECORD_STATE or INVALID_REQUEST, nothing.

        Records before the start offset are done with, whoever says what. The change is empty when nothing is to be
        written.
        """
        window = self._window
        said = [one for one in said if one.last >= window.start_offset]
        for one in said:
            self._check(member_id, one)
        change = StateChange()
        settings = self._settings()
        for one in said:
            first = max(one.first, window.start_offset)
            if one.type is AcknowledgeType.RENEW:
                self._renew(first, one.last, now + settings.share_record_lock_duration_ms / 1000)
                continue
            for run in window.within(first, one.last):
                self._step(change, run, self._next_state(run, one.type, settings), one.type)
        return change

    def _check(self, member_id: str, said: Acknowledgement) -> None:
        window = self._window
        if not window:
            raise KafkaError(ErrorCode.INVALID_RECORD_STATE, NOT_FOUND)
        if said.last >= window.end_offset:
            raise KafkaError(ErrorCode.INVALID_REQUEST, PAST_ACQUIRED)
        for run in window.touching(max(said.first, window.start_offset), said.last):
            if run.state is not RecordState.ACQUIRED:
                raise KafkaError(ErrorCode.INVALID_RECORD_STATE, NOT_ACQUIRED)
            if run.member_id != member_id:
                raise KafkaError(ErrorCode.INVALID_RECORD_STATE, NOT_OWNER)
        if said.type is AcknowledgeType.RENEW and not self._settings().share_renew_acknowledge_enable:
            raise KafkaError(ErrorCode.INVALID_RECORD_STATE, NO_RENEWAL)

    def _renew(self, first: int, last: int, deadline: float) -> None:
        for run in self._window.within(first, last):
            run.deadline = deadline
        self._window.join(first, last)
        self._lock(deadline, first, last)

    @staticmethod
    def _next_state(run: Run, said: AcknowledgeType, settings: GroupSettings) -> RecordState:
        if said is AcknowledgeType.RELEASE:
            return _given_back(run, settings)
        if said is AcknowledgeType.REJECT and settings.errors_deadletterqueue_topic_name:
            return RecordState.ARCHIVING
        return _BECOMES[said]

    def _step(self, change: StateChange, run: Run, state: RecordState, said: AcknowledgeType | None) -> None:
        """Take a step that can be taken back."""
        run.undo = Undo(change, run.state, run.member_id)
        self._note(change, run, state, said)

    def _note(self, change: StateChange, run: Run, state: RecordState, said: AcknowledgeType | None) -> None:
        self._window.become(run, state)
        change.add(run.first, run.last, state, run.delivery_count)
        if state is RecordState.ARCHIVING:
            reason = REJECTED if said is AcknowledgeType.REJECT else DELIVERED_TOO_OFTEN
            change.dead_letters.append(DeadLetters(run.first, run.last, run.delivery_count, reason))

    def release(self, member_id: str) -> StateChange:
        """A member has left, or its session has ended: give back everything that it holds."""
        change = StateChange()
        settings = self._settings()
        for run in self._window.runs():
            if run.state is RecordState.ACQUIRED and run.member_id == member_id:
                self._step(change, run, _given_back(run, settings), None)
        return change

    def archived(self, first: int, last: int) -> StateChange:
        """The dead-letter queue has these records, or they were given up: they are done with."""
        change = StateChange()
        for run in self._window.within(first, last):
            if run.state is RecordState.ARCHIVING:
                self._note(change, run, RecordState.ARCHIVED, None)
        self._window.join(first, last)
        self._window.advance()
        return change

    # ---- writing

    def committed(self, change: StateChange) -> None:
        """A change is written: its steps count, and the start of the window may move."""
        window = self._window
        for first, last, state, _ in change.batches:
            for run in window.touching(first, last):
                if run.undo is not None and run.undo.change is change:
                    run.undo = None
                    run.deadline = NEVER
            if state == RecordState.AVAILABLE:
                self._seeks_free = True
            window.join(first, last)
        window.advance()
        while self._locks and self._locks[0].last < window.start_offset:
            heappop(self._locks)

    def failed(self, change: StateChange, now: float) -> None:
        """A change could not be written: its records are as they were, or free when their lock is over meanwhile."""
        limit = self._settings().share_delivery_count_limit
        for first, last, _, _ in change.batches:
            for run in self._window.touching(first, last):
                if run.undo is None or run.undo.change is not change:
                    continue
                _, state, member_id = run.undo
                run.undo = None
                self._window.restore(run, state, member_id)
                if run.deadline <= now:
                    is_spent = run.delivery_count >= limit
                    self._window.become(run, RecordState.ARCHIVED if is_spent else RecordState.AVAILABLE)
                    run.deadline = NEVER
                    self._seeks_free = self._seeks_free or not is_spent
            self._window.join(first, last)
        self._window.advance()

    # ---- time and the log

    def next_deadline(self) -> float | None:
        """When a lock may end, or None."""
        return self._locks[0].deadline if self._locks else None

    def tick(self, now: float) -> StateChange:
        """End the locks that are due. The change cannot be taken back: a lock that is over stays so."""
        change = StateChange()
        settings = self._settings()
        while self._locks and self._locks[0].deadline <= now:
            _, first, last = heappop(self._locks)
            for run in self._window.touching(first, last):
                if run.state is RecordState.ACQUIRED and run.deadline <= now:
                    self._note(change, run, _given_back(run, settings), None)
                    run.deadline = NEVER
            self._window.join(first, last)
        if change.frees:
            self._seeks_free = True
        self._window.advance()
        return change

    def log_starts_at(self, offset: int) -> None:
        """The log has no records below `offset` any more: neither has the window."""
        if offset <= self._window.start_offset:
            return
        self._window.drop_below(offset)
        self._locks = [lock for lock in self._locks if lock.last >= offset]
        heapify(self._locks)
        self._window.advance()


def _given_back(run: Run, settings: GroupSettings) -> RecordState:
    """What becomes of a record whose member did not finish it."""
    if run.delivery_count < settings.share_delivery_count_limit:
        return RecordState.AVAILABLE
    return RecordState.ARCHIVING if settings.errors_deadletterqueue_topic_name else RecordState.ARCHIVED
