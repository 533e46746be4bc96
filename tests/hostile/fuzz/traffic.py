"""Sends frames, pipelined in bursts on many connections, and counts how each burst ends.

The last frame of a burst is an ApiVersions request with a correlation id of its own: when its response arrives, the
whole burst was served, also requests without a response. A connection that is closed, or that makes no progress for a
while because a request is parked or a frame is waited for, loses the frame at which it was; the frames after it are
sent again on a new connection.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from random import Random

from barnabas.wire.messages.api_versions import ApiVersionsRequest
from tests.hostile.attacker import frame
from tests.hostile.fuzz.doors import Door, Pipe

BURST = 24
CONNECTIONS = 12
PATIENCE_S = 0.4
LAST = 0x5EA15EA1
SENTINEL = frame(ApiVersionsRequest(), 0, LAST)
RECV = 1 << 18
KEPT = 4000
"""How many frames of closed connections are kept for a report."""


class Connection:
    """One connection with its burst."""

    __slots__ = ("burst", "deadline", "history", "inbox", "outbox", "pipe", "port", "responses", "socket")

    def __init__(self, connection: socket.socket, pipe: Pipe) -> None:
        """`pipe` sends and receives: the socket itself, or TLS on it."""
        self.socket, self.pipe = connection, pipe
        self.port = self.socket.getsockname()[1]
        self.burst: list[bytes] = []
        self.history: list[bytes] = []
        self.inbox = bytearray()
        self.outbox = b""
        self.responses = 0
        self.deadline = 0.0

    def load(self, burst: list[bytes]) -> None:
        """Begin a burst."""
        self.burst = burst
        self.history = (self.history + burst)[-3 * BURST :]
        self.outbox = b"".join(burst) + SENTINEL
        self.responses = 0

    def push(self) -> None:
        """Send what fits into the socket. OSError if the connection is closed."""
        while self.is_sending:
            try:
                self.outbox = self.outbox[self.pipe.send(self.outbox) :]
            except BlockingIOError:
                return

    @property
    def is_sending(self) -> bool:
        """Whether there is something to send."""
        return bool(self.outbox or getattr(self.pipe, "waits", b""))

    def pull(self, on_response: Callable[[bytes], None]) -> bool:
        """Read responses; True if the burst is done. OSError if the connection is closed."""
        data = self.pipe.recv(RECV)
        if not data:
            raise ConnectionResetError
        inbox = self.inbox
        inbox += data
        at = 0
        done = False
        while len(inbox) - at >= 8:
            size, correlation_id = struct.unpack_from(">ii", inbox, at)
            if len(inbox) - at < size + 4:
                break
            if correlation_id == LAST:
                done = True
            else:
                self.responses += 1
                on_response(inbox[at + 4 : at + 4 + size])
            at += size + 4
        del inbox[:at]
        return done


class Traffic:
    """Keeps the connections of one attacker busy."""

    def __init__(self, random: Random, door: Door, port: int, on_response: Callable[[bytes], None]) -> None:
        self._random = random
        self._door = door
        self._port = port
        self._on_response = on_response
        self._open: dict[int, Connection] = {}
        self._poller = select.poll()
        self._again: deque[bytes] = deque()
        self.recent: deque[tuple[int, list[bytes]]] = deque(maxlen=400)
        self.counts: Counter[str] = Counter()

    def run(self, frames: Iterator[bytes], between: Callable[[], None]) -> None:
        """Send all frames; `between` is called after every poll."""
        exhausted = False
        while self._open or self._again or not exhausted:
            while len(self._open) < CONNECTIONS and (self._again or not exhausted):
                burst, exhausted = self._next_burst(frames)
                if burst:
                    self._connect(burst)
            for fd, event in self._poller.poll(20):
                self._serve(self._open[fd], event, frames)
            self._close_the_parked()
            between()

    def frames_in_flight(self) -> list[bytes]:
        """The frames of the bursts that are not done."""
        return [frame for connection in list(self._open.values()) for frame in connection.burst[connection.responses :]]

    def frames_of(self, port: int) -> list[bytes] | None:
        """The last frames that a connection has sent, by its port."""
        for connection in self._open.values():
            if connection.port == port:
                return connection.history
        return next((history for known, history in reversed(self.recent) if known == port), None)

    def close(self) -> None:
        """Close all connections."""
        for connection in list(self._open.values()):
            self._drop(connection)

    def _next_burst(self, frames: Iterator[bytes]) -> tuple[list[bytes], bool]:
        burst = []
        while len(burst) < BURST:
            if self._again:
                burst.append(self._again.popleft())
                continue
            frame = next(frames, None)
            if frame is None:
                return burst, True
            burst.append(frame)
        return burst, False

    def _connect(self, burst: list[bytes]) -> None:
        self.counts["connections"] += 1
        try:
            connection = Connection(*self._door.enter(self._port, self._random))
        except OSError:
            self.counts["not opened"] += 1  # a mutated handshake
            self._again.extend(burst)
            return
        self._open[connection.socket.fileno()] = connection
        self._begin(connection, burst)

    def _begin(self, connection: Connection, burst: list[bytes]) -> None:
        connection.load(burst)
        connection.deadline = time.monotonic() + PATIENCE_S
        try:
            connection.push()
        except OSError:
            pass  # the poll says so as well
        self._poller.register(connection.socket, self._interest(connection))

    def _interest(self, connection: Connection) -> int:
        return select.POLLIN | (select.POLLOUT if connection.is_sending else 0)

    def _serve(self, connection: Connection, event: int, frames: Iterator[bytes]) -> None:
        done = False
        before = connection.responses
        try:
            if event & select.POLLOUT:
                connection.push()
            if event & ~select.POLLOUT:
                done = connection.pull(self._on_response)
        except BlockingIOError:
            pass
        except OSError:
            self._finish(connection, "closed")
            return
        if done:
            self.counts["served"] += len(connection.burst)
            connection.burst = []
            burst, _ = self._next_burst(frames)
            if burst and self._random.random() > 0.01:
                self._begin(connection, burst)
            else:
                self._again.extend(burst)
                self._drop(connection)
            return
        if connection.responses > before:
            connection.deadline = time.monotonic() + PATIENCE_S
        self._poller.modify(connection.socket, self._interest(connection))

    def _close_the_parked(self) -> None:
        now = time.monotonic()
        for connection in [candidate for candidate in self._open.values() if candidate.deadline < now]:
            self._finish(connection, "parked")

    def _finish(self, connection: Connection, how: str) -> None:
        """The connection ends at a frame: those before it are done, and those after it are sent again."""
        at = min(connection.responses, len(connection.burst) - 1)
        self.counts[how] += 1
        self.counts["served"] += at
        self._again.extend(connection.burst[at + 1 :])
        self._drop(connection)

    def _drop(self, connection: Connection) -> None:
        self.recent.append((connection.port, connection.history))
        del self._open[connection.socket.fileno()]
        try:
            self._poller.unregister(connection.socket)
        except KeyError:
            pass
        if self._random.random() < 0.5:
            connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.socket.close()
