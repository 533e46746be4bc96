"""Limits of groups, of what their members hold, and of transactional ids: the keys `barnabas.group…`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.groups.classic_groups import (
    FindCoordinatorRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from barnabas.wire.messages.groups.consumer_groups import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from barnabas.wire.messages.groups.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from barnabas.wire.messages.groups.share_groups import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from barnabas.wire.messages.groups.streams_groups import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatRequestSubtopology,
    StreamsGroupHeartbeatRequestTopology,
    StreamsGroupHeartbeatResponse,
)
from barnabas.wire.messages.produce import InitProducerIdRequest, InitProducerIdResponse
from barnabas.wire.schema import Message
from tests.support.memory.broker import MemoryBroker, R

LIMITS = {
    "barnabas.log.sync": "os",
    "barnabas.groups.max": "3",
    "barnabas.group.member.max.bytes": "1000",
    "barnabas.group.max.bytes": "2500",
    "barnabas.transactional.ids.max": "2",
    "group.initial.rebalance.delay.ms": "0",
}
TOO_MANY, TOO_LARGE = int(ErrorCode.GROUP_MAX_SIZE_REACHED), int(ErrorCode.INVALID_REQUEST)


class _World:
    """A broker with a topic; each request is sent on a connection of its own."""

    def __init__(self, folder: Path, sets: Mapping[str, str] = LIMITS) -> None:
        self.memory = MemoryBroker(folder, sets)
        if "t" not in self.memory.broker.image.topics:
            self.memory.create_topic("t")
        for kind, key in enumerate(("g", "transaction")):
            self.memory.client().send(FindCoordinatorRequest(key_type=kind, coordinator_keys=[key]), 4)
            self.memory.advance(0)

    def ask(self, request: Message, version: int, response_class: type[R]) -> R:
        client = self.memory.client()
        client.send(request, version)
        self.memory.advance(0.1)
        (response,) = client.answers()
        assert isinstance(response, response_class)
        return response

    def commit(self, group_id: str) -> int:
        """The error code of a commit from no member."""
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
        topic = OffsetCommitRequestTopic(name="t", partitions=[partition])
        request = OffsetCommitRequest(group_id=group_id, generation_id_or_member_epoch=-1, topics=[topic])
        return self.ask(request, 9, OffsetCommitResponse).topics[0].partitions[0].error_code

    def join(self, group_id: str, metadata: int) -> JoinGroupResponse | None:
        """A new member joins with so many bytes of metadata; None while it waits for the others."""
        request = JoinGroupRequest(
            group_id=group_id,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=bytes(metadata))],
        )
        client = self.memory.client()
        client.send(request, 3)
        self.memory.advance(0.1)
        for response in client.answers():
            assert isinstance(response, JoinGroupResponse)
            return response
        return None

    def heartbeat(self, group_id: str, member_id: str, *topics: str) -> ConsumerGroupHeartbeatResponse:
        request = ConsumerGroupHeartbeatRequest(
            group_id=group_id,
            member_id=member_id,
            rebalance_timeout_ms=1000,
            subscribed_topic_names=list(topics),
            topic_partitions=[],
        )
        return self.ask(request, 1, ConsumerGroupHeartbeatResponse)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[_World]:
    world = _World(tmp_path)
    yield world
    world.memory.close()


def test_there_are_no_more_groups_than_allowed(world: _World, caplog: pytest.LogCaptureFixture) -> None:
    assert [world.commit(f"simple-{index}") for index in range(3)] == [0, 0, 0]
    assert world.commit("simple-3") == int(ErrorCode.POLICY_VIOLATION)
    assert world.commit("simple-0") == 0
    assert _code(world.join("classic", 1)) == TOO_MANY
    consumer = world.heartbeat("consumer", "m1", "t")
    assert consumer.error_code == TOO_MANY
    assert consumer.error_message == "There are 3 groups already, no more are allowed (barnabas.groups.max)."
    share = ShareGroupHeartbeatRequest(group_id="share", member_id="m", subscribed_topic_names=["t"])
    assert world.ask(share, 1, ShareGroupHeartbeatResponse).error_code == TOO_MANY
    assert _code(world.join("simple-1", 1)) == 0
    assert "A request of group 'classic' is refused with GROUP_MAX_SIZE_REACHED: There are 3 groups" in caplog.text


def test_groups_in_the_log_are_loaded_though_they_are_too_many_and_too_large(tmp_path: Path) -> None:
    world = _World(tmp_path, {"barnabas.log.sync": "os", "group.initial.rebalance.delay.ms": "0"})
    assert [world.commit(f"simple-{index}") for index in range(5)] == [0] * 5
    assert world.heartbeat("large", "m1", *[f"topic-{index:0100}" for index in range(50)]).error_code == 0
    world.memory.close()
    again = _World(tmp_path)
    again.memory.broker.group_coordinators.load()
    counts = [len(coordinator.groups) for coordinator in again.memory.broker.group_coordinators]
    assert sum(counts) == 6
    assert again.commit("simple-4") == 0
    assert again.commit("another") == int(ErrorCode.POLICY_VIOLATION)
    assert again.heartbeat("large", "m2", "t").error_code == TOO_MANY
    again.memory.close()


def test_a_classic_member_and_its_group_hold_no_more_than_allowed(world: _World) -> None:
    assert _code(world.join("g", 996)) == TOO_LARGE
    assert _code(world.join("g", 995)) == 0
    assert len(_members(world, "g")) == 1
    assert world.join("g", 900) is None  # it waits for the first one
    assert _code(world.join("g", 900)) == TOO_MANY
    assert len(_members(world, "g")) == 2
    world.memory.advance(60)  # both members are gone
    assert _members(world, "g") == {}
    assert _code(world.join("g", 900)) == 0
    assert world.join("g", 900) is None


def _code(response: JoinGroupResponse | None) -> int:
    assert response is not None
    return response.error_code


def _members(world: _World, group_id: str) -> Any:
    return world.memory.broker.group_coordinators.coordinator_of(group_id).groups[group_id].members  # type: ignore[attr-defined]


def test_a_group_of_any_type_has_no_more_members_than_allowed(tmp_path: Path) -> None:
    world = _World(tmp_path, {**LIMITS, "barnabas.group.members.max": "2", "barnabas.group.max.bytes": "100000"})
    assert [world.heartbeat("g", name, "t").error_code for name in ("a", "b", "c")] == [0, 0, TOO_MANY]
    assert world.heartbeat("g", "a", "t").error_code == 0
    assert _code(world.join("classic", 10)) == 0
    assert world.join("classic", 10) is None  # it waits for the first one
    assert _code(world.join("classic", 10)) == TOO_MANY

    def share(name: str) -> int:
        request = ShareGroupHeartbeatRequest(group_id="share", member_id=name, subscribed_topic_names=["t"])
        return world.ask(request, 1, ShareGroupHeartbeatResponse).error_code

    assert [share(name) for name in ("a", "b", "c", "a")] == [0, 0, TOO_MANY, 0]
    world.memory.close()


def test_the_assignments_of_a_leader_are_limited(world: _World) -> None:
    joined = world.join("g", 10)
    assert joined is not None
    leader = joined.member_id

    def sync(*sizes: int) -> int:
        assignments = [SyncGroupRequestAssignment(member_id=leader, assignment=bytes(size)) for size in sizes]
        request = SyncGroupRequest(
            group_id="g",
            generation_id=1,
            member_id=leader,
            protocol_type="consumer",
            protocol_name="range",
            assignments=assignments,
        )
        return world.ask(request, 5, SyncGroupResponse).error_code

    assert sync(1001) == TOO_LARGE
    assert sync(1000, 1000, 1000) == TOO_MANY
    assert sync(1000) == 0


def test_the_subscription_of_a_consumer_member_is_limited(world: _World) -> None:
    long = [f"topic-{index:094}" for index in range(10)]
    assert world.heartbeat("g", "m1", *long, "x").error_code == TOO_LARGE
    assert world.heartbeat("g", "m1", *long).error_code == 0
    assert world.heartbeat("g", "m2", *long).error_code == 0
    refused = world.heartbeat("g", "m3", *long)
    assert refused.error_code == TOO_MANY
    assert refused.error_message == (
        "The group 'g' holds 2000 bytes; with 1000 more it would have more than the 2500 that are allowed "
        "(barnabas.group.max.bytes)."
    )
    assert world.heartbeat("g", "m1", *long).error_code == 0  # the same again adds nothing
    assert world.heartbeat("g", "m3", "t").error_code == 0


def test_share_and_streams_members_are_limited(world: _World) -> None:
    long = [f"topic-{index:094}" for index in range(11)]
    share = ShareGroupHeartbeatRequest(group_id="share", member_id="m", subscribed_topic_names=long)
    assert world.ask(share, 1, ShareGroupHeartbeatResponse).error_code == TOO_LARGE
    subtopology = StreamsGroupHeartbeatRequestSubtopology(subtopology_id="0", source_topics=long)
    streams = StreamsGroupHeartbeatRequest(
        group_id="streams",
        member_id="m",
        rebalance_timeout_ms=1000,
        process_id="p",
        topology=StreamsGroupHeartbeatRequestTopology(epoch=0, subtopologies=[subtopology]),
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
    )
    assert world.ask(streams, 0, StreamsGroupHeartbeatResponse).error_code == TOO_LARGE


def test_there_are_no_more_transactional_ids_than_allowed(world: _World, caplog: pytest.LogCaptureFixture) -> None:
    def init(transactional_id: str) -> int:
        request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=1000)
        return world.ask(request, 4, InitProducerIdResponse).error_code

    assert [init("a"), init("b"), init("a")] == [0, 0, 0]
    assert init("c") == int(ErrorCode.POLICY_VIOLATION)
    assert "The transactional id 'c' is refused: There are 2 transactional ids already" in caplog.text
