"""Share groups as kafka-share-groups needs them: members, start offsets, results per topic (KIP-932)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from barnabas.client.cluster import Cluster
from barnabas.client.offsets import TopicPartition
from barnabas.client.tools.answers import check, checked, settle
from barnabas.client.tools.groups import coordinator_text
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.share_groups import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)


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


class StartOffset(NamedTuple):
    """The first unfinished record of a share group in a partition; -1 is unknown."""

    offset: int
    leader_epoch: int
    lag: int


def describe(cluster: Cluster, group: str) -> ShareGroup:
    """One share group; KafkaError(GROUP_ID_NOT_FOUND) with the broker's message."""

    def attempt(deadline: float) -> ShareGroup:
        node = cluster.coordinator(group, deadline)
        (found,) = node.call(ShareGroupDescribeRequest(group_ids=[group]), ShareGroupDescribeResponse, deadline).groups
        check(found.error_code, found.error_message)
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


def offsets(cluster: Cluster, group: str) -> dict[TopicPartition, StartOffset]:
    """The start offsets of all partitions of a group."""

    def attempt(deadline: float) -> dict[TopicPartition, StartOffset]:
        asked = DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)
        node = cluster.coordinator(group, deadline)
        request = DescribeShareGroupOffsetsRequest(groups=[asked])
        (answer,) = node.call(request, DescribeShareGroupOffsetsResponse, deadline).groups
        check(answer.error_code, answer.error_message)
        found = {}
        for topic in answer.topics:
            for one in topic.partitions:
                check(one.error_code, one.error_message)
                found[topic.topic_name, one.partition_index] = StartOffset(one.start_offset, one.leader_epoch, one.lag)
        return dict(sorted(found.items()))

    return cluster.retry(attempt)


def alter_offsets(cluster: Cluster, group: str, new: Mapping[TopicPartition, int]) -> None:
    """Set start offsets; the first error is raised."""
    topics: dict[str, list[AlterShareGroupOffsetsRequestPartition]] = {}
    for (name, index), offset in new.items():
        one = AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=offset)
        topics.setdefault(name, []).append(one)
    request = AlterShareGroupOffsetsRequest(
        group_id=group,
        topics=[
            AlterShareGroupOffsetsRequestTopic(topic_name=name, partitions=parts) for name, parts in topics.items()
        ],
    )

    def attempt(deadline: float) -> KafkaError | None:
        answer = cluster.coordinator(group, deadline).call(request, AlterShareGroupOffsetsResponse, deadline)
        parts = [(one.error_code, one.error_message) for topic in answer.responses for one in topic.partitions]
        errors = [checked(code, text) for code, text in [(answer.error_code, answer.error_message), *parts]]
        return next((error for error in errors if error is not None), None)

    settle(cluster, attempt)


def delete_offsets(cluster: Cluster, group: str, topics: Sequence[str]) -> dict[str, KafkaError | None]:
    """Delete the start offsets of topics; the outcome of each. An error of the whole request is raised."""
    wanted = [DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in topics]
    request = DeleteShareGroupOffsetsRequest(group_id=group, topics=wanted)

    def attempt(deadline: float) -> dict[str, KafkaError | None]:
        answer = cluster.coordinator(group, deadline).call(request, DeleteShareGroupOffsetsResponse, deadline)
        check(answer.error_code, answer.error_message)
        return {one.topic_name: checked(one.error_code, one.error_message) for one in answer.responses}

    return cluster.retry(attempt)
