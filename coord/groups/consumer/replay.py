"""Applies the records of consumer groups (KIP-848)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.coord.groups.consumer import records
from barnabas.coord.groups.consumer.records import ResolvedRegex
from barnabas.coord.groups.modern.group import NO_EPOCH
from barnabas.coord.groups.modern.replay import CommonTypes, Replay

if TYPE_CHECKING:
    from barnabas.coord.groups.consumer.group import ConsumerGroup
    from barnabas.wire.messages import coordinator_records as r


def _put_epoch(group: ConsumerGroup, _: str, value: r.ConsumerGroupMetadataValue) -> None:
    group.epoch = value.epoch
    group.metadata_hash = value.metadata_hash
    group.is_metadata_stale = False


def _put_partition_metadata(group: ConsumerGroup, _: str, _value: r.ConsumerGroupPartitionMetadataValue) -> None:
    group.has_partition_metadata = True


def _put_regex(group: ConsumerGroup, regex: str, value: r.ConsumerGroupRegularExpressionValue) -> None:
    group.put_regex(regex, ResolvedRegex(frozenset(value.topics), value.version, value.timestamp))


def _remove_target_epoch(group: ConsumerGroup, _: str) -> None:
    group.assignment_epoch = NO_EPOCH


def _remove_partition_metadata(group: ConsumerGroup, _: str) -> None:
    group.has_partition_metadata = False


def _remove_regex(group: ConsumerGroup, regex: str) -> None:
    group.remove_regex(regex)


REPLAY: Replay[ConsumerGroup] = Replay(
    CommonTypes(
        group=records.GROUP_METADATA,
        member=records.MEMBER_METADATA,
        target_epoch=records.TARGET_ASSIGNMENT_METADATA,
        target=records.TARGET_ASSIGNMENT_MEMBER,
        current_assignment=records.CURRENT_ASSIGNMENT,
    ),
    records,
    put={
        records.GROUP_METADATA: _put_epoch,
        records.PARTITION_METADATA: _put_partition_metadata,
        records.REGULAR_EXPRESSION: _put_regex,
    },
    remove={
        records.TARGET_ASSIGNMENT_METADATA: _remove_target_epoch,
        records.PARTITION_METADATA: _remove_partition_metadata,
        records.REGULAR_EXPRESSION: _remove_regex,
    },
)
