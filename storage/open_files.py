"""The log files that a process keeps open, and which of them are closed when their share of the descriptors is used up.

A log file is opened when it is first appended to or read, and stays open. Above the share the least recently used one
is closed. To find it costs nothing per batch: a file is passed over once if it has been used since it was last
considered (second chance), which its size and a mark of its reads show. A `FileSlice` that is being sent and a flush
that is running keep the descriptor of a file that is closed here.

A new descriptor has the lowest free number, so its number is how many are in use at least. From `slices_until` on
records are read at once instead of being sent from an open file, which is closed then. From `crowded_from` on every new
log file closes another one, however few are open: the last descriptors are for index files, checkpoints, directories
and the pipes of other processes. If one of those still finds none left, log files are closed until it does.

Only the thread that uses the logs closes files here; another one could close a file in the middle of an append.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Final, Protocol
from weakref import WeakValueDictionary, ref

LOGS_SHARE: Final = 0.5
"""The share of the process' descriptors that log files may use."""
SLICES_SHARE: Final = 0.75
"""The share of the descriptors from which on none is kept for records that are being sent."""
RESERVE_SHARE: Final = 0.05
MIN_RESERVE: Final = 16
"""Descriptors that neither log files nor connections use: `RESERVE_SHARE` of all, at least `MIN_RESERVE`."""
MIN_DESCRIPTORS: Final = 64
"""With fewer descriptors a broker does not start."""
_SECOND_CHANCES = 64
_UNLIMITED = 2**31 - 1


class OpenableFile(Protocol):
    """A file that is opened when it is needed."""

    def was_used(self) -> bool:
        """Whether it was used since the last call."""

    def close_file(self) -> None:
        """Close it until it is needed again."""


class FileSystem(Protocol):
    """The file system of a log directory (`storage.directories.log_dir`)."""

    def require(self) -> None:
        """Make all its data durable; OSError when a write has failed."""


class OpenFiles:
    """The open log files of one `Files`."""

    __slots__ = ("_open", "_thread", "closed", "crowded_from", "file_systems", "share", "slices_until")

    def __init__(self) -> None:
        self.share = _UNLIMITED
        """How many log files may be open."""
        self.crowded_from = _UNLIMITED
        """The number of a descriptor from which on no further log file stays open."""
        self.slices_until = _UNLIMITED
        """The number of a descriptor from which on records are read before they are sent."""
        self.closed = 0
        """How many files were closed because the share was used up."""
        self.file_systems: WeakValueDictionary[int, FileSystem] = WeakValueDictionary()
        """By device: how to find the errors of data whose file was closed before it was synced."""
        self._open: OrderedDict[int, ref[OpenableFile]] = OrderedDict()
        self._thread = threading.get_ident()

    def limit_to(self, descriptors: int) -> None:
        """Set the share for a process that may have this many descriptors; the caller's thread uses the logs."""
        self._thread = threading.get_ident()
        self.share = max(1, int(descriptors * LOGS_SHARE))
        self.slices_until = int(descriptors * SLICES_SHARE)
        self.crowded_from = descriptors - max(MIN_RESERVE, int(descriptors * RESERVE_SHARE))

    def __len__(self) -> int:
        return len(self._open)

    def opened(self, file: OpenableFile, descriptor: int) -> None:
        """A file was opened, with this descriptor; another one is closed if there are too many."""
        if descriptor >= self.crowded_from:
            self._close_one()
        while len(self._open) >= self.share and self._close_one():
            pass
        key = id(file)
        self._open[key] = ref(file, lambda _: self._open.pop(key, None))  # last: it is not closed itself

    def discard(self, file: OpenableFile) -> None:
        """A file was closed by its owner."""
        self._open.pop(id(file), None)

    def make_room(self) -> bool:
        """Close one file because a descriptor is needed for something else; False if there is none to close."""
        return self._close_one()

    def _close_one(self) -> bool:
        if threading.get_ident() != self._thread:
            return False
        files = self._open
        chances = min(_SECOND_CHANCES, len(files))
        while files:
            key, reference = files.popitem(last=False)
            file = reference()
            if file is None:
                continue
            if chances and file.was_used():
                chances -= 1
                files[key] = reference
                continue
            self.closed += 1
            file.close_file()
            return True
        return False
