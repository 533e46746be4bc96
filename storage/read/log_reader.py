"""Reads a log by offset: floor segment, offset index, a short scan of headers, and a slice of the file.

Nothing is copied, except a few small batches that the scan has read.

A consumer at the end of the log is recognized by its offset, the end of the last read that reached the log end; its
read needs no search. A damaged index never causes a wrong result, since the scanned headers decide (rule L4).
Source: Kafka's `LocalLog.read` and `LogSegment.read`.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.storage.damage import DamagedLog
from barnabas.storage.files import BytesFile, File, FileSlice
from barnabas.storage.open_files import OpenFiles
from barnabas.storage.segments.log_segments import Segments
from barnabas.storage.segments.segment import Place, Segment
from barnabas.wire.batches.batch_header import BatchHeader, BatchView, walk_batches

_SCAN_CHUNK = 8192


class LogRead(NamedTuple):
    """The result of a read: a slice of batches, the last of them perhaps incomplete, or None when there are none.

    `end_offset` is at or above every offset in the slice: the end of the range of aborted transactions to look up.
    """

    slice: FileSlice | None
    start_offset: int
    end_offset: int


class LogReader:
    """Reads the segments of one log."""

    __slots__ = ("_end_offset", "_end_position", "_end_segment", "_open_files", "_segments")

    def __init__(self, segments: Segments, open_files: OpenFiles) -> None:
        self._segments = segments
        self._open_files = open_files
        self._end_offset = -1
        self._end_segment: Segment | None = None
        self._end_position = 0

    def forget(self) -> None:
        """Discard the remembered log end; to be called when segments were truncated, removed or replaced."""
        self._end_offset = -1
        self._end_segment = None

    def read(
        self,
        offset: int,
        max_bytes: int,
        limit_offset: int,
        log_end_offset: int,
        *,
        min_one_batch: bool,
        may_wait: bool = True,
    ) -> LogRead:
        """Read batches from the batch that holds `offset` on, which is inside the log and below `limit_offset`.

        NotInMemory as `Segment.locate`.
        """
        segments = self._segments
        segment = self._end_segment
        at, place = 0, None
        if offset == self._end_offset and segment is not None:
            at, place = segments.floor_index(segment.base_offset), segment.search(offset, self._end_position)
        if place is None or segment is None:
            at = segments.floor_index(offset)
            while at < len(segments):
                segment = segments[at]
                segments.keep_open(segment)
                place = segment.search(offset, may_wait=may_wait)
                if place is not None:
                    break
                at += 1  # the offsets from this segment's last batch to the next segment hold no records
        if place is None or segment is None:
            return LogRead(None, offset, limit_offset)
        first_size = place[1]
        if first_size > max_bytes:
            if not min_one_batch:
                return LogRead(None, offset, limit_offset)
            max_bytes = first_size
        return self._slice(segment, segments.next_base(at), place, offset, max_bytes, limit_offset, log_end_offset)

    def _slice(
        self,
        segment: Segment,
        next_base: int | None,
        place: Place,
        offset: int,
        max_bytes: int,
        limit_offset: int,
        log_end_offset: int,
    ) -> LogRead:
        """The batches of a segment from a place on; `next_base` is the base offset of the next segment."""
        position, _, data, start = place
        segment_end = log_end_offset if next_base is None else next_base
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
        end_offset = min(limit_offset, segment_end)
        if (end := position - start + length) <= len(data):  # a few small batches: the search has read them
            data = bytes(data[position - start : end])
            return LogRead(
                FileSlice(BytesFile(segment.file.path, data, position), position, length), offset, end_offset
            )
        file: File = segment.file
        if file.fd >= self._open_files.slices_until:
            file = BytesFile(file.path, segment.read_bytes(position, length), position)
            segment.close_file()
        return LogRead(FileSlice(file, position, length), offset, end_offset)


def checked(records: FileSlice) -> FileSlice:
    """The slice, read into memory, up to the first batch whose CRC is wrong: the bytes that are sent were checked.

    DamagedLog if the first batch is wrong; OSError.
    The last batch is not checked if it is incomplete: a reader ignores it and reads it again.
    """
    data, length = records.read(), records.length
    for batch in walk_batches(BatchView, data, records.offset + len(data), records.offset):
        if batch.crc != batch.computed_crc():
            if batch.start:
                data, length = data[: batch.start], batch.start
                break
            raise DamagedLog(
                f"{records.file.path} is damaged at byte {batch.position}: the CRC of the record batch at offset "
                f"{batch.base_offset} does not match its bytes"
            )
    return FileSlice(BytesFile(records.file.path, data, records.offset), records.offset, length)


def batches_of(records: FileSlice, until_offset: int) -> list[BatchHeader]:
    """The headers of the whole batches in a slice, up to the batch that holds `until_offset`; positions in the file.

    OSError when the disk fails.
    """
    end = records.offset + records.length

    def read(_: int, position: int) -> bytes:
        return records.file.read(min(_SCAN_CHUNK, end - position), position)

    headers: list[BatchHeader] = []
    for header in walk_batches(BatchHeader, b"", end, records.offset, read):
        headers.append(header)
        if header.last_offset >= until_offset:
            break
    return headers
