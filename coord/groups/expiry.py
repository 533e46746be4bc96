"""Which committed offsets have had their time, and which groups go with them (rule G2; KIP-211).

The offsets of a group without members expire `offsets.retention.minutes` after it became empty, those that were
committed by nobody in particular after their commit. While members read a topic its offsets stay, and so does an offset
that an open transaction is about to change. A group that is empty and has no offsets left goes too. Positions of share
groups are not kept here and never expire. Source: Kafka 4.4 `OffsetMetadataManager.cleanupExpiredOffsets`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.coord.groups import records
from barnabas.coord.groups.classic.group import ClassicGroup
from barnabas.coord.groups.classic.states import GroupState
from barnabas.coord.groups.classic.subscription import CONSUMER
from barnabas.coord.groups.group import SHARE

if TYPE_CHECKING:
    from barnabas.coord.groups.group import Group
    from barnabas.coord.groups.offsets import CommittedOffset, OffsetStore
    from barnabas.coord.groups.pending_offsets import PendingOffsets
    from barnabas.coord.machine import CoordinatorRecord

NEVER = None


def expired(
    group: Group, offsets: OffsetStore, pending: PendingOffsets, retention_ms: int, now_ms: int
) -> list[CoordinatorRecord]:
    """Records that remove a group's expired offsets and, when that leaves nothing of it, the group."""
    if group.group_type == SHARE:
        return []
    made = []
    leaves_some = bool(pending) and bool(pending.of_group(group.group_id))
    for topic, partitions in offsets.of_group(group.group_id).items():
        is_read = group.is_subscribed_to(topic)
        for partition, committed in partitions.items():
            if is_read or not _is_over(group, committed, retention_ms, now_ms):
                leaves_some = True
                continue
            tombstone = records.offset_tombstone(group.group_id, topic, partition)
            if pending.has(tombstone.key):
                leaves_some = True
            else:
                made.append(tombstone)
    if not leaves_some and group.is_empty:
        made += group.tombstones()
    return made


def _is_over(group: Group, committed: CommittedOffset, retention_ms: int, now_ms: int) -> bool:
    since_ms = _counts_from(group, committed)
    if since_ms is NEVER:
        return False
    if committed.expire_timestamp_ms >= 0:  # OffsetCommit up to version 4 could say how long
        return now_ms >= committed.expire_timestamp_ms
    return now_ms - since_ms >= retention_ms


def _counts_from(group: Group, committed: CommittedOffset) -> int | None:
    """When the retention of an offset began, or NEVER while its group keeps all of them."""
    if not isinstance(group, ClassicGroup) or group.protocol_type is None:
        return committed.commit_timestamp_ms
    if group.state is GroupState.EMPTY:
        return group.state_since_ms if group.state_since_ms >= 0 else committed.commit_timestamp_ms
    knows_topics = group.protocol_type == CONSUMER and group.subscribed is not None
    return committed.commit_timestamp_ms if knows_topics and group.state is GroupState.STABLE else NEVER
