"""The leader epochs of a log with their start offsets, and the file `leader-epoch-checkpoint` (R2, KIP-101).

Invariants: epochs and start offsets are strictly ascending. An epoch that begins is in memory only; the next flush that
includes the indexes writes the file, so it has every epoch that begins below the segment of the recovery point. After
an unclean stop recovery reads the batches from that segment on, and takes the later epochs from them. When the log end
is truncated the file is rewritten before the next append, so that truncated epochs do not come back. After the log
start has advanced the file may contain older epochs: the log start is applied when it is loaded.

Format: a line `0`, a line with the count, then a line `epoch start_offset` per entry.
Source: Kafka's `LeaderEpochFileCache`, which writes the file for each new epoch.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from barnabas.storage import layout
from barnabas.storage.directories.checkpoints import CheckpointFile
from barnabas.storage.files import Files

NO_EPOCH = -1
NO_OFFSET = -1


class EpochsWrite:
    """A new content of the file under a temporary name. It takes the file's place once it is synced."""

    __slots__ = ("_cache", "temporary", "version")

    def __init__(self, cache: LeaderEpochCache, version: int, temporary: str) -> None:
        self._cache = cache
        self.version = version
        """The state of the cache that was written, as a count of its changes."""
        self.temporary = temporary

    def install(self) -> None:
        """Replace the file, unless it is newer; the caller syncs the directory. May be called in a thread."""
        self._cache.install(self)

    def discard(self) -> None:
        """Remove the temporary file of a flush that has failed. May be called in a thread."""
        self._cache.discard(self)


class LeaderEpochCache:
    """The epochs of one log in ascending order."""

    __slots__ = (
        "_checkpoint",
        "_durable",
        "_epochs",
        "_files",
        "_installed",
        "_installing",
        "_is_closed",
        "_starts",
        "_version",
        "_writes",
    )

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self._checkpoint = CheckpointFile(files, path)
        self._epochs: list[int] = []
        self._starts: list[int] = []
        self._version = 0  # incremented with every change that the file must get
        self._installed = 0  # the version in the file
        self._durable = 0
        self._writes = 0
        self._is_closed = False
        self._installing = Lock()  # held while the file is renamed, never during a sync

    @classmethod
    def load(cls, files: Files, path: str) -> LeaderEpochCache:
        """Read the checkpoint; a missing file is an empty cache."""
        cache = cls(files, path)
        for epoch, start_offset in cache._checkpoint.read_pairs():
            cache._put(epoch, start_offset)
        return cache

    def entries(self) -> list[tuple[int, int]]:
        """(epoch, start offset) in ascending order."""
        return list(zip(self._epochs, self._starts, strict=True))

    @property
    def path(self) -> str:
        """The checkpoint file."""
        return self._checkpoint.path

    def relocate(self, path: str) -> None:
        """The directory was renamed; no write is in progress."""
        self._checkpoint = CheckpointFile(self._files, path)

    @property
    def latest_epoch(self) -> int:
        """The epoch of the last batch, -1 when unknown."""
        return self._epochs[-1] if self._epochs else NO_EPOCH

    def assign(self, epoch: int, start_offset: int) -> None:
        """Add `epoch` with its start offset and remove entries that conflict with it. A later flush writes the file."""
        if self._put(epoch, start_offset):
            self._version += 1

    def _put(self, epoch: int, start_offset: int) -> bool:
        epochs, starts = self._epochs, self._starts
        if epochs and epoch == epochs[-1] and start_offset >= starts[-1]:
            return False
        while epochs and (epochs[-1] >= epoch or starts[-1] >= start_offset):
            epochs.pop()
            starts.pop()
        epochs.append(epoch)
        starts.append(start_offset)
        return True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """(greatest epoch at or below `epoch`, its end offset), as in Kafka; (-1, -1) for an epoch above the latest.

        The latest epoch ends at the log end. For an unknown epoch the epoch below it is returned. An epoch below the
        first known one ends at the start of that.
        """
        if epoch == NO_EPOCH or not self._epochs or epoch > self._epochs[-1]:
            return NO_EPOCH, NO_OFFSET
        if epoch == self._epochs[-1]:
            return epoch, log_end_offset
        above = bisect_right(self._epochs, epoch)
        if above == 0:
            return epoch, self._starts[0]
        return self._epochs[above - 1], self._starts[above]

    def epoch_for_offset(self, offset: int) -> int:
        """The epoch of the record at `offset`, -1 when unknown."""
        at = bisect_right(self._starts, offset)
        return self._epochs[at - 1] if at else NO_EPOCH

    def truncate_from_end(self, end_offset: int) -> bool:
        """Remove epochs that start at or above the new log end; whether there were any. The caller saves the file."""
        at = bisect_right(self._starts, end_offset - 1)
        if at == len(self._starts):
            return False
        del self._epochs[at:], self._starts[at:]
        self._version += 1
        return True

    def truncate_from_start(self, start_offset: int) -> None:
        """Remove epochs that end at or below the new log start; the epoch of the log start then starts there."""
        at = bisect_right(self._starts, start_offset)
        if at > 1 or (at and self._starts[0] != start_offset):
            del self._epochs[: at - 1], self._starts[: at - 1]
            self._starts[0] = start_offset

    def clear(self) -> None:
        """Remove all epochs. The caller saves the file."""
        if self._epochs:
            self._epochs, self._starts = [], []
            self._version += 1

    # --- the file

    def save(self) -> None:
        """Write the file if it lacks a change; durable on return."""
        write = self.start_write()
        if write is None:
            return
        file = self._files.open(write.temporary)
        self._files.sync(file)
        file.close()
        write.install()
        self._files.sync_dir(self.path.rpartition("/")[0])
        self.finish_write(write)

    def start_write(self) -> EpochsWrite | None:
        """Write the entries to a temporary file, which is not synced; None if the file lacks no change.

        Sync it, call `install`, sync the directory, then call `finish_write`.
        """
        if self._version == self._durable:
            return None
        self._writes += 1  # in the name, because the file of another write may be in use in a thread
        temporary = f"{self.path}.{self._writes}{layout.TEMPORARY_SUFFIX}"
        self._checkpoint.write_pairs_to(temporary, self.entries())
        return EpochsWrite(self, self._version, temporary)

    def install(self, write: EpochsWrite) -> None:
        """Rename a synced temporary file into place; may be called in a thread."""
        with self._installing:
            if self._is_closed:
                return
            if write.version > self._installed:
                self._files.rename(write.temporary, self.path)
                self._installed = write.version
            else:
                self._files.unlink(write.temporary)

    def discard(self, write: EpochsWrite) -> None:
        """Remove a temporary file; may be called in a thread."""
        with self._installing:
            if not self._is_closed:
                try:
                    self._files.unlink(write.temporary)
                except OSError:
                    pass  # the next start removes it

    def finish_write(self, write: EpochsWrite) -> None:
        """The file and its directory are synced."""
        self._durable = max(self._durable, write.version)

    @contextmanager
    def closing(self) -> Iterator[None]:
        """Hold back writes in threads while the log's directory is renamed for deletion, and drop them if it was.

        The path then belongs to the next log of this partition.
        """
        with self._installing:
            yield
            self._is_closed = True
