"""A consumer of the consumer protocol, as client libraries have it (G3; KIP-848).

Heartbeats run beside the work. A new assignment waits until the work is put down (a partition that is taken away is
finished with first), then it is taken over and acknowledged with the next heartbeat, at once. A fenced member lets go
of everything and joins again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.wire.errors import ErrorCode as E
from barnabas.wire.messages import consumer_groups as c
from tests.simulation.classic_member import InstanceFenced

if TYPE_CHECKING:
    from tests.simulation.group_ledger import ConsumerLedger
    from tests.simulation.process import Process, Steps

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
        random = process.world.random
        self.instance_id = instance_id
        self.member_id = f"{process.name}-{random.randrange(1 << 30)}"
        self.epoch = JOIN_EPOCH
        self.assigned: list[int] = []
        self.is_stable = False
        """Whether it may work on its partitions."""
        self._interval_s = 0.5
        self._rebalance_s = random.choice((4.0, 10.0))
        self._wanted: list[int] | None = None
        """An assignment that is to be taken over once the work is put down."""
        self._told: tuple[str, ...] | None = None
        """What the broker is known to know; None: it is told all."""
        self._is_urgent = True
        self._is_leaving = False
        self._is_speaking = False
        self._is_fenced_for_good = False
        self.is_kept_out = False
        """Whether another process has the instance id, and lives."""

    @property
    def identity(self) -> str:
        """What owns partitions."""
        return self.member_id

    def for_commit(self) -> dict[str, Any]:
        """What an offset commit tells of the member."""
        return {"generation_id_or_member_epoch": self.epoch, "member_id": self.member_id}

    def ensure_joined(self) -> Steps[None]:
        """The work is put down: have an assignment, the newest there is."""
        while not self.is_stable or self._wanted is not None:
            if self._is_fenced_for_good:
                raise InstanceFenced
            if self._wanted is not None and not self._is_speaking:
                self.assigned, self._wanted = self._wanted, None
                self._ledger.owns(self.epoch, self.identity, self.assigned)
                self.is_stable = True
                self._is_urgent = True
                return
            yield 0.1

    def failed(self, error: E | None) -> None:
        """An answer of the coordinator says that the membership is not as it was."""
        self.is_kept_out = error == E.UNRELEASED_INSTANCE_ID
        if error is None or error in _LATER or error in _STALE:
            return  # what is stale comes right with the next heartbeat
        if error == E.FENCED_INSTANCE_ID:
            self._is_fenced_for_good = True
            self._let_go()
            return
        assert error in _FENCED, error
        self._let_go()

    def _let_go(self) -> None:
        """Abandon everything, and join again."""
        self._ledger.lets_go(self.identity)
        self.assigned, self._wanted, self._told = [], None, None
        self.epoch = JOIN_EPOCH
        self.is_stable = False
        self._is_urgent = True

    def beat(self) -> Steps[None]:
        """Heartbeats, for ever."""
        waited = 0.0
        while True:
            if not self._is_urgent and waited < self._interval_s:
                step = min(0.1 if self._wanted is not None else 0.25, self._interval_s - waited)
                yield step
                waited += step
                continue
            self._is_urgent, waited = False, 0.0
            if not self._is_leaving and not self._is_fenced_for_good:
                yield from self._heartbeat()

    def _heartbeat(self) -> Steps[None]:
        owned = tuple(sorted(map(str, self.assigned)))
        says_all = self._told is None or self.epoch == JOIN_EPOCH
        epoch = self.epoch
        request = c.ConsumerGroupHeartbeatRequest(
            group_id=self._ledger.group,
            member_id=self.member_id,
            member_epoch=epoch,
            instance_id=self.instance_id,
            rebalance_timeout_ms=int(self._rebalance_s * 1000) if says_all else -1,
            subscribed_topic_names=[self._topic] if says_all else None,
            topic_partitions=self._partitions() if says_all or owned != self._told else None,
        )
        self._told = None
        # What it takes over while a heartbeat says that it has it not might be another's when the answer comes.
        self._is_speaking = True
        answer = yield from self._process.ask(request, VERSION, lane="heartbeat", may_outlive=False)
        self._is_speaking = False
        error = None if answer is None else E(answer.error_code)
        if epoch != self.epoch or self._is_leaving:
            return  # somebody else was told meanwhile that the member is fenced
        if error != E.NONE:
            self.failed(error)
            yield 0.1
            return
        self._told, self.is_kept_out = owned, False
        self.epoch = answer.member_epoch
        self._ledger.newest_epoch = max(self._ledger.newest_epoch, self.epoch)
        self._interval_s = answer.heartbeat_interval_ms / 1000
        if answer.assignment is not None:
            wanted = [partition for topic in answer.assignment.topic_partitions for partition in topic.partitions]
            if sorted(wanted) != sorted(self.assigned) or not self.is_stable:
                self._wanted, self.is_stable = wanted, False
            else:
                self._wanted = None

    def _partitions(self) -> list[c.ConsumerGroupHeartbeatRequestTopicPartitions]:
        if not self.assigned:
            return []
        one = c.ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=self._topic_id, partitions=sorted(self.assigned))
        return [one]

    def leave(self) -> Steps[None]:
        """Say goodbye; a static member for a while only."""
        self._is_leaving = True
        request = c.ConsumerGroupHeartbeatRequest(
            group_id=self._ledger.group,
            member_id=self.member_id,
            instance_id=self.instance_id,
            member_epoch=LEAVE_EPOCH if self.instance_id is None else STATIC_LEAVE_EPOCH,
        )
        self._let_go()
        yield from self._process.ask(request, VERSION, lane="leave", may_outlive=False)
        self._is_leaving = False
