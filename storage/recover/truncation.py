"""Truncation of a log, at its end or fully (R5, R24, I7), so that the event loop never waits for the disk.

The caller does these in order; nothing may be appended to the log before the last of them:

1. `prepare`, in steps: the producer state at the new end is rebuilt, while the log is still as it was;
2. `announce`; then the caller writes the checkpoint of the recovery points, and of the log starts if
   `lowers_log_start`: a crash from here on may leave any part of the truncated data (L2);
3. `cut`, in place: what is truncated exists no longer, for readers and for the state in memory;
4. `sync`, in a thread: truncated data, files and epochs do not come back after a crash, not even behind new records;
5. `finish`.

Until `cut` the truncation can be given up with `abandon`. A partition that begins to lead between `cut` and `sync` may
append: its next flush includes what `sync` does. Files are renamed to `.deleted`, as for retention, and removed later.

After a crash the log ends where it ended before, at the new end, or in between, at a batch: recovery cuts it at the
first gap. The follower then compares epochs with its leader again. Source: Kafka's `UnifiedLog.truncateTo`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Protocol, TypeAlias

from barnabas.storage import layout
from barnabas.storage.batch_header import BatchHeader
from barnabas.storage.damage import DamagedLog
from barnabas.storage.producers.producer_snapshot import CorruptSnapshot
from barnabas.storage.producers.producer_state import ProducerState
from barnabas.storage.segments.segment import Segment
from barnabas.wire.batches.records import HEADER_SIZE, MAGIC

if TYPE_CHECKING:
    from barnabas.storage.append.leader_epochs import EpochsWrite, LeaderEpochCache
    from barnabas.storage.files import File, Files
    from barnabas.storage.producers.snapshot_files import SnapshotFiles
    from barnabas.storage.segments.log_segments import Segments

Steps: TypeAlias = Generator[Callable[[], None] | None, None, None]
"""Yields None after each short step, or a function that waits for the disk."""

_CHUNK = 1 << 20
_BATCHES_PER_STEP = 200


class TruncatedLog(Protocol):
    """What is used of a `Log`."""

    directory: str
    files: Files
    is_cleaning: bool
    leader_epochs: LeaderEpochCache
    log_start_offset: int
    producers: ProducerState
    recovery_limit: int | None
    recovery_point: int
    segments: Segments

    @property
    def high_watermark(self) -> int:
        """The end of the committed records."""

    @property
    def snapshots(self) -> SnapshotFiles:
        """The producer snapshots."""

    def drop(self, segment: Segment, renamed: list[str]) -> None:
        """Rename the files of a segment and forget it."""

    def set_end(self, offset: int) -> None:
        """The log ends there now."""

    def start_again_at(self, offset: int) -> None:
        """The log is empty now."""


class Truncation:
    """One truncation of one log."""

    __slots__ = ("_epochs", "_file", "_producers", "is_full", "log", "offset")

    def __init__(self, log: TruncatedLog, offset: int, *, fully: bool = False) -> None:
        """Truncate at `offset`; fully when everything is removed and the log continues there."""
        self.log = log
        self.offset = offset
        self.is_full = fully or offset < log.segments[0].base_offset
        self._producers = ProducerState()
        self._epochs: EpochsWrite | None = None
        self._file: File | None = None

    @property
    def lowers_log_start(self) -> bool:
        """Whether the log starts lower afterwards."""
        return self.offset < self.log.log_start_offset

    def prepare(self) -> Steps:
        """Read what the truncation needs. DamagedLog for an invalid batch, OSError when the disk fails."""
        if self.is_full:
            self._producers.clear(self.offset)
            return
        segments = self.log.segments
        lookup = segments[segments.floor_index(self.offset)].cold_lookup(self.offset)
        if lookup is not None:
            yield lookup
        yield from self._rebuild_producers()

    def _rebuild_producers(self) -> Steps:
        """Rebuild the producer state at the new end from the latest snapshot and the batches after it."""
        log, state, end = self.log, self._producers, self.offset
        first = log.segments[0].base_offset
        state.clear(first)
        for offset in reversed(log.snapshots.offsets()):
            if first <= offset <= end:
                try:
                    state.load_snapshot(log.snapshots.read(offset), offset)
                    break
                except (CorruptSnapshot, FileNotFoundError):
                    continue
        start = state.end_offset
        if start < end:
            for segment in log.segments.from_offset(start):
                if segment.base_offset < end:
                    yield from _replay(log, segment, state, start, end)
        state.end_offset = end

    def announce(self) -> None:
        """From now on the checkpoint of the recovery points says that what is truncated may be missing.

        One below the new end: a segment may start there next, and the truncated one would then be trusted although its
        indexes are truncated in memory only (`Log.recovery_point_to_write`).
        """
        log = self.log
        log.recovery_limit = min(log.log_start_offset, self.offset) if self.is_full else max(0, self.offset - 1)

    def abandon(self) -> None:
        """Give the truncation up; `cut` has not been called."""
        self.log.recovery_limit = None

    def cut(self) -> list[str]:
        """Truncate the log; the renamed files, to be removed later.

        After an OSError the log is not whole in memory and must be opened again.
        """
        log, offset = self.log, self.offset
        renamed: list[str] = []
        limit = log.recovery_limit
        for segment in reversed(list(log.segments)):
            if self.is_full or segment.base_offset > offset:
                log.drop(segment, renamed)
        if self.is_full:
            log.segments.add(Segment.create(log.files, log.directory, offset, 0.0))
            log.snapshots.remove_from(0)
            log.leader_epochs.clear()
            log.start_again_at(offset)
        else:
            log.segments.active.truncate_to(offset)
            log.snapshots.remove_from(offset + 1)
            log.leader_epochs.truncate_from_end(offset)
            log.set_end(offset)
        if limit is not None:
            log.recovery_point = min(log.recovery_point, limit)
        log.recovery_limit = None
        log.producers = self._producers
        log.producers.on_high_watermark(log.high_watermark)
        self._epochs = log.leader_epochs.start_write()
        self._file = log.segments.active.file
        return renamed

    def sync(self) -> None:
        """Make the truncation durable; may be called in a thread. OSError when the disk failed: never repeat it."""
        files = self.log.files
        if self._file is not None:
            files.sync(self._file)
        if self._epochs is not None:
            file = files.open(self._epochs.temporary)
            files.sync(file)
            file.close()
            self._epochs.install()
        files.sync_dir(self.log.directory)

    def finish(self) -> None:
        """The truncation is durable."""
        self._file = None
        if self._epochs is not None:
            self.log.leader_epochs.finish_write(self._epochs)


def truncate_in_place(log: TruncatedLog, offset: int, *, fully: bool = False) -> None:
    """Do all steps of a truncation now and wait for the disk; the caller has written the checkpoints."""
    truncation = Truncation(log, offset, fully=fully)
    for wait in truncation.prepare():
        if wait is not None:
            wait()
    renamed = truncation.cut()
    truncation.sync()
    truncation.finish()
    for path in renamed:
        log.files.unlink(path)


class _Pieces:
    """Reads a segment batch by batch, from pieces of its file that threads have read."""

    __slots__ = ("_at", "_file", "_files", "_piece", "_wanted", "position", "size")

    def __init__(self, log: TruncatedLog, segment: Segment) -> None:
        self._files = log.files
        self._file = segment.file
        self._piece = memoryview(b"")
        self._at = 0
        self._wanted = 0
        self.size = segment.size
        self.position = 0

    def lacks(self, length: int) -> bool:
        """Whether the next `length` bytes have to be read first, with `read`."""
        self._wanted = max(length, _CHUNK)
        return self._at + length > len(self._piece)

    def read(self) -> None:
        """Read a piece of the file from the position on; may be called in a thread."""
        wanted = min(self._wanted, self.size - self.position)
        self._piece, self._at = memoryview(self._files.read_at(self._file, wanted, self.position)), 0

    def header(self) -> BatchHeader | None:
        """The header of the next batch; None if there is none, or none that is whole."""
        if self.lacks(HEADER_SIZE):
            return None
        header = BatchHeader(self._piece, self._at, self.position)
        is_whole = header.size >= HEADER_SIZE and self.position + header.size <= self.size
        return header if is_whole and header.magic == MAGIC else None

    def batch(self, header: BatchHeader) -> memoryview:
        """The bytes of the next batch."""
        return self._piece[self._at : self._at + header.size]

    def skip(self, header: BatchHeader) -> None:
        """Go on behind the next batch."""
        self._at += header.size
        self.position += header.size


def _replay(log: TruncatedLog, segment: Segment, state: ProducerState, start: int, end: int) -> Steps:
    """Apply the batches of a segment in [start, end) to the producer state."""
    pieces = _Pieces(log, segment)
    count = 0
    while pieces.position < pieces.size:
        if pieces.lacks(HEADER_SIZE):
            yield pieces.read
        header = pieces.header()
        if header is None:
            raise DamagedLog(f"{segment.path(layout.LOG_SUFFIX)} is damaged at byte {pieces.position}")
        if header.base_offset >= end:
            return
        if header.producer_id >= 0 and header.base_offset >= start:
            if pieces.lacks(header.size):
                yield pieces.read
            state.replay(header, pieces.batch(header))
        pieces.skip(header)
        count += 1
        if count % _BATCHES_PER_STEP == 0:
            yield None
