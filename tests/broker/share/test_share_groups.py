"""KIP-932 over the wire: members of share groups, administration of offsets, deletion, restarts."""

from __future__ import annotations

import pytest

from barnabas.wire.errors import ErrorCode as E
from barnabas.wire.messages.cluster import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse
from barnabas.wire.messages.groups import classic_groups as g
from barnabas.wire.messages.groups import share_groups as sg
from barnabas.wire.messages.topics import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from tests.broker.share_member import RestartableBroker
from tests.support.cases import for_each

FEW = {
    "share.coordinator.state.topic.num.partitions": "3",
    "offsets.topic.num.partitions": "3",
    "group.share.max.size": "3",
}


@pytest.fixture
def memory(tmp_path):
    memory = RestartableBroker(tmp_path / "data", FEW)
    memory.create_topic("t", 2)
    find(memory, "g")
    yield memory
    memory.close()


def find(memory, group):
    request = g.FindCoordinatorRequest(coordinator_keys=[group], key_type=0)
    (coordinator,) = memory.client().ask(request, 6, g.FindCoordinatorResponse).coordinators
    assert coordinator.error_code == 0


def beat(memory, member="m1", epoch=0, topics=None, group="g", **fields):
    request = sg.ShareGroupHeartbeatRequest(
        group_id=group, member_id=member, member_epoch=epoch, subscribed_topic_names=topics, **fields
    )
    return memory.client().ask(request, 1, sg.ShareGroupHeartbeatResponse)


def assigned(memory, response):
    """Topic names and partitions of a heartbeat's answer; None if it has none."""
    if response.assignment is None:
        return None
    image = memory.broker.image
    return {
        (image.topic_by_id(topic.topic_id).name, index)
        for topic in response.assignment.topic_partitions
        for index in topic.partitions
    }


def describe(memory, group="g"):
    request = sg.ShareGroupDescribeRequest(group_ids=[group])
    (described,) = memory.client().ask(request, 1, sg.ShareGroupDescribeResponse).groups
    return described


def offsets(memory, group="g", topics=None, version=1):
    request = sg.DescribeShareGroupOffsetsRequest(
        groups=[sg.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=topics)]
    )
    (described,) = memory.client().ask(request, version, sg.DescribeShareGroupOffsetsResponse).groups
    if described.error_code:
        return E(described.error_code)
    return {(t.topic_name, p.partition_index): (p.start_offset, p.lag) for t in described.topics for p in t.partitions}


def alter(memory, *positions, topic="t", group="g"):
    partitions = [
        sg.AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=offset)
        for index, offset in positions
    ]
    requested = sg.AlterShareGroupOffsetsRequestTopic(topic_name=topic, partitions=partitions)
    request = sg.AlterShareGroupOffsetsRequest(group_id=group, topics=[requested])
    return memory.client().ask(request, 0, sg.AlterShareGroupOffsetsResponse)


def delete_offsets(memory, *topics, group="g"):
    requested = [sg.DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in topics]
    request = sg.DeleteShareGroupOffsetsRequest(group_id=group, topics=requested)
    return memory.client().ask(request, 0, sg.DeleteShareGroupOffsetsResponse)


def delete_group(memory, group="g"):
    request = g.DeleteGroupsRequest(groups_names=[group])
    (result,) = memory.client().ask(request, 2, g.DeleteGroupsResponse).results
    return result.error_code


def share_states(memory):
    return {
        (about.group_id, memory.broker.image.topic_by_id(about.topic_id).name, about.partition): state.start_offset
        for coordinator in memory.broker.share_coordinators
        for about, state in coordinator.states.items()
    }


def test_a_member_gets_its_partitions_with_the_first_heartbeat(memory):
    """Their state is initialized before the response; Kafka returns the partitions with the second heartbeat."""
    response = beat(memory, topics=["t", "not-there"])
    assert (response.error_code, response.member_id, response.heartbeat_interval_ms) == (0, "m1", 5000)
    assert assigned(memory, response) == {("t", 0), ("t", 1)}
    assert share_states(memory) == {("g", "t", 0): -1, ("g", "t", 1): -1}
    again = beat(memory, epoch=response.member_epoch)
    assert (again.error_code, again.member_epoch, again.assignment) == (0, response.member_epoch, None)


def test_members_and_partitions_are_described(memory):
    beat(memory, topics=["t"], rack_id="r1")
    group = describe(memory)
    assert (group.error_code, group.group_state, group.assignor_name) == (0, "Stable", "simple")
    assert group.group_epoch == group.assignment_epoch
    (member,) = group.members
    assert (member.member_id, member.rack_id, member.client_id, member.client_host) == ("m1", "r1", "test", "/10.0.0.1")
    assert member.subscribed_topic_names == ["t"]
    (topic,) = member.assignment.topic_partitions
    assert (topic.topic_name, topic.partitions) == ("t", [0, 1])
    request = g.ListGroupsRequest(types_filter=["share"])
    (listed,) = memory.client().ask(request, 5, g.ListGroupsResponse).groups
    assert (listed.group_id, listed.protocol_type, listed.group_state, listed.group_type) == (
        "g",
        "share",
        "Stable",
        "share",
    )
    assert describe(memory, "other").error_code == E.GROUP_ID_NOT_FOUND
    assert describe(memory, "").error_code == E.INVALID_GROUP_ID


def test_two_members_share_the_partitions(memory):
    first = beat(memory, "m1", topics=["t"])
    second = beat(memory, "m2", topics=["t"])
    assert assigned(memory, second) == set(), "the last assignment is too recent"
    assert 0 < second.heartbeat_interval_ms <= 1000, "the next heartbeat is requested soon"
    memory.advance(1.0)
    second = beat(memory, "m2", epoch=second.member_epoch)
    assert second.heartbeat_interval_ms == 5000
    first = beat(memory, "m1", epoch=first.member_epoch)
    assert assigned(memory, first) | assigned(memory, second) == {("t", 0), ("t", 1)}
    assert len(assigned(memory, first)) == 1


def test_partitions_of_a_member_that_leaves_or_fails_are_reassigned(memory):
    beat(memory, "m1", topics=["t"])
    memory.advance(1.5)
    second = beat(memory, "m2", topics=["t"])
    assert beat(memory, "m1", epoch=-1).member_epoch == -1
    assert beat(memory, "m1", epoch=-1).error_code == E.UNKNOWN_MEMBER_ID
    memory.advance(1.5)
    assert assigned(memory, beat(memory, "m2", epoch=second.member_epoch)) == {("t", 0), ("t", 1)}
    memory.advance(44.0)
    assert describe(memory).group_state == "Stable"
    memory.advance(1.1)
    assert describe(memory).group_state == "Empty"
    assert beat(memory, "m2", epoch=second.member_epoch).error_code == E.UNKNOWN_MEMBER_ID


def test_sessions_that_expire_at_the_same_time_all_expire(memory):
    for member in ("m1", "m2", "m3"):
        beat(memory, member, topics=["t"])
    memory.advance(46.0)
    group = describe(memory)
    assert (group.group_state, group.members) == ("Empty", [])
    epoch = group.group_epoch
    memory.restart()
    assert (describe(memory).group_epoch, describe(memory).group_state) == (epoch, "Empty")


@for_each(
    ("fields", "code"),
    [
        ({"member": ""}, E.INVALID_REQUEST),
        ({"member": "m" * 37, "topics": ["t"]}, E.INVALID_REQUEST),
        ({"group": "", "topics": ["t"]}, E.INVALID_REQUEST),
        ({"rack_id": "", "topics": ["t"]}, E.INVALID_REQUEST),
        ({}, E.INVALID_REQUEST),
        ({"topics": []}, E.INVALID_REQUEST),
        ({"epoch": -2}, E.INVALID_REQUEST),
        ({"epoch": 1}, E.GROUP_ID_NOT_FOUND),
        ({"epoch": -1}, E.GROUP_ID_NOT_FOUND),
    ],
)
def test_invalid_heartbeats_are_rejected(memory, fields, code):
    response = beat(memory, **fields)
    assert response.error_code == code
    assert response.error_message


def test_members_with_a_wrong_epoch_are_fenced(memory):
    epoch = beat(memory, topics=["t"]).member_epoch
    assert beat(memory, epoch=epoch + 1).error_code == E.FENCED_MEMBER_EPOCH
    memory.create_topic("u")
    memory.advance(1.0)
    newer = beat(memory, epoch=epoch, topics=["t", "u"])
    assert newer.member_epoch > epoch
    assert beat(memory, epoch=epoch).error_code == 0, "the answer with the new epoch may have been lost"
    assert beat(memory, "m9", epoch=epoch).error_code == E.UNKNOWN_MEMBER_ID
    back = beat(memory, epoch=0, topics=["t", "u"])
    assert (back.member_epoch, assigned(memory, back)) == (newer.member_epoch, {("t", 0), ("t", 1), ("u", 0)})


def test_a_full_group_rejects_new_members(memory):
    for member in ("m1", "m2", "m3"):
        assert beat(memory, member, topics=["t"]).error_code == 0
    assert beat(memory, "m4", topics=["t"]).error_code == E.GROUP_MAX_SIZE_REACHED
    assert beat(memory, "m3", topics=["t"]).error_code == 0


def test_partitions_that_are_added_are_read_from_their_start(memory):
    """No record of a topic that the group already reads is missed: the start offset is 0, not the reset offset."""
    epoch = beat(memory, topics=["t"]).member_epoch
    request = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name="t", count=3, assignments=None)], timeout_ms=1000
    )
    assert memory.client().ask(request, 3, CreatePartitionsResponse).results[0].error_code == 0
    memory.advance(1.0)
    response = beat(memory, epoch=epoch)
    assert assigned(memory, response) == {("t", 0), ("t", 1), ("t", 2)}
    assert share_states(memory) == {("g", "t", 0): -1, ("g", "t", 1): -1, ("g", "t", 2): 0}


def test_a_topic_that_is_created_later_is_assigned(memory):
    epoch = beat(memory, topics=["t", "u"]).member_epoch
    memory.create_topic("u")
    memory.advance(1.0)
    response = beat(memory, epoch=epoch)
    assert assigned(memory, response) == {("t", 0), ("t", 1), ("u", 0)}


def test_a_deleted_topic_is_removed_from_the_group(memory):
    memory.create_topic("u")
    epoch = beat(memory, topics=["t", "u"]).member_epoch
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name="u")], timeout_ms=1000)
    memory.client().ask(request, 6, DeleteTopicsResponse)
    memory.advance(1.0)
    assert assigned(memory, beat(memory, epoch=epoch)) == {("t", 0), ("t", 1)}
    assert offsets(memory) == {("t", 0): (-1, -1), ("t", 1): (-1, -1)}
    memory.restart()
    assert offsets(memory) == {("t", 0): (-1, -1), ("t", 1): (-1, -1)}


def test_a_group_is_the_same_after_a_restart(memory):
    epoch = beat(memory, topics=["t"]).member_epoch
    before = describe(memory)
    memory.restart()
    assert describe(memory) == before
    assert beat(memory, epoch=epoch).error_code == 0
    memory.advance(46)
    assert describe(memory).group_state == "Empty", "session timeouts begin at the restart"


def test_offsets_of_an_empty_group_are_described_and_altered(memory):
    beat(memory, topics=["t"])
    assert offsets(memory) == {("t", 0): (-1, -1), ("t", 1): (-1, -1)}
    assert alter(memory, (0, 5)).error_code == E.NON_EMPTY_GROUP
    assert delete_offsets(memory, "t").error_code == E.NON_EMPTY_GROUP
    beat(memory, epoch=-1)
    (topic,) = alter(memory, (0, 5), (2, 7)).responses
    assert [(p.partition_index, p.error_code) for p in topic.partitions] == [(0, 0), (2, E.UNKNOWN_TOPIC_OR_PARTITION)]
    (unknown,) = alter(memory, (0, 5), topic="nowhere").responses
    assert unknown.partitions[0].error_code == E.UNKNOWN_TOPIC_OR_PARTITION
    for _ in range(2):
        assert offsets(memory) == {("t", 0): (5, -5), ("t", 1): (-1, -1)}
        requested = [
            sg.DescribeShareGroupOffsetsRequestTopic(topic_name="t", partitions=[0]),
            sg.DescribeShareGroupOffsetsRequestTopic(topic_name="nowhere", partitions=[1]),
        ]
        assert offsets(memory, topics=requested) == {("t", 0): (5, -5), ("nowhere", 1): (-1, -1)}
        assert offsets(memory, topics=requested, version=0) == {("t", 0): (5, -1), ("nowhere", 1): (-1, -1)}
        memory.restart()
    (deleted, other) = delete_offsets(memory, "t", "nowhere").responses
    assert (deleted.error_code, other.error_code) == (0, E.UNKNOWN_TOPIC_OR_PARTITION)
    assert offsets(memory) == {}
    assert share_states(memory) == {}
    (again,) = delete_offsets(memory, "t").responses
    assert (again.error_code, again.error_message) == (
        E.UNKNOWN_TOPIC_OR_PARTITION,
        "There is no offset information to delete.",
    )


def test_offsets_can_be_set_for_a_group_that_does_not_exist_yet(memory):
    assert alter(memory, (1, 3), group="new").responses[0].partitions[0].error_code == 0
    assert offsets(memory, "new") == {("t", 1): (3, -3)}
    response = beat(memory, topics=["t"], group="new")
    assert assigned(memory, response) == {("t", 0), ("t", 1)}
    assert share_states(memory) == {("new", "t", 0): 0, ("new", "t", 1): 3}


def test_a_group_is_deleted_with_its_offsets(memory):
    beat(memory, topics=["t"])
    assert delete_group(memory) == E.NON_EMPTY_GROUP
    beat(memory, epoch=-1)
    assert delete_group(memory) == 0
    for _ in range(2):
        assert delete_group(memory) == E.GROUP_ID_NOT_FOUND
        assert offsets(memory) == E.GROUP_ID_NOT_FOUND
        assert share_states(memory) == {}
        memory.restart()
    assert assigned(memory, beat(memory, topics=["t"])) == {("t", 0), ("t", 1)}


def test_a_group_id_has_one_type(memory):
    beat(memory, topics=["t"])
    join = g.JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id="",
        protocol_type="consumer",
        protocols=[g.JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    response = memory.client().ask(join, 9, g.JoinGroupResponse)
    assert response.error_code == E.INCONSISTENT_GROUP_PROTOCOL


def test_a_failed_initialization_fails_the_heartbeat_and_is_retried(memory):
    """As in Kafka: the error is reported, and the initialization is undone."""
    memory.create_topic("__share_group_state", 3)
    partitions = list(memory.broker.partitions.of_topic("__share_group_state"))
    for partition in partitions:
        memory.broker.partitions.take_offline(partition, "the disk is gone")
    memory.broker.loop.end_turn()
    assert beat(memory, topics=["t"]).error_code in (E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE)
    (coordinator,) = [c for c in memory.broker.group_coordinators if "g" in c.groups]
    assert coordinator.groups["g"].state_partitions.initializing == {}
    memory.restart()
    response = beat(memory, topics=["t"])
    assert response.error_code == 0, "the partitions are served again after a start"
    assert assigned(memory, response) == {("t", 0), ("t", 1)}


def test_without_the_feature_there_are_no_share_groups(memory):
    """`share.version` 0: UNSUPPORTED_VERSION, as in Kafka; the groups are back with the feature."""
    beat(memory, topics=["t"])
    set_share_version(memory, 0)
    assert beat(memory, topics=["t"]).error_code == E.UNSUPPORTED_VERSION
    assert describe(memory).error_code == E.UNSUPPORTED_VERSION
    assert offsets(memory) == E.UNSUPPORTED_VERSION
    assert alter(memory, (0, 1)).error_code == E.UNSUPPORTED_VERSION
    assert delete_offsets(memory, "t").error_code == E.UNSUPPORTED_VERSION
    fetch = sg.ShareFetchRequest(group_id="g", member_id="m1", share_session_epoch=0)
    assert memory.client().ask(fetch, 2, sg.ShareFetchResponse).error_code == E.UNSUPPORTED_VERSION
    acknowledge = sg.ShareAcknowledgeRequest(group_id="g", member_id="m1", share_session_epoch=1)
    assert memory.client().ask(acknowledge, 2, sg.ShareAcknowledgeResponse).error_code == E.UNSUPPORTED_VERSION
    set_share_version(memory, 1)
    assert describe(memory).error_code == 0


def set_share_version(memory, level):
    update = FeatureUpdateKey(feature="share.version", max_version_level=level, upgrade_type=2 if level == 0 else 1)
    response = memory.client().ask(UpdateFeaturesRequest(feature_updates=[update]), 2, UpdateFeaturesResponse)
    assert response.error_code == 0, response
