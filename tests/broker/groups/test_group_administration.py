"""ListGroups, DescribeGroups, DeleteGroups, OffsetDelete and expiry with groups of every type.

KIP-518, KIP-848, KIP-932, KIP-1043, KIP-1071, KIP-211.
"""

from __future__ import annotations

import pytest

from barnabas.broker.event_loop.steps import run_in_place
from barnabas.wire.errors import ErrorCode as E
from barnabas.wire.messages.groups import classic_groups as g
from barnabas.wire.messages.groups import offsets as o
from barnabas.wire.messages.groups.consumer_groups import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from barnabas.wire.messages.groups.consumer_protocol import ConsumerProtocolSubscription
from barnabas.wire.messages.groups.share_groups import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from barnabas.wire.messages.groups.streams_groups import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatRequestSubtopology,
    StreamsGroupHeartbeatRequestTopology,
    StreamsGroupHeartbeatResponse,
)
from tests.support.cases import for_each
from tests.support.memory.broker import Client, MemoryBroker
from tests.support.requests.groups import commit, find, stable

FEW = {
    "offsets.topic.num.partitions": "3",
    "share.coordinator.state.topic.num.partitions": "3",
    "offsets.retention.minutes": "1",
}
CLASSIC, CONSUMER, SHARE, STREAMS, SIMPLE = "classic-g", "consumer-g", "share-g", "streams-g", "simple-g"
EVERYONE = {CLASSIC, CONSUMER, SHARE, STREAMS, SIMPLE}
MEMBER = "m-1"


@pytest.fixture
def memory(tmp_path):
    memory = MemoryBroker(tmp_path / "data", FEW)
    memory.create_topic("t")
    memory.create_topic("unread")
    yield memory
    memory.close()


@pytest.fixture
def client(memory: MemoryBroker) -> Client:
    """A group of every type, each with a member that reads `t`, and one without a type."""
    client = memory.client()
    for name in EVERYONE:
        find(client, name)
    stable(client, CLASSIC, version_metadata=b"\0\1" + ConsumerProtocolSubscription(topics=["t"]).encode(1))
    beat(client, CONSUMER, 0)
    beat(client, SHARE, 0)
    beat(client, STREAMS, 0)
    assert commit(client, "t", group_id=SIMPLE) == {0}
    return client


def beat(client: Client, group: str, epoch: int) -> None:
    """A heartbeat of the member of a group: epoch 0 joins, -1 leaves."""
    common = {"group_id": group, "member_id": MEMBER, "member_epoch": epoch}
    joins = epoch == 0
    if group == CONSUMER:
        fields = (
            {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": ["t"], "topic_partitions": []} if joins else {}
        )
        response = client.ask(ConsumerGroupHeartbeatRequest(**common, **fields), 1, ConsumerGroupHeartbeatResponse)
    elif group == SHARE:
        fields = {"subscribed_topic_names": ["t"]} if joins else {"subscribed_topic_names": None}
        response = client.ask(ShareGroupHeartbeatRequest(**common, **fields), 1, ShareGroupHeartbeatResponse)
    else:
        words = StreamsGroupHeartbeatRequestSubtopology(subtopology_id="0", source_topics=["t"])
        topology = StreamsGroupHeartbeatRequestTopology(epoch=0, subtopologies=[words])
        fields = {"topology": topology, "rebalance_timeout_ms": 60_000, "process_id": "p"} if joins else {}
        fields |= {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []} if joins else {}
        response = client.ask(StreamsGroupHeartbeatRequest(**common, **fields), 1, StreamsGroupHeartbeatResponse)
    assert response.error_code == 0, response


def leave(client: Client, group: str) -> None:
    if group == CLASSIC:
        (described,) = client.ask(g.DescribeGroupsRequest(groups=[CLASSIC]), 6, g.DescribeGroupsResponse).groups
        members = [g.MemberIdentity(member_id=member.member_id) for member in described.members]
        response = client.ask(g.LeaveGroupRequest(group_id=CLASSIC, members=members), 5, g.LeaveGroupResponse)
        assert response.error_code == 0
    else:
        beat(client, group, -1)


def listed(client: Client, version: int = 5, **filters: list[str]) -> dict[str, tuple[str, str, str]]:
    response = client.ask(g.ListGroupsRequest(**filters), version, g.ListGroupsResponse)
    assert response.error_code == 0
    return {group.group_id: (group.group_type, group.group_state, group.protocol_type) for group in response.groups}


def delete(client: Client, *groups: str) -> dict[str, int]:
    response = client.ask(g.DeleteGroupsRequest(groups_names=list(groups)), 2, g.DeleteGroupsResponse)
    return {result.group_id: result.error_code for result in response.results}


def delete_offset(client: Client, group: str, topic: str) -> tuple[int, int | None]:
    parts = [o.OffsetDeleteRequestPartition(partition_index=0)]
    request = o.OffsetDeleteRequest(group_id=group, topics=[o.OffsetDeleteRequestTopic(name=topic, partitions=parts)])
    response = client.ask(request, 0, o.OffsetDeleteResponse)
    return response.error_code, response.topics[0].partitions[0].error_code if response.topics else None


def test_every_group_is_listed_with_its_type(client: Client) -> None:
    assert listed(client) == {
        CLASSIC: ("classic", "Stable", "consumer"),
        CONSUMER: ("consumer", "Stable", "consumer"),
        SHARE: ("share", "Stable", "share"),
        STREAMS: ("streams", listed(client)[STREAMS][1], "streams"),
        SIMPLE: ("classic", "Empty", ""),
    }
    assert listed(client, version=3).keys() == EVERYONE


@for_each(
    ("filters", "expected"),
    [
        ({"types_filter": ["classic"]}, {CLASSIC, SIMPLE}),
        ({"types_filter": ["CONSUMER", "Share"]}, {CONSUMER, SHARE}),
        ({"types_filter": ["streams"]}, {STREAMS}),
        ({"types_filter": ["of no kind"]}, set()),
        ({"states_filter": ["empty"]}, {SIMPLE}),
        ({"states_filter": ["STABLE"], "types_filter": ["classic", "consumer", "share"]}, {CLASSIC, CONSUMER, SHARE}),
        ({"states_filter": ["empty"], "types_filter": ["consumer"]}, set()),
        ({"states_filter": ["of no kind"]}, set()),
    ],
)
def test_groups_are_listed_by_state_and_type(client: Client, filters: dict[str, list[str]], expected: set[str]) -> None:
    assert listed(client, **filters).keys() == expected


@pytest.mark.parametrize("group", [CONSUMER, SHARE, STREAMS])
def test_a_group_of_another_type_cannot_be_joined_as_classic(client: Client, group: str) -> None:
    """KIP-1043: up to version 5 such a group is Dead, not an error."""
    (described,) = client.ask(g.DescribeGroupsRequest(groups=[group]), 6, g.DescribeGroupsResponse).groups
    assert (described.error_code, described.error_message) == (
        E.GROUP_ID_NOT_FOUND,
        f"Group {group} is not a classic group.",
    )
    (described,) = client.ask(g.DescribeGroupsRequest(groups=[group]), 5, g.DescribeGroupsResponse).groups
    assert (described.error_code, described.group_state) == (0, "Dead")


def test_only_empty_groups_are_deleted(client: Client) -> None:
    groups = sorted(EVERYONE)
    outcome = {name: int(E.NON_EMPTY_GROUP) for name in EVERYONE - {SIMPLE}} | {SIMPLE: 0}
    assert delete(client, *groups) == outcome
    for name in (CLASSIC, CONSUMER, SHARE, STREAMS):
        leave(client, name)
    assert {state for _, state, _ in listed(client).values()} == {"Empty"}
    assert delete(client, *groups) == {
        **dict.fromkeys(EVERYONE - {SIMPLE}, 0),
        SIMPLE: E.GROUP_ID_NOT_FOUND,
    }
    assert listed(client) == {}


@for_each(
    ("group", "read", "unread"),
    [
        (CLASSIC, (0, E.GROUP_SUBSCRIBED_TO_TOPIC), (0, 0)),
        (CONSUMER, (0, E.GROUP_SUBSCRIBED_TO_TOPIC), (0, 0)),
        (STREAMS, (0, E.GROUP_SUBSCRIBED_TO_TOPIC), (0, 0)),
        (SIMPLE, (0, 0), (0, 0)),
        (SHARE, (E.GROUP_ID_NOT_FOUND, None), (E.GROUP_ID_NOT_FOUND, None)),
        ("nobody", (E.GROUP_ID_NOT_FOUND, None), (E.GROUP_ID_NOT_FOUND, None)),
    ],
)
def test_offsets_are_deleted_unless_a_member_is_subscribed(client: Client, group: str, read, unread) -> None:
    """KIP-496."""
    assert delete_offset(client, group, "t") == read
    assert delete_offset(client, group, "unread") == unread


def test_empty_groups_expire_except_share_groups(memory: MemoryBroker, client: Client) -> None:
    """KIP-211, KIP-932: offsets of share groups are kept by the share coordinator until the group is deleted."""
    run_in_place(memory.broker.group_coordinators.expire_offsets())
    assert listed(client).keys() == EVERYONE
    for name in (CLASSIC, CONSUMER, SHARE, STREAMS):
        leave(client, name)
        if name != SHARE:
            assert commit(client, "t", group_id=name) == {0}
    memory.clock.advance(59)
    run_in_place(memory.broker.group_coordinators.expire_offsets())
    assert listed(client).keys() == EVERYONE
    memory.clock.advance(1)
    run_in_place(memory.broker.group_coordinators.expire_offsets())
    assert listed(client).keys() == {SHARE}
