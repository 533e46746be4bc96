"""What each kind of record says of a consumer group (KIP-848): the only way in which a group changes.

In a log that was compacted the last record of each key is left, in whatever order: every kind may come first, also of a
member. Source: Kafka 4.4 `GroupMetadataManager.replay`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from barnabas.coord.groups.consumer import records
from barnabas.coord.groups.consumer.group import ConsumerGroup
from barnabas.coord.groups.consumer.member import ConsumerMember
from barnabas.coord.groups.consumer.records import ResolvedRegex
from barnabas.coord.groups.consumer.states import MemberState
from barnabas.coord.groups.modern.group import NO_EPOCH
from barnabas.coord.groups.modern.members import LEAVE_EPOCH

if TYPE_CHECKING:
    from barnabas.wire.messages import coordinator_records as r
    from barnabas.wire.schema import Message


def put(group: ConsumerGroup, record_type: int, about: str, value: Message) -> None:
    """A record with a value; `about` is the member or the regular expression that its key names."""
    _PUT[record_type](group, about, value)


def remove(group: ConsumerGroup, record_type: int, about: str) -> None:
    """A tombstone."""
    if record_type == records.GROUP_METADATA:
        group.is_dead = True
    elif record_type == records.MEMBER_METADATA:
        group.remove_member(about)
    elif record_type == records.CURRENT_ASSIGNMENT:
        member = group.members.get(about)
        if member is not None:
            group.put_member(_without_assignment(member))
    elif record_type == records.TARGET_ASSIGNMENT_MEMBER:
        group.target.pop(about, None)
    elif record_type == records.TARGET_ASSIGNMENT_METADATA:
        group.assignment_epoch = NO_EPOCH
    elif record_type == records.REGULAR_EXPRESSION:
        group.regexes.pop(about, None)
    else:
        group.has_partition_metadata = False


def _without_assignment(member: ConsumerMember) -> ConsumerMember:
    return member._replace(
        epoch=LEAVE_EPOCH, previous_epoch=LEAVE_EPOCH, state=MemberState.STABLE, assigned={}, revoking={}
    )


def _put_epoch(group: ConsumerGroup, _: str, value: r.ConsumerGroupMetadataValue) -> None:
    group.epoch = value.epoch
    group.metadata_hash = value.metadata_hash
    group.is_metadata_stale = False


def _put_partition_metadata(group: ConsumerGroup, _: str, _value: r.ConsumerGroupPartitionMetadataValue) -> None:
    group.has_partition_metadata = True


def _put_member(group: ConsumerGroup, member_id: str, value: r.ConsumerGroupMemberMetadataValue) -> None:
    known = group.members.get(member_id) or ConsumerMember(member_id)
    group.put_member(records.with_metadata(known, value))


def _put_target_epoch(group: ConsumerGroup, _: str, value: r.ConsumerGroupTargetAssignmentMetadataValue) -> None:
    group.assignment_epoch = value.assignment_epoch
    group.assignment_timestamp_ms = value.assignment_timestamp


def _put_target(group: ConsumerGroup, member_id: str, value: r.ConsumerGroupTargetAssignmentMemberValue) -> None:
    group.target[member_id] = records.read_target(value)


def _put_current(group: ConsumerGroup, member_id: str, value: r.ConsumerGroupCurrentMemberAssignmentValue) -> None:
    known = group.members.get(member_id) or ConsumerMember(member_id)
    group.put_member(records.with_assignment(known, value))


def _put_regex(group: ConsumerGroup, regex: str, value: r.ConsumerGroupRegularExpressionValue) -> None:
    group.regexes[regex] = ResolvedRegex(frozenset(value.topics), value.version, value.timestamp)


_PUT = cast(
    "dict[int, Callable[[ConsumerGroup, str, object], None]]",
    {
        records.GROUP_METADATA: _put_epoch,
        records.PARTITION_METADATA: _put_partition_metadata,
        records.MEMBER_METADATA: _put_member,
        records.TARGET_ASSIGNMENT_METADATA: _put_target_epoch,
        records.TARGET_ASSIGNMENT_MEMBER: _put_target,
        records.CURRENT_ASSIGNMENT: _put_current,
        records.REGULAR_EXPRESSION: _put_regex,
    },
)
