"""The sparse map of a segment from offset to file position: `.index`.

Format (Kafka's `OffsetIndex`): entries of 8 bytes, big endian: offset relative to the segment's base offset (uint31)
and file position (uint31). An entry holds the *last* offset of a batch and the position where that batch starts.
Invariants: offsets and positions are strictly ascending. A missing, short or damaged index makes a lookup slower, never
wrong (rule L4): a reader compares the batch at the position with the entry, and scans forward.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from struct import Struct

from barnabas.storage.files import Files
from barnabas.storage.sparse_index import SparseIndex

MAX_RELATIVE_OFFSET = 2**31 - 1


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
