"""One accepted socket with its connection, and how responses are sent through it.

Chunks in memory are sent together by `sendmsg`, a file slice by `sendfile`, and the chunks before it with MSG_MORE; at
most about a megabyte per turn, so that one large response does not delay the other connections. Pieces that are not in
the page cache are read by a thread before they are sent (`page_cache`).

What is in memory is not sent by a thread: a megabyte takes 0.07 to 0.18 ms of CPU by `sendfile`, 0.18 to 0.28 ms by
`sendmsg`, a part of a turn, and smaller pieces cost more (256 KB: 1.1 to 1.4 times).
"""

from __future__ import annotations

import errno
import logging
import os
import socket
from functools import partial
from typing import TYPE_CHECKING, Any

from barnabas.broker.net.polling.poller import READ

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Sequence

    from barnabas.broker.net.connection import Connection
    from barnabas.broker.net.page_cache import ReadAhead

logger = logging.getLogger("kafka.network.Processor")

TURN_BYTES = 1024 * 1024
"""Bytes that one connection may read or send per turn."""
MAX_CHUNKS = 64
_MSG_MORE = getattr(socket, "MSG_MORE", 0)


def drop_sent(out: deque[Any], chunks: Sequence[bytes | memoryview], sent: int) -> None:
    """Remove the first `sent` bytes of `out`, which begins with these chunks."""
    for chunk in chunks:
        if sent < len(chunk):
            if sent:
                out[0] = memoryview(chunk)[sent:]
            break
        sent -= len(chunk)
        out.popleft()


class Channel:
    """A socket, its connection, and the events that the poller watches it for."""

    __slots__ = (
        "_in_cache_to",
        "_read_ahead",
        "_slice_sent",
        "busy_visits",
        "connection",
        "fd",
        "interest",
        "is_heavy",
        "is_queued",
        "is_reading",
        "is_suspect",
        "is_waiting",
        "socket",
    )

    def __init__(self, accepted: socket.SocketType, connection: Connection, read_ahead: ReadAhead) -> None:
        self.socket = accepted
        self.fd = accepted.fileno()
        self.connection = connection
        self.interest = READ
        self.is_queued = False  # for sending
        self.is_waiting = False  # among the connections in the reactor's rotation
        self.is_reading = False  # whether a thread reads the next piece to be sent
        self._read_ahead = read_ahead
        self.is_heavy = True  # whether it used up its share of CPU time when it was last served; true before
        self.busy_visits = 0  # how often it is still served in the rotation: it was busy while many were ready
        self.is_suspect = False  # whether it exceeded its share of time when last served, maybe for another process
        self._slice_sent = 0  # bytes of the file slice at the head of `out` that were sent
        self._in_cache_to = 0  # the end, in the file, of the piece of the slice that may be sent now

    @property
    def is_unauthenticated(self) -> bool:
        """Whether the client has to authenticate first: such channels have a small part of each turn."""
        return self.connection.on_authenticated is not None

    def flush(self) -> int:
        """Send what the socket accepts, at most about TURN_BYTES; returns the bytes sent."""
        connection = self.connection
        out = connection.out
        if len(out) == 1 and type(response := out[0]) is bytes:  # one response in one piece, as nearly always
            try:
                sent = self.socket.send(response)
            except BlockingIOError:
                return 0
            connection.out_bytes -= sent
            if sent == len(response):
                out.popleft()
            else:
                out[0] = memoryview(response)[sent:]
            return sent
        total = 0
        while out and total < TURN_BYTES and not self.is_reading:
            try:
                sent = self._send_some()
            except BlockingIOError:
                break
            total += sent
            connection.out_bytes -= sent
        return total

    def _send_some(self) -> int:
        """Send a part of `out` with one system call; BlockingIOError when the socket's buffer is full."""
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
        sent = self.socket.sendmsg(chunks, (), flags)
        drop_sent(out, chunks, sent)
        return sent

    def _send_slice(self) -> int:
        out = self.connection.out
        piece = out[0]
        offset = piece.offset + self._slice_sent  # type: ignore[union-attr]
        remaining = len(piece) - self._slice_sent
        file = piece.file  # type: ignore[union-attr]
        if offset >= self._in_cache_to:
            end = offset + min(remaining, TURN_BYTES)
            if self._read_ahead.needs(file, offset, end):
                self.is_reading = True
                self._read_ahead.start(file, offset, end, partial(self._was_read, end))
                return 0
            self._in_cache_to = end
        try:
            sent = os.sendfile(self.fd, file.fd, offset, self._in_cache_to - offset)
            if not sent:
                raise OSError(errno.EIO, "the file is shorter than the slice")
        except OSError as error:
            if error.errno == errno.EIO:  # of the file: part of the response has been sent, so the connection is closed
                logger.error("Cannot read %s: %s. Closing the connection that it was sent to", file.path, error)
            raise
        if sent == remaining:
            out.popleft()
            self._slice_sent = self._in_cache_to = 0
        else:
            self._slice_sent += sent
        return sent

    def _was_read(self, end: int) -> None:
        """The next piece has been read: go on sending."""
        self.is_reading = False
        self._in_cache_to = end
        self.connection.on_output(self.connection)
