"""Streams groups in detail: the topology, and the tasks of each member (KIP-1071).

Errors: `KafkaError` from the broker, `NotFound`, `TimedOut`, `Unreachable`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.client.cluster import Cluster
from barnabas.client.errors import error_for, no_such, raise_for
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.groups.streams_groups import (
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    StreamsGroupDescribeResponseTaskIds,
    StreamsGroupDescribeResponseTaskOffset,
)


class Subtopology(NamedTuple):
    """A part of the topology whose tasks run independently of the others'."""

    subtopology_id: str
    source_topics: list[str]
    repartition_sinks: list[str]
    repartition_sources: list[str]
    changelogs: list[str]


class StreamsMember(NamedTuple):
    """The tasks of a member, as `SUBTOPOLOGY_PARTITION`."""

    member_id: str
    process_id: str
    active: list[str]
    standby: list[str]
    warmup: list[str]
    behind: int | None
    """How many changelog offsets its tasks have to restore; None if it does not report them."""


class StreamsDetails(NamedTuple):
    """A streams group beyond its state and members."""

    topology_epoch: int
    subtopologies: list[Subtopology]
    members: list[StreamsMember]


def describe_streams(cluster: Cluster, group: str) -> StreamsDetails:
    """The topology and the tasks of a streams group; without subtopologies while no member has sent a topology."""

    def attempt(deadline: float) -> StreamsDetails:
        node = cluster.coordinator(group, deadline)
        response = node.call(StreamsGroupDescribeRequest(group_ids=[group]), StreamsGroupDescribeResponse, deadline)
        (described,) = response.groups
        if described.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
            raise no_such("group", group, error_for(described.error_code, f"group {group!r}", described.error_message))
        raise_for(described.error_code, f"group {group!r}", described.error_message)
        topology = described.topology
        subtopologies = [
            Subtopology(
                part.subtopology_id,
                list(part.source_topics),
                list(part.repartition_sink_topics),
                [topic.name for topic in part.repartition_source_topics],
                [topic.name for topic in part.state_changelog_topics],
            )
            for part in (topology.subtopologies or () if topology is not None else ())
        ]
        members = [
            StreamsMember(
                member.member_id,
                member.process_id,
                _tasks(member.assignment.active_tasks),
                _tasks(member.assignment.standby_tasks),
                _tasks(member.assignment.warmup_tasks),
                _behind(member.task_offsets, member.task_end_offsets),
            )
            for member in described.members
        ]
        return StreamsDetails(-1 if topology is None else topology.epoch, subtopologies, members)

    return cluster.retry(attempt)


def _tasks(ids: Sequence[StreamsGroupDescribeResponseTaskIds]) -> list[str]:
    return [f"{each.subtopology_id}_{partition}" for each in ids for partition in sorted(each.partitions)]


def _behind(
    offsets: Sequence[StreamsGroupDescribeResponseTaskOffset], ends: Sequence[StreamsGroupDescribeResponseTaskOffset]
) -> int | None:
    """The sum over the tasks that report both offsets."""
    reached = {(task.subtopology_id, task.partition): task.offset for task in offsets}
    both = [
        max(0, end.offset - reached[end.subtopology_id, end.partition])
        for end in ends
        if (end.subtopology_id, end.partition) in reached
    ]
    return sum(both) if both else None
