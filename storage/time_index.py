"""The sparse map of a segment from timestamp to offset: `.timeindex`.

Format (Kafka's `TimeIndex`): entries of 12 bytes, big endian: timestamp in ms (int64), relative offset (uint31).
An entry (t, o) says: the greatest timestamp of the segment up to offset o is t, reached in the batch whose last offset
is o. Invariants: timestamps rise strictly, offsets rise. The last entry of a rolled or cleanly closed segment is the
segment's greatest timestamp.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from struct import Struct

from barnabas.storage.files import Files

ENTRY_SIZE = 12
NO_TIMESTAMP = -1

_ENTRY = Struct(">qI")
_SPILL_ENTRIES = 512


class TimeIndex:
    """One segment's time index."""

    __slots__ = ("_files", "_saved", "base_offset", "offsets", "path", "timestamps")

    def __init__(self, files: Files, path: str, base_offset: int) -> None:
        self._files = files
        self.path = path
        self.base_offset = base_offset
        self.timestamps = array("q")
        self.offsets = array("I")
        self._saved = 0

    @classmethod
    def load(cls, files: Files, path: str, base_offset: int) -> TimeIndex:
        """Read the file up to the zeros that Kafka preallocates."""
        index = cls(files, path, base_offset)
        try:
            data = files.read_file(path)
        except FileNotFoundError:
            return index
        index.timestamps, index.offsets = _columns(data[: len(data) // ENTRY_SIZE * ENTRY_SIZE])
        if 0 in index.timestamps[1:]:  # the zeros that Kafka preallocates
            end = index.timestamps.index(0, 1)
            end = 0 if end == 1 and not index.timestamps[0] else end
            del index.timestamps[end:], index.offsets[end:]
        index._saved = len(index.offsets)
        return index

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def unsaved(self) -> int:
        """The number of entries that the file lacks."""
        return len(self.offsets) - self._saved

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """Add an entry when the timestamp is greater than all before; `offset` is absolute."""
        if timestamp > self.last_timestamp:
            self.timestamps.append(timestamp)
            self.offsets.append(offset - self.base_offset)
            if len(self.offsets) - self._saved >= _SPILL_ENTRIES:
                self.save()

    @property
    def last_timestamp(self) -> int:
        """The greatest timestamp indexed, -1 when empty."""
        return self.timestamps[-1] if self.timestamps else NO_TIMESTAMP

    @property
    def last_offset(self) -> int:
        """The absolute offset of the last entry; the base offset when empty."""
        return self.base_offset + (self.offsets[-1] if self.offsets else 0)

    def lookup(self, timestamp: int) -> int:
        """The offset of the last entry at or below `timestamp`; the base offset when there is none."""
        at = bisect_right(self.timestamps, timestamp)
        return self.base_offset + (self.offsets[at - 1] if at else 0)

    def truncate_to(self, offset: int) -> None:
        """Drop the entries at or past an absolute offset, in memory and in the file."""
        at = bisect_right(self.offsets, offset - self.base_offset - 1) if offset > self.base_offset else 0
        del self.offsets[at:], self.timestamps[at:]
        if self._saved > at:
            self._saved = at
            self._files.truncate(self._files.open(self.path), at * ENTRY_SIZE)

    def reset(self) -> None:
        """Drop all entries, in memory and in the file."""
        self.timestamps = array("q")
        self.offsets = array("I")
        self._saved = 0
        self._files.truncate(self._files.open(self.path), 0)

    @property
    def is_on_disk(self) -> bool:
        """Whether the file has entries."""
        return self._saved > 0

    def save(self) -> None:
        """Write the entries that the file lacks."""
        start = self._saved
        file = self._files.open(self.path)
        tail = b"".join(map(_ENTRY.pack, self.timestamps[start:], self.offsets[start:]))
        self._files.write_at(file, tail, start * ENTRY_SIZE)
        self._files.truncate(file, start * ENTRY_SIZE + len(tail))
        self._saved = len(self.offsets)


def _columns(data: bytes) -> tuple[array[int], array[int]]:
    """The timestamps and the relative offsets of packed entries, without a loop: an index may have 100,000 of them."""
    words = array("I", data)
    low_first = sys.byteorder == "little"
    if low_first:
        words.byteswap()
    halves = array("I", bytes(len(words) // 3 * 8))
    halves[0::2], halves[1::2] = (words[1::3], words[0::3]) if low_first else (words[0::3], words[1::3])
    return array("q", halves.tobytes()), words[2::3]
