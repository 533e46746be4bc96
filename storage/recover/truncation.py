"""Truncation of a log, at its end or fully (R5, R24, I7), so that the event loop never waits for the disk.

The caller does these in order; nothing may be appended to the log before the last of them:

1. `prepare`, in steps: the producer state at the new end is rebuilt, while the log is still as it was;
2. `announce`; then the caller writes the checkpoint of the recovery points, and of the log starts if
   `lowers_log_start`: a crash from here on may leave any part of the truncated data (L2);
3. `cut`, in place: truncated data exists no longer, for readers and for the state in memory;
4. `sync`, in a thread: truncated data, files and epochs do not come back after a crash, not even behind new records;
5. `finish`.

Until `cut` the truncation can be given up with `abandon`. A partition that begins to lead between `cut` and `sync` may
append: its next flush includes what `sync` does. Files are renamed to `.deleted`, as for retention, and removed later.

After a crash the log ends where it ended before, at the new end, or in between, at a batch: recovery cuts it at the
first gap. The follower then compares epochs with its leader again. Source: Kafka's `UnifiedLog.truncateTo`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from itertools import takewhile
from typing import TYPE_CHECKING, Protocol, TypeAlias

from barnabas.storage import layout
from barnabas.storage.damage import DamagedLog
from barnabas.storage.producers.producer_snapshot import CorruptSnapshot
from barnabas.storage.producers.producer_state import ProducerState
from barnabas.storage.segments.segment import NotInMemory, Segment
from barnabas.wire.batches.batch_header import BatchView, walk_batches
from barnabas.wire.batches.records import MAGIC

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
    """The part of a `Log` that `Truncation` uses."""

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
        try:
            segments[segments.floor_index(self.offset)].search(self.offset, may_wait=False)
        except NotInMemory as cold:
            yield cold.lookup
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
        """From now on the checkpoint of the recovery points allows the truncated data to be missing.

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


class _Batches:
    """Reads the batches of a segment in threads, a bounded number at a time."""

    __slots__ = ("_batches", "_first", "step")

    def __init__(self, log: TruncatedLog, segment: Segment, first_offset: int) -> None:
        """Of batches below `first_offset` and of those without a producer only the headers are sure to be read."""
        file, size = segment.file, segment.size

        def read(least: int, position: int) -> bytes:
            return log.files.read_at(file, min(max(least, _CHUNK), size - position), position)

        self._first = first_offset
        walk = walk_batches(BatchView, b"", size, 0, read, self.changes_state)
        self._batches = takewhile(lambda batch: batch.magic == MAGIC, walk)
        self.step: list[BatchView] = []
        """The batches that `read` has read last; none at the end, and at bytes that are not a batch."""

    def changes_state(self, batch: BatchView) -> bool:
        """Whether the producer state changes with a batch."""
        return batch.producer_id >= 0 and batch.base_offset >= self._first

    def read(self) -> None:
        """Read the batches that follow; to be called in a thread."""
        self.step.clear()
        remaining = _CHUNK
        for batch in self._batches:
            self.step.append(batch)
            remaining -= batch.size
            if len(self.step) == _BATCHES_PER_STEP or remaining <= 0:
                break


def _replay(log: TruncatedLog, segment: Segment, state: ProducerState, start: int, end: int) -> Steps:
    """Apply the batches of a segment in [start, end) to the producer state. DamagedLog for an invalid batch."""
    batches = _Batches(log, segment, start)
    position = 0
    while position < segment.size:
        yield batches.read
        if not batches.step:
            raise DamagedLog(f"{segment.path(layout.LOG_SUFFIX)} is damaged at byte {position}")
        for batch in batches.step:
            if batch.base_offset >= end:
                return
            if batches.changes_state(batch):
                state.replay(batch, batch.view)
            position += batch.size
