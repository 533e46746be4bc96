"""Which leader epoch wrote which offsets of a log, and the file `leader-epoch-checkpoint` that keeps it. R2, KIP-101.

Invariants: epochs and start offsets both rise strictly; the file is rewritten when an epoch begins, before data of it
can be acknowledged, and when the log's end is cut. After a cut of the log's start it may say too much: the log start
is applied when it is read. Format: a line `0`, a line with the count, then `epoch start_offset` a line.
Source of the answers: Kafka's `LeaderEpochFileCache`.
"""

from __future__ import annotations

from bisect import bisect_right

from barnabas.storage.checkpoints import CheckpointFile
from barnabas.storage.files import Files

NO_EPOCH = -1
NO_OFFSET = -1


class LeaderEpochCache:
    """The epochs of one log in rising order."""

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
        """(epoch, start offset) in rising order."""
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
        """Note that `epoch` starts at `start_offset`, dropping entries that contradict it; durable on return."""
        if self._put(epoch, start_offset):
            self.save()

    def assign_in_memory(self, epoch: int, start_offset: int) -> None:
        """As `assign`, without the file: for recovery, which writes once at its end."""
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
        """(greatest epoch at or below `epoch`, where it ends); (-1, -1) when the log cannot tell. Kafka's answers:

        the latest epoch ends at the log's end; an unknown epoch is answered by the one below it; one below all that
        are known ends where the first known starts.
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
        """The epoch that wrote `offset`, -1 when unknown."""
        at = bisect_right(self._starts, offset)
        return self._epochs[at - 1] if at else NO_EPOCH

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget epochs that start at or past the log's new end."""
        at = bisect_right(self._starts, end_offset - 1)
        if at < len(self._starts):
            del self._epochs[at:], self._starts[at:]
            self.save()

    def truncate_from_start(self, start_offset: int) -> None:
        """Forget epochs that end at or before the log's new start; the one that holds it starts there from now on."""
        at = bisect_right(self._starts, start_offset)
        if at > 1 or (at and self._starts[0] != start_offset):
            del self._epochs[: at - 1], self._starts[: at - 1]
            self._starts[0] = start_offset

    def clear(self) -> None:
        """Forget everything."""
        if self._epochs:
            self._epochs, self._starts = [], []
            self.save()

    def save(self) -> None:
        """Write the file as the memory is; durable on return."""
        self._checkpoint.write_pairs(self.entries())
