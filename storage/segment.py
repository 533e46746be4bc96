"""One segment of a log: the file of record batches, and its indexes.

Invariants: `size` is the number of valid bytes, everything behind it is garbage to be overwritten; the file and the
indexes are opened only when needed, so that an idle partition holds no descriptor; index entries are made per batch,
as Kafka's `LogSegment` does, once more than `index.interval.bytes` have passed since the last.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from typing import Protocol

from barnabas.storage import layout
from barnabas.storage.batch_header import BatchHeader
from barnabas.storage.damage import DamagedLog
from barnabas.storage.files import File, Files
from barnabas.storage.offset_index import MAX_RELATIVE_OFFSET, OffsetIndex
from barnabas.storage.time_index import NO_TIMESTAMP, TimeIndex
from barnabas.storage.txn_index import AbortedTransaction, TxnIndex
from barnabas.wire.records import CONTROL_BIT, HEADER, HEADER_SIZE, LOG_OVERHEAD, MAGIC

_NO_LIMIT = 2**63 - 1
_SCAN_CHUNK = 8192
_RECOVERY_CHUNK = 4 << 20


class RollLimits(Protocol):
    """The part of a log's configuration that says when a segment is full."""

    segment_bytes: int
    segment_ms: int
    segment_index_bytes: int
    cleanup_policy: frozenset[str]
    max_compaction_lag_ms: int


class Segment:
    """The batches from `base_offset` up to the next segment's."""

    __slots__ = (
        "_file",
        "_files",
        "_max_timestamp",
        "_offset_index",
        "_offset_of_max_timestamp",
        "_time_index",
        "_txn_index",
        "base_offset",
        "bytes_since_index",
        "created",
        "file_count",
        "first_timestamp",
        "has_txn_index",
        "roll_jitter_ms",
        "size",
        "stem",
        "suffix",
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
        self._files = files
        self.stem = f"{directory}/{base_offset:020d}"
        self.suffix = suffix
        self.base_offset = base_offset
        self.size = size
        self.created = created
        self.roll_jitter_ms = 0
        self.file_count = 1
        """The number of its files whose names are on the disk, or will be with the next flush of its log."""
        self.first_timestamp: int | None = None
        self.bytes_since_index = 0
        self.has_txn_index = False
        self._file: File | None = None
        self._offset_index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        self._txn_index: TxnIndex | None = None
        self._max_timestamp: int | None = None
        self._offset_of_max_timestamp = base_offset

    @classmethod
    def create(cls, files: Files, directory: str, base_offset: int, now: float, suffix: str = "") -> Segment:
        """Make an empty segment with its log file; leftovers of the same name are cleared.

        With `suffix` it is one that is not part of the log yet (`.cleaned`, see `storage.swap`).
        """
        segment = cls(files, directory, base_offset, created=now, suffix=suffix)
        segment._offset_index = OffsetIndex(files, segment.path(layout.INDEX_SUFFIX), base_offset)
        segment._time_index = TimeIndex(files, segment.path(layout.TIME_INDEX_SUFFIX), base_offset)
        segment._max_timestamp = NO_TIMESTAMP
        if files.size(segment.file):  # only then: ext4 writes out what a file that was cut to nothing holds when closed
            files.truncate(segment.file, 0)
        return segment

    # --- files, opened when needed

    def path(self, kind: str) -> str:
        """The name of one of its files: `.log`, `.index`, `.timeindex` or `.txnindex`."""
        return f"{self.stem}{kind}{self.suffix}"

    @property
    def file(self) -> File:
        """The log file."""
        if self._file is None:
            self._file = self._files.open(self.path(layout.LOG_SUFFIX))
        return self._file

    @property
    def is_open(self) -> bool:
        """Whether the segment holds a descriptor."""
        return self._file is not None

    @property
    def offset_index(self) -> OffsetIndex:
        """The offset index."""
        if self._offset_index is None:
            self._offset_index = OffsetIndex.load(self._files, self.path(layout.INDEX_SUFFIX), self.base_offset)
        return self._offset_index

    @property
    def time_index(self) -> TimeIndex:
        """The time index."""
        if self._time_index is None:
            self._time_index = TimeIndex.load(self._files, self.path(layout.TIME_INDEX_SUFFIX), self.base_offset)
        return self._time_index

    @property
    def txn_index(self) -> TxnIndex:
        """The index of aborted transactions."""
        if self._txn_index is None:
            path = self.path(layout.TXN_INDEX_SUFFIX)
            self._txn_index = TxnIndex.load(self._files, path) if self.has_txn_index else TxnIndex(self._files, path)
        return self._txn_index

    def release(self) -> None:
        """Let go of descriptor and indexes; they come back when needed. What the index files lack is written first."""
        self.save_indexes()
        self._offset_index = None
        self._time_index = None
        self._file = None

    # --- appending

    def append(
        self, data: memoryview, headers: list[BatchHeader], max_timestamp: int, index_interval_bytes: int
    ) -> None:
        """Write whole batches behind the last, in one write, then index them.

        `headers` carry final offsets; their positions are relative to `data`. On OSError `undo_append` is due, and
        nothing else has changed.
        """
        start = self.size
        file = self._file if self._file is not None else self.file
        self._files.write_at(file, data, start)
        self.size = start + len(data)
        if start == 0:
            self.first_timestamp = max_timestamp
        self._index(headers, start, index_interval_bytes)

    def undo_append(self) -> None:
        """Cut off what a failed write has left behind the last batch, if the disk lets us."""
        try:
            self._files.truncate(self.file, self.size)
        except OSError:
            pass  # garbage past `size`: the next append writes over it, recovery cuts it

    def _index(self, headers: Sequence[BatchHeader], start: int, index_interval_bytes: int) -> None:
        greatest = self.max_timestamp
        for header in headers:
            if header.max_timestamp > greatest:
                greatest = self._max_timestamp = header.max_timestamp
                self._offset_of_max_timestamp = header.last_offset
            if self.bytes_since_index > index_interval_bytes:
                self.offset_index.append(header.last_offset, start + header.position)
                self.time_index.maybe_append(greatest, self._offset_of_max_timestamp)
                self.bytes_since_index = 0
            self.bytes_since_index += header.size

    def should_roll(self, limits: RollLimits, incoming: int, last_offset: int, max_timestamp: int, now: float) -> bool:
        """Whether `incoming` bytes up to `last_offset` must go to a new segment: size, age, full index, offset range.

        Age is the new batch's timestamp less the first one's of the segment (L12: no wall clock), or, without
        timestamps, the time since the segment was made.
        """
        size = self.size
        if last_offset - self.base_offset > MAX_RELATIVE_OFFSET:
            return True
        if size == 0:
            return False
        if size > limits.segment_bytes - incoming:
            return True
        index_bytes = limits.segment_index_bytes
        index = self._offset_index
        if (index is not None and (len(index) + 1) * 8 > index_bytes) or self._time_index_is_full(index_bytes):
            return True
        max_age_ms = limits.segment_ms
        if limits.max_compaction_lag_ms < max_age_ms and "compact" in limits.cleanup_policy:
            max_age_ms = limits.max_compaction_lag_ms  # KIP-354: what is not closed cannot be compacted
        return self._age_ms(max_timestamp, now) > max_age_ms - self.roll_jitter_ms

    def _time_index_is_full(self, index_bytes: int) -> bool:
        index = self._time_index
        return index is not None and (len(index) + 2) * 12 > index_bytes

    def _age_ms(self, max_timestamp: int, now: float) -> float:
        first_timestamp = self.first_timestamp
        if first_timestamp is None:
            first_timestamp = self.first_batch_timestamp()
        if first_timestamp >= 0:
            return max_timestamp - first_timestamp
        return (now - self.created) * 1000

    def first_batch_timestamp(self) -> int:
        """The greatest timestamp of the first batch in ms, -1 for none."""
        if self.first_timestamp is None:
            was_open = self.is_open
            header = next(self.scan(0, 1), None)
            self.first_timestamp = header.max_timestamp if header is not None else NO_TIMESTAMP
            if not was_open:
                self.release()
        return self.first_timestamp

    def append_aborted(self, entry: AbortedTransaction) -> None:
        """Note an aborted transaction whose marker is in this segment."""
        self.txn_index.append(entry)
        self.has_txn_index = True

    def reset_indexes(self, *, aside: bool = False) -> None:
        """Forget the indexes: recovery builds them anew with `index_recovered`; in temporary files, to be named."""
        suffix = layout.TEMPORARY_SUFFIX if aside else ""
        self._offset_index = OffsetIndex(self._files, self.path(layout.INDEX_SUFFIX) + suffix, self.base_offset)
        self._time_index = TimeIndex(self._files, self.path(layout.TIME_INDEX_SUFFIX) + suffix, self.base_offset)
        self._max_timestamp = NO_TIMESTAMP
        self._offset_of_max_timestamp = self.base_offset
        self.bytes_since_index = 0

    def index_recovered(self, header: BatchHeader, index_interval_bytes: int) -> None:
        """Index one more batch during recovery."""
        self._index((header,), 0, index_interval_bytes)

    def finish_recovery(self, aborted: list[AbortedTransaction]) -> None:
        """Recovery has come to the end, or to a bad batch: write the indexes."""
        index = TxnIndex(self._files, self.path(layout.TXN_INDEX_SUFFIX), aborted)
        if aborted or self.has_txn_index:
            index.save()
        self._txn_index = index
        self.has_txn_index = bool(aborted)
        self.seal()

    def name_indexes(self) -> None:
        """Put indexes that were built aside in their places; durable on return."""
        for index in (self.offset_index, self.time_index):
            final = index.path.removesuffix(layout.TEMPORARY_SUFFIX)
            self._files.sync(self._files.open(index.path))
            self._files.rename(index.path, final)
            index.path = final
        if self.has_txn_index:
            self._files.sync(self._files.open(self.path(layout.TXN_INDEX_SUFFIX)))
        self._files.sync_dir(self.stem.rpartition("/")[0])

    def cut_file(self, size: int) -> None:
        """Cut off, for good, what recovery has found to be bad behind `size` good bytes; no index knows of it."""
        self._files.truncate(self.file, size)
        self._files.sync(self.file)
        self.size = size

    def seal(self) -> None:
        """Note the greatest timestamp in the time index and write the indexes out: at a roll and at a clean close."""
        self.time_index.maybe_append(self.max_timestamp, self._offset_of_max_timestamp)
        self.time_index.save()
        self.offset_index.save()

    def save_indexes(self) -> None:
        """Bring the index files up to what is in memory."""
        for index in (self._offset_index, self._time_index):
            if index is not None and index.unsaved:
                index.save()

    def files_to_sync(self, *, data_only: bool = False) -> list[File]:
        """The files whose syncing makes the segment durable; what the index files lack is written first.

        With `data_only` it is the log file, from which the indexes can be made again.
        """
        targets = [self._file or self._files.open(self.path(layout.LOG_SUFFIX))]
        if data_only:
            return targets
        self.save_indexes()
        if any(index is None or index.is_on_disk for index in (self._offset_index, self._time_index)):
            targets.append(self._files.open(self.path(layout.INDEX_SUFFIX)))
            targets.append(self._files.open(self.path(layout.TIME_INDEX_SUFFIX)))
        if self.has_txn_index:
            targets.append(self._files.open(self.path(layout.TXN_INDEX_SUFFIX)))
        return targets

    # --- timestamps

    @property
    def max_timestamp(self) -> int:
        """The greatest timestamp of the segment in ms, -1 for none; exact once the tail has been read."""
        if self._max_timestamp is None:
            self._read_max_timestamp()
        assert self._max_timestamp is not None
        return self._max_timestamp

    @property
    def offset_of_max_timestamp(self) -> int:
        """The last offset of the batch that reached `max_timestamp` first."""
        if self._max_timestamp is None:
            self._read_max_timestamp()
        return self._offset_of_max_timestamp

    def largest_timestamp(self) -> int:
        """What retention goes by, in ms: `max_timestamp`, or the file's modification time when no record has one.

        A segment that is not in use is not left open: whoever asks, asks all of them.
        """
        was_open = self.is_open
        timestamp = self.max_timestamp
        if not was_open:
            self.release()
        return timestamp if timestamp >= 0 else self._files.modified_ms(self.path(layout.LOG_SUFFIX))

    def _read_max_timestamp(self) -> None:
        """The time index knows it up to the last entry of the offset index; the batches from there on are read."""
        index = self.time_index
        timestamp, offset = index.last_timestamp, index.last_offset
        for header in self.scan(self.indexed_position(_NO_LIMIT)):
            if header.max_timestamp > timestamp:
                timestamp, offset = header.max_timestamp, header.last_offset
        self._max_timestamp = timestamp
        self._offset_of_max_timestamp = offset

    # --- reading

    def scan(self, position: int, count: int = 0) -> Iterator[BatchHeader]:
        """The headers from a batch's position to the end of the segment (at most `count` of them, 0 for all).

        DamagedLog where bytes are no batch.
        """
        size = self.size
        buffer = b""
        start = position
        while position + HEADER_SIZE <= size:
            at = position - start
            if at + HEADER_SIZE > len(buffer):
                start, at = position, 0
                buffer = self._read(min(HEADER_SIZE if count == 1 else _SCAN_CHUNK, size - position), position)
            header = BatchHeader(buffer, at, position)
            if header.magic != MAGIC or header.size < HEADER_SIZE or position + header.size > size:
                break
            yield header
            position += header.size
            if count:
                count -= 1
                if count == 0:
                    return
        if position != size:
            raise self._damaged(position)

    def _damaged(self, position: int) -> DamagedLog:
        return DamagedLog(f"{self.path(layout.LOG_SUFFIX)} is damaged at byte {position}: no record batch begins there")

    def indexed_position(self, offset: int) -> int:
        """Where to start looking for `offset`: the start of a batch at or before it. An index that lies is not used."""
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
        """(position, size) of the first batch that ends at or past `offset`; None if there is none.

        DamagedLog when bytes on the way to it are no batch: what lies behind them must not be passed over (L2).
        """
        position = self.indexed_position(offset)
        size = self.size
        unpack = HEADER.unpack_from
        buffer = b""
        start = position
        while position + HEADER_SIZE <= size:
            at = position - start
            if at + HEADER_SIZE > len(buffer):
                start, at = position, 0
                buffer = self._read(min(_SCAN_CHUNK, size - position), position)
            base_offset, length, _, magic, _, _, last_offset_delta, *_ = unpack(buffer, at)
            length += LOG_OVERHEAD
            if magic != MAGIC or length < HEADER_SIZE or position + length > size:
                break
            if base_offset + last_offset_delta >= offset:
                return position, length
            position += length
        if position != size:
            raise self._damaged(position)
        return None

    def _read(self, length: int, position: int) -> bytes:
        """Bytes that must be there: a file shorter than `size` has been tampered with."""
        data = self._files.read_at(self.file, length, position)
        if len(data) != length:
            raise OSError(errno.EIO, "the file is shorter than the segment", self.path(layout.LOG_SUFFIX))
        return data

    def batches(self, position: int = 0, *, unread_below: int = 0) -> Iterator[tuple[BatchHeader, memoryview]]:
        """Header and bytes of each whole batch from `position` on, read in large pieces; stops before a cut one.

        Data batches that end below the offset `unread_below` come cut short where their bytes have not been read.
        """
        size = self.size
        buffer = memoryview(b"")
        start = position
        chunk = _SCAN_CHUNK if unread_below > self.base_offset else _RECOVERY_CHUNK
        while position + HEADER_SIZE <= size:
            at = position - start
            if at + HEADER_SIZE > len(buffer):
                start, at = position, 0
                buffer = memoryview(self._read(min(chunk, size - position), position))
            header = BatchHeader(buffer, at, position)
            if header.size < HEADER_SIZE or position + header.size > size:
                return
            is_wanted = header.last_offset >= unread_below or header.attributes & CONTROL_BIT
            if is_wanted and at + header.size > len(buffer):
                start, at = position, 0
                wanted = min(max(_RECOVERY_CHUNK, header.size), size - position)
                buffer = memoryview(self._read(wanted, position))
            yield header, buffer[at : at + header.size]
            position += header.size
            chunk = (
                _RECOVERY_CHUNK if header.last_offset + 1 >= unread_below or header.size < _SCAN_CHUNK else _SCAN_CHUNK
            )

    def next_offset(self) -> int:
        """The offset behind the segment's last batch, found from the last index entry on."""
        end = self.base_offset
        for header in self.scan(self.indexed_position(_NO_LIMIT)):
            end = header.last_offset + 1
        return end

    # --- cutting

    def truncate_to(self, offset: int) -> int:
        """Cut off every batch that holds offsets at or past `offset`, for good; the number of bytes cut."""
        found = self.locate(offset)
        position = self.size if found is None else found[0]
        cut = self.size - position
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        if self.has_txn_index or self._txn_index is not None:
            self.txn_index.truncate_to(offset)
        self._files.truncate(self.file, position)
        self._files.sync(self.file)
        self.size = position
        self.bytes_since_index = position - self.offset_index.last_position
        self._max_timestamp = None
        self.first_timestamp = None if position else self.first_timestamp
        if position == 0:
            self._max_timestamp = NO_TIMESTAMP
            self._offset_of_max_timestamp = self.base_offset
            self.offset_index.reset()
            self.time_index.reset()
        return cut

    def read_bytes(self, position: int, length: int) -> bytes:
        """Bytes of the log file, whatever they are."""
        return self._read(length, position)

    def read(self, header: BatchHeader) -> bytes:
        """The bytes of one batch."""
        return self._read(header.size, header.position)

    def forget(self) -> None:
        """Let go of everything without writing: the directory has been renamed or is gone."""
        self._offset_index = self._time_index = self._txn_index = None
        self._file = None

    def rename_suffix(self, suffix: str) -> None:
        """The files bear another suffix from now on: the swap has renamed them."""
        self.suffix = suffix
        self.forget()

    def paths(self) -> list[str]:
        """The names of all its files, present or not."""
        return [self.path(kind) for kind in layout.SEGMENT_SUFFIXES]

    def delete(self) -> None:
        """Remove the files; slices under way keep the log file's bytes until they are sent."""
        self.forget()
        for path in self.paths():
            self._files.unlink(path)
