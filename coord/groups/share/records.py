"""The records of share groups in `__consumer_offsets`, in Kafka's bytes (KIP-932); prefixes as in `groups.records`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.coord.groups.modern.partitions import Partitions, as_list
from barnabas.coord.groups.records import prefixed
from barnabas.coord.machine import CoordinatorRecord
from barnabas.wire.messages.coordinator_records import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupCurrentMemberAssignmentValueTopicPartitions,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMemberValueTopicPartition,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
)

if TYPE_CHECKING:
    from barnabas.coord.groups.share.member import ShareMember
    from barnabas.wire.schema import Message

MEMBER_METADATA = 10
METADATA = 11
TARGET_METADATA = 12
TARGET_MEMBER = 13
CURRENT_ASSIGNMENT = 14
STATE_PARTITIONS = 15

STABLE = 0
"""The only state of a share group's member: nothing has to be revoked."""

_VERSION = 0


def group_record(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    """The group's epoch, and the hash of the topics that it reads."""
    value = ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return _record(METADATA, ShareGroupMetadataKey(group_id=group_id), value)


def member_record(group_id: str, member: ShareMember) -> CoordinatorRecord:
    """Who the member is and what it subscribes to."""
    value = ShareGroupMemberMetadataValue(
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed),
    )
    return _record(MEMBER_METADATA, ShareGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), value)


def target_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    """The epoch of the target assignment, and when it was computed."""
    value = ShareGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp_ms)
    return _record(TARGET_METADATA, ShareGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def target_record(group_id: str, member_id: str, partitions: Partitions) -> CoordinatorRecord:
    """What a member shall have."""
    listed = as_list(partitions, ShareGroupTargetAssignmentMemberValueTopicPartition)
    value = ShareGroupTargetAssignmentMemberValue(topic_partitions=listed)
    return _record(TARGET_MEMBER, ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value)


def assignment_record(group_id: str, member: ShareMember) -> CoordinatorRecord:
    """What a member has, and since which epoch."""
    value = ShareGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=STABLE,
        assigned_partitions=as_list(member.assigned, ShareGroupCurrentMemberAssignmentValueTopicPartitions),
    )
    key = ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id)
    return _record(CURRENT_ASSIGNMENT, key, value)


def state_partitions_record(group_id: str, value: ShareGroupStatePartitionMetadataValue) -> CoordinatorRecord:
    """Of which partitions the share coordinator keeps state for the group."""
    return _record(STATE_PARTITIONS, ShareGroupStatePartitionMetadataKey(group_id=group_id), value)


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """The records that remove a member."""
    return [
        _record(CURRENT_ASSIGNMENT, ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None),
        _record(TARGET_MEMBER, ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None),
        _record(MEMBER_METADATA, ShareGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None),
    ]


def group_tombstones(group_id: str) -> list[CoordinatorRecord]:
    """The records that remove a group without members."""
    return [
        _record(TARGET_METADATA, ShareGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        _record(STATE_PARTITIONS, ShareGroupStatePartitionMetadataKey(group_id=group_id), None),
        _record(METADATA, ShareGroupMetadataKey(group_id=group_id), None),
    ]


def _record(record_type: int, key: Message, value: Message | None) -> CoordinatorRecord:
    return CoordinatorRecord(
        prefixed(record_type, key, _VERSION), None if value is None else prefixed(_VERSION, value, _VERSION)
    )
