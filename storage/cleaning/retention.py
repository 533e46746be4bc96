"""Removes a log's oldest segments by age and by size (rule L5).

Whole segments are removed, oldest first, up to the first that has to be kept, and never above the high watermark. The
age of a segment is the age of its greatest record timestamp (L12; the file's modification time only without
timestamps), so a segment with a timestamp in the future is kept. The active segment is removed like any other, after a
roll. Only the log start advances here; the caller persists it before files are renamed. Source: Kafka's
`UnifiedLog.deleteOldSegments`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from barnabas.storage.log import Log
    from barnabas.storage.segments.segment import Segment

Reason = Literal["retention.ms", "retention.bytes"]


class Expired(NamedTuple):
    """Removed segments: the base offset of the last one, their number, and the limit that they exceeded."""

    last_base_offset: int
    segments: int
    reason: Reason


def expire(log: Log, now_ms: int, now: float) -> list[Expired]:
    """Advance the log start past the segments that exceed a limit; the removed segments, by limit.

    `now_ms` is the wall clock, `now` the monotonic clock in seconds, for rolling. Does nothing without the policy
    `delete`. Raises OSError when the disk fails; the log is consistent then, and the next call tries again.
    """
    if "delete" not in log.config.cleanup_policy:
        return []
    removed: list[Expired] = []
    by_size = _over_size(log)
    if by_size:
        _advance_start(log, by_size, now)
        removed.append(Expired(by_size[-1].base_offset, len(by_size), "retention.bytes"))
    by_age = _over_age(log, now_ms)
    if by_age:
        _advance_start(log, by_age, now)
        removed.append(Expired(by_age[-1].base_offset, len(by_age), "retention.ms"))
    return removed


def future_timestamp(log: Log, now_ms: int) -> int | None:
    """The timestamp in the future that keeps retention.ms from removing the oldest segment, None if there is none."""
    segments = log.segments.from_offset(log.log_start_offset)
    if log.config.retention_ms < 0 or "delete" not in log.config.cleanup_policy or not _is_removable(log, segments, 0):
        return None
    timestamp = segments[0].largest_timestamp()
    return timestamp if timestamp > now_ms else None


def _over_size(log: Log) -> list[Segment]:
    """The oldest segments that can be removed so that at least `retention.bytes` remain."""
    if log.config.retention_bytes < 0:
        return []
    segments = log.segments.from_offset(log.log_start_offset)
    surplus = sum(segment.size for segment in segments) - log.config.retention_bytes
    chosen = []
    for at, segment in enumerate(segments):
        surplus -= segment.size
        if surplus < 0 or not _is_removable(log, segments, at):
            break
        chosen.append(segment)
    return chosen


def _over_age(log: Log, now_ms: int) -> list[Segment]:
    """The oldest segments whose greatest timestamp is older than `retention.ms`."""
    retention_ms = log.config.retention_ms
    if retention_ms < 0:
        return []
    segments = log.segments.from_offset(log.log_start_offset)
    chosen = []
    for at, segment in enumerate(segments):
        if not _is_removable(log, segments, at):
            break
        if now_ms - segment.largest_timestamp() <= retention_ms:
            break
        chosen.append(segment)
    return chosen


def _is_removable(log: Log, segments: list[Segment], at: int) -> bool:
    """Whether a segment is wholly below the high watermark and not an empty active segment."""
    if at + 1 < len(segments):
        return segments[at + 1].base_offset <= log.high_watermark
    return segments[at].size > 0 and log.log_end_offset <= log.high_watermark


def _advance_start(log: Log, segments: list[Segment], now: float) -> None:
    if segments[-1] is log.segments.active:
        log.roll(now)
    following = log.segments[log.segments.floor_index(segments[-1].base_offset) + 1]
    log.advance_log_start_offset(following.base_offset)
