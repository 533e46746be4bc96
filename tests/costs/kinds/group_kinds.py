"""The requests of members of groups, and of clients that look for coordinators and offsets."""

from __future__ import annotations

import time
import uuid
from typing import Any

from barnabas.wire.messages.groups.classic_groups import (
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from barnabas.wire.messages.groups.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from barnabas.wire.messages.groups.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tests.costs.client import Client, check, find_coordinator, when_available
from tests.costs.kind import Kind, Step, Steps, one_client
from tests.costs.world import PLAIN, CountedWorld

CONNECTIONS = 50
SESSION_MS = 600_000
MEMBER_ID_REQUIRED = 79
TIMEOUT_S = 30.0


class ClassicMember:
    """The only member of a group of the classic protocol."""

    def __init__(self, client: Client, group: str) -> None:
        self.client, self.group = client, group
        client.create_topic(group)
        find_coordinator(client, group)
        joined = when_available(lambda: self._join(""), lambda response: response.error_code % MEMBER_ID_REQUIRED)
        if joined.error_code:
            joined = self._join(joined.member_id)
        check(joined.error_code, "JoinGroup")
        self.member_id, self.generation = joined.member_id, joined.generation_id
        synced = client.ask(
            SyncGroupRequest(
                group_id=group,
                generation_id=self.generation,
                member_id=self.member_id,
                protocol_type="consumer",
                protocol_name="range",
                assignments=[SyncGroupRequestAssignment(member_id=self.member_id, assignment=b"all")],
            ),
            5,
        )
        check(synced.error_code, "SyncGroup")

    def _join(self, member_id: str) -> Any:
        return self.client.ask(
            JoinGroupRequest(
                group_id=self.group,
                session_timeout_ms=SESSION_MS,
                rebalance_timeout_ms=SESSION_MS,
                member_id=member_id,
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name="range", metadata=b"any")],
            ),
            9,
        )

    def commit(self, offset: int) -> OffsetCommitRequest:
        """Commit an offset of one partition."""
        partition = OffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_leader_epoch=0, committed_metadata=""
        )
        return OffsetCommitRequest(
            group_id=self.group,
            generation_id_or_member_epoch=self.generation,
            member_id=self.member_id,
            topics=[OffsetCommitRequestTopic(name=self.group, partitions=[partition])],
        )


def _find_coordinator(world: CountedWorld) -> Steps:
    member = ClassicMember(world.client(), "find-coordinator")
    request = FindCoordinatorRequest(coordinator_keys=[member.group])
    while True:
        (response,) = yield one_client(member.client, request, 6)
        check(response.coordinators[0].error_code, "FindCoordinator")


def _heartbeat(world: CountedWorld) -> Steps:
    member = ClassicMember(world.client(), "heartbeat")
    request = HeartbeatRequest(group_id=member.group, generation_id=member.generation, member_id=member.member_id)
    while True:
        (response,) = yield one_client(member.client, request, 4)
        check(response.error_code, "Heartbeat")


def _commit(world: CountedWorld) -> Steps:
    member = ClassicMember(world.client(), "offset-commit")
    offset = 0
    while True:
        (response,) = yield one_client(member.client, member.commit(offset), 9)
        check(response.topics[0].partitions[0].error_code, "OffsetCommit")
        offset += 1


def _commits_of_many(world: CountedWorld) -> Steps:
    members = [ClassicMember(world.client(), f"offset-commits-{number}") for number in range(CONNECTIONS)]
    yield Step([], passes_deadlines_s=0.2, is_counted=False)
    offset = 0
    while True:
        responses = yield Step([(member.client, member.commit(offset), 9) for member in members])
        for response in responses:
            check(response.topics[0].partitions[0].error_code, "OffsetCommit")
        offset += 1


def _fetch(world: CountedWorld) -> Steps:
    member = ClassicMember(world.client(), "offset-fetch")
    response = member.client.ask(member.commit(7), 9)
    check(response.topics[0].partitions[0].error_code, "OffsetCommit")
    requested = OffsetFetchRequestTopics(name=member.group, partition_indexes=[0])
    group = OffsetFetchRequestGroup(
        group_id=member.group, member_id=member.member_id, member_epoch=member.generation, topics=[requested]
    )
    request = OffsetFetchRequest(groups=[group], require_stable=True)
    while True:
        (response,) = yield one_client(member.client, request, 9)
        (fetched_group,) = response.groups
        check(fetched_group.error_code, "OffsetFetch")
        if fetched_group.topics[0].partitions[0].committed_offset != 7:
            raise RuntimeError("OffsetFetch has brought another offset")


def _consumer_heartbeat(world: CountedWorld) -> Steps:
    """A member of a consumer group (KIP-848) whose assignment does not change."""
    client, group = world.client(), "consumer-heartbeat"
    topic_id = client.create_topic(group, 4)
    find_coordinator(client, group)
    member_id = str(uuid.uuid4())

    def beat(epoch: int, **fields: Any) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(group_id=group, member_id=member_id, member_epoch=epoch, **fields)

    whole: dict[str, Any] = {
        "rebalance_timeout_ms": SESSION_MS,
        "subscribed_topic_names": [group],
        "topic_partitions": [],
    }
    first = beat(0, **whole)
    heartbeat = when_available(lambda: client.ask(first, 1), lambda reply: reply.error_code)
    deadline = time.monotonic() + TIMEOUT_S
    while heartbeat.assignment is None or not heartbeat.assignment.topic_partitions:
        if time.monotonic() > deadline:
            raise RuntimeError("the member was not assigned its partitions")
        time.sleep(0.05)
        heartbeat = client.ask(beat(heartbeat.member_epoch), 1)
        check(heartbeat.error_code, "ConsumerGroupHeartbeat")
    owned = [ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=topic_id, partitions=[0, 1, 2, 3])]
    heartbeat = client.ask(beat(heartbeat.member_epoch, topic_partitions=owned), 1)
    check(heartbeat.error_code, "ConsumerGroupHeartbeat")
    request = beat(heartbeat.member_epoch)
    while True:
        (response,) = yield one_client(client, request, 1)
        check(response.error_code, "ConsumerGroupHeartbeat")


GROUPS = (
    Kind("FindCoordinator", PLAIN, _find_coordinator),
    Kind("Heartbeat", PLAIN, _heartbeat),
    Kind("OffsetCommit", PLAIN, _commit),
    Kind(f"OffsetCommit, {CONNECTIONS} connections", PLAIN, _commits_of_many, requests=CONNECTIONS, repeats=8),
    Kind("OffsetFetch", PLAIN, _fetch),
    Kind("ConsumerGroupHeartbeat", PLAIN, _consumer_heartbeat),
)
