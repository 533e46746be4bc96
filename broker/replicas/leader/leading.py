"""Leading a partition that has followers: their fetches move its high watermark, its ISR follows them (R6-R12).

The high watermark is the least end of the maximal ISR, the leader's own included: the end of its flushed records, if a
flush policy asks for that, so that an acknowledged record is on the disks of the whole ISR. It does not move while the
ISR is smaller than min.insync.replicas (KIP-966), and never goes back. A partition with a single replica has no
`Leading`. Source: Kafka 4.4 `Partition`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Protocol

from barnabas.broker.replicas.leader.isr_changes import Outcome
from barnabas.broker.replicas.leader.leader_state import LeaderState, Proposal
from barnabas.broker.replicas.leader.offset_waits import OffsetWaits
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.replicas.flush.policy import FlushPolicy
    from barnabas.broker.replicas.leader.isr_changes import IsrChanges
    from barnabas.broker.replicas.leader.leader_state import Follower
    from barnabas.broker.replicas.leader.tally import Tally
    from barnabas.coord.cluster.broker_image import BrokerImage
    from barnabas.coord.cluster.topic_image import PartitionImage
    from barnabas.storage.log import Log
    from barnabas.wire.messages.replication import AlterPartitionResponsePartitionData

logger = logging.getLogger("kafka.cluster.Partition")

REFUSED_S = 1.0
"""How long the ISR is not expanded after the controller has called a replica ineligible, seconds."""

_REFUSED = frozenset({ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA})
"""The controller has not applied the proposal: the state before it holds."""

_OVERTAKEN = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    }
)
"""The partition has changed, or the proposal was applied already: the metadata will show which. Until then the proposal
stays open: the new members may be in the ISR, so they are waited for. `IsrChanges` asks again if no metadata comes."""


class LedPartition(Protocol):
    """The part of the partition that `Leading` uses."""

    topic: str
    index: int
    topic_id: bytes
    log: Log
    isr: Sequence[int]
    leader_epoch: int
    partition_epoch: int
    flush_policy: FlushPolicy | None
    tally: Tally | None

    @property
    def own_end(self) -> int:
        """The end of this replica's records."""

    @property
    def min_in_sync(self) -> int:
        """The replicas that have to be in sync."""

    is_waking_followers: bool

    def commit(self, offset: int) -> None:
        """Commit everything below `offset`."""

    def mark_followers(self) -> None:
        """The next fetches of followers include the partition."""


class SharedParts(Protocol):
    """The shared part of all partitions with followers (`broker.replicas.replication`)."""

    loop: Loop
    node_id: int
    now: Callable[[], float]
    changes: IsrChanges

    @property
    def max_lag_s(self) -> float:
        """How long a replica of the ISR may lag, seconds."""

    def broker(self, broker_id: int) -> BrokerImage | None:
        """A broker in the metadata."""


class Leading:
    """The leader's side of one partition with followers."""

    __slots__ = (
        "_awaiting_own",
        "_awaiting_starts",
        "_failure",
        "_partition",
        "_replication",
        "_retry_at",
        "index",
        "own_end",
        "state",
        "topic",
        "topic_id",
    )

    def __init__(self, partition: LedPartition, replication: SharedParts) -> None:
        self._partition = partition
        self._replication = replication
        self._retry_at = -inf
        self._failure = ErrorCode.NONE
        self._awaiting_own = OffsetWaits(replication.loop, "A callback for stored records")
        self._awaiting_starts = OffsetWaits(replication.loop, "A callback for deleted records")
        self.topic = partition.topic
        self.topic_id = partition.topic_id
        self.index = partition.index
        self.own_end = partition.own_end
        """The end of this replica's records: of its flushed records if a flush policy asks for that."""
        self.state = LeaderState(replication.node_id)

    # -- roles

    def update(self, assigned: PartitionImage, *, is_new_epoch: bool, is_new_leader: bool) -> None:
        """Use the replicas and the ISR of the metadata, and begin a leader epoch if there is a new one."""
        state, partition = self.state, self._partition
        state.set_replicas(assigned.replicas)
        state.commit_isr(assigned.isr)
        partition.mark_followers()
        log = partition.log
        if is_new_epoch or is_new_leader:
            # also before the first record of the epoch: followers with later epochs than this log has truncate by it
            log.leader_epochs.assign(assigned.leader_epoch, log.log_end_offset)
            now = self._replication.now()
            state.begin_epoch(now, log.log_end_offset, is_new_leader=is_new_leader)
            logger.debug(
                "Leader %s-%d with leader epoch %d begins at offset %d, high watermark %d, ISR %s, replicas %s",
                *(partition.topic, partition.index, assigned.leader_epoch, log.log_end_offset, log.high_watermark),
                *(list(assigned.isr), list(assigned.replicas)),
            )
        self.advance()

    def stop(self, error: ErrorCode) -> None:
        """This broker leads no longer: waits fail with `error`, since their outcome is not known here.

        A proposal that is in flight is forgotten; the metadata has its result.
        """
        self.state.proposal = None
        self._awaiting_own.fail(error)
        self._awaiting_starts.fail(error)

    # -- offsets

    def appended(self, size: int) -> None:
        """The leader has appended `size` bytes."""
        partition = self._partition
        policy = partition.flush_policy
        if policy is not None:
            policy.appended(size)
        else:
            self.own_end_advanced(partition.log.log_end_offset)

    def own_end_advanced(self, offset: int) -> None:
        """This replica's records end at `offset` now."""
        self.own_end = offset
        if self._awaiting_own.queue:
            self._awaiting_own.reached(offset)
        self.advance()

    def when_stored(self, offset: int, then: Callable[[ErrorCode], None]) -> None:
        """Call `then` once this replica has the record at `offset`, flushed if the policy asks for it (acks=1, R13)."""
        if offset < self.own_end and not self._awaiting_own.is_calling:
            then(ErrorCode.NONE)
        else:
            self._awaiting_own.add(offset, then)

    def take_stored_waits(self) -> list[tuple[int, Callable[[ErrorCode], None]]]:
        """The waits of `when_stored`, which the caller takes over."""
        return self._awaiting_own.take_all()

    def advance(self) -> None:
        """Move the high watermark as far as the maximal ISR has the records (R6, R7)."""
        state, partition = self.state, self._partition
        if len(state.isr) < partition.min_in_sync:
            return
        log = partition.log
        least, high_watermark, log_end = self.own_end, log.high_watermark, log.log_end_offset
        for follower in state.followers.values():
            if follower.log_end_offset < least and (
                state.is_in_maximal_isr(follower.broker_id) or self._is_about_to_join(follower, log_end)
            ):
                least = follower.log_end_offset
                if least <= high_watermark:
                    return
        if least > high_watermark:
            partition.commit(least)

    def _is_about_to_join(self, follower: Follower, log_end: int) -> bool:
        """Whether a follower outside of the ISR has caught up: the high watermark waits so that it can join."""
        replication = self._replication
        return follower.is_caught_up(log_end, replication.now(), replication.max_lag_s) and follower.may_be_in_sync(
            replication.broker(follower.broker_id)
        )

    @property
    def is_short_of_replicas(self) -> bool:
        """Whether fewer replicas than min.insync.replicas are in the maximal ISR: code 20 for committed records."""
        return self.state.maximal_isr_size < self._partition.min_in_sync

    # -- followers

    def follower_fetched(
        self, follower: Follower, broker_epoch: int, offset: int, log_start_offset: int, now: float
    ) -> None:
        """A follower has everything below `offset`. KafkaError when an older incarnation of its broker says so."""
        broker = self._replication.broker(follower.broker_id)
        if broker_epoch != -1 and broker is not None and not broker.fenced and broker.epoch > broker_epoch:
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"Broker {follower.broker_id} fetched with epoch {broker_epoch}, it is registered with {broker.epoch}",
            )
        state, log = self.state, self._partition.log
        had, had_start = follower.log_end_offset, follower.log_start_offset
        follower.fetched(offset, log_start_offset, log.log_end_offset, broker_epoch, now)
        if now >= self._retry_at and state.may_expand(follower, log.high_watermark, broker):
            self._propose((*state.isr, follower.broker_id))
        if follower.log_end_offset != had:
            self.advance()
        if self._awaiting_starts.queue and follower.log_start_offset != had_start:
            self.check_log_starts()

    # -- the ISR

    def check_in_sync(self, now: float) -> None:
        """Propose an ISR without the replicas that lag for longer than replica.lag.time.max.ms (R9)."""
        if self._partition.is_waking_followers:
            return  # idle followers are not notified of the append yet
        state = self.state
        log_end = self._partition.log.log_end_offset
        lagging = state.out_of_sync(log_end, now, self._replication.max_lag_s)
        if lagging:
            logger.info(
                "%s-%d: replicas %s are out of sync; leader end %d, high watermark %d, their ends %s",
                *(self._partition.topic, self.index, sorted(lagging), log_end, self._partition.log.high_watermark),
                [follower.log_end_offset for follower in state.followers.values() if follower.broker_id in lagging],
            )
            self._propose(tuple(broker_id for broker_id in state.isr if broker_id not in lagging))
        else:  # a replica that was waited for may have stopped catching up
            self.advance()

    def _propose(self, isr: tuple[int, ...]) -> None:
        partition = self._partition
        epochs = tuple(map(self._broker_epoch_of, isr))
        proposal = Proposal(isr, partition.leader_epoch, partition.partition_epoch, epochs)
        self.state.proposal = proposal
        self._replication.changes.propose(self, proposal)

    def open_proposal(self) -> Proposal | None:
        """The change of the ISR that the controller is asked for."""
        return self.state.proposal

    def _broker_epoch_of(self, broker_id: int) -> int:
        """The broker epoch of a follower's last fetch, -1 if it has not fetched: the controller does not check it."""
        follower = self.state.followers.get(broker_id)
        return -1 if follower is None or follower.broker_epoch is None else follower.broker_epoch

    def answered(self, proposal: Proposal, response: AlterPartitionResponsePartitionData) -> Outcome:
        """The controller's answer to a proposal (R11)."""
        state, partition = self.state, self._partition
        if state.proposal is not proposal:
            return Outcome.SETTLED  # the metadata was faster
        code = ErrorCode(response.error_code)
        if code in _REFUSED:
            logger.info("%s-%d: the controller refused the ISR %s: %s", *self._names, list(proposal.isr), code.name)
            state.proposal = None
            self._partition.mark_followers()
            self._retry_at = self._replication.now() + REFUSED_S
            self.advance()
            return Outcome.SETTLED
        if code in _OVERTAKEN:
            logger.debug("%s-%d: the ISR %s waits for the metadata: %s", *self._names, list(proposal.isr), code.name)
            return Outcome.AWAITS_METADATA
        if code:
            if code != self._failure:
                logger.warning("%s-%d: changing the ISR is tried again after %s", *self._names, code.name)
            self._failure = code
            return Outcome.AGAIN
        self._failure = ErrorCode.NONE
        if response.leader_epoch != partition.leader_epoch or response.partition_epoch < partition.partition_epoch:
            return Outcome.AWAITS_METADATA
        partition.partition_epoch = response.partition_epoch
        if partition.tally is not None:
            partition.tally.isr_changed(len(partition.isr), len(response.isr))
        partition.isr = tuple(response.isr)
        state.commit_isr(partition.isr)
        partition.mark_followers()
        logger.info("%s-%d: ISR %s, partition epoch %d", *self._names, list(response.isr), response.partition_epoch)
        self.advance()
        return Outcome.SETTLED

    @property
    def _names(self) -> tuple[str, int]:
        return self.topic, self.index

    # -- deletion of records

    @property
    def low_watermark(self) -> int:
        """The least log start of the replicas on live brokers."""
        broker = self._replication.broker
        return min(
            self._partition.log.log_start_offset,
            *(
                follower.log_start_offset
                for follower in self.state.followers.values()
                if (registered := broker(follower.broker_id)) is not None and not registered.fenced
            ),
            self._partition.log.log_start_offset,
        )

    def when_deleted(self, offset: int, then: Callable[[ErrorCode], None]) -> None:
        """Call `then` when all replicas on live brokers start at `offset` or above (L6)."""
        if self.low_watermark >= offset:
            then(ErrorCode.NONE)
        else:
            self._awaiting_starts.add(offset, then)

    def check_log_starts(self) -> None:
        """Call the waits for log starts that all replicas have reached."""
        if self._awaiting_starts.queue:
            self._awaiting_starts.reached(self.low_watermark + 1)

    def forget(self, then: Callable[[ErrorCode], None]) -> None:
        """Do not call `then` any more: its time is up."""
        self._awaiting_own.forget(then)
        self._awaiting_starts.forget(then)
