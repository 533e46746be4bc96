"""When the active segment is closed and a new one is started: by size, age, full indexes, or range of offsets.

Source: Kafka's `LogSegment.shouldRoll` and `LogConfig.randomSegmentJitter`.
"""

from __future__ import annotations

from typing import Protocol

from barnabas.storage.offset_index import MAX_RELATIVE_OFFSET
from barnabas.storage.segment import Segment
from barnabas.wire.crc import crc32c


class RollLimits(Protocol):
    """The part of a log's configuration that limits the size and age of a segment."""

    segment_bytes: int
    segment_ms: int
    segment_index_bytes: int
    cleanup_policy: frozenset[str]
    max_compaction_lag_ms: int


def should_roll(
    segment: Segment, limits: RollLimits, incoming: int, last_offset: int, max_timestamp: int, now: float
) -> bool:
    """Whether `incoming` bytes of batches up to `last_offset` must be written to a new segment.

    The age is the new batches' greatest timestamp in ms minus that of the segment's first batch, so it does not depend
    on the wall clock (L12); without timestamps it is the time since the segment was made. `now` is in seconds.
    """
    size = segment.size
    if last_offset - segment.base_offset > MAX_RELATIVE_OFFSET:
        return True
    if size == 0:
        return False
    if size > limits.segment_bytes - incoming or segment.has_full_index(limits.segment_index_bytes):
        return True
    max_age_ms = limits.segment_ms
    if limits.max_compaction_lag_ms < max_age_ms and "compact" in limits.cleanup_policy:
        max_age_ms = limits.max_compaction_lag_ms  # KIP-354: only closed segments are compacted
    return _age_ms(segment, max_timestamp, now) > max_age_ms - segment.roll_jitter_ms


def _age_ms(segment: Segment, max_timestamp: int, now: float) -> float:
    first_timestamp = segment.first_timestamp
    if first_timestamp is None:
        first_timestamp = segment.first_batch_timestamp()
    if first_timestamp >= 0:
        return max_timestamp - first_timestamp
    return (now - segment.created) * 1000


def roll_jitter_ms(max_jitter_ms: int, topic: str, partition: int, base_offset: int) -> int:
    """A value below segment.jitter.ms that depends on partition and segment only, so it is the same in every run."""
    return crc32c(f"{topic}-{partition}-{base_offset}".encode()) % max_jitter_ms if max_jitter_ms > 0 else 0
