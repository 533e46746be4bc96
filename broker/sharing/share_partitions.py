"""The partitions that share groups read on this broker: one `SharePartition` each, its kept state and its timer.

A share partition is loaded from the share coordinator when its first member fetches. Everything that happens to it goes
through here: changes are written, then count, then those who wait are told. It is forgotten, to be loaded anew, when
its state turns out to be another's by now (fenced), when its group is empty, or when the partition goes. Rule G5,
KIP-932.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.broker.config.keys.share_and_streams import GROUP_SHARE_MAX_SHARE_SESSIONS
from barnabas.broker.sharing.dead_letters import DeadLetterQueues
from barnabas.broker.sharing.share_sessions import ShareSession, ShareSessions
from barnabas.coord.cluster.node_records import SHARE_VERSION_FEATURE
from barnabas.coord.groups.settings import BY_DURATION
from barnabas.coord.share_partitions.partition import SharePartition
from barnabas.coord.share_state.batches import NO_OFFSET, state_batches
from barnabas.coord.share_state.key import SharePartitionKey
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.share_state import (
    ReadShareGroupStateRequestPartitionData,
    WriteShareGroupStateRequestPartitionData,
    WriteShareGroupStateRequestStateBatch,
)

if TYPE_CHECKING:
    from barnabas.broker.context import Broker
    from barnabas.broker.replicas.partition import Partition
    from barnabas.broker.timers import Timer
    from barnabas.coord.groups.settings import GroupSettings
    from barnabas.coord.share_partitions.acknowledgement import Acknowledgement
    from barnabas.coord.share_partitions.acquisition import Acquired, AcquireRequest
    from barnabas.coord.share_partitions.change import DeadLetters, StateChange
    from barnabas.coord.share_state.batches import StateBatch
    from barnabas.wire.messages.share_state import (
        ReadShareGroupStateResponsePartitionResult,
        WriteShareGroupStateResponsePartitionResult,
    )

logger = logging.getLogger("kafka.server.share.SharePartition")

SHARE_VERSION_WITH_DEAD_LETTERS = 2

Then = Callable[[ErrorCode], None]

_LOAD_ERRORS = {
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}
"""What a member is told of an error of the share coordinator (Kafka's `fetchPersisterError`)."""

_FENCED = frozenset(
    {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
)


class LiveSharePartition:
    """A share partition at work."""

    def __init__(self, broker: Broker, key: SharePartitionKey, partition: Partition) -> None:
        self.key = key
        self.partition = partition
        self.waiters: dict[object, Callable[[], None]] = {}
        """Whom to tell when records may be had, or the partition is loaded or gone; the key is the waiter itself."""
        self.is_gone = False
        self.error = ErrorCode.NONE
        """Why it could not be loaded."""
        self._state: SharePartition | None = None
        self._broker = broker
        self._timer: Timer | None = None
        self._is_waking = False
        self._was_found_full = False  # since those who wait were told last
        partition.waiters[self] = self._log_changed

    @property
    def state(self) -> SharePartition | None:
        """What is known of its records; None while it is being loaded."""
        return self._state

    def settings(self) -> GroupSettings:
        """What holds for the group; there are no dead-letter queues before share.version 2 (KIP-1191)."""
        settings = self._broker.group_configs(self.key.group_id)
        if settings.errors_deadletterqueue_topic_name and not self._broker.share_partitions.has_dead_letter_queues:
            return settings._replace(errors_deadletterqueue_topic_name="")
        return settings

    # ---- loading

    def load(self) -> None:
        """Ask for what is kept of it; `waiters` are told."""
        asked = ReadShareGroupStateRequestPartitionData(
            partition=self.key.partition, leader_epoch=self.partition.leader_epoch
        )
        self._broker.shares.read(self.key, asked, self._loaded)

    def _loaded(self, kept: ReadShareGroupStateResponsePartitionResult) -> None:
        if kept.error_code:
            self._refuse(_LOAD_ERRORS.get(ErrorCode(kept.error_code), ErrorCode.UNKNOWN_SERVER_ERROR))
            logger.log(
                logging.ERROR if self.error is ErrorCode.UNKNOWN_SERVER_ERROR else logging.INFO,
                "Cannot load the share partition %s: %s",
                *(self.key, kept.error_message or ErrorCode(kept.error_code).name),
            )
            return
        is_new = kept.start_offset == NO_OFFSET
        start_offset = self._first_offset() if is_new else kept.start_offset
        try:
            state = SharePartition(self.settings, start_offset, kept.state_epoch, state_batches(kept.state_batches))
        except ValueError as error:
            logger.error("Cannot load the share partition %s: %s", self.key, error)
            self._refuse(ErrorCode.UNKNOWN_SERVER_ERROR)
            return
        self._state = state
        logger.info("Share partition %s begins at offset %d", self.key, state.start_offset)
        if is_new:  # else a restart before the first acknowledgement would begin elsewhere
            self._write(state, [], lambda _: None)
        for letters in state.dead_letters():
            self._bury(letters)
        self.wake()

    def _refuse(self, error: ErrorCode) -> None:
        self.error = error
        self.wake()

    def _first_offset(self) -> int:
        """Where a group begins that has no position, as `share.auto.offset.reset` says."""
        log = self.partition.log
        reset = self.settings().share_auto_offset_reset
        if reset.strategy == "earliest":
            return log.log_start_offset
        if reset.strategy == BY_DURATION:
            found = log.offset_for_timestamp(self._broker.now_ms() - reset.duration_ms)
            if found is not None:
                return min(found.offset, log.high_watermark)
        return log.high_watermark

    # ---- records out and acknowledgements in

    def acquire(self, request: AcquireRequest) -> list[Acquired]:
        """Lock records for a member; the share partition is loaded."""
        assert self._state is not None
        acquired = self._state.acquire(request, self._broker.now())
        self._wake_for_room(self._state)
        self._arm()
        return acquired

    def can_acquire(self) -> bool:
        """Whether there are records to give back out, or room for more: else who waits is told once there is."""
        if self._state is None:
            return False
        can = self._state.can_acquire()
        self._was_found_full = self._was_found_full or not can
        return can

    def _wake_for_room(self, state: SharePartition) -> None:
        """The window may have moved on: tell those who found it full."""
        if self._was_found_full and state.can_acquire():
            self._was_found_full = False
            self.wake()

    def acknowledge(self, member_id: str, said: list[Acknowledgement], then: Then) -> None:
        """Take a member's acknowledgements; `then` gets an error, or NONE once they are committed.

        KafkaError when they cannot be: none of them counts.
        """
        state = self._state
        if state is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        change = state.acknowledge(member_id, said, self._broker.now())
        self._arm()
        self._settle(state, change, then)

    def release(self, member_id: str, then: Then) -> None:
        """Give back what a member holds."""
        if self._state is None:
            then(ErrorCode.NONE)
        else:
            self._settle(self._state, self._state.release(member_id), then)

    def _settle(self, state: SharePartition, change: StateChange, then: Then) -> None:
        """Write a change, let it count or take it back, tell who waits."""
        if not change:
            then(ErrorCode.NONE)
            return

        def written(error: ErrorCode) -> None:
            if error:
                state.failed(change, self._broker.now())
                self.wake()
            else:
                state.committed(change)
                for letters in change.dead_letters:
                    self._bury(letters)
                if change.makes_available:
                    self.wake()
                self._wake_for_room(state)
            self._arm()
            then(error)

        self._write(state, change.batches, written)

    def _write(self, state: SharePartition, batches: list[StateBatch], then: Then) -> None:
        def answered(result: WriteShareGroupStateResponsePartitionResult) -> None:
            error = ErrorCode(result.error_code)
            if error:
                logger.warning(
                    "Cannot write the state of the share partition %s: %s", self.key, result.error_message or error.name
                )
                error = _LOAD_ERRORS.get(error, ErrorCode.UNKNOWN_SERVER_ERROR)
                if error in _FENCED:
                    self._broker.share_partitions.forget(self)
            then(error)

        asked = WriteShareGroupStateRequestPartitionData(
            partition=self.key.partition,
            state_epoch=state.state_epoch,
            leader_epoch=self.partition.leader_epoch,
            start_offset=state.start_offset,
            delivery_complete_count=state.delivery_complete_count,
            state_batches=[
                WriteShareGroupStateRequestStateBatch(
                    first_offset=first, last_offset=last, delivery_state=delivery_state, delivery_count=count
                )
                for first, last, delivery_state, count in batches
            ],
        )
        self._broker.shares.write(self.key, asked, answered)

    def _bury(self, letters: DeadLetters) -> None:
        """Records go to the dead-letter queue, and are done with when they are there or cannot get there."""

        def done() -> None:
            if self._state is not None:
                self._settle(self._state, self._state.archived(letters.first_offset, letters.last_offset), _ignore)

        self._broker.share_partitions.dead_letters.send(self.key, self.partition, letters, done)

    # ---- time

    def _arm(self) -> None:
        """Have a timer at the next end of a lock, or before."""
        deadline = None if self._state is None else self._state.next_deadline()
        timer = self._timer
        if deadline is None or (timer is not None and timer.callback is not None and timer.deadline <= deadline):
            return
        if timer is not None:
            timer.cancel()
        self._timer = self._broker.timers.at(deadline, self._fire)

    def _fire(self) -> None:
        self._timer = None
        state = self._state
        if state is None or self.is_gone:
            return
        change = state.tick(self._broker.now())
        if change:
            logger.info(
                "Locks of records %d to %d of %s have ended",
                *(change.batches[0].first_offset, change.batches[-1].last_offset, self.key),
            )
        self._settle(state, change, _ignore)
        if change.makes_available:
            self.wake()
        self._wake_for_room(state)
        self._arm()

    # ---- who waits

    def wake(self) -> None:
        """Tell those who wait, once what is being handled now is done."""
        if self.waiters and not self._is_waking:
            self._is_waking = True
            self._broker.call_after_turn(self._wake)

    def _wake(self) -> None:
        self._is_waking = False
        for woken in list(self.waiters.values()):
            woken()

    def _log_changed(self, partition: Partition) -> None:
        """Records were appended, or the partition is gone; the loop's turn is at its end."""
        if partition.is_gone:
            self._broker.share_partitions.forget(self)
        elif self.waiters:
            self._wake()

    def leave(self) -> None:
        """It is not served any more in this shape."""
        self.is_gone = True
        self.partition.waiters.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
        self.wake()


class SharePartitions:
    """All share partitions of this broker, and the sessions of those who read them."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._live: dict[SharePartitionKey, LiveSharePartition] = {}
        most = broker.config[GROUP_SHARE_MAX_SHARE_SESSIONS]
        self.sessions = ShareSessions(most, self._session_ended, self._group_emptied)
        self.dead_letters = DeadLetterQueues(broker)
        broker.shares.on_reset.append(self._reset)

    @property
    def has_dead_letter_queues(self) -> bool:
        """Whether the cluster's features allow them."""
        return self._broker.image.features.get(SHARE_VERSION_FEATURE, 0) >= SHARE_VERSION_WITH_DEAD_LETTERS

    def get(self, key: SharePartitionKey) -> LiveSharePartition:
        """A share partition, which may have to load yet. KafkaError when it cannot be, or is not served here."""
        live = self._live.get(key)
        if live is None:
            partition = self._broker.partitions.get_by_id(key.topic_id, key.partition)
            if partition.is_internal:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            live = self._live[key] = LiveSharePartition(self._broker, key, partition)
            live.load()
        if live.error:
            self.forget(live)  # the next who asks has it tried again
            raise KafkaError(live.error)
        return live

    def find(self, key: SharePartitionKey) -> LiveSharePartition | None:
        """A share partition that is at work, or None."""
        return self._live.get(key)

    def forget(self, live: LiveSharePartition) -> None:
        """Have a share partition loaded anew when it is asked for again."""
        if self._live.get(live.key) is live:
            del self._live[live.key]
        live.leave()

    def _reset(self, key: SharePartitionKey, state_epoch: int) -> None:
        """Another state of this epoch is kept now: what is known here would spoil it, unless the epoch is older."""
        live = self._live.get(key)
        if live is not None and (live.state is None or live.state.state_epoch >= state_epoch):
            self.forget(live)

    # ---- members

    def release(self, session: ShareSession, then: Callable[[], None]) -> None:
        """A session has ended: give back what its member holds; `then` is called once that is written."""
        held = [live for live in self._live.values() if live.key.group_id == session.group_id]
        open_count = len(held) + 1

        def released(_error: ErrorCode) -> None:
            nonlocal open_count
            open_count -= 1
            if not open_count:
                then()

        for live in held:
            live.release(session.member_id, released)
        released(ErrorCode.NONE)

    def _session_ended(self, session: ShareSession) -> None:
        if not self._broker.is_stopping:  # else a restart has the records available again
            self.release(session, _nobody_waits)

    def _group_emptied(self, group_id: str) -> None:
        """A group has no members here: who comes next begins with what is kept, which administrators may change."""
        for live in [live for live in self._live.values() if live.key.group_id == group_id]:
            self.forget(live)


def _nobody_waits() -> None:
    """Errors are in the log."""


def _ignore(_error: ErrorCode) -> None:
    """Nobody waits for it; errors are in the log."""
