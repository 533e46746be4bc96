"""The segments of one log in order of base offset; the last is the active one, the only one appended to.

At most one other segment has its file and indexes open, the one read last, so that a partition needs few descriptors
and little memory however long its log is.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from barnabas.storage.segments.segment import Segment


class Segments:
    """A sorted list of segments, looked up by offset."""

    __slots__ = ("_bases", "_list", "_read_last")

    def __init__(self) -> None:
        self._bases: list[int] = []
        self._list: list[Segment] = []
        self._read_last: Segment | None = None

    def __len__(self) -> int:
        return len(self._list)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._list)

    def __getitem__(self, at: int) -> Segment:
        return self._list[at]

    def add(self, segment: Segment) -> None:
        """Add a segment; its base offset must be new."""
        at = bisect_left(self._bases, segment.base_offset)
        assert at == len(self._bases) or self._bases[at] != segment.base_offset
        self._bases.insert(at, segment.base_offset)
        self._list.insert(at, segment)

    def remove(self, segment: Segment) -> None:
        """Remove a segment from the list; the caller handles its files."""
        at = bisect_left(self._bases, segment.base_offset)
        del self._bases[at], self._list[at]
        if self._read_last is segment:
            self._read_last = None

    @property
    def active(self) -> Segment:
        """The last segment."""
        return self._list[-1]

    def floor_index(self, offset: int) -> int:
        """The index of the segment whose range holds `offset`; -1 when it is below all of them."""
        return bisect_right(self._bases, offset) - 1

    def from_offset(self, offset: int) -> list[Segment]:
        """The segment that holds `offset` and all after it."""
        return self._list[max(0, self.floor_index(offset)) :]

    def keep_open(self, segment: Segment) -> None:
        """Keep a segment open that is being read, and close the one read before."""
        if segment is self._read_last or segment is self._list[-1]:
            return
        if self._read_last is not None and self._read_last is not self._list[-1]:
            self._read_last.release()
        self._read_last = segment

    def next_base(self, at: int) -> int | None:
        """The base offset of the segment after index `at`, None for the last."""
        return self._bases[at + 1] if at + 1 < len(self._bases) else None

    @property
    def size_bytes(self) -> int:
        """The bytes of all log files."""
        return sum(segment.size for segment in self._list)
