"""Frames of Kafka's protocol from a trio stream, with the size limits of a broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.wire.frame import SIZE, check_frame_size

if TYPE_CHECKING:
    import trio

READ_BYTES: Final = 64 * 1024


class Frames:
    """Reads the frames of one direction of a connection."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self._data = bytearray()

    async def next(self) -> bytes | None:
        """The next frame without its size, None at the end. ProtocolError for an invalid size."""
        if not await self._has(SIZE.size):
            return None
        size = SIZE.unpack_from(self._data)[0]
        check_frame_size(size)
        if not await self._has(SIZE.size + size):
            return None
        frame = bytes(self._data[SIZE.size : SIZE.size + size])
        del self._data[: SIZE.size + size]
        return frame

    async def _has(self, size: int) -> bool:
        while len(self._data) < size:
            more = await self._stream.receive_some(READ_BYTES)
            if not more:
                return False
            self._data += more
        return True
