"""One accepted socket with its connection, and how answers leave through it.

Chunks in memory go out together by `sendmsg`; a file slice goes by `sendfile`, what precedes it marked MSG_MORE; at
most about a megabyte a turn, so that one large answer does not hold up the other connections.
"""

from __future__ import annotations

import errno
import logging
import os
import socket
from typing import TYPE_CHECKING

from barnabas.broker.net.poller import READ

if TYPE_CHECKING:
    from barnabas.broker.net.connection import Connection

logger = logging.getLogger("kafka.network.Processor")

TURN_BYTES = 1024 * 1024
"""What one connection may read or send before the others have their turn."""
MAX_CHUNKS = 64
_MSG_MORE = getattr(socket, "MSG_MORE", 0)


class Channel:
    """A socket, its connection, and what the poller was asked to watch it for."""

    __slots__ = ("_slice_sent", "connection", "fd", "interest", "is_queued", "socket")

    def __init__(self, accepted: socket.socket, connection: Connection) -> None:
        self.socket = accepted
        self.fd = accepted.fileno()
        self.connection = connection
        self.interest = READ
        self.is_queued = False
        self._slice_sent = 0  # bytes of the file slice at the head of `out` that have left

    def flush(self, now: float) -> None:
        """Send what the socket takes, at most about TURN_BYTES; then go on with requests that waited for it."""
        connection = self.connection
        budget = TURN_BYTES
        while True:
            if not connection.out:
                connection.drained(now)
            if not connection.out or budget <= 0:
                return
            try:
                sent = self._send_some()
            except BlockingIOError:
                return
            budget -= sent
            connection.out_bytes -= sent

    def _send_some(self) -> int:
        """One system call's worth of `out`; BlockingIOError when the socket takes nothing."""
        out = self.connection.out
        head = out[0]
        if not isinstance(head, (bytes, memoryview)):
            return self._send_slice()
        if len(out) == 1:
            sent = self.socket.send(head)
            if sent == len(head):
                out.popleft()
            else:
                out[0] = memoryview(head)[sent:]
            return sent
        return self._send_chunks()

    def _send_chunks(self) -> int:
        out = self.connection.out
        chunks: list[bytes | memoryview] = []
        flags = 0
        for chunk in out:
            if len(chunks) == MAX_CHUNKS:
                break
            if not isinstance(chunk, (bytes, memoryview)):
                flags = _MSG_MORE
                break
            chunks.append(chunk)
        sent = left = self.socket.sendmsg(chunks, (), flags)
        for chunk in chunks:
            if left < len(chunk):
                if left:
                    out[0] = memoryview(chunk)[left:]
                break
            left -= len(chunk)
            out.popleft()
        return sent

    def _send_slice(self) -> int:
        out = self.connection.out
        piece = out[0]
        offset = piece.offset + self._slice_sent  # type: ignore[union-attr]
        wanted = len(piece) - self._slice_sent
        file = piece.file  # type: ignore[union-attr]
        try:
            sent = os.sendfile(self.fd, file.fd, offset, min(wanted, TURN_BYTES))
            if not sent:
                raise OSError(errno.EIO, "the file ended before what it must hold")
        except OSError as error:
            if error.errno == errno.EIO:  # no error of the socket; the answer has begun, so closing must do
                logger.error("Cannot read %s: %s. The connection that was to get it is closed", file.path, error)
            raise
        if sent == wanted:
            out.popleft()
            self._slice_sent = 0
        else:
            self._slice_sent += sent
        return sent
