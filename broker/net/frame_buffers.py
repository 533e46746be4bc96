"""Memory for frames that do not arrive in one read: reused, grown as bytes arrive, limited over all connections.

Kafka allocates a frame's announced size before it reads it (`MemoryPool`). Here the buffer grows with the bytes that
arrive, so an announced size costs no memory; it only counts towards the limit (queued.max.request.bytes).
"""

from __future__ import annotations

from collections import deque
from typing import Protocol

FIRST_BUFFER_BYTES = 64 * 1024
"""Size of a frame's first buffer; larger frames count towards the limit."""


class Reader(Protocol):
    """A connection that reads a large frame."""

    @property
    def frame_bytes(self) -> int:
        """The size of the frame."""

    def admit(self) -> None:
        """The frame fits under the limit now: go on reading it."""


class FrameBuffers:
    """Buffers of large frames, kept for reuse: mapping a fresh megabyte costs more than reading into it.

    Also counts the bytes of all frames being received (queued.max.request.bytes): a connection whose frame exceeds the
    limit is not read until others have finished theirs. One frame is always admitted.
    """

    __slots__ = ("_free", "_free_bytes", "_waiting", "kept_bytes", "max_bytes", "reserved_bytes")

    def __init__(self, max_bytes: int = -1, kept_bytes: int = 8 * 1024 * 1024) -> None:
        """`max_bytes` limits the frames being received together, -1 is no limit; `kept_bytes` are kept for reuse."""
        self._free: list[bytearray] = []
        self._free_bytes = 0
        self._waiting: deque[Reader] = deque()
        self.max_bytes = max_bytes
        self.kept_bytes = kept_bytes
        self.reserved_bytes = 0

    def reserve(self, reader: Reader, size: int) -> bool:
        """Count a frame of `size` bytes; False if it exceeds the limit: `reader.admit` is called once it fits."""
        if self.max_bytes >= 0 and self.reserved_bytes and self.reserved_bytes + size > self.max_bytes:
            self._waiting.append(reader)
            return False
        self.reserved_bytes += size
        return True

    def release(self, size: int) -> None:
        """A frame of `size` bytes is done: admit waiting ones that fit now."""
        self.reserved_bytes -= size
        self._admit_waiting()

    def leave(self, reader: Reader) -> None:
        """Remove a `reader` that waits: its connection is closed, or its frame is complete."""
        self._waiting.remove(reader)
        self._admit_waiting()

    def _admit_waiting(self) -> None:
        while self._waiting:
            size = self._waiting[0].frame_bytes
            if self.reserved_bytes and self.reserved_bytes + size > self.max_bytes:
                return
            self.reserved_bytes += size
            self._waiting.popleft().admit()

    def take(self, size: int) -> bytearray:
        """A buffer, perhaps smaller than `size`: the caller grows it as bytes arrive."""
        free = self._free
        for index in range(len(free) - 1, -1, -1):
            if len(free[index]) >= size:
                buffer = free.pop(index)
                self._free_bytes -= len(buffer)
                return buffer
        return bytearray(min(size, FIRST_BUFFER_BYTES))

    def give_back(self, buffer: bytearray) -> None:
        """Keep `buffer` for another frame unless enough are kept; there must be no view of it left."""
        size = len(buffer)
        if size > FIRST_BUFFER_BYTES and self._free_bytes + size <= self.kept_bytes:
            self._free.append(buffer)
            self._free_bytes += size
