"""Memory for frames that do not come in one read: reused, grown with what arrives, and limited over all connections.

Kafka reserves a frame's announced size before it reads it (`MemoryPool`). Here the buffer grows with the bytes, so that
an announcement costs nothing; only the limit (queued.max.request.bytes) counts what was announced.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.broker.net.connection import Connection

FIRST_BUFFER_BYTES = 64 * 1024
"""What a frame gets to begin with; also the size from which on frames count against the limit."""


class FrameBuffers:
    """Buffers of large frames, kept for the next one: a megabyte freshly mapped costs more than reading into it.

    It also keeps count of the bytes that all frames under way will need (queued.max.request.bytes): a connection whose
    frame does not fit is not read until others have done with theirs. One frame is always let in.
    """

    __slots__ = ("_free", "_free_bytes", "_waiting", "kept_bytes", "max_bytes", "reserved_bytes")

    def __init__(self, max_bytes: int = -1, kept_bytes: int = 8 * 1024 * 1024) -> None:
        """`max_bytes` is what frames under way may take together, -1 for no limit; `kept_bytes` is kept for reuse."""
        self._free: list[bytearray] = []
        self._free_bytes = 0
        self._waiting: deque[Connection] = deque()
        self.max_bytes = max_bytes
        self.kept_bytes = kept_bytes
        self.reserved_bytes = 0

    def reserve(self, connection: Connection, size: int) -> bool:
        """Room for a frame of `size` bytes; without it the connection is told by `admit` once there is."""
        if self.max_bytes >= 0 and self.reserved_bytes and self.reserved_bytes + size > self.max_bytes:
            self._waiting.append(connection)
            return False
        self.reserved_bytes += size
        return True

    def release(self, size: int) -> None:
        """A frame is done with: those that wait for room may come."""
        self.reserved_bytes -= size
        while self._waiting:
            connection = self._waiting[0]
            if not connection.is_closed:
                if self.reserved_bytes and self.reserved_bytes + connection.frame_bytes > self.max_bytes:
                    return
                self.reserved_bytes += connection.frame_bytes
                connection.admit()
            self._waiting.popleft()

    def take(self, wanted: int) -> bytearray:
        """A buffer, perhaps smaller than `wanted`: the caller grows it as bytes arrive."""
        free = self._free
        for index in range(len(free) - 1, -1, -1):
            if len(free[index]) >= wanted:
                buffer = free.pop(index)
                self._free_bytes -= len(buffer)
                return buffer
        return bytearray(min(wanted, FIRST_BUFFER_BYTES))

    def give_back(self, buffer: bytearray) -> None:
        """Keep `buffer` for another frame if there is room; nobody may hold a view of it."""
        size = len(buffer)
        if size > FIRST_BUFFER_BYTES and self._free_bytes + size <= self.kept_bytes:
            self._free.append(buffer)
            self._free_bytes += size
