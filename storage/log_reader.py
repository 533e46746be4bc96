"""Reading a log by offset: floor segment, index, a short scan of headers, and a slice of the file. No byte is copied.

A reader that follows the end of the log is recognised by its offset, the end of the last read that got there, and is
spared the search. A wrong index never yields a wrong batch, since the headers scanned decide (L4).
Source: Kafka's `LocalLog.read` and `LogSegment.read`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from barnabas.storage.files import FileSlice
from barnabas.storage.segment import Segment

if TYPE_CHECKING:
    from barnabas.storage.log import Log


class LogRead(NamedTuple):
    """What a read found: whole batches, the last perhaps cut, or no slice when nothing is to be had.

    `end_offset` is at or past every offset in the slice: the range to look for aborted transactions in.
    """

    slice: FileSlice | None
    start_offset: int
    end_offset: int


class LogReader:
    """The reading side of one log."""

    __slots__ = ("_end_offset", "_end_position", "_end_segment", "_log")

    def __init__(self, log: Log) -> None:
        self._log = log
        self._end_offset = -1
        self._end_segment: Segment | None = None
        self._end_position = 0

    def forget(self) -> None:
        """The log has been cut: where it ended no longer means anything."""
        self._end_offset = -1
        self._end_segment = None

    def read(self, offset: int, max_bytes: int, limit_offset: int, *, min_one_batch: bool) -> LogRead:
        """Batches from the one that holds `offset`, which lies inside the log and below `limit_offset`."""
        segments = self._log.segments
        at, found = -1, None
        if offset == self._end_offset and self._end_segment is not None:
            at, found = self._at_end(offset)
        if found is None:
            at = segments.floor_index(offset)
            found = None
            while at < len(segments):
                segments.warm(segments[at])
                found = segments[at].locate(offset)
                if found is not None:
                    break
                at += 1  # nothing is left between this segment's last batch and the next segment
        if found is None:
            return LogRead(None, offset, limit_offset)
        position, first_size = found
        if first_size > max_bytes:
            if not min_one_batch:
                return LogRead(None, offset, limit_offset)
            max_bytes = first_size
        return self._slice(at, position, offset, max_bytes, limit_offset)

    def _at_end(self, offset: int) -> tuple[int, tuple[int, int] | None]:
        """The batch where the last read of the log's end stopped: is it the one that holds `offset`?"""
        segment = self._end_segment
        assert segment is not None
        header = next(segment.scan(self._end_position, 1), None)
        if header is None or header.base_offset != offset:
            return -1, None
        return self._log.segments.floor_index(segment.base_offset), (header.position, header.size)

    def _slice(self, at: int, position: int, offset: int, max_bytes: int, limit_offset: int) -> LogRead:
        segments = self._log.segments
        segment = segments[at]
        next_base = segments.next_base(at)
        segment_end = self._log.log_end_offset if next_base is None else next_base
        end_position = segment.size
        if limit_offset < segment_end:
            limit = segment.locate(limit_offset)
            if limit is not None:
                end_position = limit[0]
        elif next_base is None and end_position - position <= max_bytes:
            self._end_offset, self._end_segment, self._end_position = segment_end, segment, end_position
        length = min(max_bytes, end_position - position)
        if length <= 0:
            return LogRead(None, offset, limit_offset)
        return LogRead(FileSlice(segment.file, position, length), offset, min(limit_offset, segment_end))
