"""The records of consumer groups, to and from Kafka's bytes (KIP-848; record types 3 to 8 and 16).

A key is (group id) or (group id, member id or regular expression), always of version 0. Type 4 is what older releases
wrote of topics; here it is only removed. Source: Kafka 4.4 `GroupCoordinatorRecordHelpers`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas.coord.groups.consumer.member import ConsumerMember, OwnedPartitions
from barnabas.coord.groups.consumer.states import MemberState
from barnabas.coord.groups.modern.partitions import Partitions, as_list, as_partitions
from barnabas.coord.groups.records import prefixed
from barnabas.coord.machine import CoordinatorRecord
from barnabas.wire.messages import coordinator_records as r

if TYPE_CHECKING:
    from barnabas.wire.schema import Message

GROUP_METADATA = 3
PARTITION_METADATA = 4
MEMBER_METADATA = 5
TARGET_ASSIGNMENT_METADATA = 6
TARGET_ASSIGNMENT_MEMBER = 7
CURRENT_ASSIGNMENT = 8
REGULAR_EXPRESSION = 16

_KEYS: dict[int, type[Message]] = {
    GROUP_METADATA: r.ConsumerGroupMetadataKey,
    PARTITION_METADATA: r.ConsumerGroupPartitionMetadataKey,
    MEMBER_METADATA: r.ConsumerGroupMemberMetadataKey,
    TARGET_ASSIGNMENT_METADATA: r.ConsumerGroupTargetAssignmentMetadataKey,
    TARGET_ASSIGNMENT_MEMBER: r.ConsumerGroupTargetAssignmentMemberKey,
    CURRENT_ASSIGNMENT: r.ConsumerGroupCurrentMemberAssignmentKey,
    REGULAR_EXPRESSION: r.ConsumerGroupRegularExpressionKey,
}
_VALUES: dict[int, type[Message]] = {
    GROUP_METADATA: r.ConsumerGroupMetadataValue,
    PARTITION_METADATA: r.ConsumerGroupPartitionMetadataValue,
    MEMBER_METADATA: r.ConsumerGroupMemberMetadataValue,
    TARGET_ASSIGNMENT_METADATA: r.ConsumerGroupTargetAssignmentMetadataValue,
    TARGET_ASSIGNMENT_MEMBER: r.ConsumerGroupTargetAssignmentMemberValue,
    CURRENT_ASSIGNMENT: r.ConsumerGroupCurrentMemberAssignmentValue,
    REGULAR_EXPRESSION: r.ConsumerGroupRegularExpressionValue,
}

_Owned = r.ConsumerGroupCurrentMemberAssignmentValueTopicPartitions


class ResolvedRegex(NamedTuple):
    """Which topics a regular expression stood for."""

    topics: frozenset[str]
    version: int = 0
    """Offset of the metadata log as of which it was resolved."""
    timestamp_ms: int = -1


# ---- reading


def read_key(record_type: int, key: bytes) -> tuple[str, str]:
    """Group id, and member id or regular expression ("" where the key has none). ProtocolError when it is no key."""
    message = _KEYS[record_type].decode(key, 0)
    fields: Any = message
    return fields.group_id, getattr(fields, "member_id", "") or getattr(fields, "regular_expression", "")


def read_value(record_type: int, value: bytes) -> Message:
    """The value of a record. ProtocolError when it is none."""
    return _VALUES[record_type].decode(value[2:], int.from_bytes(value[:2], "big"))


def with_metadata(member: ConsumerMember, value: r.ConsumerGroupMemberMetadataValue) -> ConsumerMember:
    """The member, saying what this record says."""
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
    """The member, as far with its assignment as this record says."""
    return member._replace(
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=MemberState(value.state),
        assigned=_owned(value.assigned_partitions, value.member_epoch),
        revoking=_owned(value.partitions_pending_revocation, value.member_epoch),
    )


def _owned(entries: list[_Owned], member_epoch: int) -> OwnedPartitions:
    """Records before KIP-1251 tell no epochs: then the member's holds for all it has."""
    owned: OwnedPartitions = {}
    for entry in entries:
        epochs = entry.assignment_epochs or [member_epoch] * len(entry.partitions)
        owned.setdefault(entry.topic_id, {}).update(zip(entry.partitions, epochs, strict=True))
    return {topic_id: partitions for topic_id, partitions in owned.items() if partitions}


def read_target(value: r.ConsumerGroupTargetAssignmentMemberValue) -> Partitions:
    """What a member shall have."""
    return as_partitions(value.topic_partitions)


# ---- writing


def group_epoch(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    """The group is in this epoch; its topics were as the hash says."""
    return _record(
        GROUP_METADATA,
        r.ConsumerGroupMetadataKey(group_id=group_id),
        r.ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash),
    )


def member_metadata(group_id: str, member: ConsumerMember) -> CoordinatorRecord:
    """What a member says of itself."""
    return _record(
        MEMBER_METADATA,
        r.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id),
        r.ConsumerGroupMemberMetadataValue(
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=sorted(member.subscribed_topics),
            subscribed_topic_regex=member.subscribed_regex,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            server_assignor=member.assignor,
            classic_member_metadata=member.classic,
        ),
    )


def target_epoch(group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    """The target assignments of this epoch are complete; 0 as timestamp lets the next one be computed at once."""
    return _record(
        TARGET_ASSIGNMENT_METADATA,
        r.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id),
        r.ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp_ms),
    )


def target_assignment(group_id: str, member_id: str, partitions: Partitions) -> CoordinatorRecord:
    """What a member shall have."""
    entries = as_list(partitions, r.ConsumerGroupTargetAssignmentMemberValueTopicPartition)
    return _record(
        TARGET_ASSIGNMENT_MEMBER,
        r.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        r.ConsumerGroupTargetAssignmentMemberValue(topic_partitions=entries),
    )


def current_assignment(group_id: str, member: ConsumerMember) -> CoordinatorRecord:
    """How far a member's assignment has come."""
    return _record(
        CURRENT_ASSIGNMENT,
        r.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id),
        r.ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=member.epoch,
            previous_member_epoch=member.previous_epoch,
            state=member.state.value,
            assigned_partitions=_entries(member.assigned),
            partitions_pending_revocation=_entries(member.revoking),
        ),
    )


def _entries(owned: OwnedPartitions) -> list[_Owned]:
    entries = []
    for topic_id, epochs in owned.items():
        indexes = sorted(epochs)
        entries.append(
            _Owned(topic_id=topic_id, partitions=indexes, assignment_epochs=[epochs[index] for index in indexes])
        )
    return entries


def regular_expression(group_id: str, regex: str, resolved: ResolvedRegex) -> CoordinatorRecord:
    """Which topics a regular expression stands for."""
    return _record(
        REGULAR_EXPRESSION,
        r.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex),
        r.ConsumerGroupRegularExpressionValue(
            topics=sorted(resolved.topics), version=resolved.version, timestamp=resolved.timestamp_ms
        ),
    )


def regex_tombstone(group_id: str, regex: str) -> CoordinatorRecord:
    """Nobody subscribes to the regular expression any more."""
    return _tombstone(
        REGULAR_EXPRESSION, r.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex)
    )


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """A member is gone: what it had, what it should have, who it was."""
    return [
        _tombstone(
            CURRENT_ASSIGNMENT, r.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)
        ),
        _tombstone(
            TARGET_ASSIGNMENT_MEMBER, r.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
        ),
        _tombstone(MEMBER_METADATA, r.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id)),
    ]


def partition_metadata_tombstone(group_id: str) -> CoordinatorRecord:
    """Removes what an older release has written of the group's topics."""
    return _tombstone(PARTITION_METADATA, r.ConsumerGroupPartitionMetadataKey(group_id=group_id))


def group_tombstones(group_id: str) -> list[CoordinatorRecord]:
    """A group without members is gone."""
    return [
        _tombstone(TARGET_ASSIGNMENT_METADATA, r.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id)),
        partition_metadata_tombstone(group_id),
        _tombstone(GROUP_METADATA, r.ConsumerGroupMetadataKey(group_id=group_id)),
    ]


def _record(record_type: int, key: Message, value: Message) -> CoordinatorRecord:
    return CoordinatorRecord(prefixed(record_type, key, 0), prefixed(0, value, 0))


def _tombstone(record_type: int, key: Message) -> CoordinatorRecord:
    return CoordinatorRecord(prefixed(record_type, key, 0), None)
