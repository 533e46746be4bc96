"""The segment that a cleaner writes: `.cleaned` files, indexed while they are written and synced in pieces.

One sync of a whole gigabyte at the end would delay all other syncs of the disk.
"""

from __future__ import annotations

from collections.abc import Callable

from barnabas.storage import layout
from barnabas.storage.append.flush_job import FlushJob
from barnabas.storage.cleaning.batches import Batch
from barnabas.storage.files import Files
from barnabas.storage.segments.segment import Segment
from barnabas.storage.segments.txn_index import AbortedTransaction
from barnabas.wire.batches.records import NO_TIMESTAMP

SYNC_EVERY = 16 << 20
_WRITE_FROM = 256 << 10


class CleanedSegment:
    """Writes batches in order of offset; it is not durable before `finish`."""

    __slots__ = (
        "_buffer",
        "_bytes_since_index",
        "_files",
        "_index_interval_bytes",
        "_max_timestamp",
        "_offset_of_max",
        "_on_write",
        "_run",
        "_size",
        "_unsynced",
        "end_offset",
        "segment",
    )

    def __init__(
        self,
        files: Files,
        directory: str,
        base_offset: int,
        index_interval_bytes: int,
        on_write: Callable[[int], None],
    ) -> None:
        """`on_write` is called with the number of bytes of each write, and may wait."""
        remove_cleaned(files, directory, base_offset)
        self._on_write = on_write
        self._files = files
        self._index_interval_bytes = index_interval_bytes
        files.sync_dir(directory)  # the last renames of the previous replacement: see `swap.finish`
        self.segment = Segment.create(files, directory, base_offset, 0.0, layout.CLEANED_SUFFIX)
        self.end_offset = base_offset
        self._buffer = bytearray()
        self._run: tuple[bytes, int, int] = (b"", 0, 0)
        self._size = 0
        self._unsynced = 0
        self._bytes_since_index = 0
        self._max_timestamp = NO_TIMESTAMP
        self._offset_of_max = base_offset

    @property
    def size(self) -> int:
        """The bytes of the batches so far."""
        return self._size

    def copy(self, batch: Batch) -> None:
        """Add an unchanged batch; adjacent batches are copied together."""
        buffer, start, end = self._run
        if buffer is batch.buffer and end == batch.start:
            self._run = (buffer, start, batch.end)
        else:
            self._take_run()
            self._run = (batch.buffer, batch.start, batch.end)
        self._index(batch.last_offset, batch.max_timestamp, batch.size)

    def write(self, data: bytes, last_offset: int, max_timestamp: int) -> None:
        """Add a rewritten batch."""
        self._take_run()
        self._buffer += data
        self._index(last_offset, max_timestamp, len(data))

    def _take_run(self) -> None:
        buffer, start, end = self._run
        if end > start:
            self._buffer += memoryview(buffer)[start:end]
            self._run = (b"", 0, 0)
        if len(self._buffer) >= _WRITE_FROM:
            self._write_out()

    def _write_out(self) -> None:
        segment, data = self.segment, self._buffer
        self._files.write_at(segment.file, data, segment.size)
        segment.size += len(data)
        self._unsynced += len(data)
        self._buffer = bytearray()
        self._on_write(len(data))
        if self._unsynced >= SYNC_EVERY:
            self._files.sync(segment.file)
            self._unsynced = 0

    def _index(self, last_offset: int, max_timestamp: int, size: int) -> None:
        """Add index entries as `Segment.append` does: one after more than the interval in bytes since the last."""
        if max_timestamp > self._max_timestamp:
            self._max_timestamp = max_timestamp
            self._offset_of_max = last_offset
        if self._bytes_since_index > self._index_interval_bytes:
            self.segment.offset_index.append(last_offset, self._size)
            self.segment.time_index.maybe_append(self._max_timestamp, self._offset_of_max)
            self._bytes_since_index = 0
        self._bytes_since_index += size
        self._size += size
        self.end_offset = last_offset + 1

    def keep_aborted(self, entry: AbortedTransaction) -> None:
        """Add an aborted transaction whose marker is kept to the index."""
        self.segment.append_aborted(entry)

    def finish(self, modified_ms: int) -> None:
        """Write the rest and the indexes, and sync the files and their names.

        `modified_ms` is the modification time to set on the log file.
        """
        self._take_run()
        if self._buffer:
            self._write_out()
        segment = self.segment
        segment.time_index.maybe_append(self._max_timestamp, self._offset_of_max)
        segment.time_index.save()
        segment.offset_index.save()
        self._files.set_modified_ms(segment.path(layout.LOG_SUFFIX), modified_ms)
        job = FlushJob(self._files, segment.files_to_sync(), [], 0, 0, 0)
        job.sync_files()
        segment.synced(segment.size)
        self._files.sync_dir(segment.stem.rpartition("/")[0])
        segment.release()


def remove_cleaned(files: Files, directory: str, base_offset: int) -> None:
    """Remove the files of an interrupted cleaning."""
    for kind in layout.SEGMENT_SUFFIXES:
        files.unlink(f"{directory}/{layout.segment_name(base_offset, kind)}{layout.CLEANED_SUFFIX}")
