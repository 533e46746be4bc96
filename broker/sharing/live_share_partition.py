"""One share partition that is served: the pure `SharePartition`, its saved state, its timer and its waiters.

Every change goes the same way: it is written to the share coordinator, then applied, then the waiters are called.
Rule G5, KIP-932.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, NamedTuple

from barnabas.broker.event_loop.guarded import call_guarded, error_code_of, log_failure
from barnabas.broker.event_loop.waiting import in_slices, start
from barnabas.broker.event_loop.waking import Waking
from barnabas.broker.sharing.persister import FENCED, member_error
from barnabas.coord.auto_offset_reset import BY_DURATION
from barnabas.coord.share_partitions.partition import SharePartition
from barnabas.coord.share_state.batches import NO_OFFSET, state_batches
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.event_loop.timers import Timer
    from barnabas.broker.replicas.partition import Partition
    from barnabas.broker.sharing.dead_letters import DeadLetterQueues
    from barnabas.broker.sharing.persister import Persister
    from barnabas.coord.groups.settings import GroupSettings
    from barnabas.coord.share_partitions.acknowledgement import Acknowledgement
    from barnabas.coord.share_partitions.acquisition import Acquired, AcquireRequest
    from barnabas.coord.share_partitions.change import DeadLetters, StateChange
    from barnabas.coord.share_state.batches import StateBatch
    from barnabas.coord.share_state.key import SharePartitionKey
    from barnabas.wire.messages.groups.share_state import ReadShareGroupStateResponsePartitionResult

logger = logging.getLogger("kafka.server.share.SharePartition")

Then = Callable[[ErrorCode], None]


class Environment(NamedTuple):
    """The parts that all share partitions use."""

    loop: Loop
    persister: Persister
    dead_letters: DeadLetterQueues


class LiveSharePartition:
    """One share partition that is served."""

    def __init__(
        self,
        key: SharePartitionKey,
        partition: Partition,
        settings: Callable[[], GroupSettings],
        environment: Environment,
        on_stale: Callable[[LiveSharePartition], None],
    ) -> None:
        """`settings` returns the effective settings of the group.

        `on_stale` is called when the state must be loaded again, or the partition is not served any more.
        """
        self.key = key
        self.partition = partition
        self.settings = settings
        self.waiters: dict[object, Callable[[], None]] = {}
        """Called when records may be available, or the partition is loaded or removed; the key is the waiter."""
        self.is_closed = False
        self.error = ErrorCode.NONE
        """Why it could not be loaded."""
        self._state: SharePartition | None = None
        self._saved_start = NO_OFFSET
        """The start offset that is written: records below it are finished, whoever leads the partition."""
        self._loop = environment.loop
        self._persister = environment.persister
        self._dead_letters = environment.dead_letters
        self._on_stale = on_stale
        self._timer: Timer | None = None
        self._is_waking = False
        self._waking: Waking[Callable[[], None]] | None = None  # while they are called
        self._was_found_full = False  # since the waiters were last called
        partition.waiters[self] = self._log_changed

    @property
    def state(self) -> SharePartition | None:
        """The state of its records; None while it is being loaded."""
        return self._state

    # ---- loading

    def load(self) -> None:
        """Read the state from the share coordinator; `waiters` are called afterwards."""
        self._persister.read(self.key, self.partition.leader_epoch, self._loaded)

    def _loaded(self, saved: ReadShareGroupStateResponsePartitionResult) -> None:
        start(self._start(saved), self._loop.slices, self._started)

    async def _start(self, saved: ReadShareGroupStateResponsePartitionResult) -> None:
        if saved.error_code:
            self._fail_loading(member_error(ErrorCode(saved.error_code)))
            logger.log(
                logging.ERROR if self.error is ErrorCode.UNKNOWN_SERVER_ERROR else logging.INFO,
                "Cannot load the share partition %s: %s",
                *(self.key, saved.error_message or ErrorCode(saved.error_code).name),
            )
            return
        if saved.start_offset != NO_OFFSET:
            self._begin(saved, saved.start_offset, is_new=False)
            return
        # a lookup by timestamp may have to open large batches
        start_offset = await in_slices(self._first_offset())
        if not self.is_closed:
            self._begin(saved, start_offset, is_new=True)

    def _started(self, error: Exception | None) -> None:
        if error is not None:
            log_failure(f"Loading the share partition {self.key}", error)
            self._fail_loading(error_code_of(error))

    def _begin(self, saved: ReadShareGroupStateResponsePartitionResult, start_offset: int, *, is_new: bool) -> None:
        try:
            state = SharePartition(self.settings, start_offset, saved.state_epoch, state_batches(saved.state_batches))
        except ValueError as error:
            logger.error("Cannot load the share partition %s: %s", self.key, error)
            self._fail_loading(ErrorCode.UNKNOWN_SERVER_ERROR)
            return
        self._state = state
        self._saved_start = saved.start_offset
        logger.info("Share partition %s starts at offset %d", self.key, state.start_offset)
        if is_new:  # so that a restart before the first acknowledgement has the same start offset
            self._write(state, [], _ignore)
        for letters in state.dead_letters():
            self._send_to_dead_letter_queue(letters)
        self.wake()

    def _fail_loading(self, error: ErrorCode) -> None:
        self.error = error
        self.wake()

    def _first_offset(self) -> Generator[None, None, int]:
        """The start offset of a group that has none yet, by `share.auto.offset.reset`."""
        log = self.partition.log
        reset = self.settings().share_auto_offset_reset
        if reset.strategy == "earliest":
            return log.log_start_offset
        if reset.strategy == BY_DURATION:
            position = yield from log.offset_for_timestamp(self._loop.now_ms() - reset.duration_ms)
            if position is not None:
                return min(position.offset, log.high_watermark)
        return log.high_watermark

    # ---- acquiring and acknowledging

    def acquire(self, request: AcquireRequest) -> list[Acquired]:
        """Acquire records for a member; the share partition must be loaded."""
        assert self._state is not None
        acquired = self._state.acquire(request, self._loop.state_now())
        self._wake_if_not_full(self._state)
        self._set_timer()
        return acquired

    def can_acquire(self) -> bool:
        """Whether records can be acquired. If not, because the window is full, waiters are called once they can."""
        if self._state is None:
            return False
        can = self._state.can_acquire()
        self._was_found_full = self._was_found_full or not can
        return can

    def _wake_if_not_full(self, state: SharePartition) -> None:
        """Wake the waiters that found the window full, if it is not full any more."""
        if self._was_found_full and state.can_acquire():
            self._was_found_full = False
            self.wake()

    def acknowledge(self, member_id: str, acknowledgements: list[Acknowledgement], then: Then) -> None:
        """Apply a member's acknowledgements; `then` gets an error, or NONE once they are committed.

        KafkaError if one of them is not valid: none is applied. A late one, of a record below the start offset, has no
        effect, as in Kafka. It is accepted once the start offset is written: else the next leader, which does not know
        that the last delivery has ended the record, could deliver what was acknowledged.
        """
        state = self._state
        if state is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        is_late = any(self._saved_start <= run.last < state.start_offset for run in acknowledgements)
        change = state.acknowledge(member_id, acknowledgements, self._loop.state_now())
        self._set_timer()
        if is_late and not change:
            self._write(state, [], then)
        else:
            self._commit(state, change, then)

    def release(self, member_id: str, then: Then) -> None:
        """Release all records that a member has acquired."""
        if self._state is None:
            then(ErrorCode.NONE)
        else:
            self._commit(self._state, self._state.release(member_id), then)

    def _commit(self, state: SharePartition, change: StateChange, then: Then) -> None:
        """Write a change, then apply it, or roll it back if the write failed, and wake the waiters."""
        if not change:
            then(ErrorCode.NONE)
            return

        def written(error: ErrorCode) -> None:
            try:
                self._written(state, change, error)
            except Exception as failure:
                log_failure(f"Applying a change of the share partition {self.key}, which is loaded again,", failure)
                self._on_stale(self)
                error = error_code_of(failure)
            then(error)

        self._write(state, change.batches, written)

    def _written(self, state: SharePartition, change: StateChange, error: ErrorCode) -> None:
        """A change is committed, or with an error was not written."""
        if error:
            state.failed(change, self._loop.state_now())
            self.wake()
        else:
            state.committed(change)
            for letters in change.dead_letters:
                self._send_to_dead_letter_queue(letters)
            if change.makes_available:
                self.wake()
            self._wake_if_not_full(state)
        self._set_timer()

    def _write(self, state: SharePartition, batches: list[StateBatch], then: Then) -> None:
        start_offset = state.start_offset

        def written(error: ErrorCode) -> None:
            if error in FENCED:
                self._on_stale(self)
            elif not error:
                self._saved_start = max(self._saved_start, start_offset)
            then(error)

        self._persister.write(self.key, state, self.partition.leader_epoch, batches, written)

    def _send_to_dead_letter_queue(self, letters: DeadLetters) -> None:
        """Copy records to the dead-letter queue; they are archived when that is done or has failed."""

        def done() -> None:
            if self._state is not None:
                self._commit(self._state, self._state.archived(letters.first_offset, letters.last_offset), _ignore)

        self._dead_letters.send(self.key, self.partition, letters, done)

    # ---- locks

    def _set_timer(self) -> None:
        """Set a timer for the next lock that expires, or keep one that fires before."""
        deadline = None if self._state is None else self._state.next_deadline()
        timer = self._timer
        if deadline is None or (timer is not None and timer.callback is not None and timer.deadline <= deadline):
            return
        if timer is not None:
            timer.cancel()
        self._timer = self._loop.state_timers.at(deadline, self._expire)

    def _expire(self) -> None:
        self._timer = None
        state = self._state
        if state is None or self.is_closed:
            return
        try:
            self._expire_locks(state)
        except Exception as error:
            log_failure(f"Expiring locks of the share partition {self.key}, which is loaded again,", error)
            self._on_stale(self)

    def _expire_locks(self, state: SharePartition) -> None:
        change = state.tick(self._loop.state_now())
        if change:
            logger.info(
                "Acquisition locks of records %d to %d of %s have expired",
                *(change.batches[0].first_offset, change.batches[-1].last_offset, self.key),
            )
        self._commit(state, change, _ignore)
        if change.makes_available:
            self.wake()
        self._wake_if_not_full(state)
        self._set_timer()

    # ---- waiters

    def wake(self) -> None:
        """Call the waiters at the end of this turn of the loop."""
        if self.waiters and not self._is_waking:
            self._is_waking = True
            self._loop.call_after_turn(self._wake)

    def _wake(self) -> None:
        self._is_waking = False
        if self._waking is None:
            self._waking = Waking(self._loop, self.waiters, self._call_member, self._all_woken)
        self._waking.begin()

    def _call_member(self, wake: Callable[[], None]) -> None:
        call_guarded(f"Waking a member that waits for the share partition {self.key}", wake)

    def _all_woken(self) -> None:
        self._waking = None

    def _log_changed(self, partition: Partition) -> None:
        """Records were appended, or the partition was removed; called at the end of a turn of the loop."""
        if partition.is_closed:
            self._on_stale(self)
        elif self.waiters:
            self._wake()

    def leave(self) -> None:
        """Stop serving it."""
        self.is_closed = True
        self.partition.waiters.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
        self.wake()


def _ignore(_error: ErrorCode) -> None:
    """The result is not needed; errors are in the log."""
