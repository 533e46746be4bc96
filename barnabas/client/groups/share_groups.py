"""Start offsets of share groups: read, set and delete (KIP-932).

Errors: `KafkaError` from the broker, `NotFound`, `TimedOut`, `Unreachable`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from barnabas.client.cluster import Cluster
from barnabas.client.errors import error_for, no_such, outcome_for, raise_for
from barnabas.client.offsets import TopicPartition
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.groups.share_groups import (
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
)


class ShareOffset(NamedTuple):
    """The start offset of a share group in a partition."""

    start_offset: int
    """The first unfinished record; -1 before anything was read."""
    leader_epoch: int
    lag: int
    """The number of unfinished records; -1 if the broker does not say."""


def share_offsets(cluster: Cluster, group: str) -> dict[TopicPartition, ShareOffset]:
    """All partitions of the group."""
    group_request = DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)

    def attempt(deadline: float) -> dict[TopicPartition, ShareOffset]:
        request = DescribeShareGroupOffsetsRequest(groups=[group_request])
        response = cluster.coordinator(group, deadline).call(request, DescribeShareGroupOffsetsResponse, deadline)
        (described,) = response.groups
        _check(described.error_code, group, described.error_message)
        offsets = {}
        for topic in described.topics:
            for partition in topic.partitions:
                raise_for(
                    partition.error_code, f"{topic.topic_name}-{partition.partition_index}", partition.error_message
                )
                offsets[topic.topic_name, partition.partition_index] = ShareOffset(
                    partition.start_offset, partition.leader_epoch, partition.lag
                )
        return dict(sorted(offsets.items()))

    return cluster.retry(attempt)


def move_share_group(cluster: Cluster, group: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Set the start offsets of a group without members (else NON_EMPTY_GROUP)."""
    topics: dict[str, list[AlterShareGroupOffsetsRequestPartition]] = {}
    for (name, index), offset in offsets.items():
        part = AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=offset)
        topics.setdefault(name, []).append(part)
    request = AlterShareGroupOffsetsRequest(
        group_id=group,
        topics=[AlterShareGroupOffsetsRequestTopic(topic_name=name, partitions=p) for name, p in topics.items()],
    )

    def attempt(deadline: float) -> None:
        response = cluster.coordinator(group, deadline).call(request, AlterShareGroupOffsetsResponse, deadline)
        _check(response.error_code, group, response.error_message)
        for topic in response.responses:
            for partition in topic.partitions:
                raise_for(
                    partition.error_code, f"{topic.topic_name}-{partition.partition_index}", partition.error_message
                )

    cluster.retry(attempt)


def forget_share_topics(cluster: Cluster, group: str, topics: Collection[str]) -> dict[str, KafkaError | None]:
    """Delete the start offsets of topics; the group must have no members. The outcome of each topic."""
    request = DeleteShareGroupOffsetsRequest(
        group_id=group, topics=[DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in topics]
    )

    def attempt(deadline: float) -> dict[str, KafkaError | None]:
        response = cluster.coordinator(group, deadline).call(request, DeleteShareGroupOffsetsResponse, deadline)
        _check(response.error_code, group, response.error_message)
        return {
            result.topic_name: outcome_for(result.error_code, f"topic {result.topic_name!r}", result.error_message)
            for result in response.responses
        }

    return cluster.retry(attempt)


def _check(code: int, group: str, message: str | None) -> None:
    if code == ErrorCode.GROUP_ID_NOT_FOUND:
        raise no_such("share group", group, error_for(code, f"group {group!r}", message))
    raise_for(code, f"group {group!r}", message)
