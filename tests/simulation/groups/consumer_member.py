"""A consumer of the consumer protocol, as in client libraries (rule G3, KIP-848).

Heartbeats are sent in parallel to processing. A new assignment is taken over when processing has stopped, and
acknowledged by an immediate heartbeat. A fenced member gives up all partitions and joins again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.wire.errors import ErrorCode as E
from barnabas.wire.messages.groups import consumer_groups as c
from tests.simulation.groups.classic_member import InstanceFenced

if TYPE_CHECKING:
    from tests.simulation.clients.process import Process, Steps
    from tests.simulation.groups.ledger import ConsumerLedger

VERSION = 1
JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH = 0, -1, -2
_LATER = frozenset(
    {E.COORDINATOR_LOAD_IN_PROGRESS, E.COORDINATOR_NOT_AVAILABLE, E.NOT_COORDINATOR, E.UNRELEASED_INSTANCE_ID}
)
_FENCED = frozenset({E.UNKNOWN_MEMBER_ID, E.FENCED_MEMBER_EPOCH, E.GROUP_ID_NOT_FOUND})
_STALE = frozenset({E.STALE_MEMBER_EPOCH, E.ILLEGAL_GENERATION})


class ConsumerMember:
    """One member."""

    commit_version = 9

    def __init__(
        self, process: Process, ledger: ConsumerLedger, topic: str, topic_id: bytes, instance_id: str | None
    ) -> None:
        self._process = process
        self._ledger = ledger
        self._topic = topic
        self._topic_id = topic_id
        random = process.random
        self.instance_id = instance_id
        self.member_id = f"{process.name}-{random.randrange(1 << 30)}"
        self.epoch = JOIN_EPOCH
        self.assigned: list[int] = []
        self.is_stable = False
        """Whether it may process its partitions."""
        self._interval_s = 0.5
        self._rebalance_s = random.choice((4.0, 10.0))
        self._target: list[int] | None = None
        """An assignment to take over when processing has stopped."""
        self._acknowledged: tuple[str, ...] | None = None
        """The owned partitions in the last successful heartbeat; None: the next one sends all fields."""
        self._is_urgent = True
        self._is_leaving = False
        self._is_in_heartbeat = False
        self._is_fenced_for_good = False
        self.is_kept_out = False
        """Whether another running process has the instance id."""

    @property
    def identity(self) -> str:
        """The owner of partitions in the ledger."""
        return self.member_id

    def for_commit(self) -> dict[str, Any]:
        """The member's fields in an offset commit."""
        return {"generation_id_or_member_epoch": self.epoch, "member_id": self.member_id}

    def ensure_joined(self) -> Steps[None]:
        """Processing has stopped: wait for the newest assignment and take it over."""
        while not self.is_stable or self._target is not None:
            if self._is_fenced_for_good:
                raise InstanceFenced
            if self._target is not None and not self._is_in_heartbeat:
                self.assigned, self._target = self._target, None
                self._ledger.owns(self.epoch, self.identity, self.assigned)
                self.is_stable = True
                self._is_urgent = True
                return
            yield 0.1

    def failed(self, error: E | None) -> None:
        """Handle an error of the coordinator, None for no response."""
        self.is_kept_out = error == E.UNRELEASED_INSTANCE_ID
        if error is None or error in _LATER or error in _STALE:
            return  # the next heartbeat corrects a stale epoch
        if error == E.FENCED_INSTANCE_ID:
            self._is_fenced_for_good = True
            self._release_all()
            return
        assert error in _FENCED, error
        self._release_all()

    def _release_all(self) -> None:
        """Give up all partitions, and join again."""
        self._ledger.releases(self.identity)
        self.assigned, self._target, self._acknowledged = [], None, None
        self.epoch = JOIN_EPOCH
        self.is_stable = False
        self._is_urgent = True

    def send_heartbeats(self) -> Steps[None]:
        """Send heartbeats forever."""
        waited = 0.0
        while True:
            if not self._is_urgent and waited < self._interval_s:
                step = min(0.1 if self._target is not None else 0.25, self._interval_s - waited)
                yield step
                waited += step
                continue
            self._is_urgent, waited = False, 0.0
            if not self._is_leaving and not self._is_fenced_for_good:
                yield from self._heartbeat()

    def _heartbeat(self) -> Steps[None]:
        owned = tuple(sorted(map(str, self.assigned)))
        sends_all = self._acknowledged is None or self.epoch == JOIN_EPOCH
        epoch = self.epoch
        request = c.ConsumerGroupHeartbeatRequest(
            group_id=self._ledger.group,
            member_id=self.member_id,
            member_epoch=epoch,
            instance_id=self.instance_id,
            rebalance_timeout_ms=int(self._rebalance_s * 1000) if sends_all else -1,
            subscribed_topic_names=[self._topic] if sends_all else None,
            topic_partitions=self._partitions() if sends_all or owned != self._acknowledged else None,
        )
        self._acknowledged = None
        # An assignment taken over during a heartbeat that does not include it may be revoked by the response.
        self._is_in_heartbeat = True
        at_least = max(epoch, self._ledger.newest_epoch if epoch == JOIN_EPOCH and self.instance_id is None else 0)
        response = yield from self._process.ask(request, VERSION, lane="heartbeat", may_outlive=False)
        self._is_in_heartbeat = False
        error = None if response is None else E(response.error_code)
        if epoch != self.epoch or self._is_leaving:
            return  # the member was fenced in the meantime
        if error != E.NONE:
            self.failed(error)
            yield 0.1
            return
        self._acknowledged, self.is_kept_out = owned, False
        if self._process.is_current:
            self._ledger.joined(response.member_epoch, at_least)
        self.epoch = response.member_epoch
        self._ledger.newest_epoch = max(self._ledger.newest_epoch, self.epoch)
        self._interval_s = response.heartbeat_interval_ms / 1000
        if response.assignment is not None:
            target = [partition for topic in response.assignment.topic_partitions for partition in topic.partitions]
            if sorted(target) != sorted(self.assigned) or not self.is_stable:
                self._target, self.is_stable = target, False
            else:
                self._target = None

    def _partitions(self) -> list[c.ConsumerGroupHeartbeatRequestTopicPartitions]:
        if not self.assigned:
            return []
        topic_partitions = c.ConsumerGroupHeartbeatRequestTopicPartitions(
            topic_id=self._topic_id, partitions=sorted(self.assigned)
        )
        return [topic_partitions]

    def leave(self) -> Steps[None]:
        """Leave the group; a static member temporarily."""
        self._is_leaving = True
        request = c.ConsumerGroupHeartbeatRequest(
            group_id=self._ledger.group,
            member_id=self.member_id,
            instance_id=self.instance_id,
            member_epoch=LEAVE_EPOCH if self.instance_id is None else STATIC_LEAVE_EPOCH,
        )
        self._release_all()
        yield from self._process.ask(request, VERSION, lane="leave", may_outlive=False)
        self._is_leaving = False
