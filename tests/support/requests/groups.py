"""Requests of a classic group whose members are on a `MemoryBroker`."""

from __future__ import annotations

from barnabas.wire.errors import ErrorCode as E
from barnabas.wire.messages.groups import classic_groups as g
from barnabas.wire.messages.groups import offsets as o


def find(client, key="g"):
    return client.ask(g.FindCoordinatorRequest(coordinator_keys=[key]), 6, g.FindCoordinatorResponse).coordinators[0]


def join_request(member_id="", group_id="g", version_metadata=b"\0\0\0\0\0\0\xff\xff\xff\xff", **values):
    values.setdefault("session_timeout_ms", 10_000)
    values.setdefault("rebalance_timeout_ms", 60_000)
    protocols = [g.JoinGroupRequestProtocol(name="range", metadata=version_metadata)]
    return g.JoinGroupRequest(
        group_id=group_id, member_id=member_id, protocol_type="consumer", protocols=protocols, **values
    )


def member_id_of(client, **values):
    response = client.ask(join_request(**values), 9, g.JoinGroupResponse)
    assert response.error_code == E.MEMBER_ID_REQUIRED
    return response.member_id


def sync_request(joined, group_id="g"):
    return g.SyncGroupRequest(
        group_id=group_id,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[g.SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"mine")],
    )


def stable(client, group_id="g", **values):
    """Create a group of one member; returns its JoinGroup response."""
    find(client, group_id)
    member_id = member_id_of(client, group_id=group_id, **values)
    joined = client.ask(join_request(member_id, group_id=group_id, **values), 9, g.JoinGroupResponse)
    assert joined.error_code == 0
    assert client.ask(sync_request(joined, group_id), 5, g.SyncGroupResponse).assignment == b"mine"
    return joined


def heartbeat(client, joined, group_id="g"):
    request = g.HeartbeatRequest(group_id=group_id, generation_id=joined.generation_id, member_id=joined.member_id)
    return client.ask(request, 4, g.HeartbeatResponse).error_code


def commit(client, topic, offset=5, group_id="g", partitions=(0,), metadata=""):
    topics = [
        o.OffsetCommitRequestPartition(partition_index=index, committed_offset=offset, committed_metadata=metadata)
        for index in partitions
    ]
    request = o.OffsetCommitRequest(
        group_id=group_id, topics=[o.OffsetCommitRequestTopic(name=topic, partitions=topics)]
    )
    response = client.ask(request, 9, o.OffsetCommitResponse)
    return {partition.error_code for partition in response.topics[0].partitions}


def fetch(client, topic, group_id="g"):
    group_request = o.OffsetFetchRequestGroup(
        group_id=group_id, topics=[o.OffsetFetchRequestTopics(name=topic, partition_indexes=[0])]
    )
    response = client.ask(o.OffsetFetchRequest(groups=[group_request]), 9, o.OffsetFetchResponse).groups[0]
    return response.error_code or response.topics[0].partitions[0].committed_offset
