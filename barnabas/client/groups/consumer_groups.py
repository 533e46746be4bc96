"""Consumer groups: list, describe, committed offsets, seek, delete.

Errors: `KafkaError` from the broker, `NotFound`, `TimedOut`, `Unreachable`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from barnabas.client.cluster import Cluster
from barnabas.client.errors import error_for, no_such, outcome_for, raise_for
from barnabas.client.offsets import TopicPartition
from barnabas.wire.errors import ErrorCode, KafkaError, ProtocolError
from barnabas.wire.messages.groups.classic_groups import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    DescribeGroupsResponseDescribedGroup,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from barnabas.wire.messages.groups.consumer_protocol import ConsumerProtocolAssignment
from barnabas.wire.messages.groups.offsets import (
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
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
)

LAST_VERSION_WITH_NAMES = 9
"""Newer versions of OffsetCommit and OffsetFetch use topic ids; this client uses names."""


class Committed(NamedTuple):
    """A committed offset; the leader epoch is -1 if none was committed."""

    offset: int
    leader_epoch: int


def _hint(code: int) -> str | None:
    """A sentence for an error of a group's deletion, which has no text in Kafka."""
    return {
        int(ErrorCode.NON_EMPTY_GROUP): "it has members; stop them first",
        int(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC): "a member reads it; stop it first",
    }.get(code)


def list_groups(cluster: Cluster, states: Sequence[str] = (), types: Sequence[str] = ()) -> list[ListedGroup]:
    """The groups of all nodes, by name; optionally only some `states` and `types`."""
    request = ListGroupsRequest(states_filter=list(states), types_filter=list(types))

    def attempt(deadline: float) -> list[ListedGroup]:
        cluster.metadata([], deadline)
        groups: list[ListedGroup] = []
        for node_id in cluster.nodes:
            response = cluster.node(node_id, deadline).call(request, ListGroupsResponse, deadline)
            raise_for(response.error_code, f"groups of node {node_id}")
            groups.extend(response.groups)
        return sorted(groups, key=lambda group: group.group_id)

    return cluster.retry(attempt)


def describe_group(cluster: Cluster, group: str) -> DescribeGroupsResponseDescribedGroup:
    """One group with its members. `NotFound` if there is none (older brokers answer Dead)."""

    def attempt(deadline: float) -> DescribeGroupsResponseDescribedGroup:
        node = cluster.coordinator(group, deadline)
        response = node.call(DescribeGroupsRequest(groups=[group]), DescribeGroupsResponse, deadline).groups[0]
        if response.error_code == ErrorCode.GROUP_ID_NOT_FOUND or response.group_state == "Dead":
            raise no_such("group", group)
        raise_for(response.error_code, f"group {group!r}", response.error_message)
        return response

    return cluster.retry(attempt)


def assigned_partitions(member: DescribedGroupMember) -> list[TopicPartition]:
    """The partitions of a classic member of protocol type consumer; none for others."""
    if len(member.member_assignment) < 2:
        return []
    version = min(int.from_bytes(member.member_assignment[:2], "big"), ConsumerProtocolAssignment.versions[-1])
    try:
        assignment = ConsumerProtocolAssignment.codec(version).parse(member.member_assignment, 2)[0]
    except ProtocolError:
        return []
    return [(topic.topic, index) for topic in assignment.assigned_partitions for index in topic.partitions]


def committed_offsets(cluster: Cluster, group: str) -> dict[TopicPartition, int]:
    """All committed offsets of a group."""
    return {partition: position.offset for partition, position in committed(cluster, group).items()}


def committed(cluster: Cluster, group: str) -> dict[TopicPartition, Committed]:
    """All committed offsets of a group with their leader epochs; none for a group that does not exist."""

    def attempt(deadline: float) -> dict[TopicPartition, Committed]:
        node = cluster.coordinator(group, deadline)
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None)])
        version = node.version_for(request, LAST_VERSION_WITH_NAMES)
        if version < 8:
            request = OffsetFetchRequest(group_id=group, topics=None)
            old = node.call(request, OffsetFetchResponse, deadline, version)
            raise_for(old.error_code, f"offsets of group {group!r}")
            return {(t.name, p.partition_index): _committed(p) for t in old.topics for p in t.partitions}
        response = node.call(request, OffsetFetchResponse, deadline, version).groups[0]
        raise_for(response.error_code, f"offsets of group {group!r}")
        return {(t.name, p.partition_index): _committed(p) for t in response.topics for p in t.partitions}

    return {partition: position for partition, position in cluster.retry(attempt).items() if position.offset >= 0}


def _committed(part: OffsetFetchResponsePartition | OffsetFetchResponsePartitions) -> Committed:
    raise_for(part.error_code, f"committed offset of partition {part.partition_index}")
    return Committed(part.committed_offset, part.committed_leader_epoch)


def commit_offsets(cluster: Cluster, group: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Set the offsets of a group without members (else UNKNOWN_MEMBER_ID)."""
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for (name, index), offset in offsets.items():
        commit = OffsetCommitRequestPartition(partition_index=index, committed_offset=offset, committed_metadata="")
        topics.setdefault(name, []).append(commit)
    request = OffsetCommitRequest(
        group_id=group,
        topics=[OffsetCommitRequestTopic(name=name, partitions=parts) for name, parts in topics.items()],
    )

    def attempt(deadline: float) -> None:
        node = cluster.coordinator(group, deadline)
        response = node.call(request, OffsetCommitResponse, deadline, LAST_VERSION_WITH_NAMES)
        for topic in response.topics:
            for partition in topic.partitions:
                raise_for(partition.error_code, f"group {group!r}, {topic.name}-{partition.partition_index}")

    cluster.retry(attempt)


def delete_group(cluster: Cluster, group: str) -> None:
    """Delete a group without members, with its offsets. `NotFound` if there is none."""

    def attempt(deadline: float) -> None:
        node = cluster.coordinator(group, deadline)
        result = node.call(DeleteGroupsRequest(groups_names=[group]), DeleteGroupsResponse, deadline).results[0]
        if result.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
            raise no_such("group", group, error_for(result.error_code, f"group {group!r}", result.error_message))
        about = f"cannot delete group {group!r}"
        raise_for(result.error_code, about, result.error_message, _hint(result.error_code))

    cluster.retry(attempt)


def delete_offsets(
    cluster: Cluster, group: str, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, KafkaError | None]:
    """Delete committed offsets of topics that no member reads (else GROUP_SUBSCRIBED_TO_TOPIC).

    Returns the outcome of each partition. `NotFound` if there is no such group.
    """
    topics: dict[str, list[OffsetDeleteRequestPartition]] = {}
    for name, index in partitions:
        topics.setdefault(name, []).append(OffsetDeleteRequestPartition(partition_index=index))
    request = OffsetDeleteRequest(
        group_id=group, topics=[OffsetDeleteRequestTopic(name=name, partitions=parts) for name, parts in topics.items()]
    )

    def attempt(deadline: float) -> dict[TopicPartition, KafkaError | None]:
        response = cluster.coordinator(group, deadline).call(request, OffsetDeleteResponse, deadline)
        if response.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
            raise no_such("group", group, error_for(response.error_code, f"group {group!r}"))
        raise_for(response.error_code, f"group {group!r}")
        return {
            (topic.name, partition.partition_index): outcome_for(
                partition.error_code, f"{topic.name}-{partition.partition_index}", hint=_hint(partition.error_code)
            )
            for topic in response.topics
            for partition in topic.partitions
        }

    return cluster.retry(attempt)
