"""The base of the two sparse index files of a segment: fixed-width entries, kept as two arrays in memory.

New entries are written to the file in blocks, at a roll, a flush and a close: a crash may lose them, since recovery
rebuilds the indexes above the recovery point. Kafka preallocates index files: zeros at the end are not loaded.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from struct import Struct
from typing import ClassVar

from barnabas.storage.files import Files

_SPILL_ENTRIES = 512


class SparseIndex:
    """Entries in ascending order, each with an offset relative to the segment's base offset."""

    __slots__ = ("_files", "_saved", "base_offset", "offsets", "path")

    ENTRY: ClassVar[Struct]

    def __init__(self, files: Files, path: str, base_offset: int) -> None:
        self._files = files
        self.path = path
        self.base_offset = base_offset
        self.offsets = array("I")
        self._saved = 0

    def _columns(self) -> Sequence[array[int]]:
        """The two arrays, in the order of their values in an entry."""
        raise NotImplementedError

    def _read_entries(self) -> bytes | None:
        """The whole entries in the file, None when it is missing."""
        try:
            data = self._files.read_file(self.path)
        except FileNotFoundError:
            return None
        size = self.ENTRY.size
        return data[: len(data) // size * size]

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def unsaved(self) -> int:
        """The number of entries that are not in the file yet."""
        return len(self.offsets) - self._saved

    @property
    def is_on_disk(self) -> bool:
        """Whether the file has entries."""
        return self._saved > 0

    def _save_when_many(self) -> None:
        if len(self.offsets) - self._saved >= _SPILL_ENTRIES:
            try:
                self.save()
            except OSError:
                pass  # the batch is in the log already; the next entry tries it again, and the roll at the latest

    def save(self) -> None:
        """Write the entries that are not in the file yet; an index without entries is an empty file, as in Kafka."""
        size, start = self.ENTRY.size, self._saved
        file = self._files.open(self.path)
        first, second = self._columns()
        tail = b"".join(map(self.ENTRY.pack, first[start:], second[start:]))
        self._files.write_at(file, tail, start * size)
        self._files.truncate(file, start * size + len(tail))
        self._saved = len(self.offsets)

    def truncate_to(self, offset: int) -> None:
        """Remove the entries at or above an absolute offset, in memory and in the file."""
        at = bisect_right(self.offsets, offset - self.base_offset - 1) if offset > self.base_offset else 0
        for column in self._columns():
            del column[at:]
        if self._saved > at:
            self._saved = at
            self._files.truncate(self._files.open(self.path), at * self.ENTRY.size)

    def reset(self) -> None:
        """Remove all entries, in memory and in the file."""
        for column in self._columns():
            del column[:]
        self._saved = 0
        self._files.truncate(self._files.open(self.path), 0)
