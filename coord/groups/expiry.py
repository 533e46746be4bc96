"""Finds committed offsets that have expired, and groups that are removed with them (rule G2; KIP-211).

The offsets of a group without members expire `offsets.retention.minutes` after it became empty; if the group never had
members, after their commit. Offsets of topics that members subscribe to do not expire, nor do offsets that an open
transaction may change. A group without members and without offsets is removed. Offsets of share groups are kept by the
share coordinator and do not expire. Source: Kafka 4.4 `OffsetMetadataManager.cleanupExpiredOffsets`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.coord.groups import records
from barnabas.coord.groups.classic.group import ClassicGroup
from barnabas.coord.groups.classic.states import GroupState
from barnabas.coord.groups.classic.subscription import CONSUMER
from barnabas.coord.groups.committed_offset import decoded
from barnabas.coord.groups.group import SHARE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from barnabas.coord.groups.committed_offset import CommittedOffset
    from barnabas.coord.groups.group import Group
    from barnabas.coord.groups.offsets import OffsetStore
    from barnabas.coord.groups.pending_offsets import PendingOffsets
    from barnabas.coord.machine import CoordinatorRecord

NEVER = None


def expired(
    group: Group, offsets: OffsetStore, pending: PendingOffsets, retention_ms: int, now_ms: int
) -> list[CoordinatorRecord]:
    """The records that remove a group's expired offsets and, if it has no others and no members, the group."""
    if group.group_type == SHARE:
        return []
    tombstones: list[CoordinatorRecord] = []
    count = 0
    for topic, values in offsets.of_group(group.group_id).items():
        tombstones += expired_of_topic(group, topic, values, pending, retention_ms, now_ms)
        count += len(values)
    has_others = len(tombstones) < count or (bool(pending) and bool(pending.of_group(group.group_id)))
    if not has_others and group.is_empty:
        tombstones += group.tombstones()
    return tombstones


def expired_of_topic(
    group: Group,
    topic: str,
    values: Mapping[int, bytes],
    pending: PendingOffsets,
    retention_ms: int,
    now_ms: int,
) -> list[CoordinatorRecord]:
    """The records that remove the expired ones of a group's offsets in a topic, `values`."""
    if group.group_type == SHARE or group.is_subscribed_to(topic):
        return []
    tombstones = []
    for partition, value in values.items():
        if _has_expired(group, decoded(value), retention_ms, now_ms):
            tombstone = records.offset_tombstone(group.group_id, topic, partition)
            if not pending.has(tombstone.key):
                tombstones.append(tombstone)
    return tombstones


def _has_expired(group: Group, committed: CommittedOffset, retention_ms: int, now_ms: int) -> bool:
    since_ms = _retention_start_ms(group, committed)
    if since_ms is NEVER:
        return False
    if committed.expire_timestamp_ms >= 0:  # set by OffsetCommit up to version 4
        return now_ms >= committed.expire_timestamp_ms
    return now_ms - since_ms >= retention_ms


def _retention_start_ms(group: Group, committed: CommittedOffset) -> int | None:
    """Start of the retention time of an offset, milliseconds since 1970; NEVER: the offset does not expire."""
    if not isinstance(group, ClassicGroup) or group.protocol_type is None:
        return committed.commit_timestamp_ms
    if group.state is GroupState.EMPTY:
        return group.state_since_ms if group.state_since_ms >= 0 else committed.commit_timestamp_ms
    knows_topics = group.protocol_type == CONSUMER and group.subscribed is not None
    return committed.commit_timestamp_ms if knows_topics and group.state is GroupState.STABLE else NEVER
