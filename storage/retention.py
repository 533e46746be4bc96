"""Which of a log's oldest segments have had their time, by age and by size. Rule L5.

Whole segments go, oldest first, up to the first that has to stay, and never past the high watermark. A segment is as
old as its greatest record timestamp (L12: no clock of the file system, except for segments without any timestamp), so
one whose records lie in the future stays. The active segment goes like any other: a new one is rolled first.
Only the log start moves here; the caller persists it before the files are touched.
Source: Kafka's `UnifiedLog.deleteOldSegments`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from barnabas.storage.log import Log
    from barnabas.storage.segment import Segment

Reason = Literal["retention.ms", "retention.bytes"]


class Expired(NamedTuple):
    """Segments that were given up: the last one's base offset, how many they were, and the limit that they broke."""

    last_base_offset: int
    segments: int
    reason: Reason


def expire(log: Log, now_ms: int, now: float) -> list[Expired]:
    """Move the log's start past the segments that have had their time; what was given up, by reason.

    `now_ms` is the wall clock, `now` the monotonic one for rolling. Nothing happens without the policy `delete`.
    Raises OSError when the disk fails; the log is whole then, and the next call tries again.
    """
    if "delete" not in log.config.cleanup_policy:
        return []
    given_up: list[Expired] = []
    by_size = _over_size(log)
    if by_size:
        _give_up(log, by_size, now)
        given_up.append(Expired(by_size[-1].base_offset, len(by_size), "retention.bytes"))
    by_age = _over_age(log, now_ms)
    if by_age:
        _give_up(log, by_age, now)
        given_up.append(Expired(by_age[-1].base_offset, len(by_age), "retention.ms"))
    return given_up


def future_timestamp(log: Log, now_ms: int) -> int | None:
    """The timestamp in the future that keeps the oldest segment from growing old, None when there is none."""
    segments = log.segments.from_offset(log.log_start_offset)
    if log.config.retention_ms < 0 or "delete" not in log.config.cleanup_policy or not _may_go(log, segments, 0):
        return None
    timestamp = segments[0].largest_timestamp()
    return timestamp if timestamp > now_ms else None


def _over_size(log: Log) -> list[Segment]:
    """The oldest segments without which the log still has `retention.bytes`."""
    if log.config.retention_bytes < 0:
        return []
    segments = log.segments.from_offset(log.log_start_offset)
    surplus = sum(segment.size for segment in segments) - log.config.retention_bytes
    chosen = []
    for at, segment in enumerate(segments):
        surplus -= segment.size
        if surplus < 0 or not _may_go(log, segments, at):
            break
        chosen.append(segment)
    return chosen


def _over_age(log: Log, now_ms: int) -> list[Segment]:
    """The oldest segments whose youngest record is older than `retention.ms`."""
    retention_ms = log.config.retention_ms
    if retention_ms < 0:
        return []
    segments = log.segments.from_offset(log.log_start_offset)
    chosen = []
    for at, segment in enumerate(segments):
        if not _may_go(log, segments, at):
            break
        if now_ms - segment.largest_timestamp() <= retention_ms:
            break
        chosen.append(segment)
    return chosen


def _may_go(log: Log, segments: list[Segment], at: int) -> bool:
    """Whether a segment lies below the high watermark; an empty active one is as good as gone."""
    if at + 1 < len(segments):
        return segments[at + 1].base_offset <= log.high_watermark
    return segments[at].size > 0 and log.log_end_offset <= log.high_watermark


def _give_up(log: Log, segments: list[Segment], now: float) -> None:
    if segments[-1] is log.segments.active:
        log.roll(now)
    following = log.segments[log.segments.floor_index(segments[-1].base_offset) + 1]
    log.advance_log_start_offset(following.base_offset)
