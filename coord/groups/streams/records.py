"""The records of streams groups, to and from Kafka's bytes (KIP-1071; record types 17 and 19 to 23).

A key is (group id) or (group id, member id), always of version 0. Records of type 18, by releases before 4.1, are
ignored. Source: Kafka 4.4 `StreamsCoordinatorRecordHelpers`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from barnabas.coord.groups.modern.members import LEAVE_EPOCH
from barnabas.coord.groups.modern.records import RecordTypes
from barnabas.coord.groups.modern.states import MemberState, StateCodes
from barnabas.coord.groups.streams.member import Endpoint, StreamsMember
from barnabas.coord.groups.streams.tasks import (
    HeldTasks,
    Task,
    Tasks,
    by_subtopology,
    read_tasks,
    write_epochs,
    write_tasks,
)
from barnabas.wire.messages.records import coordinator_records as r

if TYPE_CHECKING:
    from barnabas.coord.groups.streams.topology import Topology
    from barnabas.coord.machine import CoordinatorRecord

GROUP_METADATA = 17
MEMBER_METADATA = 19
TARGET_ASSIGNMENT_METADATA = 20
TARGET_ASSIGNMENT_MEMBER = 21
CURRENT_ASSIGNMENT = 22
TOPOLOGY = 23

TYPES = RecordTypes(
    {
        GROUP_METADATA: (r.StreamsGroupMetadataKey, r.StreamsGroupMetadataValue),
        MEMBER_METADATA: (r.StreamsGroupMemberMetadataKey, r.StreamsGroupMemberMetadataValue),
        TARGET_ASSIGNMENT_METADATA: (
            r.StreamsGroupTargetAssignmentMetadataKey,
            r.StreamsGroupTargetAssignmentMetadataValue,
        ),
        TARGET_ASSIGNMENT_MEMBER: (
            r.StreamsGroupTargetAssignmentMemberKey,
            r.StreamsGroupTargetAssignmentMemberValue,
        ),
        CURRENT_ASSIGNMENT: (
            r.StreamsGroupCurrentMemberAssignmentKey,
            r.StreamsGroupCurrentMemberAssignmentValue,
        ),
        TOPOLOGY: (r.StreamsGroupTopologyKey, r.StreamsGroupTopologyValue),
    }
)
STATES = StateCodes(stable=1, unrevoked=2, unreleased=3)

_Held = r.StreamsGroupCurrentMemberAssignmentValueTaskIds
_Target = r.StreamsGroupTargetAssignmentMemberValueTaskIds


# ---- reading


def new_member(member_id: str) -> StreamsMember:
    """A member of which only the id is known."""
    return StreamsMember(member_id)


def read_configs(value: r.StreamsGroupMetadataValue) -> dict[str, str]:
    """The configs of the last assignment."""
    return {config.key: config.value for config in value.last_assignment_configs or ()}


def with_metadata(member: StreamsMember, value: r.StreamsGroupMemberMetadataValue) -> StreamsMember:
    """The member with the metadata of this record."""
    endpoint = value.user_endpoint
    return member._replace(
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        topology_epoch=value.topology_epoch,
        process_id=value.process_id,
        user_endpoint=None if endpoint is None else Endpoint(endpoint.host, endpoint.port),
        client_tags={tag.key: tag.value for tag in value.client_tags},
    )


def with_assignment(member: StreamsMember, value: r.StreamsGroupCurrentMemberAssignmentValue) -> StreamsMember:
    """The member with the assignment of this record."""
    return member._replace(
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=STATES.state(value.state),
        assigned=HeldTasks(
            _read_epochs(value.active_tasks, value.member_epoch),
            read_tasks(value.standby_tasks),
            read_tasks(value.warmup_tasks),
        ),
        revoking=HeldTasks(
            _read_epochs(value.active_tasks_pending_revocation, value.member_epoch),
            read_tasks(value.standby_tasks_pending_revocation),
            read_tasks(value.warmup_tasks_pending_revocation),
        ),
    )


def without_assignment(member: StreamsMember) -> StreamsMember:
    """The member after the tombstone of its assignment."""
    return member._replace(
        epoch=LEAVE_EPOCH,
        previous_epoch=LEAVE_EPOCH,
        state=MemberState.STABLE,
        assigned=HeldTasks(),
        revoking=HeldTasks(),
    )


def _read_epochs(lists: Iterable[_Held], member_epoch: int) -> dict[Task, int]:
    """Records of early releases have no assignment epochs: all are the member epoch then."""
    tasks: dict[Task, int] = {}
    for each in lists:
        epochs = each.assignment_epochs or [member_epoch] * len(each.partitions)
        tasks.update(
            (Task(each.subtopology_id, partition), epoch)
            for partition, epoch in zip(each.partitions, epochs, strict=False)
        )
    return tasks


def read_target(value: r.StreamsGroupTargetAssignmentMemberValue) -> Tasks:
    """The target assignment of a member."""
    return Tasks(read_tasks(value.active_tasks), read_tasks(value.standby_tasks), read_tasks(value.warmup_tasks))


# ---- writing


def group_epoch(
    group_id: str, epoch: int, metadata_hash: int, validated_topology_epoch: int, configs: Mapping[str, str]
) -> CoordinatorRecord:
    """The group epoch, with the metadata hash, the epoch of the topology that was ready (-1: none) and the configs."""
    value = r.StreamsGroupMetadataValue(
        epoch=epoch,
        metadata_hash=metadata_hash,
        validated_topology_epoch=validated_topology_epoch,
        last_assignment_configs=[r.LastAssignmentConfig(key=k, value=v) for k, v in sorted(configs.items())],
    )
    return TYPES.record(GROUP_METADATA, value, group_id=group_id)


def topology(group_id: str, value: Topology) -> CoordinatorRecord:
    """The topology of the group."""
    return TYPES.record(TOPOLOGY, value.value, group_id=group_id)


def member_metadata(group_id: str, member: StreamsMember) -> CoordinatorRecord:
    """The metadata of a member."""
    endpoint = member.user_endpoint
    value = r.StreamsGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None
        if endpoint is None
        else r.StreamsGroupMemberMetadataValueEndpoint(host=endpoint.host, port=endpoint.port),
        client_tags=[
            r.StreamsGroupMemberMetadataValueKeyValue(key=k, value=v) for k, v in sorted(member.client_tags.items())
        ],
    )
    return TYPES.record(MEMBER_METADATA, value, group_id=group_id, member_id=member.member_id)


def target_epoch(group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    """All target assignments of this epoch are written. With timestamp 0 the next one is not delayed."""
    value = r.StreamsGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp_ms)
    return TYPES.record(TARGET_ASSIGNMENT_METADATA, value, group_id=group_id)


def target_assignment(group_id: str, member_id: str, tasks: Tasks) -> CoordinatorRecord:
    """The target assignment of a member."""
    value = r.StreamsGroupTargetAssignmentMemberValue(
        active_tasks=write_tasks(tasks.active, _Target),
        standby_tasks=write_tasks(tasks.standby, _Target),
        warmup_tasks=write_tasks(tasks.warmup, _Target),
    )
    return TYPES.record(TARGET_ASSIGNMENT_MEMBER, value, group_id=group_id, member_id=member_id)


def current_assignment(group_id: str, member: StreamsMember) -> CoordinatorRecord:
    """The assignment of a member, and its state."""
    value = r.StreamsGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=STATES.code(member.state),
        active_tasks=_write_active(member.assigned.active),
        standby_tasks=write_tasks(member.assigned.standby, _Held),
        warmup_tasks=write_tasks(member.assigned.warmup, _Held),
        active_tasks_pending_revocation=_write_active(member.revoking.active),
        standby_tasks_pending_revocation=write_tasks(member.revoking.standby, _Held),
        warmup_tasks_pending_revocation=write_tasks(member.revoking.warmup, _Held),
    )
    return TYPES.record(CURRENT_ASSIGNMENT, value, group_id=group_id, member_id=member.member_id)


def _write_active(tasks: Mapping[Task, int]) -> list[_Held]:
    return [
        _Held(subtopology_id=name, partitions=partitions, assignment_epochs=write_epochs(tasks, name, partitions))
        for name, partitions in by_subtopology(tasks)
    ]


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """The records that remove a member."""
    types = (CURRENT_ASSIGNMENT, TARGET_ASSIGNMENT_MEMBER, MEMBER_METADATA)
    return TYPES.tombstones(types, group_id=group_id, member_id=member_id)


def group_tombstones(group_id: str) -> list[CoordinatorRecord]:
    """The records that remove a group without members."""
    return TYPES.tombstones((TARGET_ASSIGNMENT_METADATA, TOPOLOGY, GROUP_METADATA), group_id=group_id)
