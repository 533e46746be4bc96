"""The leader epochs of a log with their start offsets, and the file `leader-epoch-checkpoint` (R2, KIP-101).

Invariants: epochs and start offsets are strictly ascending; the file is rewritten when an epoch begins, before data of
that epoch can be acknowledged, and when the log end is truncated. After the log start has advanced the file may contain
older epochs: the log start is applied when it is loaded. Format: a line `0`, a line with the count, then a line
`epoch start_offset` per entry. Source: Kafka's `LeaderEpochFileCache`.
"""

from __future__ import annotations

from bisect import bisect_right

from barnabas.storage.checkpoints import CheckpointFile
from barnabas.storage.files import Files

NO_EPOCH = -1
NO_OFFSET = -1


class LeaderEpochCache:
    """The epochs of one log in ascending order."""

    __slots__ = ("_checkpoint", "_epochs", "_starts")

    def __init__(self, files: Files, path: str) -> None:
        self._checkpoint = CheckpointFile(files, path)
        self._epochs: list[int] = []
        self._starts: list[int] = []

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

    @property
    def latest_epoch(self) -> int:
        """The epoch of the last batch, -1 when unknown."""
        return self._epochs[-1] if self._epochs else NO_EPOCH

    def assign(self, epoch: int, start_offset: int) -> None:
        """Add `epoch` with its start offset and remove entries that conflict with it; durable on return.

        After an OSError the cache is as before, so that the next call writes the file again.
        """
        before = self._epochs[:], self._starts[:]
        if self._put(epoch, start_offset):
            try:
                self.save()
            except OSError:
                self._epochs, self._starts = before
                raise

    def assign_in_memory(self, epoch: int, start_offset: int) -> None:
        """Like `assign`, without writing the file: for recovery, which writes it once at its end."""
        self._put(epoch, start_offset)

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
        """(greatest epoch at or below `epoch`, its end offset); (-1, -1) for an epoch above the latest. As in Kafka:

        the latest epoch ends at the log end; an unknown epoch is answered with the epoch below it; an epoch below the
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

    def truncate_from_end(self, end_offset: int) -> None:
        """Remove epochs that start at or above the new log end."""
        at = bisect_right(self._starts, end_offset - 1)
        if at < len(self._starts):
            del self._epochs[at:], self._starts[at:]
            self.save()

    def truncate_from_start(self, start_offset: int) -> None:
        """Remove epochs that end at or below the new log start; the epoch of the log start then starts there."""
        at = bisect_right(self._starts, start_offset)
        if at > 1 or (at and self._starts[0] != start_offset):
            del self._epochs[: at - 1], self._starts[: at - 1]
            self._starts[0] = start_offset

    def clear(self) -> None:
        """Remove all epochs."""
        if self._epochs:
            self._epochs, self._starts = [], []
            self.save()

    def save(self) -> None:
        """Write the file; durable on return."""
        self._checkpoint.write_pairs(self.entries())
