"""The sparse map of a segment from offset to file position: `.index`.

Format (Kafka's `OffsetIndex`): entries of 8 bytes, big endian: offset relative to the segment's base offset (uint31)
and file position (uint31). An entry holds the *last* offset of a batch and the position where that batch starts.
Invariants: both columns rise strictly. A missing, short or damaged index makes a search longer, never wrong (L4): a
reader compares the batch that it finds at the position with the entry, and scans forward.

Kept as two arrays in memory while in use; new entries are written out in blocks, at a roll, a flush and a close, since
recovery rebuilds the index of every segment past the recovery point anyway.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from struct import Struct

from barnabas.storage.files import Files

ENTRY_SIZE = 8
MAX_RELATIVE_OFFSET = 2**31 - 1

_ENTRY = Struct(">II")
_SPILL_ENTRIES = 512


class OffsetIndex:
    """One segment's offset index."""

    __slots__ = ("_files", "_loaded", "_saved", "base_offset", "offsets", "path", "positions")

    def __init__(self, files: Files, path: str, base_offset: int) -> None:
        self._files = files
        self.path = path
        self.base_offset = base_offset
        self.offsets = array("I")
        self.positions = array("I")
        self._saved = 0
        self._loaded = False

    @classmethod
    def load(cls, files: Files, path: str, base_offset: int) -> OffsetIndex:
        """Read the file up to the zeros that Kafka preallocates; nothing else is checked, as nothing relies on it."""
        index = cls(files, path, base_offset)
        try:
            data = files.read_file(path)
        except FileNotFoundError:
            return index
        columns = array("I", data[: len(data) // ENTRY_SIZE * ENTRY_SIZE])
        if sys.byteorder == "little":
            columns.byteswap()
        index.offsets, index.positions = columns[0::2], columns[1::2]
        if 0 in index.positions:
            end = index.positions.index(0)
            del index.offsets[end:], index.positions[end:]
        index._saved = len(index.offsets)
        index._loaded = True
        return index

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def unsaved(self) -> int:
        """The number of entries that the file lacks."""
        return len(self.offsets) - self._saved

    def append(self, offset: int, position: int) -> None:
        """Add an entry behind all others; `offset` is absolute."""
        self.offsets.append(offset - self.base_offset)
        self.positions.append(position)
        if len(self.offsets) - self._saved >= _SPILL_ENTRIES:
            self.save()

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

    def truncate_to(self, offset: int) -> None:
        """Drop the entries at or past an absolute offset, in memory and in the file."""
        at = bisect_right(self.offsets, offset - self.base_offset - 1) if offset > self.base_offset else 0
        del self.offsets[at:], self.positions[at:]
        if self._saved > at:
            self._saved = at
            file = self._files.open(self.path)
            self._files.truncate(file, at * ENTRY_SIZE)

    def reset(self) -> None:
        """Drop all entries, in memory and in the file."""
        self.offsets = array("I")
        self.positions = array("I")
        self._saved = 0
        self._files.truncate(self._files.open(self.path), 0)

    @property
    def is_loaded(self) -> bool:
        """Whether entries come from the file, which may be damaged."""
        return self._loaded

    @property
    def is_on_disk(self) -> bool:
        """Whether the file has entries."""
        return self._saved > 0

    def save(self) -> None:
        """Write the entries that the file lacks; an index without entries leaves an empty file, as in Kafka."""
        start = self._saved
        file = self._files.open(self.path)
        tail = b"".join(map(_ENTRY.pack, self.offsets[start:], self.positions[start:]))
        self._files.write_at(file, tail, start * ENTRY_SIZE)
        self._files.truncate(file, start * ENTRY_SIZE + len(tail))
        self._saved = len(self.offsets)
