"""Groups as kafka-consumer-groups and kafka-share-groups need them: their members, with epochs and targets."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.client.cluster import Cluster
from barnabas.client.connection import NodeConnection
from barnabas.client.errors import raise_for
from barnabas.client.groups.consumer_groups import assigned_partitions
from barnabas.client.offsets import TopicPartition
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupDescribeResponseAssignment,
)
from barnabas.wire.messages.groups import DescribeGroupsRequest, DescribeGroupsResponse
from barnabas.wire.messages.share_groups import ShareGroupDescribeRequest, ShareGroupDescribeResponse

# --- share groups (KIP-932)


class ShareMember(NamedTuple):
    """A member of a share group."""

    member_id: str
    host: str
    client_id: str
    epoch: int
    assignment: list[TopicPartition]


class ShareGroup(NamedTuple):
    """A share group with its members."""

    state: str
    epoch: int
    assignment_epoch: int
    members: list[ShareMember]
    coordinator: str


def describe_share_group(cluster: Cluster, group: str) -> ShareGroup:
    """One share group; KafkaError(GROUP_ID_NOT_FOUND) with the broker's message."""

    def attempt(deadline: float) -> ShareGroup:
        node = cluster.coordinator(group, deadline)
        (found,) = node.call(ShareGroupDescribeRequest(group_ids=[group]), ShareGroupDescribeResponse, deadline).groups
        raise_for(found.error_code, f"group {group!r}", found.error_message)
        members = [
            ShareMember(
                one.member_id,
                one.client_host,
                one.client_id,
                one.member_epoch,
                [(topic.topic_name, index) for topic in one.assignment.topic_partitions for index in topic.partitions],
            )
            for one in found.members
        ]
        where = coordinator_text(cluster, node)
        return ShareGroup(found.group_state, found.group_epoch, found.assignment_epoch, members, where)

    return cluster.retry(attempt)


# --- consumer groups

CLASSIC_MEMBER = 0
"""ConsumerGroupDescribe's member type of a member that uses the classic protocol."""


class Member(NamedTuple):
    """A member of a group."""

    member_id: str
    instance_id: str
    host: str
    client_id: str
    assignment: list[TopicPartition]
    target: list[TopicPartition]
    epoch: int | None
    """None in a classic group."""
    is_upgraded: bool | None


class Description(NamedTuple):
    """A group with its members."""

    state: str
    assignor: str
    epoch: int | None
    target_epoch: int | None
    members: list[Member]
    coordinator: str
    """`host:port  (id)`, as the tools print it."""


def describe(cluster: Cluster, group: str) -> Description:
    """One group, of the consumer or the classic protocol; KafkaError(GROUP_ID_NOT_FOUND) with the broker's message."""

    def attempt(deadline: float) -> Description:
        node = cluster.coordinator(group, deadline)
        return _modern(cluster, node, group, deadline) or _classic(cluster, node, group, deadline)

    return cluster.retry(attempt)


def coordinator_text(cluster: Cluster, node: NodeConnection) -> str:
    """The coordinator's address and id, as the tools print them."""
    ids = [str(one.node_id) for one in cluster.nodes.values() if (one.host, one.port) == (node.host, node.port)]
    return f"{node.host}:{node.port}  ({ids[0] if ids else '-'})"


def _modern(cluster: Cluster, node: NodeConnection, group: str, deadline: float) -> Description | None:
    request = ConsumerGroupDescribeRequest(group_ids=[group])
    (found,) = node.call(request, ConsumerGroupDescribeResponse, deadline).groups
    if found.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        return None
    raise_for(found.error_code, f"group {group!r}", found.error_message)
    members = [
        Member(
            one.member_id,
            one.instance_id or "",
            one.client_host,
            one.client_id,
            _partitions(one.assignment),
            _partitions(one.target_assignment),
            one.member_epoch,
            None if one.member_type < 0 else one.member_type != CLASSIC_MEMBER,
        )
        for one in found.members
    ]
    where = coordinator_text(cluster, node)
    return Description(
        found.group_state, found.assignor_name, found.group_epoch, found.assignment_epoch, members, where
    )


def _partitions(assignment: ConsumerGroupDescribeResponseAssignment) -> list[TopicPartition]:
    return [(topic.topic_name, index) for topic in assignment.topic_partitions for index in topic.partitions]


def _classic(cluster: Cluster, node: NodeConnection, group: str, deadline: float) -> Description:
    (found,) = node.call(DescribeGroupsRequest(groups=[group]), DescribeGroupsResponse, deadline).groups
    raise_for(found.error_code, f"group {group!r}", found.error_message)
    members = [
        Member(
            one.member_id,
            one.group_instance_id or "",
            one.client_host,
            one.client_id,
            assigned_partitions(one),
            [],
            None,
            None,
        )
        for one in found.members
    ]
    return Description(found.group_state, found.protocol_data, None, None, members, coordinator_text(cluster, node))
