"""The records of share groups in `__consumer_offsets`, to and from Kafka's bytes (KIP-932; record types 10 to 15).

Source: Kafka 4.4 `GroupCoordinatorRecordHelpers`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.coord.groups.modern.partitions import Partitions, as_list
from barnabas.coord.groups.modern.records import RecordTypes
from barnabas.wire.messages.records import coordinator_records as r

if TYPE_CHECKING:
    from barnabas.coord.groups.share.member import ShareMember
    from barnabas.coord.machine import CoordinatorRecord

MEMBER_METADATA = 10
METADATA = 11
TARGET_METADATA = 12
TARGET_MEMBER = 13
CURRENT_ASSIGNMENT = 14
STATE_PARTITIONS = 15

TYPES = RecordTypes(
    {
        MEMBER_METADATA: (r.ShareGroupMemberMetadataKey, r.ShareGroupMemberMetadataValue),
        METADATA: (r.ShareGroupMetadataKey, r.ShareGroupMetadataValue),
        TARGET_METADATA: (r.ShareGroupTargetAssignmentMetadataKey, r.ShareGroupTargetAssignmentMetadataValue),
        TARGET_MEMBER: (r.ShareGroupTargetAssignmentMemberKey, r.ShareGroupTargetAssignmentMemberValue),
        CURRENT_ASSIGNMENT: (r.ShareGroupCurrentMemberAssignmentKey, r.ShareGroupCurrentMemberAssignmentValue),
        STATE_PARTITIONS: (r.ShareGroupStatePartitionMetadataKey, r.ShareGroupStatePartitionMetadataValue),
    }
)

STABLE = 0
"""The only state of a share group's member: nothing has to be revoked."""


def group_record(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    """The group's epoch, and the hash of the topics that it reads."""
    return TYPES.record(
        METADATA, r.ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash), group_id=group_id
    )


def member_record(group_id: str, member: ShareMember) -> CoordinatorRecord:
    """The record with the member's identity and subscription."""
    value = r.ShareGroupMemberMetadataValue(
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed),
    )
    return TYPES.record(MEMBER_METADATA, value, group_id=group_id, member_id=member.member_id)


def target_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    """The epoch of the target assignment, and when it was computed."""
    value = r.ShareGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp_ms)
    return TYPES.record(TARGET_METADATA, value, group_id=group_id)


def target_record(group_id: str, member_id: str, partitions: Partitions) -> CoordinatorRecord:
    """The target assignment of a member."""
    listed = as_list(partitions, r.ShareGroupTargetAssignmentMemberValueTopicPartition)
    value = r.ShareGroupTargetAssignmentMemberValue(topic_partitions=listed)
    return TYPES.record(TARGET_MEMBER, value, group_id=group_id, member_id=member_id)


def assignment_record(group_id: str, member: ShareMember) -> CoordinatorRecord:
    """The assignment of a member, and its epoch."""
    value = r.ShareGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=STABLE,
        assigned_partitions=as_list(member.assigned, r.ShareGroupCurrentMemberAssignmentValueTopicPartitions),
    )
    return TYPES.record(CURRENT_ASSIGNMENT, value, group_id=group_id, member_id=member.member_id)


def state_partitions_record(group_id: str, value: r.ShareGroupStatePartitionMetadataValue) -> CoordinatorRecord:
    """The partitions that the share coordinator keeps state of for the group."""
    return TYPES.record(STATE_PARTITIONS, value, group_id=group_id)


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """The records that remove a member."""
    types = (CURRENT_ASSIGNMENT, TARGET_MEMBER, MEMBER_METADATA)
    return TYPES.tombstones(types, group_id=group_id, member_id=member_id)


def group_tombstones(group_id: str) -> list[CoordinatorRecord]:
    """The records that remove a group without members."""
    return TYPES.tombstones((TARGET_METADATA, STATE_PARTITIONS, METADATA), group_id=group_id)
