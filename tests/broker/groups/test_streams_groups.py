"""KIP-1071: the streams protocol over the wire, in every version.

The expectations are Apache Kafka's: `--against kafka` runs them there. What the answers mean is tried without a network
in `tests/coord/groups/streams`.
"""

from __future__ import annotations

import time

import pytest

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.configs import DescribeConfigsRequest, DescribeConfigsResource
from barnabas.wire.messages.groups import classic_groups as g
from barnabas.wire.messages.groups import offsets as o
from barnabas.wire.messages.groups import streams_groups as s
from tests.support.requests.raw_client import RawClient
from tests.support.waiting import Deadline, wait_for

E = ErrorCode
VERSIONS = [0, 1]
TOPIC_RESOURCE = 2
MISSING_SOURCE_TOPICS, INCORRECTLY_PARTITIONED_TOPICS, MISSING_INTERNAL_TOPICS, SHUTDOWN = 1, 2, 3, 4


@pytest.fixture
def client(broker):
    client = RawClient(broker.bootstrap)
    yield client
    client.close()


@pytest.fixture
def group(client, topic_name):
    """An unused group id that has its coordinator."""
    name = topic_name("streams")
    client.find(name)
    return name


def count_words(group):
    """A topology of two subtopologies: lines are read, words repartitioned and counted."""
    compact = s.StreamsGroupHeartbeatRequestKeyValue(key="cleanup.policy", value="compact")
    return s.StreamsGroupHeartbeatRequestTopology(
        subtopologies=[
            s.StreamsGroupHeartbeatRequestSubtopology(
                subtopology_id="0", source_topics=[f"{group}-lines"], repartition_sink_topics=[f"{group}-words"]
            ),
            s.StreamsGroupHeartbeatRequestSubtopology(
                subtopology_id="1",
                repartition_source_topics=[s.StreamsGroupHeartbeatRequestTopicInfo(name=f"{group}-words")],
                state_changelog_topics=[
                    s.StreamsGroupHeartbeatRequestTopicInfo(name=f"{group}-counts", topic_configs=[compact])
                ],
            ),
        ]
    )


def beat(client, group, member_id, epoch, *, active=None, version=1, **fields):
    if epoch == 0:
        fields.setdefault("rebalance_timeout_ms", 30_000)
        fields.setdefault("topology", count_words(group))
        fields.setdefault("process_id", f"process-of-{member_id}")
        active = active or {}
    if active is not None:
        tasks = [s.StreamsGroupHeartbeatRequestTaskIds(subtopology_id=k, partitions=v) for k, v in active.items()]
        fields.update(active_tasks=tasks, standby_tasks=[], warmup_tasks=[])
    request = s.StreamsGroupHeartbeatRequest(group_id=group, member_id=member_id, member_epoch=epoch, **fields)
    return client(request, version)


def given(response):
    if response.active_tasks is None:
        return None
    return {each.subtopology_id: sorted(each.partitions) for each in response.active_tasks}


def beat_until(client, group, member_id, epoch, condition, **fields):
    """Send heartbeats until a response matches: topics are created asynchronously, assignments have an interval."""
    deadline = Deadline("another response to the heartbeat")
    while True:
        response = beat(client, group, member_id, epoch, **fields)
        assert not response.error_code, (E(response.error_code), response.error_message)
        if condition(response):
            return response
        deadline.check()
        fields.pop("active", None)
        epoch = response.member_epoch
        time.sleep(0.1)


def codes(response):
    return {status.status_code for status in response.status}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_member_joins_has_its_topics_created_works_and_leaves(client, group, version):
    client.create_topic(f"{group}-lines", 2)
    response = beat(client, group, "m", 0, version=version)
    assert response.error_code == E.NONE
    assert response.member_id == "m"
    assert response.heartbeat_interval_ms > 0
    assert response.task_offset_interval_ms == 60_000
    everything = {"0": [0, 1], "1": [0, 1]}
    if given(response) != everything:
        response = beat_until(
            client, group, "m", response.member_epoch, lambda heartbeat: given(heartbeat) == everything, version=version
        )
    described = client(s.StreamsGroupDescribeRequest(group_ids=[group]), version).groups[0]
    assert (described.error_code, described.group_state, len(described.members)) == (E.NONE, "Stable", 1)
    assert described.members[0].member_epoch == response.member_epoch
    commit = o.OffsetCommitRequest(
        group_id=group,
        member_id="m",
        generation_id_or_member_epoch=response.member_epoch,
        topics=[
            o.OffsetCommitRequestTopic(
                name=f"{group}-lines",
                partitions=[o.OffsetCommitRequestPartition(partition_index=0, committed_offset=0)],
            )
        ],
    )
    assert client(commit, 9).topics[0].partitions[0].error_code == E.NONE
    commit.generation_id_or_member_epoch += 1
    assert client(commit, 9).topics[0].partitions[0].error_code == E.STALE_MEMBER_EPOCH
    last_response = beat(client, group, "m", -1, version=version)
    assert (last_response.error_code, last_response.member_epoch) == (E.NONE, -1)
    assert client(g.DeleteGroupsRequest(groups_names=[group]), 2).results[0].error_code == E.NONE
    gone = client(s.StreamsGroupDescribeRequest(group_ids=[group]), version).groups[0]
    assert gone.error_code == E.GROUP_ID_NOT_FOUND


def test_internal_topics_get_their_configs(client, group):
    client.create_topic(f"{group}-lines", 1)
    response = beat(client, group, "m", 0)
    if not given(response):
        beat_until(client, group, "m", response.member_epoch, lambda heartbeat: bool(given(heartbeat)))
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(
                resource_type=TOPIC_RESOURCE, resource_name=f"{group}-counts", configuration_keys=["cleanup.policy"]
            )
        ]
    )
    # Kafka applies the new topic asynchronously
    configs = wait_for(lambda: client(request, 4).results[0].configs, "the configuration of the changelog topic")
    assert [config.value for config in configs] == ["compact"]
    beat(client, group, "m", -1)


def test_missing_and_mismatched_topics_are_reported(client, group):
    response = beat(client, group, "m", 0)
    assert [(each.status_code, each.status_detail) for each in response.status if each.status_code != 5] == [
        (MISSING_SOURCE_TOPICS, f"Source topics {group}-lines are missing.")
    ]
    client.create_topic(f"{group}-lines", 3)
    client.create_topic(f"{group}-words", 2)
    response = beat_until(
        client, group, "m", response.member_epoch, lambda heartbeat: INCORRECTLY_PARTITIONED_TOPICS in codes(heartbeat)
    )
    (detail,) = [each.status_detail for each in response.status if each.status_code == INCORRECTLY_PARTITIONED_TOPICS]
    assert detail == f"Existing topic {group}-words has different number of partitions: expected 3, found 2"
    described = client(s.StreamsGroupDescribeRequest(group_ids=[group]), 1).groups[0]
    assert described.group_state == "NotReady"
    assert [each.subtopology_id for each in described.topology.subtopologies] == ["0", "1"]
    beat(client, group, "m", -1)


def test_internal_topics_that_cannot_be_created(client, group):
    client.create_topic(f"{group}-lines", 1)
    topology = count_words(group)
    (info,) = topology.subtopologies[1].state_changelog_topics
    info.topic_configs = [s.StreamsGroupHeartbeatRequestKeyValue(key="cleanup.policy", value="nonsense")]

    def detail(response):
        return [each.status_detail for each in response.status if each.status_code == MISSING_INTERNAL_TOPICS]

    response = beat(client, group, "m", 0, topology=topology)
    response = beat_until(
        client,
        group,
        "m",
        response.member_epoch,
        lambda heartbeat: any("Creation failed" in each for each in detail(heartbeat)),
    )
    (text,) = detail(response)
    assert "Internal topics are missing: " in text
    assert f"; Creation failed: {group}-counts (" in text
    beat(client, group, "m", -1)


def test_two_members_share_the_tasks_and_one_stops_them_all(client, group):
    client.create_topic(f"{group}-lines", 2)
    beat_response = beat(client, group, "one", 0)
    if given(beat_response) != {"0": [0, 1], "1": [0, 1]}:
        beat_response = beat_until(
            client,
            group,
            "one",
            beat_response.member_epoch,
            lambda heartbeat: given(heartbeat) == {"0": [0, 1], "1": [0, 1]},
        )
    two = beat(client, group, "two", 0)
    has_less = beat_until(
        client,
        group,
        "one",
        beat_response.member_epoch,
        lambda heartbeat: given(heartbeat) not in (None, {"0": [0, 1], "1": [0, 1]}),
    )
    tasks = given(has_less)
    beat_response = beat_until(client, group, "one", has_less.member_epoch, lambda heartbeat: True, active=tasks)
    two = beat_until(client, group, "two", two.member_epoch, lambda heartbeat: bool(given(heartbeat)))
    assert sum(map(len, tasks.values())) == sum(map(len, given(two).values())) == 2
    response = beat(client, group, "one", beat_response.member_epoch, shutdown_application=True)
    assert SHUTDOWN in codes(response)
    assert SHUTDOWN in codes(beat(client, group, "two", two.member_epoch))
    for member in ("one", "two"):
        beat(client, group, member, -1)


@pytest.mark.parametrize("version", VERSIONS)
def test_refusals(client, group, version):
    client.create_topic(f"{group}-lines", 1)
    assert beat(client, group, "m", 1, version=version).error_code == E.GROUP_ID_NOT_FOUND
    assert beat(client, group, "m", 0, version=version, rebalance_timeout_ms=-1).error_code == E.INVALID_REQUEST
    response = beat(client, group, "m", 0, version=version)
    assert beat(client, group, "n", 1, version=version).error_code == E.UNKNOWN_MEMBER_ID
    fenced = beat(client, group, "m", response.member_epoch + 1, version=version)
    assert fenced.error_code == E.FENCED_MEMBER_EPOCH
    other = s.StreamsGroupHeartbeatRequestTopology(
        subtopologies=[s.StreamsGroupHeartbeatRequestSubtopology(subtopology_id="0", source_topics=[f"{group}-lines"])]
    )
    refused = beat(client, group, "n", 0, version=version, topology=other)
    assert (refused.error_code, refused.error_message) == (
        E.INVALID_REQUEST,
        "Topology updates are not supported yet.",
    )
    wrong = beat(client, f"{group}-wrong", "n", 0, version=version, topology=_unreadable(group))
    assert wrong.error_code == E.STREAMS_INVALID_TOPOLOGY
    ours = s.StreamsGroupHeartbeatRequestTopology(
        subtopologies=[
            s.StreamsGroupHeartbeatRequestSubtopology(subtopology_id="0", source_topics=["__consumer_offsets"])
        ]
    )
    refused = beat(client, f"{group}-wrong", "n", 0, version=version, topology=ours)
    assert (refused.error_code, refused.error_message) == (
        E.STREAMS_INVALID_TOPOLOGY,
        "Use of Kafka internal topics __consumer_offsets in a Kafka Streams topology is prohibited.",
    )
    beat(client, group, "m", -1, version=version)


def _unreadable(group):
    return s.StreamsGroupHeartbeatRequestTopology(
        subtopologies=[
            s.StreamsGroupHeartbeatRequestSubtopology(
                subtopology_id="0",
                source_topics=[f"{group}-lines"],
                state_changelog_topics=[s.StreamsGroupHeartbeatRequestTopicInfo(name="c", partitions=3)],
            )
        ]
    )


def test_it_is_listed_with_its_type(client, group):
    client.create_topic(f"{group}-lines", 1)
    beat(client, group, "m", 0)
    groups = [
        each for each in client(g.ListGroupsRequest(types_filter=["Streams"]), 5).groups if each.group_id == group
    ]
    assert [(each.protocol_type, each.group_type.lower()) for each in groups] == [("streams", "streams")]
    described = client(g.DescribeGroupsRequest(groups=[group]), 6).groups[0]
    assert described.error_code == E.GROUP_ID_NOT_FOUND
    beat(client, group, "m", -1)
