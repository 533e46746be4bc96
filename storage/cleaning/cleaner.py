"""One pass of compaction over one log (rules L7-L9, KIP-58 for the lags, KIP-534 for delete horizons).

First the keys of the dirty part are read, until its end or until the map is full; then every segment up to there is
rewritten, group by group, each group into one segment. Batches above the last record in the map are copied unchanged:
the next pass continues there. The cleaner only reads the log's files and writes `.cleaned` files; the owner of the log
puts these in place with `storage.recover.swap`.

A batch is removed with its last record, with two exceptions, which are kept as headers: the last data batch of an
active producer, from which its sequence is restored, and the last batch of a group, from which the segment's end is
known. The last marker of a producer that has written no data since holds the producer's epoch; it is kept whole, since
recovery cannot restore the epoch from its header.
Source: Kafka's `Cleaner`, which keeps only the header of that marker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from barnabas.storage import layout
from barnabas.storage.cleaning.batches import Batch, header_only, read_batches, remove_records
from barnabas.storage.cleaning.cleaned_segment import CleanedSegment, remove_cleaned
from barnabas.storage.cleaning.key_map import DEAD, LIVE, TOMBSTONE, KeyMap
from barnabas.storage.cleaning.task import NO_DATA, CleanedGroup, CleaningDone, CleaningTask
from barnabas.storage.cleaning.transactions import CleanedTransactions
from barnabas.storage.files import Files
from barnabas.storage.segments.segment import Segment
from barnabas.storage.segments.sparse_indexes import MAX_RELATIVE_OFFSET
from barnabas.wire.batches.records import CONTROL_BIT, DELETE_HORIZON_BIT, TRANSACTIONAL_BIT

Throttle = Callable[[int], None]


def unthrottled(_: int) -> None:
    """No limit on bytes per second."""


class Cleaner:
    """One pass. `run` yields each group when it is written; `done` is the summary."""

    def __init__(self, task: CleaningTask, files: Files, throttle: Throttle = unthrottled) -> None:
        """`throttle` is called with the number of bytes read and written, and may wait."""
        self._task = task
        self._files = files
        self._throttle = throttle
        self._segments = [Segment(files, task.directory, base, size=size) for base, size in task.segments]
        self._keys = KeyMap(task.key_memory)
        self._end_offset = task.first_dirty_offset
        self._ordinal = 0
        self._transactions = CleanedTransactions([])
        self._bytes_read = 0
        self._bytes_written = 0
        self._records_read = 0
        self._records_kept = 0

    def run(self) -> Iterator[CleanedGroup]:
        """Read the keys, write the groups. DamagedLog, CorruptRecord for invalid records, OSError when the disk fails.

        The files of an unfinished group are removed.
        """
        self._map_keys()
        self._keys.finish()
        sources = [segment for segment in self._segments if segment.base_offset < self._end_offset]
        self._transactions = CleanedTransactions(self._task.aborted)
        for group in group_segments(sources, self._task, self._index_sizes()):
            try:
                cleaned = self._clean_group(group)
            except BaseException:
                with suppress(OSError):  # the next pass or start removes them
                    remove_cleaned(self._files, self._task.directory, group[0].base_offset)
                raise
            yield cleaned

    @property
    def done(self) -> CleaningDone:
        """The summary of the pass."""
        return CleaningDone(
            self._end_offset,
            self._bytes_read,
            self._bytes_written,
            self._records_read,
            self._records_kept,
            len(self._keys),
        )

    # --- the keys

    def _map_keys(self) -> None:
        """Fill the map from the first dirty batch on; `_end_offset` is the offset after the last batch in it."""
        task = self._task
        transactions = CleanedTransactions(
            entry for entry in task.aborted if entry.last_offset >= task.first_dirty_offset
        )
        dirty = self._segments[max(0, self._floor(task.first_dirty_offset)) :]
        ends = [segment.base_offset for segment in dirty[1:]] + [task.end_offset]
        for segment, end_offset in zip(dirty, ends, strict=True):
            for batch in self._read(segment, segment.indexed_position(task.first_dirty_offset)):
                if batch.last_offset < task.first_dirty_offset or self._has_no_keys(batch, transactions):
                    continue
                if not self._keys.has_room(batch.record_count):
                    return
                self._keys.add(batch.keys())
                self._end_offset = batch.last_offset + 1
            segment.release()
            self._end_offset = end_offset

    def _floor(self, offset: int) -> int:
        return sum(1 for segment in self._segments if segment.base_offset <= offset) - 1

    @staticmethod
    def _has_no_keys(batch: Batch, transactions: CleanedTransactions) -> bool:
        """Whether the keys of a batch are ignored: it is a marker, or its transaction was aborted."""
        if batch.attributes & CONTROL_BIT:
            transactions.may_drop_marker(batch)
            return True
        return bool(batch.attributes & TRANSACTIONAL_BIT) and transactions.is_aborted(
            batch.producer_id, batch.last_offset
        )

    def _read(self, segment: Segment, position: int = 0) -> Iterator[Batch]:
        buffer: bytes | None = None
        for batch in read_batches(self._files, segment, self._task.io_buffer, position):
            if batch.buffer is not buffer:
                buffer = batch.buffer
                self._throttle(len(buffer))
            yield batch

    # --- the groups

    def _index_sizes(self) -> dict[int, int]:
        """The size of the larger index of each segment, by base offset."""
        sizes: dict[int, int] = {}
        for name, size in self._files.list_files(self._task.directory):
            offset = layout.offset_of(name)
            if offset is not None and name.endswith((layout.INDEX_SUFFIX, layout.TIME_INDEX_SUFFIX)):
                sizes[offset] = max(sizes.get(offset, 0), size)
        return sizes

    def _clean_group(self, group: list[Segment]) -> CleanedGroup:
        task = self._task
        target = CleanedSegment(
            self._files, task.directory, group[0].base_offset, task.index_interval_bytes, self._throttle
        )
        self._transactions.on_kept = target.keep_aborted
        last: Batch | None = None
        for segment in group:
            for batch in self._read(segment):
                self._clean_batch(batch, target)
                self._records_read += batch.record_count
                last = batch
            self._bytes_read += segment.size
            segment.release()
        if last is not None and target.end_offset <= last.last_offset:
            target.write(header_only(last), last.last_offset, last.max_timestamp)
        target.finish(self._files.modified_ms(group[-1].path(layout.LOG_SUFFIX)))
        self._bytes_written += target.size
        return CleanedGroup(
            [segment.base_offset for segment in group],
            target.segment.base_offset,
            target.size,
            target.segment.has_txn_index,
        )

    def _clean_batch(self, batch: Batch, target: CleanedSegment) -> None:
        if batch.attributes & CONTROL_BIT:
            self._clean_marker(batch, target)
        elif batch.attributes & TRANSACTIONAL_BIT and self._transactions.is_aborted(
            batch.producer_id, batch.last_offset
        ):
            self._drop(batch, target)
        elif batch.base_offset >= self._end_offset:
            self._keep(batch, target)
        else:
            self._clean_data(batch, target)

    def _clean_marker(self, batch: Batch, target: CleanedSegment) -> None:
        """Set a delete horizon on a marker whose transaction has no batches left; remove it after the horizon."""
        droppable = self._transactions.may_drop_marker(batch)
        if not droppable or batch.base_offset >= self._end_offset or self._holds_producer_state(batch):
            self._keep(batch, target)
        elif batch.record_count and not batch.attributes & DELETE_HORIZON_BIT:
            self._write(batch, bytes(batch.record_count), self._horizon_ms(), target)
        elif batch.record_count and batch.base_timestamp > self._task.now_ms:
            self._keep(batch, target)

    def _clean_data(self, batch: Batch, target: CleanedSegment) -> None:
        marks = self._marks(batch)
        dead = marks.count(DEAD)
        horizon_ms = None
        tombstones = marks.count(TOMBSTONE)
        if tombstones:
            if not batch.attributes & DELETE_HORIZON_BIT:
                horizon_ms = self._horizon_ms()
            elif batch.base_timestamp <= self._task.now_ms:
                marks = marks.replace(bytes([TOMBSTONE]), bytes([DEAD]))
                dead += tombstones
        if dead == batch.record_count:
            self._drop(batch, target)
        elif dead or horizon_ms is not None:
            self._write(batch, marks, horizon_ms, target)
        else:
            self._keep(batch, target)

    def _marks(self, batch: Batch) -> bytes | bytearray:
        if batch.last_offset < self._task.first_dirty_offset:
            return self._keys.marks_of_clean(batch.keys())
        first = self._ordinal
        self._ordinal += batch.record_count
        return self._keys.marks[first : self._ordinal]

    def _horizon_ms(self) -> int:
        return self._task.now_ms + self._task.delete_retention_ms

    def _keep(self, batch: Batch, target: CleanedSegment) -> None:
        target.copy(batch)
        self._records_kept += batch.record_count

    def _write(self, batch: Batch, marks: bytes | bytearray, horizon_ms: int | None, target: CleanedSegment) -> None:
        data, max_timestamp = remove_records(batch, marks, horizon_ms)
        target.write(data, batch.last_offset, max_timestamp)
        self._records_kept += batch.record_count - marks.count(DEAD)

    def _drop(self, batch: Batch, target: CleanedSegment) -> None:
        """Remove a batch, or keep its header if its producer's state is restored from it."""
        if self._holds_producer_state(batch):
            target.write(header_only(batch), batch.last_offset, batch.max_timestamp)

    def _holds_producer_state(self, batch: Batch) -> bool:
        state = self._task.producers.get(batch.producer_id)
        if state is None:
            return False
        last_offset, epoch = state
        if last_offset != NO_DATA:
            return batch.last_offset == last_offset
        return bool(batch.attributes & CONTROL_BIT) and batch.producer_epoch == epoch


def group_segments(
    segments: Iterable[Segment], task: CleaningTask, index_sizes: dict[int, int]
) -> Iterator[list[Segment]]:
    """Adjacent segments that fit into one: by the bytes of logs and indexes, and by the range of offsets."""
    rest = list(segments)
    while rest:
        count = size = index_size = 0
        for at, segment in enumerate(rest):
            size += segment.size
            index_size += index_sizes.get(segment.base_offset, 0)
            end_offset = rest[at + 1].base_offset if at + 1 < len(rest) else task.end_offset
            fits = size <= task.segment_bytes and index_size <= task.segment_index_bytes
            if count and not (fits and end_offset - 1 - rest[0].base_offset <= MAX_RELATIVE_OFFSET):
                break
            count = at + 1
        yield rest[:count]
        rest = rest[count:]


assert LIVE == 0, "bytes(count) marks all records as LIVE"
