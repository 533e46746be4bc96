"""Finds offsets by timestamp: time index, then offset index, then batch headers, then the records of one batch.

The batch that holds the answer is read and, if compressed, decompressed.
Source: Kafka's `UnifiedLog.fetchOffsetByTimestamp` and `LogSegment.findOffsetByTimestamp`.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.storage.batch_header import BatchHeader
from barnabas.storage.segment import Segment
from barnabas.storage.segments import Segments
from barnabas.wire.records import iter_batches, iter_records


class OffsetAndTimestamp(NamedTuple):
    """A record's offset, its timestamp in ms (-1: not requested), and its batch's leader epoch (-1: unknown)."""

    offset: int
    timestamp: int
    leader_epoch: int


def offset_for_timestamp(segments: Segments, log_start_offset: int, timestamp: int) -> OffsetAndTimestamp | None:
    """The first record at or above the log start whose timestamp in ms is at least `timestamp`; None without one."""
    for segment in segments.from_offset(log_start_offset):
        segments.keep_open(segment)
        if segment.size and segment.max_timestamp >= timestamp:
            found = _in_segment(segment, timestamp, log_start_offset)
            if found is not None:
                return found
    return None


def max_timestamp_offset(segments: Segments, log_start_offset: int) -> OffsetAndTimestamp | None:
    """The first record with the greatest timestamp of the log; None when no record has a timestamp."""
    best: Segment | None = None
    for segment in segments.from_offset(log_start_offset):
        segments.keep_open(segment)
        if segment.size and (best is None or segment.max_timestamp > best.max_timestamp):
            best = segment
    if best is None or best.max_timestamp < 0:
        return None
    return _in_segment(best, best.max_timestamp, log_start_offset)


def _in_segment(segment: Segment, timestamp: int, start_offset: int) -> OffsetAndTimestamp | None:
    indexed = segment.time_index.lookup(timestamp)
    position = segment.indexed_position(max(indexed, start_offset))
    for header in segment.scan(position):
        if header.max_timestamp >= timestamp and header.last_offset >= start_offset:
            found = _in_batch(segment, header, timestamp, start_offset)
            if found is not None:
                return found
    return None


def _in_batch(segment: Segment, header: BatchHeader, timestamp: int, start_offset: int) -> OffsetAndTimestamp | None:
    batch = next(iter_batches(memoryview(segment.read(header))))
    for record in iter_records(batch):
        if record.timestamp >= timestamp and record.offset >= start_offset:
            return OffsetAndTimestamp(record.offset, record.timestamp, header.leader_epoch)
    return None
