"""The records of consumer groups, to and from Kafka's bytes (KIP-848; record types 3 to 8 and 16).

A key is (group id) or (group id, member id or regular expression), always of version 0. Older releases
wrote records of type 4 for the topics; here they are only removed. Source: Kafka 4.4 `GroupCoordinatorRecordHelpers`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from barnabas.coord.groups.consumer.member import ConsumerMember, OwnedPartitions
from barnabas.coord.groups.modern.members import LEAVE_EPOCH
from barnabas.coord.groups.modern.partitions import Partitions, as_list, as_partitions
from barnabas.coord.groups.modern.records import RecordTypes
from barnabas.coord.groups.modern.states import MemberState, StateCodes
from barnabas.wire.messages.records import coordinator_records as r

if TYPE_CHECKING:
    from barnabas.coord.machine import CoordinatorRecord

GROUP_METADATA = 3
PARTITION_METADATA = 4
MEMBER_METADATA = 5
TARGET_ASSIGNMENT_METADATA = 6
TARGET_ASSIGNMENT_MEMBER = 7
CURRENT_ASSIGNMENT = 8
REGULAR_EXPRESSION = 16

TYPES = RecordTypes(
    {
        GROUP_METADATA: (r.ConsumerGroupMetadataKey, r.ConsumerGroupMetadataValue),
        PARTITION_METADATA: (r.ConsumerGroupPartitionMetadataKey, r.ConsumerGroupPartitionMetadataValue),
        MEMBER_METADATA: (r.ConsumerGroupMemberMetadataKey, r.ConsumerGroupMemberMetadataValue),
        TARGET_ASSIGNMENT_METADATA: (
            r.ConsumerGroupTargetAssignmentMetadataKey,
            r.ConsumerGroupTargetAssignmentMetadataValue,
        ),
        TARGET_ASSIGNMENT_MEMBER: (
            r.ConsumerGroupTargetAssignmentMemberKey,
            r.ConsumerGroupTargetAssignmentMemberValue,
        ),
        CURRENT_ASSIGNMENT: (
            r.ConsumerGroupCurrentMemberAssignmentKey,
            r.ConsumerGroupCurrentMemberAssignmentValue,
        ),
        REGULAR_EXPRESSION: (r.ConsumerGroupRegularExpressionKey, r.ConsumerGroupRegularExpressionValue),
    }
)
STATES = StateCodes(stable=0, unrevoked=1, unreleased=2)

_Owned = r.ConsumerGroupCurrentMemberAssignmentValueTopicPartitions


class ResolvedRegex(NamedTuple):
    """The topics that a regular expression has matched."""

    topics: frozenset[str]
    version: int = 0
    """Offset of the metadata log at which it was resolved."""
    timestamp_ms: int = -1


# ---- reading


def new_member(member_id: str) -> ConsumerMember:
    """A member of which only the id is known."""
    return ConsumerMember(member_id)


def with_metadata(member: ConsumerMember, value: r.ConsumerGroupMemberMetadataValue) -> ConsumerMember:
    """The member with the metadata of this record."""
    return member._replace(
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        subscribed_topics=frozenset(value.subscribed_topic_names),
        subscribed_regex=value.subscribed_topic_regex,
        assignor=value.server_assignor,
        classic=value.classic_member_metadata,
    )


def with_assignment(member: ConsumerMember, value: r.ConsumerGroupCurrentMemberAssignmentValue) -> ConsumerMember:
    """The member with the assignment of this record."""
    return member._replace(
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=STATES.state(value.state),
        assigned=_owned(value.assigned_partitions, value.member_epoch),
        revoking=_owned(value.partitions_pending_revocation, value.member_epoch),
    )


def without_assignment(member: ConsumerMember) -> ConsumerMember:
    """The member after the tombstone of its assignment."""
    return member._replace(
        epoch=LEAVE_EPOCH, previous_epoch=LEAVE_EPOCH, state=MemberState.STABLE, assigned={}, revoking={}
    )


def _owned(entries: list[_Owned], member_epoch: int) -> OwnedPartitions:
    """Records before KIP-1251 have no assignment epochs: all are the member epoch then."""
    owned: OwnedPartitions = {}
    for entry in entries:
        epochs = entry.assignment_epochs or [member_epoch] * len(entry.partitions)
        owned.setdefault(entry.topic_id, {}).update(zip(entry.partitions, epochs, strict=True))
    return {topic_id: partitions for topic_id, partitions in owned.items() if partitions}


def read_target(value: r.ConsumerGroupTargetAssignmentMemberValue) -> Partitions:
    """The target assignment of this record."""
    return as_partitions(value.topic_partitions)


# ---- writing


def group_epoch(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    """The group epoch, and the metadata hash of the group's topics."""
    value = r.ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return TYPES.record(GROUP_METADATA, value, group_id=group_id)


def member_metadata(group_id: str, member: ConsumerMember) -> CoordinatorRecord:
    """The metadata of a member."""
    value = r.ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topics),
        subscribed_topic_regex=member.subscribed_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.assignor,
        classic_member_metadata=member.classic,
    )
    return TYPES.record(MEMBER_METADATA, value, group_id=group_id, member_id=member.member_id)


def target_epoch(group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    """All target assignments of this epoch are written. With timestamp 0 the next one is not delayed."""
    value = r.ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp_ms)
    return TYPES.record(TARGET_ASSIGNMENT_METADATA, value, group_id=group_id)


def target_assignment(group_id: str, member_id: str, partitions: Partitions) -> CoordinatorRecord:
    """The target assignment of a member."""
    entries = as_list(partitions, r.ConsumerGroupTargetAssignmentMemberValueTopicPartition)
    value = r.ConsumerGroupTargetAssignmentMemberValue(topic_partitions=entries)
    return TYPES.record(TARGET_ASSIGNMENT_MEMBER, value, group_id=group_id, member_id=member_id)


def current_assignment(group_id: str, member: ConsumerMember) -> CoordinatorRecord:
    """The assignment of a member, and its state."""
    value = r.ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=STATES.code(member.state),
        assigned_partitions=_entries(member.assigned),
        partitions_pending_revocation=_entries(member.revoking),
    )
    return TYPES.record(CURRENT_ASSIGNMENT, value, group_id=group_id, member_id=member.member_id)


def _entries(owned: OwnedPartitions) -> list[_Owned]:
    entries = []
    for topic_id, epochs in owned.items():
        indexes = sorted(epochs)
        entries.append(
            _Owned(topic_id=topic_id, partitions=indexes, assignment_epochs=[epochs[index] for index in indexes])
        )
    return entries


def regular_expression(group_id: str, regex: str, resolved: ResolvedRegex) -> CoordinatorRecord:
    """The topics that a regular expression matches."""
    value = r.ConsumerGroupRegularExpressionValue(
        topics=sorted(resolved.topics), version=resolved.version, timestamp=resolved.timestamp_ms
    )
    return TYPES.record(REGULAR_EXPRESSION, value, group_id=group_id, regular_expression=regex)


def regex_tombstone(group_id: str, regex: str) -> CoordinatorRecord:
    """The record that removes a regular expression."""
    return TYPES.tombstone(REGULAR_EXPRESSION, group_id=group_id, regular_expression=regex)


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """The records that remove a member."""
    types = (CURRENT_ASSIGNMENT, TARGET_ASSIGNMENT_MEMBER, MEMBER_METADATA)
    return TYPES.tombstones(types, group_id=group_id, member_id=member_id)


def partition_metadata_tombstone(group_id: str) -> CoordinatorRecord:
    """The record that removes what an older release has written of the group's topics."""
    return TYPES.tombstone(PARTITION_METADATA, group_id=group_id)


def group_tombstones(group_id: str) -> list[CoordinatorRecord]:
    """The records that remove a group without members."""
    return TYPES.tombstones((TARGET_ASSIGNMENT_METADATA, PARTITION_METADATA, GROUP_METADATA), group_id=group_id)
