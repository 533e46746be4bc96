"""Applies the records of share groups; the only place where their durable state changes (KIP-932)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.coord.groups.modern.partitions import as_partitions
from barnabas.coord.groups.share import records
from barnabas.coord.groups.share.group import ShareGroup
from barnabas.coord.groups.share.member import ShareMember
from barnabas.coord.groups.share.state_partitions import StatePartitions

if TYPE_CHECKING:
    from collections.abc import Callable

    from barnabas.coord.groups.group import Group
    from barnabas.wire.messages.records import coordinator_records as r


def replay(groups: dict[str, Group], record_type: int, key: bytes, value: bytes | None) -> None:
    """Apply one record to the groups. Raises ProtocolError for bytes that do not match its type.

    Any record may be the first of its group, also when an old log has a classic group of this id. The tombstone of the
    group's epoch removes the group.
    """
    group_id, member_id = records.TYPES.read_key(record_type, key)
    group = groups.get(group_id)
    if not isinstance(group, ShareGroup):
        if value is None:
            return
        group = groups[group_id] = ShareGroup(group_id)
    if value is not None:
        _PUT[record_type](group, member_id, records.TYPES.read_value(record_type, value))
    elif record_type == records.METADATA:
        del groups[group_id]
    else:
        _REMOVE[record_type](group, member_id)


def _put_group(group: ShareGroup, _: str, value: r.ShareGroupMetadataValue) -> None:
    group.epoch, group.metadata_hash = value.epoch, value.metadata_hash
    group.is_stale = False


def _put_member(group: ShareGroup, member_id: str, value: r.ShareGroupMemberMetadataValue) -> None:
    member = group.members.get(member_id) or ShareMember(member_id)
    group.members[member_id] = member._replace(
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        subscribed=frozenset(value.subscribed_topic_names),
    )


def _put_target_epoch(group: ShareGroup, _: str, value: r.ShareGroupTargetAssignmentMetadataValue) -> None:
    group.target_epoch, group.target_timestamp_ms = value.assignment_epoch, value.assignment_timestamp


def _put_target(group: ShareGroup, member_id: str, value: r.ShareGroupTargetAssignmentMemberValue) -> None:
    group.target[member_id] = as_partitions(value.topic_partitions)


def _put_assignment(group: ShareGroup, member_id: str, value: r.ShareGroupCurrentMemberAssignmentValue) -> None:
    member = group.members.get(member_id) or ShareMember(member_id)
    group.members[member_id] = member._replace(
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        assigned=as_partitions(value.assigned_partitions),
    )


def _put_state_partitions(group: ShareGroup, _: str, value: r.ShareGroupStatePartitionMetadataValue) -> None:
    group.state_partitions = StatePartitions(
        as_partitions(value.initializing_topics),
        as_partitions(value.initialized_topics),
        frozenset(topic.topic_id for topic in value.deleting_topics),
    )


def _remove_member(group: ShareGroup, member_id: str) -> None:
    group.members.pop(member_id, None)


def _remove_target_epoch(group: ShareGroup, _: str) -> None:
    group.target_epoch, group.target_timestamp_ms = 0, 0


def _remove_target(group: ShareGroup, member_id: str) -> None:
    group.target.pop(member_id, None)


def _remove_assignment(group: ShareGroup, member_id: str) -> None:
    member = group.members.get(member_id)
    if member is not None:  # its own tombstone follows
        group.members[member_id] = member._replace(epoch=-1, previous_epoch=-1, assigned={})


def _remove_state_partitions(group: ShareGroup, _: str) -> None:
    group.state_partitions = StatePartitions()


_PUT: dict[int, Callable[[ShareGroup, str, Any], None]] = {
    records.METADATA: _put_group,
    records.MEMBER_METADATA: _put_member,
    records.TARGET_METADATA: _put_target_epoch,
    records.TARGET_MEMBER: _put_target,
    records.CURRENT_ASSIGNMENT: _put_assignment,
    records.STATE_PARTITIONS: _put_state_partitions,
}

_REMOVE: dict[int, Callable[[ShareGroup, str], None]] = {
    records.MEMBER_METADATA: _remove_member,
    records.TARGET_METADATA: _remove_target_epoch,
    records.TARGET_MEMBER: _remove_target,
    records.CURRENT_ASSIGNMENT: _remove_assignment,
    records.STATE_PARTITIONS: _remove_state_partitions,
}
