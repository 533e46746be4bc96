"""A channel with TLS: received bytes are decrypted, sent bytes are encrypted.

Pieces of `PIECE_BYTES` are encrypted when the socket takes them, so that a slow reader costs one piece. File slices are
read into memory for that, after the same check of the page cache as without TLS (`page_cache`). While encrypted bytes
wait for the socket, an empty chunk at the head of `out` stands for them.

A handshake costs 0.65 ms (EC) to 1.05 ms (RSA, 2,048 bits) of CPU in two steps, nearly all of it in OpenSSL, which
needs no interpreter for that: `HandshakeThreads` has other cores compute it, and the event loop pays 8 µs for each job
(22 µs with its thread). Until its handshake is done a channel is served in the reactor's rotation. `unauthenticated`
closes connections whose handshake takes too long.

Invariants: while a job runs nothing else uses the stream, and the socket is not watched; each connection has one job
at most, which is forgotten when the connection is closed.
"""

from __future__ import annotations

import errno
import logging
import os
import socket
import ssl
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from barnabas.broker.event_loop.limited_log import LimitedLog
from barnabas.broker.net.channel import TURN_BYTES, Channel
from barnabas.broker.net.log_ins import LogIns
from barnabas.broker.net.tls_stream import CIPHER_BYTES, TlsStream, failure_reason

if TYPE_CHECKING:
    from barnabas.broker.event_loop.disk_threads import DiskExecutor
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.net.connection import Connection
    from barnabas.broker.net.page_cache import ReadAhead
    from barnabas.broker.net.polling.poller import Poller
    from barnabas.wire.principal import KafkaPrincipal

logger = logging.getLogger("kafka.network.Selector")

PIECE_BYTES: Final = 64 * 1024
"""Bytes that are encrypted at a time."""
MOST_THREADS: Final = max(1, min(4, (os.cpu_count() or 1) - 1))
"""Threads that take steps of handshakes; the event loop has a core of its own where there are several."""
_HANDSHAKE_RECORD: Final = 0x16
_NO_STEP: Final = object()
_TAKEN: Final = object()
_MARK: Final = b""


class Identity(Protocol):
    """The current TLS settings of a listener: new connections use changed ones."""

    @property
    def context(self) -> ssl.SSLContext:
        """Certificates, versions and cipher suites."""

    def principal(self, certificate: bytes | None) -> KafkaPrincipal:
        """The principal for a client's certificate (DER), None: it sent none. PermissionError if it may not connect."""


class HandshakeThreads:
    """Steps of handshakes in threads, `MOST_THREADS` at a time, first come first served."""

    __slots__ = ("_executor", "_running", "_waiting")

    def __init__(self, executor: DiskExecutor) -> None:
        self._executor = executor
        self._running = 0
        self._waiting: dict[IncomingTls, None] = {}

    def __len__(self) -> int:
        """How many handshakes wait for a thread."""
        return len(self._waiting)

    def submit(self, incoming: IncomingTls) -> None:
        """Have a thread take the next step; `took_step` of the connection is called then. It is not called earlier."""
        if self._running < MOST_THREADS:
            self._start(incoming)
        else:
            self._waiting[incoming] = None

    def forget(self, incoming: IncomingTls) -> None:
        """A connection is closed: if it waits, no step is taken."""
        self._waiting.pop(incoming, None)

    def _start(self, incoming: IncomingTls) -> None:
        outcomes: list[ssl.SSLError | None] = []
        stream = incoming.stream
        self._executor.submit(lambda: outcomes.append(stream.step()), partial(self._done, incoming, outcomes))
        self._running += 1

    def _done(self, incoming: IncomingTls, outcomes: list[ssl.SSLError | None], failure: Exception | None) -> None:
        self._running -= 1
        while self._waiting and self._running < MOST_THREADS:
            following = next(iter(self._waiting))
            del self._waiting[following]
            self._start(following)
        incoming.took_step(outcomes[0] if outcomes else failure)


class TlsListener:
    """Makes the channels of a listener with TLS."""

    def __init__(
        self,
        loop: Loop,
        identity: Identity,
        threads: HandshakeThreads,
        poller: Poller,
        log_ins: LogIns | None = None,
    ) -> None:
        """`poller` watches the sockets; `threads` are shared by all listeners."""
        self.threads = threads
        self._poller = poller
        self.log_ins = LogIns() if log_ins is None else log_ins
        self.identity = identity
        self.log = LimitedLog(loop, logger, logging.WARNING, "failed handshakes of TLS")
        self.cipher_scratch = memoryview(bytearray(CIPHER_BYTES))
        self.plain_scratch = memoryview(bytearray(PIECE_BYTES))

    def channel(
        self,
        accepted: socket.SocketType,
        connection: Connection,
        read_ahead: ReadAhead,
        rotate: Callable[[Channel], None],
    ) -> TlsChannel:
        """The channel of an accepted socket; `rotate` has it served in the next turn."""
        incoming = IncomingTls(self, accepted, connection)
        channel = TlsChannel(incoming, connection, read_ahead, self.plain_scratch, rotate)
        incoming.watch = partial(self._watch, channel, rotate)
        return channel

    def _watch(self, channel: TlsChannel, rotate: Callable[[Channel], None], is_watched: bool) -> None:
        self._poller.modify(channel.fd, channel.interest if is_watched else 0, channel)
        if is_watched:
            rotate(channel)


class IncomingTls:
    """Replaces the socket of an accepted connection for the reactor."""

    __slots__ = (
        "_connection", "_has_begun", "_is_in_thread", "_listener", "_outcome", "_scratch", "_socket", "stream", "watch",
    )  # fmt: skip

    def __init__(self, listener: TlsListener, accepted: socket.SocketType, connection: Connection) -> None:
        self._listener = listener
        self._scratch = listener.cipher_scratch
        self._socket = accepted
        self._connection = connection
        self._has_begun = False
        self._is_in_thread = False
        self._outcome: Any = _NO_STEP
        self.watch: Callable[[bool], None] | None = None
        """Has the socket watched and served, or not while a thread takes a step; None after `close`."""
        self.stream = TlsStream(accepted, listener.identity.context, server_side=True)

    def fileno(self) -> int:
        """The descriptor of the socket."""
        return self._socket.fileno()

    def recv_into(self, buffer: memoryview) -> int:
        """Receive, after the handshake. BlockingIOError if nothing is there; another OSError ends the connection."""
        if not self.stream.is_open:
            self._handshake()
        return self.stream.recv_into(buffer, self._scratch)

    def _handshake(self) -> None:
        if self._is_in_thread:
            raise BlockingIOError
        try:
            if not self._has_begun:
                self._look_at_first_byte()
            self._go_on()
        except BlockingIOError:
            raise
        except OSError as error:
            if self._has_begun:
                self._log_failure(failure_reason(error))
            raise
        if self._connection.security_protocol == "SSL":
            self._authenticate()

    def _go_on(self) -> None:
        """Use the outcome of the last step, and begin the next one; returns when the handshake is done."""
        stream = self.stream
        if self._outcome is _NO_STEP:
            stream.receive_hello(self._scratch)
        else:
            if self._outcome is not _TAKEN:
                outcome, self._outcome = self._outcome, _TAKEN
                stream.took_step(outcome)
            if stream.is_open:
                return
            stream.receive(self._scratch)
        self._take_step()

    def _take_step(self) -> None:
        """Have a thread take a step with what was received. Raises BlockingIOError until it is done."""
        assert self.watch is not None
        self.watch(False)
        self._is_in_thread = True
        self._listener.threads.submit(self)
        raise BlockingIOError

    def took_step(self, outcome: Exception | None) -> None:
        """A step was taken in a thread: go on with its outcome, an error, or None if the handshake is done."""
        self._is_in_thread = False
        if self.watch is not None:
            self._outcome = outcome
            self.watch(True)

    def _look_at_first_byte(self) -> None:
        """Raise an OSError for a client that sends no handshake; it is logged unless the client sends nothing."""
        first = self._socket.recv(1, socket.MSG_PEEK)
        if not first:
            raise ConnectionResetError(errno.ECONNRESET, "the peer has sent nothing")
        if first[0] != _HANDSHAKE_RECORD:
            protocol = self._connection.security_protocol
            self._log_failure(
                f"the client does not speak TLS: set security.protocol={protocol} in it, or use a port without TLS"
            )
            raise ConnectionAbortedError(errno.ECONNABORTED, "the peer does not speak TLS")
        self._has_begun = True

    def _authenticate(self) -> None:
        connection = self._connection
        try:
            connection.principal = self._listener.identity.principal(self.stream.tls.getpeercert(binary_form=True))
        except PermissionError as error:
            self._log_failure(str(error))
            raise
        connection.authenticated()
        self._listener.log_ins.successful_authentications += 1

    def _log_failure(self, why: str) -> None:
        connection = self._connection
        self._listener.log_ins.failed_authentications += 1
        self._listener.log.line(
            connection.peer_host,
            "[SocketServer listener=%s] Failed authentication with %s:%d (SSL handshake failed): %s",
            *(connection.listener, connection.peer_host, connection.peer_port, why),
        )

    def close(self) -> None:
        """Close the connection. A thread that takes a step goes on, and nothing follows."""
        self.watch = None
        self._listener.threads.forget(self)
        self.stream.close()


class TlsChannel(Channel):
    """A channel whose socket speaks TLS."""

    __slots__ = ("_has_mark", "_is_heavy", "_plain", "_rotate", "_stream")

    def __init__(
        self,
        incoming: IncomingTls,
        connection: Connection,
        read_ahead: ReadAhead,
        plain_scratch: memoryview,
        rotate: Callable[[Channel], None],
    ) -> None:
        """`plain_scratch` holds the bytes to encrypt during a call; it is shared."""
        self._stream = incoming.stream
        self._is_heavy = True
        super().__init__(incoming, connection, read_ahead)  # type: ignore[arg-type]  # has the used methods of a socket
        self._plain = plain_scratch
        self._rotate = rotate
        self._has_mark = False

    @property
    def is_heavy(self) -> bool:
        """Whether it is served after the others: also until its handshake is done."""
        return self._is_heavy or not self._stream.is_open

    @is_heavy.setter
    def is_heavy(self, is_heavy: bool) -> None:
        self._is_heavy = is_heavy

    def flush(self) -> int:
        """Encrypt and send what the socket accepts, at most about TURN_BYTES; returns the bytes that left `out`."""
        connection, stream = self.connection, self._stream
        out = connection.out
        if self._has_mark:
            self._has_mark = False
            out.popleft()
        total = 0
        try:
            stream.send()
            while out and total < TURN_BYTES and not self.is_reading:
                total += self._seal_some()
                stream.send()
        except BlockingIOError:
            pass
        if stream.has_sealed:
            self._has_mark = True
            out.appendleft(_MARK)
        if stream.has_unread and connection.wants_data:
            self._rotate(self)  # the poller does not know of it
        return total

    def _seal_some(self) -> int:
        """Encrypt the next piece of `out`: short chunks together with the following bytes."""
        connection, plain = self.connection, self._plain
        out = connection.out
        filled = 0
        while out and filled < PIECE_BYTES and not self.is_reading:
            head = out[0]
            if not isinstance(head, (bytes, memoryview)):
                filled += self._read_slice(head, plain[filled:])
                continue
            count = min(len(head), PIECE_BYTES - filled)
            if count == len(head):
                plain[filled : filled + count] = head
                out.popleft()
            else:
                plain[filled : filled + count] = memoryview(head)[:count]
                out[0] = memoryview(head)[count:]
            filled += count
        if filled:
            self._stream.seal(plain[:filled])
            connection.out_bytes -= filled
        return filled

    def _read_slice(self, piece: Any, space: memoryview) -> int:
        """Read the next bytes of a file slice; 0 while a thread reads them from the disk first."""
        offset = piece.offset + self._slice_sent
        remaining = len(piece) - self._slice_sent
        if offset >= self._in_cache_to:
            end = offset + min(remaining, TURN_BYTES)
            if self._read_ahead.needs(piece.file, offset, end):
                self.is_reading = True
                self._read_ahead.start(piece.file, offset, end, partial(self._was_read, end))
                return 0
            self._in_cache_to = end
        try:
            size = min(len(space), self._in_cache_to - offset)
            count = os.preadv(piece.file.fd, [space[:size]], offset)
            if not count:
                raise OSError(errno.EIO, "the file is shorter than the slice")
        except OSError as error:
            logger.error("Cannot read %s: %s. Closing the connection that it was sent to", piece.file.path, error)
            raise
        if count == remaining:
            self.connection.out.popleft()
            self._slice_sent = self._in_cache_to = 0
        else:
            self._slice_sent += count
        return count
