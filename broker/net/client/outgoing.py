"""Connections that this broker opens to other nodes: sockets of the reactor, without a task or a thread for each.

`Outgoing.connect` starts to connect and returns at once; the `Peer` is called when the connection is open, when bytes
have been received, and once when it has ended. A call that would block waits for the reactor's poller. Names are looked
up in a thread, addresses are not looked up. The bytes received from a peer in one turn are bounded, as they are for
clients. `outgoing_tls` does the same with TLS.
"""

from __future__ import annotations

import errno
import os
import socket
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from barnabas.broker.event_loop.guarded import call_guarded
from barnabas.broker.net.channel import drop_sent
from barnabas.broker.net.polling.poller import READ, WRITE

if TYPE_CHECKING:
    from barnabas.broker.event_loop.disk_threads import DiskExecutor
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.net.polling.poller import Poller

TURN_BYTES = 1024 * 1024
"""Bytes that one connection may receive in a turn."""
MAX_CHUNKS = 64


class Peer(Protocol):
    """The user of a connection."""

    def opened(self) -> None:
        """The connection is open: `Transport.send` may be called."""

    def space(self) -> memoryview:
        """Where the next bytes are received to; not empty."""

    def filled(self, count: int) -> None:
        """`count` bytes have been received into `space`."""

    def ended(self, error: OSError | None) -> None:
        """The connection could not be opened, or has ended; never called after `Transport.close`."""


class Transport(Protocol):
    """One connection, as its user sees it."""

    def send(self, chunks: Sequence[bytes | memoryview]) -> None:
        """Send chunks, which must not change until they are sent; only after `Peer.opened`."""

    def close(self) -> None:
        """Close the connection; may be called at any time, and again."""


Connect = Callable[[str, int, Peer], Transport]
"""Start to connect to a host and port; the peer is called later, never from within the call."""


class Outgoing:
    """Opens connections that the reactor serves. `attach` must be called before the first of them."""

    def __init__(self, loop: Loop, executor: DiskExecutor) -> None:
        """`executor` looks up the names of hosts."""
        self._loop = loop
        self._executor = executor
        self._open: set[OutgoingSocket] = set()
        self.poller: Poller | None = None

    def attach(self, poller: Poller) -> None:
        """Use the reactor's poller."""
        self.poller = poller

    def connect(self, host: str, port: int, peer: Peer) -> Transport:
        """Start to connect (`Connect`)."""
        assert self.poller is not None
        return self.start(host, port, OutgoingSocket(self.poller, peer, self.forget))

    def start(self, host: str, port: int, opened: OutgoingSocket) -> Transport:
        """Start to connect a socket that was made for it."""
        self._open.add(opened)
        if _is_address(host):
            self._loop.timers.at(self._loop.now(), lambda: opened.connect(host, port))
        else:
            self._look_up(host, port, opened)
        return opened

    def _look_up(self, host: str, port: int, opened: OutgoingSocket) -> None:
        resolved: list[str] = []

        def look_up() -> None:
            addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            resolved.extend(
                str(address[4][0]) for address in sorted(addresses, key=lambda info: info[0] != socket.AF_INET)
            )

        def looked_up(failure: Exception | None) -> None:
            if failure is None and resolved:
                opened.connect(resolved[0], port, resolved[1:])
            else:
                opened.fail(OSError(errno.EHOSTUNREACH, f"the name {host} is unknown"))

        self._executor.submit(look_up, looked_up)

    def forget(self, closed: OutgoingSocket) -> None:
        """A socket was closed."""
        self._open.discard(closed)

    def close(self) -> None:
        """Close all connections, without calling their users."""
        for opened in list(self._open):
            opened.close()


class OutgoingSocket:
    """A socket that was opened by this node."""

    __slots__ = ("_closed", "_interest", "_is_open", "_others", "_out", "_peer", "_poller", "_port", "_socket")

    def __init__(self, poller: Poller, peer: Peer, closed: Callable[[OutgoingSocket], None]) -> None:
        self._poller = poller
        self._peer: Peer | None = peer
        self._closed = closed
        self._socket: socket.socket | None = None
        self._is_open = False
        self._interest = 0
        self._others: list[str] = []
        self._port = 0
        self._out: deque[bytes | memoryview] = deque()

    def connect(self, host: str, port: int, others: Sequence[str] = ()) -> None:
        """Start to connect to an address, and to the others if that fails."""
        if self._peer is None:
            return
        self._others, self._port = list(others), port
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            connecting = socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:
            self.fail(error)
            return
        connecting.setblocking(False)
        connecting.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connecting.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._socket = connecting
        result = connecting.connect_ex((host, port))
        if result not in {0, errno.EINPROGRESS, errno.EWOULDBLOCK}:
            self._failed(OSError(result, os.strerror(result)))
            return
        self._interest = WRITE
        self._poller.register(connecting.fileno(), WRITE, self._ready)

    def _ready(self) -> None:
        """Handle the poller's event: connect, receive or send."""
        if self._socket is None:
            return  # an event from before the socket was closed
        try:
            if not self._is_open and not self._finish_connect(self._socket):
                return
            if self._has_output:
                self._flush()
            self._receive()
        except BlockingIOError:
            pass
        except OSError as error:
            self._failed(error)
            return
        self._watch()

    def _finish_connect(self, connecting: socket.socket) -> bool:
        """Handle the result of connecting: whether the connection is open and still wanted."""
        self._check_connected(connecting)
        return self._tell_opened()

    def _check_connected(self, connecting: socket.socket) -> None:
        """Raise OSError if the system could not connect."""
        result = connecting.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if result:
            raise OSError(result, os.strerror(result))
        local, remote = connecting.getsockname(), connecting.getpeername()
        if local == remote:  # a port of the ephemeral range can connect to itself
            raise OSError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))

    def _tell_opened(self) -> bool:
        """Call the user's `opened`; whether the connection is still open after that."""
        self._is_open = True
        peer = self._peer
        assert peer is not None
        call_guarded("Opening a connection to another node", peer.opened)
        return self._socket is not None

    def _receive(self) -> None:
        budget = TURN_BYTES
        while budget > 0 and self._socket is not None and self._peer is not None:
            space = self._peer.space()
            count = self._socket.recv_into(space)
            space.release()
            if not count:
                raise OSError(errno.ECONNRESET, "the other node has closed the connection")
            budget -= count
            self._peer.filled(count)

    def send(self, chunks: Sequence[bytes | memoryview]) -> None:
        """Send chunks (`Transport`)."""
        if self._socket is None:
            return  # its user is called when it has ended
        was_empty = not self._out
        self._out.extend(chunks)
        if was_empty:
            try:
                self._flush()
            except BlockingIOError:
                pass
            except OSError:
                pass  # the poller reports it, so that the user is not called from its own call
            self._watch()

    @property
    def _has_output(self) -> bool:
        """Whether there are bytes that wait to be sent."""
        return bool(self._out)

    def _flush(self) -> None:
        out = self._out
        while out and self._socket is not None:
            chunks = [out[index] for index in range(min(len(out), MAX_CHUNKS))]
            drop_sent(out, chunks, self._socket.sendmsg(chunks))

    def _watch(self) -> None:
        """Have the poller watch for the events that are needed now."""
        if self._socket is None or not self._is_open:
            return
        interest = READ | WRITE if self._has_output else READ
        if interest != self._interest:
            self._interest = interest
            self._poller.modify(self._socket.fileno(), interest, self._ready)

    def _failed(self, error: OSError) -> None:
        """The connection has ended; before it was open, the next address of the host is tried."""
        if not self._is_open and self._others:
            self._release()
            self.connect(self._others[0], self._port, self._others[1:])
            return
        self.fail(error)

    def fail(self, error: OSError) -> None:
        """End the connection and call its user."""
        peer = self._peer
        self.close()
        if peer is not None:
            call_guarded("What follows the end of a connection", peer.ended, error)

    def close(self) -> None:
        """Close the connection (`Transport`)."""
        self._peer = None
        self._out.clear()
        self._release()
        self._closed(self)

    def _release(self) -> None:
        if self._socket is not None:
            if self._interest:
                self._poller.unregister(self._socket.fileno())
                self._interest = 0
            self._socket.close()
            self._socket = None


def _is_address(host: str) -> bool:
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except OSError:
            continue
        return True
    return False
