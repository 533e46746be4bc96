"""The slow part of a flush, separate from the log so that it can run in a thread."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from barnabas.storage.files import File, Files

if TYPE_CHECKING:
    from barnabas.storage.append.leader_epochs import EpochsWrite
    from barnabas.storage.open_files import FileSystem
    from barnabas.storage.segments.segment_files import SegmentFiles


class FlushJob:
    """The files and directories to sync to make a log durable up to `offset`. `run` accesses no other state.

    `dir_version` and `truncations` are the log's counts of changed file names and of truncations when the job was made.
    With `data_only` index files and leader epochs are not included: recovery takes them from the data after a crash.

    A target that is not open is a path. It is opened while it is synced, so that a flush of many logs needs few
    descriptors.
    """

    __slots__ = (
        "_files",
        "data_only",
        "dir_version",
        "directories",
        "epochs",
        "file_system",
        "missing",
        "offset",
        "segments",
        "snapshots",
        "targets",
        "truncations",
    )

    def __init__(
        self,
        files: Files,
        targets: list[File | str],
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
        self.segments: list[tuple[SegmentFiles, int]] = []
        """The segments with the size up to which they are durable afterwards."""
        self.snapshots: list[int] = []
        """The offsets of the producer snapshots among the targets."""
        self.epochs: EpochsWrite | None = None
        """The leader epochs, whose temporary file is among the targets."""
        self.file_system: FileSystem | None = None
        """The file system to sync instead of the files, because one of them was closed before its data was synced."""
        self.missing: FileNotFoundError | None = None
        """Set when a directory is missing: the log was deleted, or the disk was unmounted."""

    def run(self) -> None:
        """Sync everything. An OSError means that the log directory must not be used any longer: never retry."""
        try:
            self.sync_files()
            self.sync_directories()
        except OSError:
            if self.epochs is not None:
                self.epochs.discard()
            raise
        if self.missing is not None:
            raise self.missing

    def sync_files(self) -> None:
        """Sync the files only, and install the leader epochs."""
        if self.file_system is not None:
            self.file_system.require()
        else:
            for target in self.targets:
                if isinstance(target, File):
                    self._files.sync(target)
                else:
                    self._sync_closed(target)
        self.install_epochs()

    def install_epochs(self) -> None:
        """Rename the synced leader epochs into place; the directory has to be synced after it."""
        if self.epochs is not None:
            try:
                self.epochs.install()
            except FileNotFoundError as error:
                self.missing = error

    def _sync_closed(self, path: str) -> None:
        try:
            file = self._files.open(path)
        except FileNotFoundError as error:
            self.missing = error
            return
        self._files.sync(file)
        file.close()

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
