"""StreamsGroupDescribe, and the endpoints in heartbeat responses (KIP-1071)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from barnabas.coord.groups.streams.target import ASSIGNOR
from barnabas.coord.groups.streams.tasks import Task, Tasks, by_subtopology, write_tasks
from barnabas.wire.messages.groups.streams_groups import (
    EndpointToPartitions,
    StreamsGroupDescribeResponseAssignment,
    StreamsGroupDescribeResponseDescribedGroup,
    StreamsGroupDescribeResponseEndpoint,
    StreamsGroupDescribeResponseKeyValue,
    StreamsGroupDescribeResponseMember,
    StreamsGroupDescribeResponseTaskIds,
    StreamsGroupDescribeResponseTaskOffset,
    StreamsGroupHeartbeatResponseEndpoint,
    StreamsGroupHeartbeatResponseTopicPartition,
)

if TYPE_CHECKING:
    from barnabas.coord.groups.streams.group import StreamsGroup
    from barnabas.coord.groups.streams.internal_topics import ConfiguredSubtopology
    from barnabas.coord.groups.streams.member import StreamsMember

NOT_STORED = 1
"""Status of a topology description that is not stored; in Kafka a plug-in stores it."""


def describe_group(group: StreamsGroup, *, wants_description: bool) -> StreamsGroupDescribeResponseDescribedGroup:
    """One group."""
    return StreamsGroupDescribeResponseDescribedGroup(
        group_id=group.group_id,
        group_state=str(group.state),
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        topology=None if group.topology is None else group.topology.describe(),
        members=[_member(group, member) for member in group.members.values()],
        topology_description_status=NOT_STORED if wants_description else 0,
        assignor_name=ASSIGNOR,
    )


def _member(group: StreamsGroup, member: StreamsMember) -> StreamsGroupDescribeResponseMember:
    offsets, ends = group.passing.offsets.get(member.member_id, ({}, {}))
    endpoint = member.user_endpoint
    return StreamsGroupDescribeResponseMember(
        member_id=member.member_id,
        member_epoch=member.epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None
        if endpoint is None
        else StreamsGroupDescribeResponseEndpoint(host=endpoint.host, port=endpoint.port),
        client_tags=[
            StreamsGroupDescribeResponseKeyValue(key=key, value=value)
            for key, value in sorted(member.client_tags.items())
        ],
        task_offsets=_offsets(offsets),
        task_end_offsets=_offsets(ends),
        assignment=_assignment(member.assigned.tasks),
        target_assignment=_assignment(group.target.get(member.member_id, Tasks())),
    )


def _offsets(offsets: Mapping[Task, int]) -> list[StreamsGroupDescribeResponseTaskOffset]:
    return [
        StreamsGroupDescribeResponseTaskOffset(subtopology_id=task.subtopology, partition=task.partition, offset=offset)
        for task, offset in sorted(offsets.items())
    ]


def _assignment(tasks: Tasks) -> StreamsGroupDescribeResponseAssignment:
    return StreamsGroupDescribeResponseAssignment(
        active_tasks=write_tasks(tasks.active, StreamsGroupDescribeResponseTaskIds),
        standby_tasks=write_tasks(tasks.standby, StreamsGroupDescribeResponseTaskIds),
        warmup_tasks=write_tasks(tasks.warmup, StreamsGroupDescribeResponseTaskIds),
    )


def endpoints(
    members: Iterable[StreamsMember], subtopologies: Mapping[str, ConfiguredSubtopology]
) -> list[EndpointToPartitions]:
    """The endpoint of each process, and the partitions of the topics that its tasks read."""
    return [
        EndpointToPartitions(
            user_endpoint=StreamsGroupHeartbeatResponseEndpoint(
                host=member.user_endpoint.host, port=member.user_endpoint.port
            ),
            active_partitions=_partitions(member.assigned.active, subtopologies),
            standby_partitions=_partitions(member.assigned.tasks.copies, subtopologies),
        )
        for member in members
        if member.user_endpoint is not None
    ]


def _partitions(
    tasks: Iterable[Task], subtopologies: Mapping[str, ConfiguredSubtopology]
) -> list[StreamsGroupHeartbeatResponseTopicPartition]:
    return [
        StreamsGroupHeartbeatResponseTopicPartition(topic=topic, partitions=read)
        for name, partitions in by_subtopology(tasks)
        if name in subtopologies
        for topic, count in sorted(subtopologies[name].topics.items())
        if (read := [partition for partition in partitions if partition < count])
    ]
