"""Syncs the file system of a log directory through one descriptor that is open as long as the directory is used.

The system reports a failed write to the descriptors that were open when it failed, once to each. A log file that was
closed before its data was written would never see it; and if the file is opened again, the error is reported to the new
descriptor only as long as the system still has the file's inode in memory. But the whole file system's errors are
reported to this descriptor (Linux 5.8 and later), whatever was open when they happened. So data that was written
through a descriptor that is closed by now is synced here.

An error is reported once, and two threads may sync at the same time: after an error every further sync fails as well.
"""

from __future__ import annotations

import errno
import os
import threading

from barnabas.storage.files import File, Files


class FileSystemSync:
    """The syncs of one file system."""

    __slots__ = ("__weakref__", "_error", "_file", "_files", "_syncing")

    def __init__(self, files: Files, file: File) -> None:
        """`file` is on the file system and must have been open before any data was written."""
        self._files = files
        self._file = file
        self._error: OSError | None = None
        self._syncing = threading.Lock()

    def run(self) -> bool:
        """Make all data of the file system durable; False where the system cannot, or does not report errors.

        May be called in a thread. OSError when a write has failed since the file was opened.
        """
        with self._syncing:
            if self._error is not None:
                raise OSError(self._error.errno, self._error.strerror, self._file.path)
            try:
                return self._files.sync_file_system(self._file)
            except OSError as error:
                self._error = error
                raise

    def require(self) -> None:
        """As `run`; OSError where the system cannot."""
        if not self.run():
            raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP), self._file.path)
