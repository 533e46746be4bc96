"""What each kind of record says of a streams group (KIP-1071): the one place where its durable state changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from barnabas.coord.groups.modern.group import FIRST_EPOCH
from barnabas.coord.groups.modern.members import LEAVE_EPOCH
from barnabas.coord.groups.streams import records
from barnabas.coord.groups.streams.group import StreamsGroup
from barnabas.coord.groups.streams.member import StreamsMember
from barnabas.coord.groups.streams.states import MemberState
from barnabas.coord.groups.streams.tasks import HeldTasks
from barnabas.coord.groups.streams.topology import Topology
from barnabas.wire.messages import coordinator_records as r


def _put_epoch(group: StreamsGroup, _: str, value: r.StreamsGroupMetadataValue) -> None:
    group.epoch = value.epoch
    group.metadata_hash = value.metadata_hash
    group.validated_topology_epoch = value.validated_topology_epoch
    group.assignment_configs = records.read_configs(value)


def _put_topology(group: StreamsGroup, _: str, value: r.StreamsGroupTopologyValue) -> None:
    group.topology = Topology(value)


def _put_member(group: StreamsGroup, member_id: str, value: r.StreamsGroupMemberMetadataValue) -> None:
    known = group.members.get(member_id) or StreamsMember(member_id)
    group.put_member(records.with_metadata(known, value))


def _put_target_epoch(group: StreamsGroup, _: str, value: r.StreamsGroupTargetAssignmentMetadataValue) -> None:
    group.assignment_epoch = value.assignment_epoch
    group.assignment_timestamp_ms = value.assignment_timestamp


def _put_target(group: StreamsGroup, member_id: str, value: r.StreamsGroupTargetAssignmentMemberValue) -> None:
    group.target[member_id] = records.read_target(value)


def _put_current(group: StreamsGroup, member_id: str, value: r.StreamsGroupCurrentMemberAssignmentValue) -> None:
    known = group.members.get(member_id) or StreamsMember(member_id)
    group.put_member(records.with_assignment(known, value))


_PUT = cast(
    "dict[int, Callable[[StreamsGroup, str, object], None]]",
    {
        records.GROUP_METADATA: _put_epoch,
        records.TOPOLOGY: _put_topology,
        records.MEMBER_METADATA: _put_member,
        records.TARGET_ASSIGNMENT_METADATA: _put_target_epoch,
        records.TARGET_ASSIGNMENT_MEMBER: _put_target,
        records.CURRENT_ASSIGNMENT: _put_current,
    },
)


def put(group: StreamsGroup, record_type: int, about: str, value: bytes) -> None:
    """A record is in the log; `about` is the member that its key names. ProtocolError when it cannot be read."""
    _PUT[record_type](group, about, records.read_value(record_type, value))


def remove(group: StreamsGroup, record_type: int, about: str) -> None:
    """The tombstone of any record but the group's own is in the log."""
    if record_type == records.MEMBER_METADATA:
        group.remove_member(about)
    elif record_type == records.CURRENT_ASSIGNMENT:
        member = group.members.get(about)
        if member is not None:
            group.put_member(
                member._replace(
                    epoch=LEAVE_EPOCH,
                    previous_epoch=LEAVE_EPOCH,
                    state=MemberState.STABLE,
                    assigned=HeldTasks(),
                    revoking=HeldTasks(),
                )
            )
    elif record_type == records.TARGET_ASSIGNMENT_MEMBER:
        group.target.pop(about, None)
    elif record_type == records.TARGET_ASSIGNMENT_METADATA:
        group.assignment_epoch = FIRST_EPOCH
    else:
        group.topology = None
