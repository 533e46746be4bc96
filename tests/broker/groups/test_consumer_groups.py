"""G3: the consumer protocol over the wire, in every version (KIP-848).

The expectations are Apache Kafka's: `--against kafka` runs them there. What the answers mean is tried without a network
in `tests/coord/groups/consumer`.
"""

from __future__ import annotations

import pytest

from barnabas.wire.messages.groups import classic_groups as g
from barnabas.wire.messages.groups import offsets as o
from tests.support.requests.consumer_groups import E, beat, beat_until, describe, given, join
from tests.support.requests.raw_client import RawClient

VERSIONS = [0, 1]


@pytest.fixture
def client(broker):
    client = RawClient(broker.bootstrap)
    yield client
    client.close()


@pytest.fixture
def group(client, topic_name):
    """An unused group id that has its coordinator."""
    name = topic_name("group")
    client.find(name)
    return name


@pytest.fixture
def topic(client, topic_name):
    """A topic of four partitions: (name, id)."""
    name = topic_name()
    return name, client.create_topic(name, 4)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_member_joins_stays_and_leaves(client, group, topic, version):
    name, topic_id = topic
    joined = join(client, group, "m1" if version else "", version=version, subscribed_topic_names=[name])
    assert (joined.error_code, given(joined)) == (0, {topic_id: {0, 1, 2, 3}})
    member_id, epoch = joined.member_id, joined.member_epoch
    assert member_id
    assert epoch >= 1
    stays = beat(client, group, member_id, epoch, version=version, owned=given(joined))
    assert (stays.error_code, stays.member_id, stays.member_epoch, stays.assignment) == (0, member_id, epoch, None)
    response = beat(client, group, member_id, -1, version=version)
    assert (response.error_code, response.member_id, response.member_epoch) == (0, member_id, -1)
    assert beat(client, group, member_id, epoch, version=version).error_code == E.UNKNOWN_MEMBER_ID


def test_two_members_share(client, group, topic):
    name, topic_id = topic
    first = join(client, group, "m1", subscribed_topic_names=[name])
    second = beat(client, group, "m2", 0, subscribed_topic_names=[name])
    assert given(second) == {}
    reduced = beat_until(client, group, "m1", first.member_epoch, given)
    owned_partitions = given(reduced)
    assert len(owned_partitions[topic_id]) == 2
    assert reduced.member_epoch == first.member_epoch
    done = beat(client, group, "m1", first.member_epoch, owned=owned_partitions)
    assert done.member_epoch > first.member_epoch
    got = beat_until(client, group, "m2", second.member_epoch, given)
    assert given(got) == {topic_id: {0, 1, 2, 3} - owned_partitions[topic_id]}
    assert got.member_epoch == done.member_epoch


@pytest.mark.parametrize("version", VERSIONS)
def test_a_group_is_described(client, group, topic, version):
    name, topic_id = topic
    joined = join(
        client, group, "m1", subscribed_topic_names=[name], instance_id="i", rack_id="r", server_assignor="range"
    )
    description = describe(client, group, version)
    assert (description.error_code, description.group_id, description.group_state, description.assignor_name) == (
        0,
        group,
        "Stable",
        "range",
    )
    assert description.group_epoch == description.assignment_epoch == joined.member_epoch
    (member,) = description.members
    assert (member.member_id, member.instance_id, member.rack_id) == ("m1", "i", "r")
    assert (member.member_epoch, member.client_id) == (joined.member_epoch, "raw")
    assert (member.subscribed_topic_names, member.subscribed_topic_regex or None) == ([name], None)
    (assigned,) = member.assignment.topic_partitions
    assert (assigned.topic_id, assigned.topic_name, sorted(assigned.partitions)) == (topic_id, name, [0, 1, 2, 3])
    assert member.member_type == (1 if version else -1)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_group_that_does_not_exist_cannot_be_described(client, group, version):
    assert describe(client, group, version).error_code == E.GROUP_ID_NOT_FOUND
    assert describe(client, "", version).error_code == E.INVALID_GROUP_ID


def test_fencing(client, group, topic):
    name, _ = topic
    assert beat(client, group, "m1", 3).error_code == E.GROUP_ID_NOT_FOUND
    epoch = beat(client, group, "m1", 0, subscribed_topic_names=[name]).member_epoch
    assert beat(client, group, "m1", epoch + 1).error_code == E.FENCED_MEMBER_EPOCH
    assert beat(client, group, "m2", 1).error_code == E.UNKNOWN_MEMBER_ID
    assert beat(client, group, "m1", epoch, server_assignor="mine").error_code == E.UNSUPPORTED_ASSIGNOR
    assert beat(client, group, "m1", -3).error_code == E.INVALID_REQUEST
    assert beat(client, group, "m3", 0).error_code == E.INVALID_REQUEST
    assert beat(client, group, "", epoch).error_code == E.INVALID_REQUEST


def test_a_static_member_leaves_temporarily_and_rejoins(client, group, topic):
    name, topic_id = topic
    first = join(client, group, "m1", instance_id="i", subscribed_topic_names=[name])
    for member_id in ("m2", "m1"):  # its own member, too, has to leave first
        refused = beat(client, group, member_id, 0, instance_id="i", subscribed_topic_names=[name])
        assert refused.error_code == E.UNRELEASED_INSTANCE_ID
        assert refused.error_message == (
            f"Static member {member_id} with instance id i cannot join the group because the instance id is owned by "
            "m1 member."
        )
    away = beat(client, group, "m1", -2, instance_id="i")
    assert (away.error_code, away.member_epoch) == (0, -2)
    back = beat(client, group, "m2", 0, instance_id="i", subscribed_topic_names=[name])
    assert (back.error_code, back.member_epoch, given(back)) == (0, first.member_epoch, {topic_id: {0, 1, 2, 3}})
    assert beat(client, group, "m1", 1, instance_id="i").error_code == E.FENCED_INSTANCE_ID


def test_a_regular_expression_subscribes_to_topics(client, group, topic, topic_name):
    name, topic_id = topic
    joined = beat(client, group, "m1", 0, subscribed_topic_regex=name[:-1] + "[" + name[-1] + "]")
    assert joined.error_code == 0
    got = given(joined) or given(beat_until(client, group, "m1", joined.member_epoch, given))
    assert got == {topic_id: {0, 1, 2, 3}}
    assert beat(client, group, "m2", 0, subscribed_topic_regex="(").error_code == E.INVALID_REGULAR_EXPRESSION


def test_new_partitions_and_topics_are_assigned(client, group, topic, topic_name):
    name, topic_id = topic
    later = topic_name()
    joined = join(client, group, "m1", subscribed_topic_names=[name, later])
    assert given(joined) == {topic_id: {0, 1, 2, 3}}
    later_id = client.create_topic(later, 1)
    got = beat_until(client, group, "m1", joined.member_epoch, given)
    assert given(got) == {topic_id: {0, 1, 2, 3}, later_id: {0}}


def commit(client, group, topic, member_id, epoch, version, offset=7):
    name, topic_id = topic
    committed = o.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    requested = o.OffsetCommitRequestTopic(name=name, topic_id=topic_id, partitions=[committed])
    request = o.OffsetCommitRequest(
        group_id=group, member_id=member_id, generation_id_or_member_epoch=epoch, topics=[requested]
    )
    return client(request, version).topics[0].partitions[0].error_code


def fetch(client, group, member_id=None, epoch=-1, version=9):
    requested = o.OffsetFetchRequestGroup(group_id=group, member_id=member_id, member_epoch=epoch, topics=None)
    (fetched,) = client(o.OffsetFetchRequest(groups=[requested]), version).groups
    return fetched


def test_offsets_are_committed_and_fetched_with_the_member_epoch(client, group, topic):
    name, _ = topic
    epoch = beat(client, group, "m1", 0, subscribed_topic_names=[name]).member_epoch
    for version in (9, 10):
        assert commit(client, group, topic, "m1", epoch, version) == 0
        assert commit(client, group, topic, "m1", epoch + 1, version) == E.STALE_MEMBER_EPOCH
        assert commit(client, group, topic, "m2", epoch, version) == E.UNKNOWN_MEMBER_ID
    assert commit(client, group, topic, "m1", epoch, 8) == E.UNSUPPORTED_VERSION
    assert fetch(client, group, "m1", epoch).topics[0].partitions[0].committed_offset == 7
    assert fetch(client, group, "m1", epoch + 1).error_code == E.STALE_MEMBER_EPOCH
    assert fetch(client, group, "m2", epoch).error_code == E.UNKNOWN_MEMBER_ID
    assert fetch(client, group).topics[0].partitions[0].committed_offset == 7


def test_the_group_is_listed_and_deleted_when_it_is_empty(client, group, topic):
    name, _ = topic
    beat(client, group, "m1", 0, subscribed_topic_names=[name])
    listed = client(g.ListGroupsRequest(types_filter=["consumer"]), 5).groups
    assert [(row.group_type, row.group_state, row.protocol_type) for row in listed if row.group_id == group] == [
        ("consumer", "Stable", "consumer")
    ]
    delete = g.DeleteGroupsRequest(groups_names=[group])
    assert client(delete, 2).results[0].error_code == E.NON_EMPTY_GROUP
    beat(client, group, "m1", -1)
    assert client(delete, 2).results[0].error_code == 0
    assert describe(client, group).error_code == E.GROUP_ID_NOT_FOUND


def test_a_group_survives_a_restart(start_broker, topic_name):
    broker = start_broker()
    client = RawClient(broker.bootstrap)
    name, group = topic_name(), topic_name("group")
    topic_id = client.create_topic(name, 4)
    client.find(group)
    epoch = join(client, group, "m1", subscribed_topic_names=[name]).member_epoch
    client.close()
    broker.stop()
    broker.restart()
    client = RawClient(broker.bootstrap)
    client.find(group)
    response = beat(client, group, "m1", epoch, owned={topic_id: {0, 1, 2, 3}})
    client.close()
    assert (response.error_code, response.member_epoch) == (0, epoch)


def test_offsets_are_given_to_a_member_in_its_epoch(client, group, topic):
    """OffsetFetch of named topics and of all, by name and by id; a request without a member is not checked."""
    name, topic_id = topic
    epoch = join(client, group, "m1", subscribed_topic_names=[name]).member_epoch
    topics = [o.OffsetFetchRequestTopics(name=name, topic_id=topic_id, partition_indexes=[0])]
    unknown = [o.OffsetFetchRequestTopics(name="none", topic_id=bytes(15) + b"\7", partition_indexes=[0])]

    def error(version, topics, member_id, member_epoch):
        fields = {"member_id": member_id, "member_epoch": member_epoch}
        asked = o.OffsetFetchRequestGroup(group_id=group, topics=topics, **fields)
        (fetched,) = client(o.OffsetFetchRequest(groups=[asked]), version).groups
        assert not (fetched.error_code and fetched.topics)
        return fetched.error_code

    for version in (9, 10):
        for chosen in (topics, unknown, topics + unknown, None):
            assert error(version, chosen, "m1", epoch) == 0
            assert error(version, chosen, None, -1) == 0
            for stale in (epoch - 1, epoch + 1, -1):
                assert error(version, chosen, "m1", stale) == E.STALE_MEMBER_EPOCH
            for nobody, of_epoch in (("m2", epoch), ("", epoch), ("m2", -1)):
                assert error(version, chosen, nobody, of_epoch) == E.UNKNOWN_MEMBER_ID
