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
        (described,) = node.call(
            ShareGroupDescribeRequest(group_ids=[group]), ShareGroupDescribeResponse, deadline
        ).groups
        raise_for(described.error_code, f"group {group!r}", described.error_message)
        members = [
            ShareMember(
                member.member_id,
                member.client_host,
                member.client_id,
                member.member_epoch,
                [
                    (topic.topic_name, index)
                    for topic in member.assignment.topic_partitions
                    for index in topic.partitions
                ],
            )
            for member in described.members
        ]
        where = coordinator_text(cluster, node)
        return ShareGroup(described.group_state, described.group_epoch, described.assignment_epoch, members, where)

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
    ids = [str(other.node_id) for other in cluster.nodes.values() if (other.host, other.port) == (node.host, node.port)]
    return f"{node.host}:{node.port}  ({ids[0] if ids else '-'})"


def _modern(cluster: Cluster, node: NodeConnection, group: str, deadline: float) -> Description | None:
    request = ConsumerGroupDescribeRequest(group_ids=[group])
    (described,) = node.call(request, ConsumerGroupDescribeResponse, deadline).groups
    if described.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        return None
    raise_for(described.error_code, f"group {group!r}", described.error_message)
    members = [
        Member(
            member.member_id,
            member.instance_id or "",
            member.client_host,
            member.client_id,
            _partitions(member.assignment),
            _partitions(member.target_assignment),
            member.member_epoch,
            None if member.member_type < 0 else member.member_type != CLASSIC_MEMBER,
        )
        for member in described.members
    ]
    where = coordinator_text(cluster, node)
    return Description(
        described.group_state,
        described.assignor_name,
        described.group_epoch,
        described.assignment_epoch,
        members,
        where,
    )


def _partitions(assignment: ConsumerGroupDescribeResponseAssignment) -> list[TopicPartition]:
    return [(topic.topic_name, index) for topic in assignment.topic_partitions for index in topic.partitions]


def _classic(cluster: Cluster, node: NodeConnection, group: str, deadline: float) -> Description:
    (described,) = node.call(DescribeGroupsRequest(groups=[group]), DescribeGroupsResponse, deadline).groups
    raise_for(described.error_code, f"group {group!r}", described.error_message)
    members = [
        Member(
            member.member_id,
            member.group_instance_id or "",
            member.client_host,
            member.client_id,
            assigned_partitions(member),
            [],
            None,
            None,
        )
        for member in described.members
    ]
    return Description(
        described.group_state, described.protocol_data, None, None, members, coordinator_text(cluster, node)
    )
