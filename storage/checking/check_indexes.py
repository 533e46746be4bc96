"""Compares the indexes of a segment with its batches (rule L4).

An offset index may lack entries; the time index of a closed segment must end with the segment's greatest timestamp; an
index of aborted transactions must be complete, or readers would treat aborted records as committed.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise

from barnabas.storage import layout
from barnabas.storage.checking.findings import PartitionReport
from barnabas.storage.damage import DamagedLog
from barnabas.storage.segments.segment import Segment
from barnabas.storage.segments.sparse_indexes import OffsetIndex, TimeIndex
from barnabas.storage.segments.txn_index import AbortedTransaction, TxnIndex
from barnabas.wire.batches.batch_header import BatchHeader


class SegmentBatches:
    """The valid batches of one segment and the aborted transactions that end in it."""

    __slots__ = ("aborted", "greatest_timestamps", "last_offsets", "positions")

    def __init__(self) -> None:
        self.last_offsets: list[int] = []
        self.positions: list[int] = []
        self.greatest_timestamps: list[int] = []  # up to and including each batch
        self.aborted: list[AbortedTransaction] = []

    def add(self, header: BatchHeader) -> None:
        """Add the next batch."""
        self.last_offsets.append(header.last_offset)
        self.positions.append(header.position)
        self.greatest_timestamps.append(max(self.greatest_timestamp, header.max_timestamp))

    @property
    def greatest_timestamp(self) -> int:
        """The greatest timestamp of all batches so far, -1 without batches."""
        return self.greatest_timestamps[-1] if self.greatest_timestamps else -1

    def find(self, last_offset: int) -> int | None:
        """The index of the batch that ends at an offset."""
        at = bisect_left(self.last_offsets, last_offset)
        return at if at < len(self.last_offsets) and self.last_offsets[at] == last_offset else None


def check_indexes(report: PartitionReport, segment: Segment, batches: SegmentBatches, *, is_closed: bool) -> None:
    """Compare all three indexes with the batches; differences are added to the report."""
    _check_offsets(report, segment, batches)
    _check_timestamps(report, segment, batches, is_closed=is_closed)
    _check_aborted(report, segment, batches)


def _name(segment: Segment, kind: str) -> str:
    return layout.segment_name(segment.base_offset, kind)


def _check_offsets(report: PartitionReport, segment: Segment, batches: SegmentBatches) -> None:
    index: OffsetIndex = segment.offset_index
    for relative, position in zip(index.offsets, index.positions, strict=True):
        offset = segment.base_offset + relative
        at = batches.find(offset)
        if at is None or batches.positions[at] != position:
            name = _name(segment, layout.INDEX_SUFFIX)
            report.damage(name, f"no batch that ends at offset {offset} starts at byte {position}")
            return


def _check_timestamps(report: PartitionReport, segment: Segment, batches: SegmentBatches, *, is_closed: bool) -> None:
    index: TimeIndex = segment.time_index
    name = _name(segment, layout.TIME_INDEX_SUFFIX)
    for timestamp, relative in zip(index.timestamps, index.offsets, strict=True):
        offset = segment.base_offset + relative
        at = batches.find(offset)
        if at is None or batches.greatest_timestamps[at] != timestamp:
            report.damage(name, f"{timestamp} is not the greatest timestamp up to a batch that ends at offset {offset}")
            return
    if any(first >= second for first, second in pairwise(index.timestamps)):
        report.damage(name, "the timestamps are not ascending")
    elif is_closed and index.last_timestamp < batches.greatest_timestamp:
        report.damage(name, f"the greatest timestamp of the segment, {batches.greatest_timestamp}, is missing")


def _check_aborted(report: PartitionReport, segment: Segment, batches: SegmentBatches) -> None:
    name = _name(segment, layout.TXN_INDEX_SUFFIX)
    try:
        index: TxnIndex = segment.txn_index
    except DamagedLog:
        report.damage(name, "an entry is invalid")
        return
    known = {(entry.producer_id, entry.last_offset) for entry in index.entries}
    for entry in batches.aborted:
        if (entry.producer_id, entry.last_offset) not in known:
            text = f"the transaction of producer {entry.producer_id} aborted at offset {entry.last_offset} is missing"
            report.damage(name, text)
            return
