"""Consumer groups as kafka-consumer-groups needs them: members of both protocols, offsets, results per item."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from barnabas.client.cluster import Cluster
from barnabas.client.connection import NodeConnection
from barnabas.client.groups import LAST_VERSION_WITH_NAMES, assigned_partitions
from barnabas.client.offsets import TopicPartition
from barnabas.client.tools.answers import check, checked, settle
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupDescribeResponseAssignment,
)
from barnabas.wire.messages.groups import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from barnabas.wire.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)

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


class Committed(NamedTuple):
    """A committed offset; the leader epoch is -1 if none was committed."""

    offset: int
    leader_epoch: int


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
    check(found.error_code, found.error_message)
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
    check(found.error_code, found.error_message)
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


def committed(cluster: Cluster, group: str) -> dict[TopicPartition, Committed]:
    """All committed offsets of a group; none for a group that does not exist."""

    def attempt(deadline: float) -> dict[TopicPartition, Committed]:
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None)])
        node = cluster.coordinator(group, deadline)
        (answer,) = node.call(request, OffsetFetchResponse, deadline, LAST_VERSION_WITH_NAMES).groups
        check(answer.error_code)
        found = {}
        for topic in answer.topics:
            for one in topic.partitions:
                check(one.error_code)
                found[topic.name, one.partition_index] = Committed(one.committed_offset, one.committed_leader_epoch)
        return {partition: offset for partition, offset in found.items() if offset.offset >= 0}

    return cluster.retry(attempt)


def commit(cluster: Cluster, group: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Set the offsets of a group without members; the first error is raised."""
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for (name, index), offset in offsets.items():
        one = OffsetCommitRequestPartition(partition_index=index, committed_offset=offset, committed_metadata="")
        topics.setdefault(name, []).append(one)
    request = OffsetCommitRequest(
        group_id=group, topics=[OffsetCommitRequestTopic(name=name, partitions=parts) for name, parts in topics.items()]
    )

    def attempt(deadline: float) -> KafkaError | None:
        node = cluster.coordinator(group, deadline)
        response = node.call(request, OffsetCommitResponse, deadline, LAST_VERSION_WITH_NAMES)
        errors = [checked(one.error_code) for topic in response.topics for one in topic.partitions]
        return next((error for error in errors if error is not None), None)

    settle(cluster, attempt)


def delete_offsets(
    cluster: Cluster, group: str, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, KafkaError | None]:
    """Delete committed offsets; the outcome of each partition. An error of the whole request is raised."""
    topics: dict[str, list[OffsetDeleteRequestPartition]] = {}
    for name, index in partitions:
        topics.setdefault(name, []).append(OffsetDeleteRequestPartition(partition_index=index))
    request = OffsetDeleteRequest(
        group_id=group, topics=[OffsetDeleteRequestTopic(name=name, partitions=parts) for name, parts in topics.items()]
    )

    def attempt(deadline: float) -> dict[TopicPartition, KafkaError | None]:
        answer = cluster.coordinator(group, deadline).call(request, OffsetDeleteResponse, deadline)
        check(answer.error_code)
        return {
            (topic.name, one.partition_index): checked(one.error_code)
            for topic in answer.topics
            for one in topic.partitions
        }

    return cluster.retry(attempt)


def delete(cluster: Cluster, groups: Sequence[str]) -> dict[str, KafkaError | None]:
    """Delete groups with their offsets; the outcome of each."""
    outcome: dict[str, KafkaError | None] = {}
    for group in groups:

        def attempt(deadline: float, group: str = group) -> KafkaError | None:
            node = cluster.coordinator(group, deadline)
            (result,) = node.call(DeleteGroupsRequest(groups_names=[group]), DeleteGroupsResponse, deadline).results
            return checked(result.error_code, result.error_message)

        outcome[group] = cluster.retry(attempt)
    return outcome
