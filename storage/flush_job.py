"""The part of a flush that takes time, apart from the log so that a thread can do it."""

from __future__ import annotations

from storage.files import File, Files


class FlushJob:
    """Files and directories to sync so that a log is on the disk up to `offset`. `run` touches no other state."""

    __slots__ = ("_directories", "_files", "_targets", "offset", "truncations")

    def __init__(
        self, files: Files, targets: list[File], directories: list[str], offset: int, truncations: int
    ) -> None:
        self._files = files
        self._targets = targets
        self._directories = directories
        self.offset = offset
        self.truncations = truncations

    def run(self) -> None:
        """Sync them all. An OSError means that the log directory must be given up: never try again."""
        for target in self._targets:
            self._files.sync(target)
        for directory in self._directories:
            self._files.sync_dir(directory)
