"""The files of one segment: the log file and its indexes, opened only when needed.

An idle partition keeps no file descriptor open.
"""

from __future__ import annotations

from barnabas.storage import layout
from barnabas.storage.files import File, Files
from barnabas.storage.offset_index import OffsetIndex
from barnabas.storage.time_index import TimeIndex
from barnabas.storage.txn_index import TxnIndex


class SegmentFiles:
    """The log file and the indexes that belong to one base offset."""

    __slots__ = (
        "_file",
        "_files",
        "_offset_index",
        "_time_index",
        "_txn_index",
        "base_offset",
        "file_count",
        "has_txn_index",
        "stem",
        "suffix",
    )

    def __init__(self, files: Files, directory: str, base_offset: int, suffix: str) -> None:
        self._files = files
        self.stem = f"{directory}/{base_offset:020d}"
        self.suffix = suffix
        self.base_offset = base_offset
        self.file_count = 1
        """The number of its files whose names are durable, or will be after the next flush of its log."""
        self.has_txn_index = False
        self._file: File | None = None
        self._offset_index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        self._txn_index: TxnIndex | None = None

    def path(self, kind: str) -> str:
        """The path of one of its files: `.log`, `.index`, `.timeindex` or `.txnindex`."""
        return f"{self.stem}{kind}{self.suffix}"

    @property
    def file(self) -> File:
        """The log file."""
        if self._file is None:
            self._file = self._files.open(self.path(layout.LOG_SUFFIX))
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
        """Close the log file and the indexes until they are needed again; unsaved index entries are written first."""
        self.save_indexes()
        self._offset_index = None
        self._time_index = None
        self._file = None

    def forget(self) -> None:
        """Close everything without writing: the directory was renamed or removed."""
        self._offset_index = self._time_index = self._txn_index = None
        self._file = None

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

    def files_to_sync(self, *, data_only: bool = False) -> list[File]:
        """The files to sync to make the segment durable; unsaved index entries are written first.

        With `data_only` only the log file, from which the indexes can be rebuilt.
        """
        targets = [self._file or self._files.open(self.path(layout.LOG_SUFFIX))]
        if data_only:
            return targets
        self.save_indexes()
        if any(index is None or index.is_on_disk for index in (self._offset_index, self._time_index)):
            targets.append(self._files.open(self.path(layout.INDEX_SUFFIX)))
            targets.append(self._files.open(self.path(layout.TIME_INDEX_SUFFIX)))
        if self.has_txn_index:
            targets.append(self._files.open(self.path(layout.TXN_INDEX_SUFFIX)))
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

    def rename_suffix(self, suffix: str) -> None:
        """Use another suffix from here on: the files have been renamed."""
        self.suffix = suffix
        self.forget()

    def paths(self) -> list[str]:
        """The paths of all its files, whether they exist or not."""
        return [self.path(kind) for kind in layout.SEGMENT_SUFFIXES]

    def delete(self) -> None:
        """Remove the files; the data of slices that are still being sent stays readable."""
        self.forget()
        for path in self.paths():
            self._files.unlink(path)
