"""A member of a classic group of consumers: joins, heartbeats, commits, leaves (JoinGroup, SyncGroup; KIP-62, KIP-345).

It has connections of its own, so that neither a fetch nor another member's rebalance delays a heartbeat. Everything is
done by calls: `join` waits until the group is balanced, `tick` has to be called every second or so and never waits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from select import select
from time import monotonic
from typing import TypeVar

from barnabas.client.cluster import Cluster
from barnabas.client.connection import NodeConnection
from barnabas.client.errors import ClientError, TimedOut, Unreachable, is_retriable, raise_for
from barnabas.client.groups.consumer_groups import LAST_VERSION_WITH_NAMES
from barnabas.client.offsets import TopicPartition
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.groups.classic_groups import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    JoinGroupResponseMember,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from barnabas.wire.messages.groups.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
)
from barnabas.wire.messages.groups.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from barnabas.wire.schema import Message

# --- the assignors `range` and `roundrobin`, which every consumer has

# The leader of a group runs the one that the coordinator has chosen. Members are ordered by instance id, then by
# member id, as in Kafka's AbstractPartitionAssignor.

Subscriptions = Mapping[str, Sequence[str]]
"""The topics of each member, in the order of the members."""


def assign_range(subscriptions: Subscriptions, partition_counts: Mapping[str, int]) -> dict[str, list[TopicPartition]]:
    """For each topic a run of partitions for each member; the first members get one more."""
    assigned: dict[str, list[TopicPartition]] = {member: [] for member in subscriptions}
    for topic in sorted({topic for topics in subscriptions.values() for topic in topics}):
        members = [member for member, topics in subscriptions.items() if topic in topics]
        size, larger = divmod(partition_counts.get(topic, 0), len(members))
        start = 0
        for number, member in enumerate(members):
            end = start + size + (number < larger)
            assigned[member] += [(topic, index) for index in range(start, end)]
            start = end
    return assigned


def assign_round_robin(
    subscriptions: Subscriptions, partition_counts: Mapping[str, int]
) -> dict[str, list[TopicPartition]]:
    """All partitions in order, each to the next member that has subscribed to its topic."""
    assigned: dict[str, list[TopicPartition]] = {member: [] for member in subscriptions}
    members = cycle(subscriptions)
    for topic in sorted({topic for topics in subscriptions.values() for topic in topics}):
        for index in range(partition_counts.get(topic, 0)):
            member = next(candidate for candidate in members if topic in subscriptions[candidate])
            assigned[member].append((topic, index))
    return assigned


ASSIGNORS = {"range": assign_range, "roundrobin": assign_round_robin}


# --- the member

M = TypeVar("M", bound=Message)

PROTOCOL_TYPE = "consumer"
SESSION_TIMEOUT_MS = 45_000
REBALANCE_TIMEOUT_MS = 60_000
HEARTBEAT_S = 3.0
REFRESH_S = 5.0
"""Seconds between two looks at the subscribed topics: new partitions, and new topics of a pattern."""
PAUSE_S = 0.1
CLOSE_S = 5.0
"""How long leaving may take, seconds."""
_LOST = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS)
_MOVED = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


@dataclass(eq=False)
class GroupMember:
    """One membership. `find_topics` returns the names of the topics to subscribe to.

    Errors of all calls: KafkaError, NotFound, TimedOut, Unreachable.
    """

    cluster: Cluster
    group: str
    find_topics: Callable[[Cluster], Sequence[str]]
    instance_id: str | None
    member_id: str = field(default="", init=False)
    generation: int = field(default=-1, init=False)
    must_join: bool = field(default=True, init=False)
    _sizes: dict[str, int] = field(default_factory=dict, init=False)
    _node: NodeConnection | None = field(default=None, init=False)
    _heartbeat_at: float = field(default=0.0, init=False)
    _heartbeat_waits: bool = field(default=False, init=False)
    _refresh_at: float = field(default=0.0, init=False)
    _failure: Exception | None = field(default=None, init=False)

    # --- joining

    def join(self, on_wait: Callable[[], None]) -> list[TopicPartition]:
        """Join, and wait until the group is balanced; the partitions of this member. `on_wait` may raise to end it."""
        failing_since: float | None = None
        while True:
            try:
                assigned = self._join_once(on_wait)
            except (KafkaError, ClientError) as error:
                if not self._may_retry(error):
                    raise
                now = monotonic()
                failing_since = failing_since or now
                if now - failing_since > self.cluster.timeout_s:
                    raise TimedOut(f"failed for {self.cluster.timeout_s:g} s: {error}") from error
                on_wait()
                select([], [], [], PAUSE_S)
                continue
            if assigned is not None:
                return assigned

    def _may_retry(self, error: Exception) -> bool:
        if isinstance(error, KafkaError) and error.code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
            return True
        if is_retriable(error) or (isinstance(error, KafkaError) and error.code in _LOST):
            self._node = None
            return True
        return False

    def _join_once(self, on_wait: Callable[[], None]) -> list[TopicPartition] | None:
        """One attempt; None when the coordinator has given a member id to join with (KIP-394)."""
        topics = list(self.find_topics(self.cluster))
        subscription = ConsumerProtocolSubscription(topics=topics)
        metadata = (0).to_bytes(2, "big") + subscription.encode(0)
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata) for name in ASSIGNORS],
        )
        joined = self._ask(request, JoinGroupResponse, on_wait)
        if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = joined.member_id
            return None
        raise_for(joined.error_code, f"cannot join group {self.group!r}")
        self.member_id, self.generation = joined.member_id, joined.generation_id
        is_leader = joined.leader == joined.member_id and not joined.skip_assignment
        self._sizes = self._partition_counts(topics)
        synced = self._ask(
            SyncGroupRequest(
                group_id=self.group,
                generation_id=self.generation,
                member_id=self.member_id,
                group_instance_id=self.instance_id,
                protocol_type=PROTOCOL_TYPE,
                protocol_name=joined.protocol_name,
                assignments=self._assignments(joined.protocol_name or "", joined.members) if is_leader else [],
            ),
            SyncGroupResponse,
            on_wait,
        )
        raise_for(synced.error_code, f"cannot join group {self.group!r}")
        self.must_join = False
        now = monotonic()
        self._heartbeat_at, self._refresh_at = now + HEARTBEAT_S, now + REFRESH_S
        self._heartbeat_waits = False
        return _assigned(bytes(synced.assignment))

    def _assignments(
        self, protocol: str, members: Sequence[JoinGroupResponseMember]
    ) -> list[SyncGroupRequestAssignment]:
        """Assign partitions to all members, as the leader."""
        ordered = sorted(
            members, key=lambda member: (member.group_instance_id is None, member.group_instance_id, member.member_id)
        )
        subscriptions = {member.member_id: _subscribed(bytes(member.metadata)) for member in ordered}
        every = {topic for topics in subscriptions.values() for topic in topics}
        self._sizes = self._partition_counts(sorted(every))
        assigned = ASSIGNORS[protocol](subscriptions, self._sizes)
        return [
            SyncGroupRequestAssignment(member_id=member, assignment=_encoded(partitions))
            for member, partitions in assigned.items()
        ]

    def _partition_counts(self, topics: Sequence[str]) -> dict[str, int]:
        """The number of partitions of each topic that exists."""
        response = self.cluster.retry(lambda deadline: self.cluster.metadata(topics, deadline)) if topics else None
        if response is None:
            return {}
        return {
            topic.name or "": len(topic.partitions) for topic in response.topics if topic.error_code == ErrorCode.NONE
        }

    # --- between rebalances

    def tick(self) -> None:
        """Send a heartbeat when it is time, look at its answer, and at the topics; sets `must_join`. Does not wait."""
        self._raise_failure()
        node, now = self._node, monotonic()
        if node is None or not node.is_open:
            self._find_again()
            return
        if select([node], [], [], 0)[0]:
            node.receive()
            self._raise_failure()
        if self._heartbeat_waits and now - self._heartbeat_at > SESSION_TIMEOUT_MS / 1000:
            node.close()
            return
        if not self._heartbeat_waits and now >= self._heartbeat_at:
            self._send_heartbeat(node, now)
        if now >= self._refresh_at:
            self._refresh_at = now + REFRESH_S
            self._refresh()

    def _send_heartbeat(self, node: NodeConnection, now: float) -> None:
        request = HeartbeatRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
        )

        def answered(reply: Message | None, error: ClientError | None) -> None:  # noqa: ARG001 (OnReply)
            self._heartbeat_waits = False
            if isinstance(reply, HeartbeatResponse):
                self._beaten(reply.error_code)

        self._heartbeat_waits = True
        self._heartbeat_at = now
        node.send(request, answered)

    def _beaten(self, code: int) -> None:
        self._heartbeat_at = monotonic() + HEARTBEAT_S
        if code in _LOST:
            self.must_join = True
            if code == ErrorCode.UNKNOWN_MEMBER_ID:
                self.member_id = ""
        elif code in _MOVED:
            self._node = None
        else:
            try:
                raise_for(code, f"group {self.group!r}")
            except KafkaError as error:
                self._failure = error

    def _find_again(self) -> None:
        """The coordinator's connection was lost: heartbeats go on over a new one, after a pause."""
        now = monotonic()
        self._heartbeat_waits = False
        if now < self._heartbeat_at:
            return
        self._heartbeat_at = now + 1.0
        try:
            self._node = self.cluster.coordinator(self.group, now + self.cluster.timeout_s)
            self._heartbeat_at = now
        except (KafkaError, ClientError) as error:
            if not is_retriable(error):
                raise

    def _refresh(self) -> None:
        """Join again when a subscribed topic has more partitions, or a pattern matches another topic."""
        try:
            topics = {*self.find_topics(self.cluster), *self._sizes}
            sizes = self._partition_counts(sorted(topics))
        except ClientError:
            return  # looked at again later
        if sizes != self._sizes:
            self.must_join = True

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    # --- commits and the end

    def commit(self, offsets: Mapping[TopicPartition, int], timeout_s: float | None = None) -> None:
        """Commit offsets in the member's name. KafkaError if the partitions may be another member's by now."""
        topics: dict[str, list[OffsetCommitRequestPartition]] = {}
        for (name, index), offset in offsets.items():
            commit = OffsetCommitRequestPartition(partition_index=index, committed_offset=offset, committed_metadata="")
            topics.setdefault(name, []).append(commit)
        request = OffsetCommitRequest(
            group_id=self.group,
            generation_id_or_member_epoch=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            topics=[OffsetCommitRequestTopic(name=name, partitions=parts) for name, parts in topics.items()],
        )

        def attempt(deadline: float) -> None:
            if timeout_s is not None:
                deadline = min(deadline, monotonic() + timeout_s)
            node = self._coordinator(deadline)
            response = node.call(request, OffsetCommitResponse, deadline, LAST_VERSION_WITH_NAMES)
            for topic in response.topics:
                for partition in topic.partitions:
                    if partition.error_code in _MOVED:
                        self._node = None
                    raise_for(partition.error_code, f"group {self.group!r}, {topic.name}-{partition.partition_index}")

        if timeout_s is None:
            self.cluster.retry(attempt)
        else:
            attempt(monotonic() + timeout_s)

    def leave(self) -> None:
        """Leave the group, so that others get its partitions at once. A static member stays until its session ends."""
        if not self.member_id or self.instance_id is not None:
            return
        if self._node is not None and self._node.in_flight:
            self.cluster.close()  # an answer that other members delay would come before LeaveGroup's answer
            self._node = None
        deadline = monotonic() + CLOSE_S
        node = self._coordinator(deadline)
        request = LeaveGroupRequest(group_id=self.group, member_id=self.member_id)
        if node.version_for(request, None) >= 3:
            identity = MemberIdentity(member_id=self.member_id, reason="the consumer is stopped")
            request = LeaveGroupRequest(group_id=self.group, members=[identity])
        raise_for(node.call(request, LeaveGroupResponse, deadline).error_code, f"cannot leave group {self.group!r}")
        self.member_id = ""

    # --- the coordinator

    def _coordinator(self, deadline: float) -> NodeConnection:
        if self._node is None or not self._node.is_open:
            self._node = self.cluster.coordinator(self.group, deadline)
        return self._node

    def _ask(self, request: Message, reply: type[M], on_wait: Callable[[], None]) -> M:
        """Send a request whose answer waits for other members."""
        node = self._coordinator(monotonic() + self.cluster.timeout_s)
        outcome: list[tuple[Message | None, ClientError | None]] = []
        give_up_at = monotonic() + REBALANCE_TIMEOUT_MS / 1000 + self.cluster.timeout_s
        node.send(request, lambda response, error: outcome.append((response, error)))
        while not outcome:
            on_wait()
            if monotonic() > give_up_at:
                node.close()
                raise TimedOut(f"group {self.group!r}: {node.address} did not answer")
            if node.is_open and select([node], [], [], PAUSE_S)[0]:
                node.receive()
        response, failure = outcome[0]
        if failure is not None or not isinstance(response, reply):
            raise failure or Unreachable(f"the connection to {node.address} was lost")
        return response


def _subscribed(metadata: bytes) -> list[str]:
    """The topics of a member's subscription; fields of newer versions follow and are not read."""
    return ConsumerProtocolSubscription.codec(0).parse(metadata, 2)[0].topics


def _encoded(partitions: Sequence[TopicPartition]) -> bytes:
    topics: dict[str, list[int]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(index)
    parts = [
        ConsumerProtocolAssignmentTopicPartition(topic=topic, partitions=indexes) for topic, indexes in topics.items()
    ]
    return (0).to_bytes(2, "big") + ConsumerProtocolAssignment(assigned_partitions=parts).encode(0)


def _assigned(assignment: bytes) -> list[TopicPartition]:
    if len(assignment) < 2:
        return []
    parsed = ConsumerProtocolAssignment.codec(0).parse(assignment, 2)[0]
    return [(topic.topic, index) for topic in parsed.assigned_partitions for index in topic.partitions]
