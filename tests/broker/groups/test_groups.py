"""G1, G2: groups and offsets over the wire, in every version.

The expectations are Apache Kafka's: `--against kafka` runs them there.
"""

from __future__ import annotations

import pytest

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.groups import classic_groups as g
from barnabas.wire.messages.groups import offsets as o
from tests.support.cases import for_each
from tests.support.requests.raw_client import RawClient

E = ErrorCode
ZERO = bytes(16)


@pytest.fixture
def connect(broker):
    """A factory of connections to the shared broker."""
    clients = []

    def new():
        clients.append(RawClient(broker.bootstrap))
        return clients[-1]

    yield new
    for client in clients:
        client.close()


@pytest.fixture
def client(connect):
    return connect()


@pytest.fixture
def group(client, topic_name):
    """An unused group id that has its coordinator."""
    name = topic_name("group")
    client.find(name)
    return name


def join_request(group_id, member_id="", **values):
    values.setdefault("session_timeout_ms", 30_000)
    values.setdefault("rebalance_timeout_ms", 30_000)
    values.setdefault("protocol_type", "consumer")
    values.setdefault("protocols", [g.JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\0\xff\xff\xff\xff")])
    return g.JoinGroupRequest(group_id=group_id, member_id=member_id, **values)


def join(client, group_id, version=9, **values):
    """Join as a new dynamic member and wait for the next generation."""
    response = client(join_request(group_id, **values), version)
    if response.error_code == E.MEMBER_ID_REQUIRED:
        response = client(join_request(group_id, response.member_id, **values), version)
    assert response.error_code == 0, response
    return response


def sync_request(group_id, joined):
    """What a member sends after its JoinGroup; a leader assigns `mine` to itself."""
    assignments = (
        [g.SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"mine")] if joined.members else []
    )
    return g.SyncGroupRequest(
        group_id=group_id,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=assignments,
    )


def sync(client, group_id, joined, version=5):
    request = sync_request(group_id, joined)
    if version < 5:
        request.protocol_type = request.protocol_name = None
    return client(request, version)


def commit_request(group_id, topic="", topic_id=ZERO, partitions=(0,), offset=7, **values):
    requested = [
        o.OffsetCommitRequestPartition(partition_index=index, committed_offset=offset, committed_metadata="m")
        for index in partitions
    ]
    return o.OffsetCommitRequest(
        group_id=group_id,
        topics=[o.OffsetCommitRequestTopic(name=topic, topic_id=topic_id, partitions=requested)],
        **values,
    )


def errors_of(response):
    return [partition.error_code for topic in response.topics for partition in topic.partitions]


# ---- FindCoordinator


@for_each("version", range(7))
def test_find_coordinator_names_this_broker(client, group, version, broker):
    if version >= 4:
        response = client(g.FindCoordinatorRequest(coordinator_keys=[group, group + "2"]), version)
        assert [coordinator.key for coordinator in response.coordinators] == [group, group + "2"]
        coordinator = response.coordinators[0]
    else:
        coordinator = client(g.FindCoordinatorRequest(key=group), version)
    assert (coordinator.error_code, f"{coordinator.host}:{coordinator.port}", coordinator.node_id) == (
        0,
        broker.bootstrap,
        1,
    )
    assert coordinator.error_message == ("" if version in (0, 4, 5, 6) else "NONE")


def test_find_coordinator_of_an_unknown_type_is_an_invalid_request(client):
    response = client(g.FindCoordinatorRequest(coordinator_keys=["k"], key_type=9), 6)
    assert [coordinator.error_code for coordinator in response.coordinators] in ([], [E.INVALID_REQUEST])


# ---- members


@for_each("version", range(10))
def test_a_member_joins_syncs_heartbeats_commits_and_leaves(client, group, topic, version):
    """Every version of the requests of a member, combined by the version of JoinGroup."""
    topic_id = client.create_topic(topic)
    joined = join(client, group, version)
    assert joined.leader == joined.member_id
    assert [member.member_id for member in joined.members] == [joined.member_id]
    assert joined.protocol_name == "range"
    assert joined.protocol_type == ("consumer" if version >= 7 else None)
    assert joined.skip_assignment is False
    assert joined.member_id.startswith("raw-")
    synced = sync(client, group, joined, min(version, 5))
    assert (synced.error_code, synced.assignment) == (0, b"mine")
    member = {"group_id": group, "generation_id": joined.generation_id, "member_id": joined.member_id}
    assert client(g.HeartbeatRequest(**member), min(version, 4)).error_code == 0
    version_of_commit = min(version + 2, 10)
    named = {"topic_id": topic_id} if version_of_commit == 10 else {"topic": topic}
    request = commit_request(
        group, **named, generation_id_or_member_epoch=joined.generation_id, member_id=joined.member_id
    )
    assert errors_of(client(request, version_of_commit)) == [0]
    version_of_leave = min(version, 5)
    if version_of_leave < 3:
        response = client(g.LeaveGroupRequest(group_id=group, member_id=joined.member_id), version_of_leave)
        assert response.error_code == 0
    else:
        identity = g.MemberIdentity(member_id=joined.member_id)
        response = client(g.LeaveGroupRequest(group_id=group, members=[identity]), version_of_leave)
        assert [(gone.member_id, gone.error_code) for gone in response.members] == [(joined.member_id, 0)]
    assert client(g.HeartbeatRequest(**member), 4).error_code == E.UNKNOWN_MEMBER_ID


@for_each("version", [*range(7), 7, 8, 9])
def test_the_protocol_name_of_a_rejected_join_is_null_only_if_the_version_allows(client, group, version):
    response = client(join_request("", session_timeout_ms=30_000), version)
    assert response.error_code == E.INVALID_GROUP_ID
    assert response.protocol_name == (None if version >= 7 else "")


@for_each("version", range(6))
def test_leaving_a_group_that_does_not_exist(client, group, version):
    if version < 3:
        response = client(g.LeaveGroupRequest(group_id=group, member_id="m"), version)
        assert response.error_code == E.UNKNOWN_MEMBER_ID
    else:
        response = client(g.LeaveGroupRequest(group_id=group, members=[g.MemberIdentity(member_id="m")]), version)
        assert (response.error_code, [gone.error_code for gone in response.members]) == (0, [E.UNKNOWN_MEMBER_ID])


def test_a_second_member_waits_until_the_first_has_joined_again(client, connect, group):
    first = join(client, group)
    sync(client, group, first)
    second = connect()
    response = second(join_request(group), 9)
    assert response.error_code == E.MEMBER_ID_REQUIRED
    second.send(join_request(group, response.member_id), 9)
    beat = g.HeartbeatRequest(group_id=group, generation_id=first.generation_id, member_id=first.member_id)
    while client(beat, 4).error_code != E.REBALANCE_IN_PROGRESS:
        pass
    assert not second.has_answer()
    again = client(join_request(group, first.member_id), 9)
    other = second.read()
    assert again.generation_id == other.generation_id == first.generation_id + 1
    assert again.leader == other.leader
    assert len(again.members) + len(other.members) == 2, "only the leader receives the members"
    client_leads = bool(again.members)
    follower, leader = (second, client) if client_leads else (client, second)
    follows, leads = (other, again) if client_leads else (again, other)
    follower.send(sync_request(group, follows), 5)
    assert sync(leader, group, leads).assignment == b"mine"
    assert follower.read().assignment == b""


def test_a_static_member_rejoins_without_a_rebalance(client, group):
    """KIP-345, KIP-814; the old member id is fenced (82)."""
    first = join(client, group, group_instance_id="one")
    request = sync_request(group, first)
    request.group_instance_id = "one"
    assert client(request, 5).assignment == b"mine"
    second = join(client, group, group_instance_id="one")
    assert second.member_id != first.member_id
    assert (second.generation_id, second.leader, second.skip_assignment) == (1, second.member_id, True)
    assert [member.group_instance_id for member in second.members] == ["one"]
    beat = {"group_id": group, "generation_id": 1, "group_instance_id": "one"}
    assert client(g.HeartbeatRequest(member_id=first.member_id, **beat), 4).error_code == E.FENCED_INSTANCE_ID
    assert client(g.HeartbeatRequest(member_id=second.member_id, **beat), 4).error_code == 0
    older = client(join_request(group, group_instance_id="one"), 8)
    assert (older.leader, older.members) == (second.member_id, [])


ERRORS = [
    (g.SyncGroupRequest(member_id="m", protocol_type="t", protocol_name="n"), 5, E.UNKNOWN_MEMBER_ID),
    (g.SyncGroupRequest(member_id="m", protocol_type="t"), 5, E.INCONSISTENT_GROUP_PROTOCOL),
    (g.SyncGroupRequest(member_id="m", protocol_name="n"), 5, E.INCONSISTENT_GROUP_PROTOCOL),
    (g.SyncGroupRequest(member_id="m"), 4, E.UNKNOWN_MEMBER_ID),
    (g.HeartbeatRequest(member_id="m"), 4, E.UNKNOWN_MEMBER_ID),
    (join_request("", "m"), 9, E.UNKNOWN_MEMBER_ID),
    (join_request("", session_timeout_ms=5_999), 9, E.INVALID_SESSION_TIMEOUT),
    (join_request("", session_timeout_ms=1_800_001), 9, E.INVALID_SESSION_TIMEOUT),
    (join_request("", protocols=[]), 9, E.INCONSISTENT_GROUP_PROTOCOL),
    (join_request("", protocol_type=""), 9, E.INCONSISTENT_GROUP_PROTOCOL),
    (o.OffsetDeleteRequest(), 0, E.GROUP_ID_NOT_FOUND),
    (
        o.OffsetDeleteRequest(
            topics=[o.OffsetDeleteRequestTopic(name="t", partitions=[o.OffsetDeleteRequestPartition()])]
        ),
        0,
        E.GROUP_ID_NOT_FOUND,
    ),
]


@for_each(("request_", "version", "error"), ERRORS)
def test_requests_to_a_group_that_does_not_exist(client, group, request_, version, error):
    request_.group_id = group
    assert client(request_, version).error_code == error


@pytest.mark.parametrize(
    ("request_", "version"), [(g.SyncGroupRequest(), 4), (g.HeartbeatRequest(), 4), (g.LeaveGroupRequest(), 5)]
)
def test_the_empty_group_id_has_no_members(client, group, request_, version):
    assert client(request_, version).error_code == E.INVALID_GROUP_ID


# ---- offsets


@for_each("version", range(2, 11))
def test_commits_are_answered_for_each_partition(client, group, topic, version):
    topic_id = client.create_topic(topic, partitions=2)
    named = {"topic_id": topic_id} if version >= 10 else {"topic": topic}
    response = client(commit_request(group, **named, partitions=(9, 0, 8, 1)), version)
    unknown = E.UNKNOWN_TOPIC_OR_PARTITION
    assert [(part.partition_index, part.error_code) for part in response.topics[0].partitions] in (
        [(9, unknown), (0, 0), (8, unknown), (1, 0)],
        [(9, unknown), (8, unknown), (0, 0), (1, 0)],  # Kafka returns the rejected ones first
    )
    assert response.topics[0].topic_id == (topic_id if version >= 10 else ZERO)
    assert response.topics[0].name == ("" if version >= 10 else topic)


@for_each("version", range(2, 11))
def test_commits_to_topics_that_do_not_exist(client, group, topic, version):
    named = {"topic_id": b"\1" * 16} if version >= 10 else {"topic": topic}
    response = client(commit_request(group, **named), version)
    assert errors_of(response) == [E.UNKNOWN_TOPIC_ID if version >= 10 else E.UNKNOWN_TOPIC_OR_PARTITION]


@pytest.mark.parametrize(("version", "error"), [(8, E.ILLEGAL_GENERATION), (9, E.GROUP_ID_NOT_FOUND)])
def test_commits_of_members_of_a_group_that_does_not_exist(client, group, topic, version, error):
    client.create_topic(topic)
    request = commit_request(group, topic, generation_id_or_member_epoch=1, member_id="m")
    assert errors_of(client(request, version)) == [error]


def test_the_length_of_commit_metadata_is_limited(client, group, topic):
    """12."""
    client.create_topic(topic)
    request = commit_request(group, topic)
    for size, error in [(4096, 0), (4097, E.OFFSET_METADATA_TOO_LARGE)]:
        request.topics[0].partitions[0].committed_metadata = "x" * size
        assert errors_of(client(request, 9)) == [error]


def fetch(client, group_id, version, topic="", topic_id=ZERO, partitions=(0, 1), everything=False):
    """OffsetFetch in any version; returns (error, [(name, id, [(partition, offset, epoch, metadata, error)])])."""
    indexes = list(partitions)
    if version >= 8:
        topics = [o.OffsetFetchRequestTopics(name=topic, topic_id=topic_id, partition_indexes=indexes)]
        requested = o.OffsetFetchRequestGroup(group_id=group_id, topics=None if everything else topics)
        response = client(o.OffsetFetchRequest(groups=[requested]), version).groups[0]
    else:
        topics = [o.OffsetFetchRequestTopic(name=topic, partition_indexes=indexes)]
        response = client(o.OffsetFetchRequest(group_id=group_id, topics=None if everything else topics), version)
    return response.error_code, [
        (
            topic_response.name,
            getattr(topic_response, "topic_id", ZERO),
            [
                (p.partition_index, p.committed_offset, p.committed_leader_epoch, p.metadata, p.error_code)
                for p in topic_response.partitions
            ],
        )
        for topic_response in response.topics
    ]


@for_each(
    ("version", "everything"),
    [(version, False) for version in range(1, 11)] + [(version, True) for version in range(2, 11)],
)
def test_offsets_are_fetched_in_every_version(client, group, topic, version, everything):
    topic_id = client.create_topic(topic, partitions=2)
    request = commit_request(group, topic)
    request.topics[0].partitions[0].committed_leader_epoch = 0
    assert errors_of(client(request, 9)) == [0]
    epoch = 0 if version >= 5 else -1
    by_id = version >= 10
    partitions = [(0, 7, epoch, "m", 0)] if everything else [(0, 7, epoch, "m", 0), (1, -1, -1, "", 0)]
    named = {"topic_id": topic_id} if by_id else {"topic": topic}
    expected = [("" if by_id else topic, topic_id if by_id else ZERO, partitions)]
    assert fetch(client, group, version, **named, everything=everything) == (0, expected)


@for_each("version", range(1, 11))
def test_a_group_without_offsets_is_not_an_error(client, group, topic, version):
    topic_id = client.create_topic(topic)
    by_id = version >= 10
    named = {"topic_id": topic_id} if by_id else {"topic": topic}
    expected = [("" if by_id else topic, topic_id if by_id else ZERO, [(0, -1, -1, "", 0)])]
    assert fetch(client, group, version, **named, partitions=(0,)) == (0, expected)


def test_an_unknown_topic_id_is_an_error_of_each_partition(client, group):
    fetched = fetch(client, group, 10, topic_id=b"\1" * 16)
    unknown = E.UNKNOWN_TOPIC_ID
    assert fetched == (0, [("", b"\1" * 16, [(0, -1, -1, "", unknown), (1, -1, -1, "", unknown)])])


def test_several_groups_are_fetched_in_one_request(client, group, topic):
    """KIP-709."""
    client.create_topic(topic)
    client(commit_request(group, topic, offset=1), 9)
    client(commit_request(group + "b", topic, offset=2), 9)
    topics = [o.OffsetFetchRequestTopics(name=topic, partition_indexes=[0])]
    groups = [
        o.OffsetFetchRequestGroup(group_id=group, topics=topics),
        o.OffsetFetchRequestGroup(group_id=group + "b", topics=None),
        o.OffsetFetchRequestGroup(group_id=group + "c", topics=None),
    ]
    response = client(o.OffsetFetchRequest(groups=groups, require_stable=True), 9)
    offsets = {
        fetched.group_id: [part.committed_offset for topic in fetched.topics for part in topic.partitions]
        for fetched in response.groups
    }
    assert offsets == {group: [1], group + "b": [2], group + "c": []}


def test_offsets_are_deleted_unless_unknown(client, group, topic):
    client.create_topic(topic, partitions=2)
    client(commit_request(group, topic, partitions=(0, 1)), 9)
    partitions = [o.OffsetDeleteRequestPartition(partition_index=index) for index in (0, 9)]
    topics = [o.OffsetDeleteRequestTopic(name=topic, partitions=partitions)]
    response = client(o.OffsetDeleteRequest(group_id=group, topics=topics), 0)
    assert response.error_code == 0
    errors = {part.partition_index: part.error_code for part in response.topics[0].partitions}
    assert errors == {0: 0, 9: E.UNKNOWN_TOPIC_OR_PARTITION}
    assert [row[1] for row in fetch(client, group, 9, topic)[1][0][2]] == [-1, 7]


def test_offsets_of_subscribed_topics_are_not_deleted(client, group, topic):
    """86."""
    client.create_topic(topic)
    name = topic.encode()
    metadata = b"\0\0" + b"\0\0\0\1" + len(name).to_bytes(2, "big") + name + b"\xff\xff\xff\xff"
    joined = join(client, group, protocols=[g.JoinGroupRequestProtocol(name="range", metadata=metadata)])
    sync(client, group, joined)
    topics = [o.OffsetDeleteRequestTopic(name=topic, partitions=[o.OffsetDeleteRequestPartition(partition_index=0)])]
    response = client(o.OffsetDeleteRequest(group_id=group, topics=topics), 0)
    assert (response.error_code, errors_of(response)) == (0, [E.GROUP_SUBSCRIBED_TO_TOPIC])


def test_the_offsets_of_a_deleted_topic_are_deleted(client, group, topic):
    client.create_topic(topic)
    client(commit_request(group, topic), 9)
    client.delete_topic(topic)
    for _ in range(200):  # Kafka does it asynchronously
        if fetch(client, group, 9, everything=True) == (0, []):
            break
    client.create_topic(topic)
    assert fetch(client, group, 9, topic, partitions=(0,))[1][0][2] == [(0, -1, -1, "", 0)]


# ---- administration


@for_each("version", range(7))
def test_groups_are_described_in_every_version(client, group, topic, version):
    joined = join(client, group)
    sync(client, group, joined)
    response = client(
        g.DescribeGroupsRequest(groups=[group, topic], include_authorized_operations=version >= 3), version
    )
    there, missing = response.groups
    assert (there.error_code, there.group_state, there.protocol_type, there.protocol_data) == (
        0,
        "Stable",
        "consumer",
        "range",
    )
    (member,) = there.members
    assert (member.member_id, member.client_id, member.client_host) == (joined.member_id, "raw", "/127.0.0.1")
    assert (member.member_assignment, member.member_metadata) == (b"mine", joined.members[0].metadata)
    operations = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11
    assert there.authorized_operations == (operations if version >= 3 else -(2**31))
    assert missing.group_state == "Dead"
    assert missing.error_code == (E.GROUP_ID_NOT_FOUND if version >= 6 else 0)
    assert missing.error_message == (f"Group {topic} not found." if version >= 6 else None)


@for_each("version", range(6))
def test_groups_are_listed_in_every_version(client, group, topic, version):
    client.create_topic(topic)
    client(commit_request(group, topic), 9)
    filters = {"states_filter": ["empty"]} if version >= 4 else {}
    filters |= {"types_filter": ["Classic"]} if version >= 5 else {}
    rows = [row for row in client(g.ListGroupsRequest(**filters), version).groups if row.group_id == group]
    assert [(row.protocol_type, row.group_state, row.group_type) for row in rows] == [
        ("", "Empty" if version >= 4 else "", "classic" if version >= 5 else "")
    ]
    if version >= 4:
        others = client(g.ListGroupsRequest(states_filter=["Stable"]), version).groups
        assert group not in [row.group_id for row in others]


@pytest.mark.parametrize("version", range(4))
def test_groups_are_deleted_when_they_are_empty(client, group, topic, version):
    """68, 69."""
    client.create_topic(topic)
    client(commit_request(group, topic), 9)
    live = group + "live"
    sync(client, live, join(client, live))
    response = client(g.DeleteGroupsRequest(groups_names=[group, live, topic]), version)
    errors = {result.group_id: result.error_code for result in response.results}
    assert errors == {group: 0, live: E.NON_EMPTY_GROUP, topic: E.GROUP_ID_NOT_FOUND}
    assert {result.error_message for result in response.results} == {None}
    assert fetch(client, group, 9, everything=True) == (0, [])
