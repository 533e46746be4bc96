"""The part of a flush that takes time, apart from the log so that a thread can do it."""

from __future__ import annotations

import errno

from barnabas.storage.files import File, Files


class FlushJob:
    """Files and directories to sync so that a log is on the disk up to `offset`. `run` touches no other state.

    `dir_version` and `truncations` are the log's counts of changed file names and of cuts when the job was made.
    With `data_only` the index files are left out: the data is safe, but what lies behind must be indexed again.
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
        """A directory that has gone since: the log has been deleted, or somebody has taken the disk away."""

    def run(self) -> None:
        """Sync them all. An OSError means that the log directory must be given up: never try again."""
        self.sync_files()
        self.sync_directories()
        if self.missing is not None:
            raise self.missing

    def sync_files(self) -> None:
        """The files only."""
        for target in self.targets:
            self._files.sync(target)

    def look_for_directories(self) -> None:
        """Only note if one has gone: the whole file system has been synced."""
        for directory in self.directories:
            if not self._files.exists(directory):
                self.missing = FileNotFoundError(errno.ENOENT, "the directory has gone", directory)

    def sync_directories(self) -> None:
        """The directories only, after the files."""
        try:
            for directory in self.directories:
                self._files.sync_dir(directory)
        except FileNotFoundError as error:
            self.missing = error
