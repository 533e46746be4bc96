"""What the leader of a partition knows of its followers, and the resulting ISR and high watermark (R6-R11).

Pure: the time and the metadata of brokers are arguments. Offsets of followers come from their fetches only: a fetch at
an offset says that the follower has everything below it (R4). Source: Kafka 4.4 `Partition`, `Replica`.

Invariants: the maximal ISR is the ISR and a proposed one together, so a replica that may be in the ISR is always waited
for: an expansion counts at once, a shrink only when the controller has confirmed it. One proposal is open at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from typing import NamedTuple, Protocol

UNKNOWN_OFFSET = -1


class RegisteredBroker(Protocol):
    """A broker in the metadata."""

    @property
    def epoch(self) -> int:
        """The epoch of its registration."""

    @property
    def fenced(self) -> bool:
        """Whether the broker is fenced."""

    @property
    def in_controlled_shutdown(self) -> bool:
        """Whether the broker is about to stop."""


class Follower:
    """One follower, as its fetches show it."""

    __slots__ = (
        "_fetched_at",
        "_leader_end_at_fetch",
        "broker_epoch",
        "broker_id",
        "caught_up_at",
        "log_end_offset",
        "log_start_offset",
    )

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.reset()

    def reset(self) -> None:
        """Forget the follower's state: this broker has just become the leader."""
        self.log_end_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        self.broker_epoch: int | None = None
        """The broker epoch of its last fetch; -1 from a broker that sends none."""
        self.caught_up_at = -inf
        """When it had all records for the last time, in seconds."""
        self._fetched_at = -inf
        self._leader_end_at_fetch = UNKNOWN_OFFSET

    def begin_epoch(self, now: float, leader_end: int, *, is_in_sync: bool) -> None:
        """A new leader epoch of the same leader begins: a replica in the ISR counts as caught up (R9)."""
        self._leader_end_at_fetch = leader_end
        self._fetched_at = self.caught_up_at = now if is_in_sync else -inf

    def fetched(self, offset: int, log_start_offset: int, leader_end: int, broker_epoch: int, now: float) -> None:
        """The follower fetches at `offset`.

        It has caught up now if that is the leader's end, and had at its previous fetch if it was the leader's end then.
        """
        if offset >= leader_end:
            self.caught_up_at = max(self.caught_up_at, now)
        elif offset >= self._leader_end_at_fetch:
            self.caught_up_at = max(self.caught_up_at, self._fetched_at)
        self.log_end_offset = offset
        self.log_start_offset = log_start_offset
        self.broker_epoch = broker_epoch
        self._leader_end_at_fetch = max(leader_end, self._leader_end_at_fetch)
        self._fetched_at = now

    def was_at_end(self, fetched_at: float) -> None:
        """Until now its fetches, the last of them at this time, were at the leader's end."""
        self.caught_up_at = max(self.caught_up_at, fetched_at)
        self._fetched_at = max(self._fetched_at, fetched_at)

    def is_caught_up(self, leader_end: int, now: float, max_lag_s: float) -> bool:
        """Whether it has everything, or had within the last `max_lag_s` seconds."""
        return self.log_end_offset == leader_end or now - self.caught_up_at <= max_lag_s

    def may_be_in_sync(self, broker: RegisteredBroker | None) -> bool:
        """Whether its broker may be in an ISR: not fenced, not stopping, and this incarnation has fetched (KIP-903)."""
        if broker is None or broker.fenced or broker.in_controlled_shutdown:
            return False
        return self.broker_epoch is not None and self.broker_epoch in {-1, broker.epoch}


class Proposal(NamedTuple):
    """A change of the ISR that the controller is asked for, based on one state of the partition."""

    isr: tuple[int, ...]
    leader_epoch: int
    partition_epoch: int
    broker_epochs: tuple[int, ...]
    """The epochs of the brokers in `isr`, from their fetches up to now, -1 if not known. A repeated request has the
    same epochs: a broker that has restarted meanwhile may have lost records (KIP-903)."""


class LeaderState:
    """The followers, the ISR and the proposed ISR of one partition."""

    __slots__ = ("epoch_start_offset", "followers", "isr", "node_id", "proposal")

    def __init__(self, node_id: int) -> None:
        self.node_id = node_id
        self.followers: dict[int, Follower] = {}
        self.isr: Sequence[int] = ()
        self.proposal: Proposal | None = None
        self.epoch_start_offset = 0
        """The offset at which the current leader epoch begins in the leader's log."""

    def set_replicas(self, replicas: Iterable[int]) -> None:
        """Set the replicas; the state of replicas that stay is kept."""
        known = self.followers
        self.followers = {
            broker_id: known.get(broker_id) or Follower(broker_id)
            for broker_id in replicas
            if broker_id != self.node_id
        }

    def begin_epoch(self, now: float, log_end: int, *, is_new_leader: bool) -> None:
        """A leader epoch begins at `log_end`, with the ISR and the replicas already set."""
        self.epoch_start_offset = log_end
        for follower in self.followers.values():
            is_in_sync = follower.broker_id in self.isr
            if is_new_leader:
                follower.reset()
                follower.caught_up_at = now if is_in_sync else -inf
            else:
                follower.begin_epoch(now, log_end, is_in_sync=is_in_sync)

    def commit_isr(self, isr: Sequence[int]) -> None:
        """The controller has decided on this ISR; a proposal that was open is over."""
        self.isr = isr
        self.proposal = None

    def is_in_maximal_isr(self, broker_id: int) -> bool:
        """Whether a replica is in the ISR, or proposed for it."""
        return broker_id in self.isr or (self.proposal is not None and broker_id in self.proposal.isr)

    @property
    def maximal_isr_size(self) -> int:
        """The number of replicas that are in the ISR or proposed for it."""
        return len(self.isr) if self.proposal is None else len({*self.isr, *self.proposal.isr})

    def may_expand(self, follower: Follower, high_watermark: int, broker: RegisteredBroker | None) -> bool:
        """Whether the controller may be asked to add a follower to the ISR (R10)."""
        if self.proposal is not None or follower.broker_id in self.isr:
            return False
        end = follower.log_end_offset
        return end >= high_watermark and end >= self.epoch_start_offset and follower.may_be_in_sync(broker)

    def out_of_sync(self, log_end: int, now: float, max_lag_s: float) -> set[int]:
        """The replicas of the ISR that lag for too long (R9); none while a proposal is open."""
        if self.proposal is not None:
            return set()
        return {
            broker_id
            for broker_id in self.isr
            if broker_id != self.node_id
            and (
                (follower := self.followers.get(broker_id)) is None
                or not follower.is_caught_up(log_end, now, max_lag_s)
            )
        }
