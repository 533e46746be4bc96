"""One segment of a log: a file of record batches and its indexes, and when the log rolls to a new one.

Invariants: `size` is the number of valid bytes, and bytes after it are invalid and will be overwritten; an index entry
is made for a batch, as in Kafka's `LogSegment`, once more than `index.interval.bytes` have been written since the last.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from struct import Struct
from typing import Protocol, TypeAlias

from barnabas.storage import layout
from barnabas.storage.damage import DamagedLog
from barnabas.storage.files import File, Files
from barnabas.storage.segments.segment_files import SegmentFiles
from barnabas.storage.segments.sparse_indexes import MAX_RELATIVE_OFFSET, NO_TIMESTAMP, OffsetIndex
from barnabas.storage.segments.txn_index import AbortedTransaction, TxnIndex
from barnabas.wire.batches.batch_header import BatchHeader, BatchView, walk_batches
from barnabas.wire.batches.crc import crc32c
from barnabas.wire.batches.records import HEADER_SIZE, LOG_OVERHEAD, MAGIC

_NO_LIMIT = 2**63 - 1
_SCAN_CHUNK = 8192
_RECOVERY_CHUNK = 4 << 20
_SEARCHED = Struct(">qi4xb6xi")  # of a header: base offset, length, magic, last offset delta
_LEAST_LENGTH = HEADER_SIZE - LOG_OVERHEAD

Place: TypeAlias = tuple[int, int, "bytes | bytearray", int]
"""Of a batch that was found: position and size; and bytes that were read on the way, with their position."""


class NotInMemory(Exception):  # noqa: N818 (no error: `lookup` is called in a thread, then the read is tried again)
    """What a read needs to find its offset is not in the page cache; nothing has changed."""

    def __init__(self, lookup: Callable[[], None]) -> None:
        """`lookup` reads it from the disk; it raises OSError when the disk fails."""
        super().__init__()
        self.lookup = lookup


class Segment(SegmentFiles):
    """The batches from `base_offset` up to the next segment's base offset."""

    __slots__ = (
        "_offset_of_max_timestamp",
        "bytes_since_index",
        "created",
        "first_timestamp",
        "known_max_timestamp",
        "roll_jitter_ms",
    )

    def __init__(
        self,
        files: Files,
        directory: str,
        base_offset: int,
        *,
        size: int = 0,
        created: float = 0.0,
        suffix: str = "",
    ) -> None:
        super().__init__(files, directory, base_offset, suffix, size)
        self.created = created
        self.roll_jitter_ms = 0
        self.first_timestamp: int | None = None
        self.bytes_since_index = 0
        self.known_max_timestamp: int | None = None
        """`max_timestamp` if it is in memory, so that asking for it reads nothing."""
        self._offset_of_max_timestamp = base_offset

    @classmethod
    def create(cls, files: Files, directory: str, base_offset: int, now: float, suffix: str = "") -> Segment:
        """Make an empty segment and its log file; an existing file of that name is emptied.

        With `suffix` (`.cleaned`) the segment is not part of the log yet, see `storage.recover.swap`.
        """
        segment = cls.of_new_file(files, directory, base_offset, now, suffix)
        try:
            if files.size(segment.file):  # only then: ext4 flushes a file that was truncated to zero when it is closed
                files.truncate(segment.file, 0)
        except OSError:
            files.unlink(segment.path(layout.LOG_SUFFIX))  # a start would treat it as the end of the log
            raise
        return segment

    @classmethod
    def of_new_file(cls, files: Files, directory: str, base_offset: int, now: float, suffix: str = "") -> Segment:
        """The segment of a log file that was just made and is empty; nothing is opened."""
        segment = cls(files, directory, base_offset, created=now, suffix=suffix)
        segment._new_indexes()
        segment.known_max_timestamp = NO_TIMESTAMP
        return segment

    # --- appending

    def append(
        self, data: memoryview, headers: list[BatchHeader], max_timestamp: int, index_interval_bytes: int
    ) -> None:
        """Write whole batches after the last with one write, then index them.

        `headers` have their final offsets; their positions are relative to `data`. After an OSError the caller calls
        `undo_append`; nothing else has changed.
        """
        start = self.size
        file = self._file if self._file is not None else self.file
        if self.known_max_timestamp is None or self._offset_index is None or self._time_index is None:
            self._load_indexes()
        self._files.write_at(file, data, start)
        self.size = start + len(data)
        if start == 0:
            self.first_timestamp = max_timestamp
        self._index(headers, start, index_interval_bytes)

    def append_batch(self, data: memoryview, header: BatchHeader, index_interval_bytes: int) -> None:
        """As `append`, for one batch."""
        start = self.size
        greatest = self.known_max_timestamp
        if greatest is None or self._offset_index is None or self._time_index is None:
            self._load_indexes()
            greatest = self.max_timestamp
        self._files.write_at(self._file or self.file, data, start)
        self.size = start + header.size
        timestamp = header.max_timestamp
        if start == 0:
            self.first_timestamp = timestamp
        if timestamp > greatest:
            self.known_max_timestamp = timestamp
            self._offset_of_max_timestamp = header.last_offset
        if self.bytes_since_index > index_interval_bytes:
            self.offset_index.append(header.last_offset, start)
            self.time_index.maybe_append(self.max_timestamp, self._offset_of_max_timestamp)
            self.bytes_since_index = 0
        self.bytes_since_index += header.size

    def _load_indexes(self) -> None:
        """Read what `_index` needs, before the write: after it nothing may fail."""
        _ = self.offset_index, self.time_index, self.max_timestamp

    def undo_append(self) -> None:
        """Truncate what a failed write has left after the last batch, if possible."""
        try:
            self._files.truncate(self.file, self.size)
        except OSError:
            pass  # invalid bytes above `size`: the next append overwrites them, recovery truncates them

    def _index(self, headers: Sequence[BatchHeader], start: int, index_interval_bytes: int) -> None:
        greatest = self.max_timestamp
        for header in headers:
            if header.max_timestamp > greatest:
                greatest = self.known_max_timestamp = header.max_timestamp
                self._offset_of_max_timestamp = header.last_offset
            if self.bytes_since_index > index_interval_bytes:
                self.offset_index.append(header.last_offset, start + header.position)
                self.time_index.maybe_append(greatest, self._offset_of_max_timestamp)
                self.bytes_since_index = 0
            self.bytes_since_index += header.size

    def first_batch_timestamp(self) -> int:
        """The greatest timestamp of the first batch in ms, -1 for none."""
        if self.first_timestamp is None:
            was_open = self.is_open
            header = self.header_at(0)
            self.first_timestamp = header.max_timestamp if header is not None else NO_TIMESTAMP
            if not was_open:
                self.release()
        return self.first_timestamp

    def load_txn_index(self) -> None:
        """Read the index to which `append_aborted` adds: that must not fail once the marker is in the log."""
        _ = self.txn_index

    def append_aborted(self, entry: AbortedTransaction) -> None:
        """Add an aborted transaction whose marker is in this segment to the index; nothing is written yet."""
        self.txn_index.append(entry)
        self.has_txn_index = True

    # --- recovery

    def reset_indexes(self, *, temporary: bool = False) -> None:
        """Start with empty indexes, to be rebuilt with `index_recovered`; in temporary files for `install_indexes`."""
        self._new_indexes(layout.TEMPORARY_SUFFIX if temporary else "")
        self.known_max_timestamp = NO_TIMESTAMP
        self._offset_of_max_timestamp = self.base_offset
        self.bytes_since_index = 0

    def index_recovered(self, header: BatchHeader, index_interval_bytes: int) -> None:
        """Index one more batch during recovery."""
        self._index((header,), 0, index_interval_bytes)

    def finish_recovery(self, aborted: list[AbortedTransaction]) -> None:
        """Write the rebuilt indexes, when recovery has reached the end or an invalid batch."""
        index = TxnIndex(self._files, self.path(layout.TXN_INDEX_SUFFIX), aborted)
        if aborted or self.has_txn_index:
            index.save()
        self._txn_index = index
        self.has_txn_index = bool(aborted)
        self.seal()

    def cut_file(self, size: int) -> None:
        """Truncate invalid bytes above `size`, durably; the indexes have no entries for them."""
        self._files.truncate(self.file, size)
        self._files.sync(self.file)
        self._cut_to(size)

    def seal(self) -> None:
        """Add the greatest timestamp to the time index and write the indexes: at a roll and at a clean close."""
        self.time_index.maybe_append(self.max_timestamp, self._offset_of_max_timestamp)
        self.time_index.save()
        self.offset_index.save()
        self.save_indexes()

    # --- timestamps

    @property
    def max_timestamp(self) -> int:
        """The greatest timestamp of the segment in ms, -1 for none; reads the end of the segment if necessary."""
        if self.known_max_timestamp is None:
            self._read_max_timestamp()
        assert self.known_max_timestamp is not None
        return self.known_max_timestamp

    def largest_timestamp(self) -> int:
        """The timestamp for retention in ms: `max_timestamp`, or the file's modification time if no record has one.

        A segment that was not open is closed again, since retention asks all segments.
        """
        was_open = self.is_open
        timestamp = self.max_timestamp
        if not was_open:
            self.release()
        return timestamp if timestamp >= 0 else self._files.modified_ms(self.path(layout.LOG_SUFFIX))

    def _read_max_timestamp(self) -> None:
        """Take it from the time index up to the last entry of the offset index, and scan the batches from there on."""
        index = self.time_index
        timestamp, offset = index.last_timestamp, index.last_offset
        for header in self.scan(self.indexed_position(_NO_LIMIT)):
            if header.max_timestamp > timestamp:
                timestamp, offset = header.max_timestamp, header.last_offset
        self.known_max_timestamp = timestamp
        self._offset_of_max_timestamp = offset

    # --- reading

    def scan(self, position: int) -> Iterator[BatchHeader]:
        """The headers from a batch's position to the end of the segment. DamagedLog at bytes that are not a batch."""
        for header in walk_batches(BatchHeader, b"", self.size, position, self._read_ahead):
            if header.magic != MAGIC:
                break
            yield header
            position = header.position + header.size
        if position != self.size:
            raise self._damaged(position)

    def header_at(self, position: int) -> BatchHeader | None:
        """The header of the batch at a position, None at the end. DamagedLog for bytes that are not a batch."""
        size = self.size
        if position == size:
            return None
        if position + HEADER_SIZE <= size:
            header = BatchHeader(self._read(HEADER_SIZE, position), 0, position)
            if header.magic == MAGIC and header.size >= HEADER_SIZE and position + header.size <= size:
                return header
        raise self._damaged(position)

    def _damaged(self, position: int) -> DamagedLog:
        return DamagedLog(f"{self.path(layout.LOG_SUFFIX)} is damaged at byte {position}: no record batch begins there")

    def indexed_position(self, offset: int) -> int:
        """The position of a batch at or before `offset` from the index; 0 if the index entry does not match a batch."""
        index = self.offset_index
        indexed, position = index.lookup(offset)
        if index.is_loaded and position and not self._is_batch(position, indexed):
            return 0
        return position

    def _is_batch(self, position: int, last_offset: int) -> bool:
        """Whether a batch of this segment that ends at or below `last_offset` starts at a position (L4)."""
        if position + HEADER_SIZE > self.size:
            return False
        header = BatchHeader(self._read(HEADER_SIZE, position), 0, position)
        return header.magic == MAGIC and self.base_offset <= header.base_offset <= header.last_offset <= last_offset

    def locate(self, offset: int) -> tuple[int, int] | None:
        """(position, size) of the first batch that ends at or above `offset`; None if there is none. As `search`."""
        place = self.search(offset)
        return None if place is None else place[:2]

    def search(self, offset: int, position: int | None = None, *, may_wait: bool = True) -> Place | None:
        """The first batch that ends at or above `offset`; None if there is none.

        The search begins at `position`, where a batch begins, or else where the index says. Without `may_wait`,
        NotInMemory is raised when the bytes at that place have to be read from the disk.
        Raises DamagedLog when bytes before it are not a batch: they must not be skipped (L2). A fetch passes here, so
        this is a loop of its own and not `scan`, which makes an object of each header and takes twice as long.
        """
        if position is None:
            if not may_wait and self._offset_index is None:
                raise NotInMemory(self._lookup_in_files(offset))
            position = self.indexed_position(offset)
        size = self.size
        unpack = _SEARCHED.unpack_from
        buffer: bytes | bytearray = b""
        start = position
        last_start, last_read = size - HEADER_SIZE, -1  # where a header may begin at most; a header that was read
        while position <= last_start:
            if position > last_read:
                start = position
                if may_wait:
                    buffer = self._read(min(_SCAN_CHUNK, size - position), position)
                else:
                    buffer, may_wait = self._read_cached(position), True
                last_read = start + len(buffer) - HEADER_SIZE
            base_offset, length, magic, last_offset_delta = unpack(buffer, position - start)
            end = position + length + LOG_OVERHEAD
            if magic != MAGIC or length < _LEAST_LENGTH or end > size:
                break
            if base_offset + last_offset_delta >= offset:
                return position, end - position, buffer, start
            position = end
        if position != size:
            raise self._damaged(position)
        return None

    def _lookup_in_files(self, offset: int) -> Callable[[], None]:
        paths = [self.path(layout.LOG_SUFFIX), self.path(layout.INDEX_SUFFIX)]
        if self.has_txn_index and self._txn_index is None:
            paths.append(self.path(layout.TXN_INDEX_SUFFIX))
        return partial(_read_for_lookup, self._files, paths, self.base_offset, offset)

    def _read_cached(self, position: int) -> bytes | bytearray:
        """The bytes where a scan begins. NotInMemory."""
        file = self.file
        length = min(_SCAN_CHUNK, self.size - position)
        data = self._files.read_cached(file, length, position)
        if data is None:
            raise NotInMemory(partial(_read_chunk, self._files, file, length, position))
        return data

    def _read(self, length: int, position: int) -> bytes:
        """Bytes below `size`; OSError when the file is shorter, so it was changed from outside."""
        data = self._files.read_at(self.file, length, position)
        if len(data) != length:
            raise OSError(errno.EIO, "the file is shorter than the segment", self.path(layout.LOG_SUFFIX))
        return data

    def _read_ahead(self, _: int, position: int) -> bytes:
        return self._read(min(_SCAN_CHUNK, self.size - position), position)

    def batches(self, position: int = 0, *, unread_below: int = 0) -> Iterator[tuple[BatchHeader, memoryview]]:
        """Header and bytes of each whole batch from `position` on, read in large pieces; stops at an incomplete one.

        The bytes of data batches that end below the offset `unread_below` are incomplete where they have not been read.
        """
        chunk = _SCAN_CHUNK if unread_below > self.base_offset else _RECOVERY_CHUNK

        def read(least: int, position: int) -> bytes:
            length = chunk if least == HEADER_SIZE else max(least, _RECOVERY_CHUNK)
            return self._read(min(length, self.size - position), position)

        def needs_bytes(batch: BatchView) -> bool:
            return batch.last_offset >= unread_below or batch.is_control

        for batch in walk_batches(BatchView, b"", self.size, position, read, needs_bytes):
            yield batch, batch.view
            is_near = batch.last_offset + 1 >= unread_below
            chunk = _RECOVERY_CHUNK if is_near or batch.size < _SCAN_CHUNK else _SCAN_CHUNK

    def next_offset(self) -> int:
        """The offset after the segment's last batch, found by a scan from the last index entry."""
        end = self.base_offset
        for header in self.scan(self.indexed_position(_NO_LIMIT)):
            end = header.last_offset + 1
        return end

    # --- truncation

    def truncate_to(self, offset: int) -> int:
        """Truncate every batch that holds offsets at or above `offset`; the number of bytes removed. Not synced."""
        place = self.locate(offset)
        position = self.size if place is None else place[0]
        cut = self.size - position
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        if self.has_txn_index or self._txn_index is not None:
            self.txn_index.truncate_to(offset)
        self._files.truncate(self.file, position)
        self._cut_to(position)
        self.bytes_since_index = position - self.offset_index.last_position
        self.known_max_timestamp = None
        self.first_timestamp = None if position else self.first_timestamp
        if position == 0:
            self.known_max_timestamp = NO_TIMESTAMP
            self._offset_of_max_timestamp = self.base_offset
            self.offset_index.reset()
            self.time_index.reset()
        return cut

    def read_bytes(self, position: int, length: int) -> bytes:
        """Bytes of the log file, without any check."""
        return self._read(length, position)

    def read(self, header: BatchHeader) -> bytes:
        """The bytes of one batch."""
        return self._read(header.size, header.position)


def _read_for_lookup(files: Files, paths: Sequence[str], base_offset: int, offset: int) -> None:
    """Read the index, and the log file where the lookup of `offset` begins; the `paths` are theirs, and of more."""
    log_path, index_path, *others = paths
    position = OffsetIndex.load(files, index_path, base_offset).lookup(offset)[1]
    file = files.open_read(log_path)
    try:
        files.read_at(file, _SCAN_CHUNK, position)
    finally:
        file.close()
    for path in others:
        files.read_file(path)


def _read_chunk(files: Files, file: File, length: int, position: int) -> None:
    files.read_at(file, length, position)


class RollLimits(Protocol):
    """The part of a log's configuration that limits the size and age of a segment."""

    segment_bytes: int
    segment_ms: int
    segment_index_bytes: int
    index_interval_bytes: int
    cleanup_policy: frozenset[str]
    max_compaction_lag_ms: int


def may_roll(segment: Segment, limits: RollLimits, header: BatchHeader) -> bool:
    """Whether `should_roll` has to be asked before a batch is appended: no for nearly every batch."""
    size, first_timestamp = segment.size, segment.first_timestamp
    return (
        size > limits.segment_bytes - header.size
        or first_timestamp is None
        or first_timestamp < 0
        or header.max_timestamp - first_timestamp > limits.segment_ms - segment.roll_jitter_ms
        or limits.max_compaction_lag_ms < limits.segment_ms
        or segment.bytes_since_index > limits.index_interval_bytes  # the indexes get an entry
        or header.last_offset - segment.base_offset > MAX_RELATIVE_OFFSET
    )


def should_roll(
    segment: Segment, limits: RollLimits, incoming: int, last_offset: int, max_timestamp: int, now: float
) -> bool:
    """Whether `incoming` bytes of batches up to `last_offset` must be written to a new segment.

    It depends on size, age, full indexes and the range of offsets. Source: Kafka's `LogSegment.shouldRoll`.
    The age is the new batches' greatest timestamp in ms minus the timestamp of the segment's first batch: it does not
    depend on the wall clock (L12); without timestamps it is the time since the segment was made. `now` is in seconds.
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
    """A value below segment.jitter.ms that depends on partition and segment only, so it is the same in every run.

    Source: Kafka's `LogConfig.randomSegmentJitter`.
    """
    return crc32c(f"{topic}-{partition}-{base_offset}".encode()) % max_jitter_ms if max_jitter_ms > 0 else 0
