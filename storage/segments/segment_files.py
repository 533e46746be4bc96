"""The files of one segment: the log file and its indexes, opened only when needed.

An idle partition keeps no file descriptor open, and `storage.open_files` closes the log files that were used least
recently. When the system cannot write data to the disk, it reports that to the descriptors that are open then. So a log
file that is closed before its data was synced must not lose that report (L14):

- its next flush syncs the whole file system, whose errors are reported to a descriptor that stays open
  (`storage.directories.log_dir`);
- where the system has no such report, the file is synced before it is closed, and the next flush fails if that failed;
- a segment that is not needed any longer is closed after its next flush.

Index files are opened for each write. An error of theirs is reported to the descriptor that syncs them (Linux 4.17 and
later, as long as the file's inode is in memory).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.storage import layout
from barnabas.storage.files import File, Files
from barnabas.storage.segments.sparse_indexes import OffsetIndex, TimeIndex
from barnabas.storage.segments.txn_index import TxnIndex

if TYPE_CHECKING:
    from barnabas.storage.open_files import FileSystem


class SegmentFiles:
    """The log file and the indexes that belong to one base offset."""

    __slots__ = (
        "__weakref__",
        "_closed_at",
        "_file",
        "_file_system",
        "_files",
        "_is_released",
        "_is_used",
        "_offset_index",
        "_renamed",
        "_size_seen",
        "_sync_error",
        "_time_index",
        "_txn_index",
        "base_offset",
        "file_count",
        "has_txn_index",
        "size",
        "stem",
        "suffix",
        "synced_size",
    )

    def __init__(self, files: Files, directory: str, base_offset: int, suffix: str, size: int) -> None:
        self._files = files
        self.stem = f"{directory}/{base_offset:020d}"
        self.suffix = suffix
        self.base_offset = base_offset
        self.file_count = 1
        """The number of its files whose names are durable, or will be after the next flush of its log."""
        self.has_txn_index = False
        self.size = size
        """The number of valid bytes in the log file."""
        self.synced_size = size
        """How many of them are durable, or were written before this process began."""
        self._closed_at = 0  # the size when the log file was last closed with bytes that were not durable
        self._file_system: FileSystem | None = None  # that reports the errors of these bytes
        self._sync_error: OSError | None = None
        self._is_released = False
        self._is_used = False
        self._size_seen = 0
        self._renamed: dict[str, str] = {}  # by kind of file, while `storage.recover.swap` renames them
        self._file: File | None = None
        self._offset_index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        self._txn_index: TxnIndex | None = None

    def path(self, kind: str) -> str:
        """The path of one of its files: `.log`, `.index`, `.timeindex` or `.txnindex`."""
        return f"{self.stem}{kind}{self._renamed.get(kind, self.suffix)}"

    @property
    def file(self) -> File:
        """The log file."""
        self._is_used = True
        if self._file is None:
            self._file = self._files.open(self.path(layout.LOG_SUFFIX))
            self._files.open_files.opened(self, self._file.fd)
        return self._file

    @property
    def is_open(self) -> bool:
        """Whether the log file is open."""
        return self._file is not None

    @property
    def offset_index(self) -> OffsetIndex:
        """The offset index."""
        if self._offset_index is None:
            self._offset_index = OffsetIndex.load(self._files, self.path(layout.INDEX_SUFFIX), self.base_offset)
        return self._offset_index

    @property
    def time_index(self) -> TimeIndex:
        """The time index."""
        if self._time_index is None:
            self._time_index = TimeIndex.load(self._files, self.path(layout.TIME_INDEX_SUFFIX), self.base_offset)
        return self._time_index

    @property
    def txn_index(self) -> TxnIndex:
        """The index of aborted transactions."""
        if self._txn_index is None:
            path = self.path(layout.TXN_INDEX_SUFFIX)
            self._txn_index = TxnIndex.load(self._files, path) if self.has_txn_index else TxnIndex(self._files, path)
        return self._txn_index

    def release(self) -> None:
        """Close the indexes until they are needed again, and the log file, after the next flush if that has to sync it.

        Unsaved index entries are written first.
        """
        self.save_indexes()
        self._offset_index = None
        self._time_index = None
        self._is_released = self._file is not None and self.size > self.synced_size
        if not self._is_released:
            self._drop_file()

    def _drop_file(self) -> None:
        self._file = None
        self._files.open_files.discard(self)

    def forget(self) -> None:
        """Close everything without writing: the directory was renamed or removed."""
        self._offset_index = self._time_index = self._txn_index = None
        self._drop_file()

    def relocate(self, directory: str) -> None:
        """The directory was renamed; open files stay open."""
        self.stem = f"{directory}/{self.base_offset:020d}"
        kinds = (layout.INDEX_SUFFIX, layout.TIME_INDEX_SUFFIX, layout.TXN_INDEX_SUFFIX)
        for kind, index in zip(kinds, (self._offset_index, self._time_index, self._txn_index), strict=True):
            if index is not None:
                index.path = self.path(kind)

    # --- closing the log file early

    def was_used(self) -> bool:
        """Whether the log file was read or appended to since the last call."""
        was_used = self._is_used or self.size != self._size_seen
        self._is_used = False
        self._size_seen = self.size
        return was_used

    def close_file(self) -> None:
        """Close the log file until it is needed again; errors of data that is not durable yet are not lost."""
        file = self._file
        if file is not None and self.size > self.synced_size:
            self._file_system = self._files.open_files.file_systems.get(self._files.device(file))
            if self._file_system is None:
                self._sync_before_closing(file)
            else:
                self._closed_at = self.size
        self._drop_file()

    def _sync_before_closing(self, file: File) -> None:
        try:
            self._files.sync(file)
        except OSError as error:
            self._sync_error = error
        else:
            self.synced_size = self.size

    @property
    def file_system_to_sync(self) -> FileSystem | None:
        """The file system to sync instead of the log file, if that was closed before all its data was durable."""
        return self._file_system if self._closed_at > self.synced_size else None

    def synced(self, size: int) -> None:
        """The first `size` bytes of the log file are durable."""
        self.synced_size = max(self.synced_size, min(size, self.size))
        if self._is_released and self.synced_size == self.size:
            self._is_released = False
            self._drop_file()

    def _cut_to(self, size: int) -> None:
        """The log file was truncated."""
        self.size = size
        self.synced_size = min(self.synced_size, size)
        self._closed_at = min(self._closed_at, size)

    def has_full_index(self, max_bytes: int) -> bool:
        """Whether an index file could grow beyond `max_bytes` with the next append and the close of the segment."""
        offsets, timestamps = self._offset_index, self._time_index
        return (offsets is not None and (len(offsets) + 1) * 8 > max_bytes) or (
            timestamps is not None and (len(timestamps) + 2) * 12 > max_bytes
        )

    def _new_indexes(self, suffix: str = "") -> None:
        """Start with empty indexes, whose files get this additional suffix."""
        self._offset_index = OffsetIndex(self._files, self.path(layout.INDEX_SUFFIX) + suffix, self.base_offset)
        self._time_index = TimeIndex(self._files, self.path(layout.TIME_INDEX_SUFFIX) + suffix, self.base_offset)

    def save_indexes(self) -> None:
        """Write the index entries that are not in the files yet."""
        for index in (self._offset_index, self._time_index, self._txn_index):
            if index is not None and index.unsaved:
                index.save()

    def files_to_sync(self, *, data_only: bool = False) -> list[File | str]:
        """The files to sync to make the segment durable, a path if it is not open; writes unsaved index entries first.

        With `data_only` only the log file, from which the indexes can be rebuilt. Raises the error of a sync that has
        failed when the log file was closed.
        """
        if self._sync_error is not None:
            raise self._sync_error
        targets: list[File | str] = [self._file or self.path(layout.LOG_SUFFIX)]
        if data_only:
            return targets
        self.save_indexes()
        if any(index is None or index.is_on_disk for index in (self._offset_index, self._time_index)):
            targets.append(self.path(layout.INDEX_SUFFIX))
            targets.append(self.path(layout.TIME_INDEX_SUFFIX))
        if self.has_txn_index:
            targets.append(self.path(layout.TXN_INDEX_SUFFIX))
        return targets

    def install_indexes(self) -> None:
        """Rename index files that were built as temporary files to their final names; durable on return."""
        for index in (self.offset_index, self.time_index):
            final = index.path.removesuffix(layout.TEMPORARY_SUFFIX)
            self._files.sync(self._files.open(index.path))
            self._files.rename(index.path, final)
            index.path = final
        if self.has_txn_index:
            self._files.sync(self._files.open(self.path(layout.TXN_INDEX_SUFFIX)))
        self._files.sync_dir(self.stem.rpartition("/")[0])

    def renamed(self, kind: str, suffix: str) -> None:
        """Use another suffix for one file, which has been renamed; `rename_suffix` is called when all are renamed."""
        self._renamed[kind] = suffix

    def rename_suffix(self, suffix: str) -> None:
        """Use another suffix from here on: the files have been renamed."""
        self.suffix = suffix
        self._renamed.clear()
        self.forget()

    def paths(self) -> list[str]:
        """The paths of all its files, whether they exist or not."""
        return [self.path(kind) for kind in layout.SEGMENT_SUFFIXES]

    def delete(self) -> None:
        """Remove the files; the data of slices that are still being sent stays readable."""
        self.forget()
        for path in self.paths():
            self._files.unlink(path)
