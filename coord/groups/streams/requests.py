"""Validates the fields of a StreamsGroupHeartbeat, independent of the group (KIP-1071).

Source: Kafka 4.4 `KafkaApis.handleStreamsGroupHeartbeat`,
`GroupCoordinatorService.throwIfStreamsGroupHeartbeatRequestIsInvalid` and its neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from barnabas.coord.groups.modern.members import JOIN_EPOCH, STATIC_LEAVE_EPOCH
from barnabas.coord.groups.streams.tasks import Tasks, read_tasks
from barnabas.coord.topic_names import INTERNAL_TOPICS, topic_name_error
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.coord.groups.streams.internal_topics import ConfiguredSubtopology
    from barnabas.wire.messages.groups.streams_groups import (
        StreamsGroupHeartbeatRequest,
        StreamsGroupHeartbeatRequestTopology,
    )


def check_heartbeat(request: StreamsGroupHeartbeatRequest) -> None:
    """KafkaError INVALID_REQUEST or STREAMS_INVALID_TOPOLOGY."""
    if request.topology is not None:
        _check_names(request.topology)
    if request.topology is not None and any(each.source_topic_regex for each in request.topology.subtopologies):
        raise _invalid("Regular expressions for source topics are not supported yet.")
    for name, text in (
        ("MemberId", request.member_id),
        ("GroupId", request.group_id),
        ("InstanceId", request.instance_id),
        ("RackId", request.rack_id),
    ):
        if text is not None and not text.strip():
            raise _invalid(f"{name} can't be empty.")
    _check_epoch(request)
    owned = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    if any(tasks is None for tasks in owned) and any(tasks is not None for tasks in owned):
        raise _invalid("If one task-type is non-null, all must be non-null.")


def _check_epoch(request: StreamsGroupHeartbeatRequest) -> None:
    epoch = request.member_epoch
    if epoch == JOIN_EPOCH:
        _check_join(request)
        return
    if epoch < STATIC_LEAVE_EPOCH:
        raise _invalid(f"MemberEpoch is {epoch}, but must be greater than or equal to -2.")
    if epoch == STATIC_LEAVE_EPOCH and request.instance_id is None:
        raise _invalid("InstanceId can't be null.")
    if request.topology is not None:
        raise _invalid("Topology can only be provided when (re-)joining.")


def _check_join(request: StreamsGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        raise _invalid("RebalanceTimeoutMs must be provided in first request.")
    for name in ("active", "standby", "warmup"):
        tasks = getattr(request, f"{name}_tasks")
        if tasks is None or tasks:
            raise _invalid(f"{name.capitalize()}Tasks must be empty when (re-)joining.")
    if request.topology is None:
        raise _invalid("Topology must be non-null when (re-)joining.")
    _check_topology(request.topology)


def _check_names(topology: StreamsGroupHeartbeatRequestTopology) -> None:
    """KafkaError for internal topics of the broker and invalid names."""
    names = sorted(
        {
            name
            for each in topology.subtopologies
            for name in [
                *each.source_topics,
                *each.repartition_sink_topics,
                *(info.name for info in each.repartition_source_topics),
                *(info.name for info in each.state_changelog_topics),
            ]
        }
    )
    prohibited = ",".join(name for name in names if name in INTERNAL_TOPICS)
    if prohibited:
        raise _unusable(f"Use of Kafka internal topics {prohibited} in a Kafka Streams topology is prohibited.")
    wrong = ",".join(name for name in names if topic_name_error(name) is not None)
    if wrong:
        raise _unusable(f"Topic names {wrong} are not valid topic names.")


def _check_topology(topology: StreamsGroupHeartbeatRequestTopology) -> None:
    """KafkaError for numbers and names that are invalid for any topics."""
    if len({each.subtopology_id for each in topology.subtopologies}) < len(topology.subtopologies):
        raise _unusable("Subtopologies must have different ids.")
    for each in topology.subtopologies:
        for info in each.state_changelog_topics:
            if info.partitions:
                raise _unusable(
                    f"Changelog topic {info.name} must have an undefined partition count, "
                    f"but it is set to {info.partitions}."
                )
        for info in each.repartition_source_topics:
            if info.partitions < 0:
                raise _unusable(f"Repartition topic {info.name} cannot have {info.partitions} partitions.")


def owned_tasks(request: StreamsGroupHeartbeatRequest) -> Tasks | None:
    """The tasks that the member lists as its own; None: no change."""
    if request.active_tasks is None:
        return None
    return Tasks(read_tasks(request.active_tasks), read_tasks(request.standby_tasks), read_tasks(request.warmup_tasks))


def check_owned(owned: Tasks, subtopologies: Mapping[str, ConfiguredSubtopology]) -> None:
    """KafkaError INVALID_REQUEST for a task that the topology does not have."""
    for task in sorted(owned.active | owned.copies):
        subtopology = subtopologies.get(task.subtopology)
        if subtopology is None:
            raise _invalid(f"Subtopology {task.subtopology} does not exist in the topology.")
        if not 0 <= task.partition < subtopology.task_count:
            raise _invalid(
                f"Task {task.partition} for subtopology {task.subtopology} is invalid. "
                f"Number of tasks for this subtopology: {subtopology.task_count}"
            )


def _unusable(message: str) -> KafkaError:
    return KafkaError(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
