"""How many bytes of a replicated partition lie below its high watermark, for readers that wait for a number of bytes.

Appends are counted when they are made and become readable later. The count is an upper bound: an append that the high
watermark divides counts as a whole, and so do the records that were in the log before. A reader that is woken too early
checks, and waits again.
"""

from __future__ import annotations

from collections import deque

MAX_ENTRIES = 1000
"""Appends above the high watermark that are kept apart; later ones are joined."""

UNKNOWN_SIZE = 1 << 20
"""Counted for the records that were in the log above the high watermark before."""


class CommittedBytes:
    """The bytes of one partition by offset, since this broker has it."""

    __slots__ = ("_committed", "_end", "_entries", "total")

    def __init__(self, total: int, high_watermark: int, log_end: int) -> None:
        self.total = self._committed = total
        """Appended, committed or not."""
        self._end = high_watermark
        self._entries: deque[tuple[int, int]] = deque()
        if log_end > high_watermark:
            self.appended(log_end, UNKNOWN_SIZE)

    def appended(self, log_end: int, size: int) -> None:
        """`size` bytes were appended; the log ends at `log_end` now."""
        self.total += size
        if len(self._entries) >= MAX_ENTRIES:
            self._entries[-1] = (log_end, self.total)
        else:
            self._entries.append((log_end, self.total))

    def below(self, high_watermark: int) -> int:
        """The bytes below a high watermark, which never decreases, except by truncation."""
        entries = self._entries
        while entries and self._end < high_watermark:
            self._end, self._committed = entries.popleft()
        return self._committed

    def truncated(self, log_end: int) -> None:
        """The log was truncated."""
        self._end = min(self._end, log_end)
        self._entries = deque((min(end, log_end), total) for end, total in self._entries)
