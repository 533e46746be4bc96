"""The two sparse index files of a segment: fixed-width entries, kept as two arrays in memory.

- `.index` maps an offset to a file position. Its entries have 8 bytes, big endian: offset relative to the segment's
  base offset (uint31) and file position (uint31). An entry holds the *last* offset of a batch and the position where
  that batch starts. Offsets and positions are strictly ascending.
- `.timeindex` maps a timestamp to an offset. Its entries have 12 bytes, big endian: timestamp in ms (int64), relative
  offset (uint31). An entry (t, o) means: the greatest timestamp of the segment up to offset o is t, and o is the last
  offset of the batch that has it. Timestamps are strictly ascending, offsets ascending. The last entry of a rolled or
  cleanly closed segment is the segment's greatest timestamp.

A missing, short or damaged offset index makes a lookup slower, never wrong (rule L4): a reader compares the batch at
the position with the entry, and scans forward. New entries are written to the file in blocks, at a roll, a flush and a
close: a crash may lose them, since recovery rebuilds the indexes above the recovery point. Kafka preallocates index
files: zeros at the end are not loaded. Source: Kafka's `OffsetIndex` and `TimeIndex`.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from struct import Struct
from typing import ClassVar

from barnabas.storage.files import Files

MAX_RELATIVE_OFFSET = 2**31 - 1
NO_TIMESTAMP = -1
_SPILL_ENTRIES = 512


class SparseIndex:
    """The base of both: entries in ascending order, each with an offset relative to the segment's base offset."""

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


class OffsetIndex(SparseIndex):
    """One segment's offset index."""

    __slots__ = ("_loaded", "positions")

    ENTRY = Struct(">II")

    def __init__(self, files: Files, path: str, base_offset: int) -> None:
        super().__init__(files, path, base_offset)
        self.positions = array("I")
        self._loaded = False

    @classmethod
    def load(cls, files: Files, path: str, base_offset: int) -> OffsetIndex:
        """Read the file; entries are not validated, since readers do not rely on them."""
        index = cls(files, path, base_offset)
        data = index._read_entries()
        if data is None:
            return index
        columns = array("I", data)
        if sys.byteorder == "little":
            columns.byteswap()
        index.offsets, index.positions = columns[0::2], columns[1::2]
        if 0 in index.positions:
            end = index.positions.index(0)
            del index.offsets[end:], index.positions[end:]
        index._saved = len(index.offsets)
        index._loaded = True
        return index

    def _columns(self) -> tuple[array[int], array[int]]:
        return self.offsets, self.positions

    def append(self, offset: int, position: int) -> None:
        """Add an entry after all others; `offset` is absolute."""
        self.offsets.append(offset - self.base_offset)
        self.positions.append(position)
        self._save_when_many()

    def lookup(self, offset: int) -> tuple[int, int]:
        """(offset, position) of the last entry at or below `offset`; (base offset - 1, 0) when there is none."""
        relative = offset - self.base_offset
        at = bisect_right(self.offsets, relative) if relative >= 0 else 0
        if at == 0:
            return self.base_offset - 1, 0
        return self.base_offset + self.offsets[at - 1], self.positions[at - 1]

    @property
    def last_position(self) -> int:
        """The position of the last entry, 0 when empty."""
        return self.positions[-1] if self.positions else 0

    @property
    def is_loaded(self) -> bool:
        """Whether entries were read from the file, which may be damaged."""
        return self._loaded


class TimeIndex(SparseIndex):
    """One segment's time index."""

    __slots__ = ("timestamps",)

    ENTRY = Struct(">qI")

    def __init__(self, files: Files, path: str, base_offset: int) -> None:
        super().__init__(files, path, base_offset)
        self.timestamps = array("q")

    @classmethod
    def load(cls, files: Files, path: str, base_offset: int) -> TimeIndex:
        """Read the file."""
        index = cls(files, path, base_offset)
        data = index._read_entries()
        if data is None:
            return index
        index.timestamps, index.offsets = _split(data)
        if 0 in index.timestamps[1:]:  # preallocated by Kafka
            end = index.timestamps.index(0, 1)
            end = 0 if end == 1 and not index.timestamps[0] else end
            del index.timestamps[end:], index.offsets[end:]
        index._saved = len(index.offsets)
        return index

    def _columns(self) -> tuple[array[int], array[int]]:
        return self.timestamps, self.offsets

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """Add an entry if the timestamp is greater than all before; `offset` is absolute."""
        if timestamp > self.last_timestamp:
            self.timestamps.append(timestamp)
            self.offsets.append(offset - self.base_offset)
            self._save_when_many()

    @property
    def last_timestamp(self) -> int:
        """The greatest timestamp in the index, -1 when empty."""
        return self.timestamps[-1] if self.timestamps else NO_TIMESTAMP

    @property
    def last_offset(self) -> int:
        """The absolute offset of the last entry; the base offset when empty."""
        return self.base_offset + (self.offsets[-1] if self.offsets else 0)

    def lookup(self, timestamp: int) -> int:
        """The offset of the last entry at or below `timestamp`; the base offset when there is none."""
        at = bisect_right(self.timestamps, timestamp)
        return self.base_offset + (self.offsets[at - 1] if at else 0)


def _split(data: bytes) -> tuple[array[int], array[int]]:
    """The timestamps and relative offsets of packed entries, without a loop: an index may have 100,000 of them."""
    words = array("I", data)
    low_first = sys.byteorder == "little"
    if low_first:
        words.byteswap()
    halves = array("I", bytes(len(words) // 3 * 8))
    halves[0::2], halves[1::2] = (words[1::3], words[0::3]) if low_first else (words[0::3], words[1::3])
    return array("q", halves.tobytes()), words[2::3]
