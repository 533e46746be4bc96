"""The slow part of a flush, separate from the log so that it can run in a thread."""

from __future__ import annotations

import errno

from barnabas.storage.files import File, Files


class FlushJob:
    """The files and directories to sync to make a log durable up to `offset`. `run` accesses no other state.

    `dir_version` and `truncations` are the log's counts of changed file names and of truncations when the job was made.
    With `data_only` the index files are not included: after a crash the data has to be indexed again.
    """

    __slots__ = ("_files", "data_only", "dir_version", "directories", "missing", "offset", "targets", "truncations")

    def __init__(
        self,
        files: Files,
        targets: list[File],
        directories: list[str],
        offset: int,
        dir_version: int,
        truncations: int,
        *,
        data_only: bool = False,
    ) -> None:
        self._files = files
        self.targets = targets
        self.directories = directories
        self.offset = offset
        self.dir_version = dir_version
        self.truncations = truncations
        self.data_only = data_only
        self.missing: FileNotFoundError | None = None
        """Set when a directory is missing: the log was deleted, or the disk was unmounted."""

    def run(self) -> None:
        """Sync everything. An OSError means that the log directory must not be used any longer: never retry."""
        self.sync_files()
        self.sync_directories()
        if self.missing is not None:
            raise self.missing

    def sync_files(self) -> None:
        """Sync the files only."""
        for target in self.targets:
            self._files.sync(target)

    def check_directories(self) -> None:
        """Check that the directories exist, when the whole file system was synced instead."""
        for directory in self.directories:
            if not self._files.exists(directory):
                self.missing = FileNotFoundError(errno.ENOENT, "the directory was removed", directory)

    def sync_directories(self) -> None:
        """Sync the directories, after the files."""
        try:
            for directory in self.directories:
                self._files.sync_dir(directory)
        except FileNotFoundError as error:
            self.missing = error
