"""Whether to sync many files one by one (fdatasync) or with their whole file system (syncfs).

Each file costs a commit of the file system's journal, so syncfs is several times faster (measured on ext4: 16 files
1.8 ms, the whole file system 0.4 ms), unless other processes write much there. So syncfs is tried, and tried less
often where it has been slower.
"""

from __future__ import annotations

MANY_FILES = 8
"""From this number of files on syncfs is tried."""
MIN_BACKOFF, MAX_BACKOFF = 8, 1024
"""Number of flushes until syncfs is tried again after it was slower."""


class SyncfsChoice:
    """Chooses between fdatasync and syncfs by the durations of earlier flushes."""

    __slots__ = ("_backoff", "_seconds_per_file", "_skipped_left")

    def __init__(self) -> None:
        self._seconds_per_file = 0.0  # moving average
        self._backoff = MIN_BACKOFF
        self._skipped_left = 0  # flushes until syncfs is tried again

    def uses_syncfs(self, files: int) -> bool:
        """Whether to sync this number of files with syncfs."""
        return files >= MANY_FILES and not self._skipped_left

    def record(self, files: int, seconds: float, *, used_syncfs: bool) -> None:
        """Take the duration of a flush into account."""
        if not used_syncfs:
            average = self._seconds_per_file
            self._seconds_per_file = average * 0.9 + seconds / files * 0.1 if average else seconds / files
            if files >= MANY_FILES:
                self._skipped_left = max(0, self._skipped_left - 1)
        elif self._seconds_per_file and seconds > files * self._seconds_per_file:
            self._backoff = self._skipped_left = min(2 * self._backoff, MAX_BACKOFF)
        else:
            self._backoff = MIN_BACKOFF
