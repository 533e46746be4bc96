"""A consumer of the classic protocol, as in client libraries (rule G1, KIP-62, KIP-345, KIP-394).

It joins, assigns the partitions if it is the leader, sends heartbeats while it processes records, rejoins on a
rebalance, and joins as a new member when it is unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.wire.errors import ErrorCode as E
from barnabas.wire.messages.groups import classic_groups as g
from barnabas.wire.messages.groups.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
)
from tests.simulation.clients.producer import BACKOFF_S

if TYPE_CHECKING:
    from tests.simulation.clients.process import Process, Steps
    from tests.simulation.groups.ledger import GroupLedger

JOIN, SYNC, HEARTBEAT, LEAVE = 9, 5, 4, 5
PROTOCOL = "range"
_LATER = frozenset({E.COORDINATOR_LOAD_IN_PROGRESS, E.COORDINATOR_NOT_AVAILABLE, E.NOT_COORDINATOR})
_UNKNOWN = frozenset({E.UNKNOWN_MEMBER_ID, E.ILLEGAL_GENERATION})
_SUBSCRIPTION = 0


class InstanceFenced(Exception):  # noqa: N818 - the name of Kafka's error
    """Another process uses this instance id now."""


class ClassicMember:
    """One member."""

    commit_version = 8

    def __init__(
        self, process: Process, ledger: GroupLedger, topic: str, partitions: int, instance_id: str | None
    ) -> None:
        self._process = process
        self._ledger = ledger
        self._topic = topic
        self._partitions = partitions
        random = process.random
        self.instance_id = instance_id
        self.member_id = ""
        self.epoch = -1
        """The generation."""
        self.assigned: list[int] = []
        self.is_stable = False
        """Whether it may process its partitions."""
        self._session_s = random.choice((6.0, 8.0))
        self._heartbeat_s = random.choice((1.0, 2.0))
        self._rebalance_s = random.choice((4.0, 10.0))

    @property
    def identity(self) -> str:
        """The instance id, or else the member id."""
        return self.instance_id or self.member_id

    def for_commit(self) -> dict[str, Any]:
        """The member's fields in an offset commit."""
        return {
            "generation_id_or_member_epoch": self.epoch,
            "member_id": self.member_id,
            "group_instance_id": self.instance_id,
        }

    # ---- joining

    def ensure_joined(self) -> Steps[None]:
        """Join the current generation and get an assignment; InstanceFenced if another process has the instance id."""
        while not self.is_stable:
            response = yield from self._join()
            if response is not None:
                yield from self._sync(response)

    def _join(self) -> Steps[g.JoinGroupResponse | None]:
        self._ledger.releases(self.identity)
        self.assigned = []
        metadata = ConsumerProtocolSubscription(topics=[self._topic]).encode(_SUBSCRIPTION)
        request = g.JoinGroupRequest(
            group_id=self._ledger.group,
            session_timeout_ms=int(self._session_s * 1000),
            rebalance_timeout_ms=int(self._rebalance_s * 1000),
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocols=[g.JoinGroupRequestProtocol(name=PROTOCOL, metadata=b"\0\0" + metadata)],
        )
        at_least = self._ledger.newest_epoch
        response = yield from self._process.ask(request, JOIN, lane="coordinator", timeout_s=self._rebalance_s + 5.0)
        error = None if response is None else E(response.error_code)
        if error == E.NONE:
            self.member_id, self.epoch = response.member_id, response.generation_id
            if self._process.is_current:
                self._ledger.joined(self.epoch, at_least)
            if response.leader == self.member_id and self._process.is_current:
                self._ledger.leads(self._process.incarnation, self.epoch, self.identity)
            return response
        if error == E.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
        else:
            self.failed(error)
            yield BACKOFF_S
        return None

    def _sync(self, joined: g.JoinGroupResponse) -> Steps[None]:
        leads = joined.leader == self.member_id and not joined.skip_assignment
        request = g.SyncGroupRequest(
            group_id=self._ledger.group,
            generation_id=self.epoch,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type=joined.protocol_type,
            protocol_name=joined.protocol_name,
            assignments=self._assign([member.member_id for member in joined.members]) if leads else [],
        )
        response = yield from self._process.ask(request, SYNC, lane="coordinator", timeout_s=self._rebalance_s + 5.0)
        error = None if response is None else E(response.error_code)
        if error != E.NONE:
            self.failed(error)
            yield BACKOFF_S
            return
        assigned = ConsumerProtocolAssignment.decode(bytes(response.assignment)[2:], 0) if response.assignment else None
        topics = assigned.assigned_partitions if assigned is not None else []
        self.assigned = [partition for topic in topics for partition in topic.partitions]
        self._ledger.owns(self.epoch, self.identity, self.assigned)
        self.is_stable = True

    def _assign(self, members: list[str]) -> list[g.SyncGroupRequestAssignment]:
        assignments = []
        for n, member_id in enumerate(sorted(members)):
            mine = list(range(n, self._partitions, len(members)))
            topic = ConsumerProtocolAssignmentTopicPartition(topic=self._topic, partitions=mine)
            data = ConsumerProtocolAssignment(assigned_partitions=[topic]).encode(0)
            assignments.append(g.SyncGroupRequestAssignment(member_id=member_id, assignment=b"\0\0" + data))
        return assignments

    def failed(self, error: E | None) -> None:
        """Handle an error of the coordinator, None for no response."""
        if error is None or error in _LATER:
            return
        if error == E.FENCED_INSTANCE_ID:
            raise InstanceFenced
        assert error in _UNKNOWN or error == E.REBALANCE_IN_PROGRESS, error
        self.is_stable = False
        if error in _UNKNOWN:
            self.member_id, self.epoch = "", -1

    # ---- staying

    def send_heartbeats(self) -> Steps[None]:
        """Send heartbeats forever."""
        while True:
            yield self._heartbeat_s
            if not self.is_stable:
                continue
            epoch, member_id = self.epoch, self.member_id
            request = g.HeartbeatRequest(
                group_id=self._ledger.group,
                generation_id=epoch,
                member_id=member_id,
                group_instance_id=self.instance_id,
            )
            response = yield from self._process.ask(request, HEARTBEAT, lane="heartbeat")
            if response is not None and response.error_code and (epoch, member_id) == (self.epoch, self.member_id):
                try:
                    self.failed(E(response.error_code))
                except InstanceFenced:
                    self._process.exit()
                    return

    def leave(self) -> Steps[None]:
        """Leave the group."""
        identity = g.MemberIdentity(member_id=self.member_id, group_instance_id=self.instance_id)
        request = g.LeaveGroupRequest(group_id=self._ledger.group, members=[identity])
        self.is_stable = False
        yield from self._process.ask(request, LEAVE, lane="coordinator", may_outlive=False)
        self.member_id, self.epoch = "", -1
