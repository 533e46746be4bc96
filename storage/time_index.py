"""The sparse map of a segment from timestamp to offset: `.timeindex`.

Format (Kafka's `TimeIndex`): entries of 12 bytes, big endian: timestamp in ms (int64), relative offset (uint31).
An entry (t, o) means: the greatest timestamp of the segment up to offset o is t, and o is the last offset of the batch
that has it. Invariants: timestamps are strictly ascending, offsets ascending. The last entry of a rolled or cleanly
closed segment is the segment's greatest timestamp.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from struct import Struct

from barnabas.storage.files import Files
from barnabas.storage.sparse_index import SparseIndex

NO_TIMESTAMP = -1


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
