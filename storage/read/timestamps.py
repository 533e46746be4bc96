"""Finds offsets by timestamp: time index, then offset index, then batch headers, then the records of one batch.

A lookup is a generator, which yields whenever its `LookupBudget` is used up: a header may claim timestamps that its
records do not have, a batch may expand to many records, and a log may have many segments. Segments may be removed or
replaced between two steps; then the lookup starts again.
Source: Kafka's `UnifiedLog.fetchOffsetByTimestamp` and `LogSegment.findOffsetByTimestamp`.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final, NamedTuple, Protocol, TypeAlias, TypeVar

from barnabas.storage.segments.log_segments import Segments
from barnabas.storage.segments.segment import Segment
from barnabas.wire.batches.batch_header import BatchHeader
from barnabas.wire.batches.compression import MAX_DECOMPRESSED_SIZE
from barnabas.wire.batches.decompression import Source, decompressed_steps
from barnabas.wire.batches.record_search import SearchedRecords, first_record
from barnabas.wire.batches.records import CODEC_MASK, HEADER_SIZE, BatchView

IN_PLACE_UNITS: Final = 2_000
"""The work of a request that is done in place, in units: about one for a record (a millisecond)."""

_STEP_UNITS = 1_500
_SEGMENT_UNITS = 50  # its time index is loaded
_KNOWN_UNITS = 1  # its greatest timestamp is in memory
_HEADER_UNITS = 4
_UNLIMITED = 2**63

T = TypeVar("T")
Steps: TypeAlias = Generator[None, None, T]


class OffsetAndTimestamp(NamedTuple):
    """A record's offset, its timestamp in ms (-1: not requested), and its batch's leader epoch (-1: unknown)."""

    offset: int
    timestamp: int
    leader_epoch: int


class LookupBudget:
    """How much lookups may still do in this step, in units."""

    __slots__ = ("units",)

    def __init__(self, units: int = IN_PLACE_UNITS) -> None:
        self.units = units

    def spend(self, units: int) -> Steps[None]:
        """Count work; ends the step if the budget is used up."""
        self.units -= units
        if self.units < 0:
            yield
            self.units = _STEP_UNITS


class _Limits(Protocol):
    max_decompressed_message_bytes: int


class SearchedLog(Protocol):
    """The log in which an offset is looked up."""

    segments: Segments
    log_start_offset: int

    @property
    def config(self) -> _Limits: ...


class _SegmentGone(Exception):  # noqa: N818 (no error: the lookup starts again)
    """A segment was removed or replaced between two steps."""


def offset_for_timestamp(log: SearchedLog, timestamp: int, budget: LookupBudget) -> Steps[OffsetAndTimestamp | None]:
    """The first record at or above the log start whose timestamp in ms is at least `timestamp`; None without one."""
    while True:
        try:
            return (yield from _first(log, timestamp, budget))
        except _SegmentGone:
            continue


def max_timestamp_offset(log: SearchedLog, budget: LookupBudget) -> Steps[OffsetAndTimestamp | None]:
    """The first record with the greatest timestamp of the log; None when no record has a timestamp."""
    while True:
        try:
            return (yield from _greatest(log, budget))
        except _SegmentGone:
            continue


def _first(log: SearchedLog, timestamp: int, budget: LookupBudget) -> Steps[OffsetAndTimestamp | None]:
    passed = 0
    for segment in log.segments.from_offset(log.log_start_offset):
        greatest = segment.known_max_timestamp
        if greatest is None:
            yield from _look_at(log, segment, budget)
        else:
            passed += _KNOWN_UNITS
            is_over = passed > budget.units
            if greatest < timestamp and not is_over:
                continue  # nearly all: of 1,000 segments each costs 23 bytecodes
            if is_over:
                yield from _spend(log, segment, budget, passed)
            else:
                budget.units -= passed
            passed = 0
        if segment.size and segment.max_timestamp >= timestamp:
            log.segments.keep_open(segment)
            record = yield from _in_segment(log, segment, timestamp, budget)
            if record is not None:
                return record
    return None


def _greatest(log: SearchedLog, budget: LookupBudget) -> Steps[OffsetAndTimestamp | None]:
    best: Segment | None = None
    for segment in log.segments.from_offset(log.log_start_offset):
        yield from _look_at(log, segment, budget)
        if segment.size and (best is None or segment.max_timestamp > best.max_timestamp):
            best = segment
    if best is None or best.max_timestamp < 0:
        return None
    if not _has(log.segments, best):
        raise _SegmentGone
    log.segments.keep_open(best)
    return (yield from _in_segment(log, best, best.max_timestamp, budget))


def _look_at(log: SearchedLog, segment: Segment, budget: LookupBudget) -> Steps[None]:
    """Have the greatest timestamp of a segment in memory. Nearly always it is, and the segment stays closed.

    Why it counts so little then: a log of 1,000 segments took 25 steps, and four times as long, when each counted as
    if its index was loaded.
    """
    if segment.known_max_timestamp is not None:
        budget.units -= _KNOWN_UNITS
        if budget.units < 0:
            yield from _spend(log, segment, budget, 0)
        return
    yield from _spend(log, segment, budget, _SEGMENT_UNITS)
    log.segments.keep_open(segment)
    _ = segment.max_timestamp


def _spend(log: SearchedLog, segment: Segment, budget: LookupBudget, units: int) -> Steps[None]:
    budget.units -= units
    if budget.units < 0:
        yield from budget.spend(0)
        if not _has(log.segments, segment):
            raise _SegmentGone


def _has(segments: Segments, segment: Segment) -> bool:
    at = segments.floor_index(segment.base_offset)
    return at >= 0 and segments[at] is segment


def _in_segment(
    log: SearchedLog, segment: Segment, timestamp: int, budget: LookupBudget
) -> Steps[OffsetAndTimestamp | None]:
    start_offset = log.log_start_offset
    indexed = segment.time_index.lookup(timestamp)
    position = segment.indexed_position(max(indexed, start_offset))
    for header in segment.scan(position):
        yield from _spend(log, segment, budget, _HEADER_UNITS)
        if header.max_timestamp >= timestamp and header.last_offset >= start_offset:
            record = yield from _in_batch(log, segment, header, timestamp, start_offset, budget)
            if record is not None:
                return record
    return None


def _in_batch(
    log: SearchedLog, segment: Segment, header: BatchHeader, timestamp: int, start_offset: int, budget: LookupBudget
) -> Steps[OffsetAndTimestamp | None]:
    data = segment.read(header)
    codec = header.attributes & CODEC_MASK
    if not codec and (first := first_record(data, header)) is not None:
        offset, first_timestamp = first
        if first_timestamp >= timestamp and offset >= start_offset:
            budget.units -= 1
            return OffsetAndTimestamp(offset, first_timestamp, header.partition_leader_epoch)
    max_record_size = log.config.max_decompressed_message_bytes if codec else _UNLIMITED
    search = SearchedRecords(BatchView(data), max_record_size)
    source = Source(memoryview(data)[HEADER_SIZE:])
    pieces = decompressed_steps(codec, source, MAX_DECOMPRESSED_SIZE if codec else _UNLIMITED)
    steps = search.first_from(timestamp, start_offset, pieces)
    counted = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            budget.units -= search.units - counted
            if end.value is None:
                return None
            offset, found_timestamp = end.value
            return OffsetAndTimestamp(offset, found_timestamp, header.partition_leader_epoch)
        yield from _spend(log, segment, budget, search.units - counted)
        counted = search.units
