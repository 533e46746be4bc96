"""What each record of a share group changes; the only place where a group's lasting state does (KIP-932)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.coord.groups.modern.partitions import as_partitions
from barnabas.coord.groups.share import records
from barnabas.coord.groups.share.group import ShareGroup
from barnabas.coord.groups.share.member import ShareMember
from barnabas.coord.groups.share.state_partitions import StatePartitions
from barnabas.wire.messages.coordinator_records import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from barnabas.coord.groups.group import Group


def replay(groups: dict[str, Group], record_type: int, key: bytes, value: bytes | None) -> None:
    """Take over one record. ProtocolError when its bytes are not those of its type.

    A group begins with whatever record of it comes first, and ends with the tombstone of its epoch.
    """
    body = None if value is None else (value[2:], int.from_bytes(value[:2], "big"))
    _REPLAYS[record_type](groups, key, body)


Body = tuple[bytes, int]
"""A value's bytes behind its version, and the version."""


def _group(groups: dict[str, Group], group_id: str, body: Body | None) -> ShareGroup | None:
    """The group, made for a record that says something of it; a classic group in an old log gives way."""
    group = groups.get(group_id)
    if isinstance(group, ShareGroup):
        return group
    if body is None:
        return None
    made = groups[group_id] = ShareGroup(group_id)
    return made


def _replay_group(groups: dict[str, Group], key: bytes, body: Body | None) -> None:
    group_id = ShareGroupMetadataKey.decode(key, 0).group_id
    group = _group(groups, group_id, body)
    if group is None:
        return
    if body is None:
        del groups[group_id]
        return
    value = ShareGroupMetadataValue.decode(*body)
    group.epoch, group.metadata_hash = value.epoch, value.metadata_hash
    group.is_stale = False


def _replay_member(groups: dict[str, Group], key: bytes, body: Body | None) -> None:
    about = ShareGroupMemberMetadataKey.decode(key, 0)
    group = _group(groups, about.group_id, body)
    if group is None:
        return
    if body is None:
        group.members.pop(about.member_id, None)
        return
    value = ShareGroupMemberMetadataValue.decode(*body)
    member = group.members.get(about.member_id) or ShareMember(about.member_id)
    group.members[about.member_id] = member._replace(
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        subscribed=frozenset(value.subscribed_topic_names),
    )


def _replay_target_epoch(groups: dict[str, Group], key: bytes, body: Body | None) -> None:
    group = _group(groups, ShareGroupTargetAssignmentMetadataKey.decode(key, 0).group_id, body)
    if group is None:
        return
    value = ShareGroupTargetAssignmentMetadataValue() if body is None else _target_epoch(body)
    group.target_epoch, group.target_timestamp_ms = value.assignment_epoch, value.assignment_timestamp


def _target_epoch(body: Body) -> ShareGroupTargetAssignmentMetadataValue:
    return ShareGroupTargetAssignmentMetadataValue.decode(*body)


def _replay_target(groups: dict[str, Group], key: bytes, body: Body | None) -> None:
    about = ShareGroupTargetAssignmentMemberKey.decode(key, 0)
    group = _group(groups, about.group_id, body)
    if group is None:
        return
    if body is None:
        group.target.pop(about.member_id, None)
    else:
        value = ShareGroupTargetAssignmentMemberValue.decode(*body)
        group.target[about.member_id] = as_partitions(value.topic_partitions)


def _replay_assignment(groups: dict[str, Group], key: bytes, body: Body | None) -> None:
    about = ShareGroupCurrentMemberAssignmentKey.decode(key, 0)
    group = _group(groups, about.group_id, body)
    if group is None:
        return
    member = group.members.get(about.member_id)
    if body is None:
        if member is not None:  # its own tombstone follows
            group.members[about.member_id] = member._replace(epoch=-1, previous_epoch=-1, assigned={})
        return
    value = ShareGroupCurrentMemberAssignmentValue.decode(*body)
    group.members[about.member_id] = (member or ShareMember(about.member_id))._replace(
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        assigned=as_partitions(value.assigned_partitions),
    )


def _replay_state_partitions(groups: dict[str, Group], key: bytes, body: Body | None) -> None:
    group = _group(groups, ShareGroupStatePartitionMetadataKey.decode(key, 0).group_id, body)
    if group is None:
        return
    if body is None:
        group.state_partitions = StatePartitions()
        return
    value = ShareGroupStatePartitionMetadataValue.decode(*body)
    group.state_partitions = StatePartitions(
        as_partitions(value.initializing_topics),
        as_partitions(value.initialized_topics),
        frozenset(topic.topic_id for topic in value.deleting_topics),
    )


_REPLAYS: dict[int, Callable[[dict[str, Group], bytes, Body | None], None]] = {
    records.METADATA: _replay_group,
    records.MEMBER_METADATA: _replay_member,
    records.TARGET_METADATA: _replay_target_epoch,
    records.TARGET_MEMBER: _replay_target,
    records.CURRENT_ASSIGNMENT: _replay_assignment,
    records.STATE_PARTITIONS: _replay_state_partitions,
}
