"""Listening sockets: accepts connections while limits allow it and file descriptors are left; otherwise they wait."""

from __future__ import annotations

import errno
import logging
import os
import resource
import socket
import sys
from collections.abc import Callable
from math import inf
from socket import SocketType
from typing import TYPE_CHECKING, Final

from barnabas.broker.net.polling.poller import READ

if TYPE_CHECKING:
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.net.connection import Connection
    from barnabas.broker.net.log_ins import LogIns
    from barnabas.broker.net.polling.poller import Poller
    from barnabas.broker.net.tls_channel import TlsListener

logger = logging.getLogger("kafka.network.SocketServer")

ACCEPT_BATCH = 64
"""Connections accepted from one listener in a turn, at most."""
ACCEPT_S = 0.00025
"""How long connections are accepted from one listener in a turn, seconds."""
NO_DESCRIPTORS_PAUSE_S = 0.1
"""How long accepting pauses when file descriptors are exhausted, seconds."""
WARNING_INTERVAL_S = 10.0
"""Minimum interval between warnings about connections that are not accepted, seconds."""
CONNECTIONS_SHARE = 0.9
RESERVED_DESCRIPTORS = 16
"""Connections may take `CONNECTIONS_SHARE` of the file descriptors, and leave at least this number free."""

_OUT_OF_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_INHERITS_OPTIONS: Final = sys.platform == "linux"
"""Whether an accepted socket has the options of the one that listens, also TCP_NODELAY."""
_ANY_ADDRESS: Final = ("0.0.0.0", "::")


class Listener:
    """A listening socket, the name of its listener, and the `dispatch` of its connections."""

    __slots__ = (
        "_kind",
        "_local",
        "_log_ins",
        "dispatch",
        "has_accepted",
        "is_held",
        "is_polled",
        "name",
        "prepare",
        "protocol",
        "socket",
        "tls",
    )

    def __init__(
        self,
        name: str,
        listening: socket.socket,
        dispatch: Callable[[Connection, memoryview], None] | None = None,
        protocol: str = "PLAINTEXT",
        tls: TlsListener | None = None,
    ) -> None:
        """`dispatch` serves one request frame of a connection; None: the reactor's own (`Reactor`).

        `protocol` is the security protocol: one of `config.listeners.SECURITY_PROTOCOLS`. `tls` makes the channels if
        that is SSL or SASL_SSL.
        """
        self.name = name
        self.socket = listening
        self.dispatch = dispatch
        self.protocol = protocol
        self.prepare: Callable[[Connection], None] | None = None
        """Called with each connection before anything is read from it: SASL."""
        self.tls = tls
        self._kind = (int(listening.family), int(listening.type), listening.proto)
        self._local: tuple[str, int] | None = None
        self._log_ins: LogIns | None = None
        self.is_held = False  # by a limit
        self.is_polled = False
        self.has_accepted = False
        """Whether any client has ever connected."""

    @property
    def authenticates(self) -> bool:
        """Whether clients have to authenticate, if only this node to them."""
        return self.prepare is not None or self.tls is not None

    def begin(self) -> None:
        """Prepare the socket, which is bound and listens, and read the local address of its connections."""
        self.socket.setblocking(False)
        if _INHERITS_OPTIONS:
            _set_options(self.socket)
        local = self.socket.getsockname()
        self._local = None if local[0] in _ANY_ADDRESS else (local[0], local[1])

    def accept(self) -> tuple[SocketType, tuple[str, int]]:
        """The next connection and its peer. OSError if there is none, or it could not be accepted.

        The connection is a `_socket.socket`: a `socket.socket` costs twice the system call.
        """
        fd, peer = self.socket._accept()  # type: ignore[attr-defined]  # `socket.accept` calls it
        return SocketType(*self._kind, fd), peer

    def local_address(self, accepted: SocketType) -> tuple[str, int]:
        """The local address that a client has connected to."""
        local = self._local
        if local is None:  # one of many
            local = accepted.getsockname()
        return local[0], local[1]

    @property
    def log_ins(self) -> LogIns:
        """The counts of log-ins, if the listener is secured."""
        if self._log_ins is None:
            from barnabas.broker.net.log_ins import LogIns

            self._log_ins = LogIns()
        return self._log_ins


class Acceptor:
    """Accepts the connections of all listeners."""

    def __init__(
        self,
        loop: Loop,
        poller: Poller,
        admit: Callable[[Listener, SocketType, tuple[str, int]], None],
        connection_count: Callable[[], int],
        hold: Callable[[Listener, float], tuple[float, str] | None],
    ) -> None:
        """`admit` takes an accepted socket and its peer; an OSError of it closes the socket.

        `hold` says for how long a listener must not accept at this time, seconds, and because of which limit.
        """
        self._loop = loop
        self._poller = poller
        self._admit = admit
        self._connection_count = connection_count
        self._hold = hold
        self.listeners: list[Listener] = []
        self.is_paused = False
        self._next_warning = -inf
        self._spare: int | None = None

    def listen(self, listener: Listener) -> None:
        """Accept from a socket that is already bound and listening."""
        listener.begin()
        self.listeners.append(listener)
        self._poll(listener)

    def accept(self, listener: Listener) -> None:
        """Accept the connections that wait on a listener, at most `ACCEPT_BATCH` and for `ACCEPT_S`."""
        if self.is_paused or listener.is_held:
            return
        now = self._loop.now()
        end = now + ACCEPT_S
        most = _usable_descriptors()
        for _ in range(ACCEPT_BATCH):
            held = self._hold(listener, now)
            if held is not None:
                self._hold_back(listener, now, *held)
                return
            try:
                if self._spare is None:
                    self._take_spare(most)
                accepted, peer = listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in _OUT_OF_DESCRIPTORS:
                    self.pause(error)
                    return
                continue  # the peer has disconnected before it was accepted
            listener.has_accepted = True
            self._take_in(listener, accepted, peer, most)
            now = self._loop.now()
            if now >= end:
                return

    def _take_in(self, listener: Listener, accepted: SocketType, peer: tuple[str, int], most: float) -> None:
        if accepted.fileno() >= most:
            accepted = self._moved_to_spare(accepted)
        try:
            if not _INHERITS_OPTIONS:
                _set_options(accepted)
            self._admit(listener, accepted, peer)
        except OSError:
            accepted.close()

    def _hold_back(self, listener: Listener, now: float, wait_s: float, limit: str) -> None:
        """Accept nothing from a listener for `wait_s` seconds: its clients wait in the system's queue, as in Kafka."""
        if now >= self._next_warning:
            self._next_warning = now + WARNING_INTERVAL_S
            logger.warning("Connections to the listener %s wait: %s is reached", listener.name, limit)
        listener.is_held = True
        self._poll(listener)
        if wait_s < inf:
            self._loop.timers.at(now + wait_s, lambda: self._release(listener))

    def _release(self, listener: Listener) -> None:
        listener.is_held = False
        if listener in self.listeners:
            self._poll(listener)

    def release_held(self) -> None:
        """A connection is closed, or a limit has changed: try to accept again."""
        for listener in self.listeners:
            if listener.is_held:
                self._release(listener)

    def _poll(self, listener: Listener) -> None:
        """Have the poller watch a listener unless it is held or all are paused."""
        should_poll = not (self.is_paused or listener.is_held)
        if should_poll and not listener.is_polled:
            self._poller.register(listener.socket.fileno(), READ, listener)
        elif listener.is_polled and not should_poll:
            self._poller.unregister(listener.socket.fileno())
        listener.is_polled = should_poll

    def _take_spare(self, most: float) -> None:
        """Reserve a spare descriptor for a connection, so that none has to be searched before each accept.

        OSError when the next descriptor is reserved for the logs: the connection waits in the backlog.
        """
        following = os.dup(self._poller.fileno())
        if following >= most:
            os.close(following)
            raise OSError(errno.EMFILE, "the last file descriptors are kept for the logs")
        self._spare = following

    def _moved_to_spare(self, accepted: SocketType) -> SocketType:
        """Move a connection from a descriptor that is reserved for the logs to the spare one."""
        spare, self._spare = self._spare, None
        assert spare is not None
        family, kind, protocol = accepted.family, accepted.type, accepted.proto
        os.dup2(accepted.fileno(), spare, inheritable=False)
        accepted.close()
        return SocketType(family, kind, protocol, spare)

    def pause(self, error: OSError) -> None:
        """Stop polling the listeners for a moment: no connection can be accepted because of `error`."""
        now = self._loop.now()
        if now >= self._next_warning:
            self._next_warning = now + WARNING_INTERVAL_S
            logger.warning(
                "Cannot accept connections for now, with %d open: %s. Raise the limit of open files (ulimit -n)",
                *(self._connection_count(), error.strerror),
            )
        self.is_paused = True
        for listener in self.listeners:
            self._poll(listener)
        self._loop.timers.at(now + NO_DESCRIPTORS_PAUSE_S, self._resume)

    def _resume(self) -> None:
        self.is_paused = False
        for listener in self.listeners:
            self._poll(listener)

    def close(self) -> None:
        """Close the listeners; accepted connections stay open."""
        for listener in self.listeners:
            if listener.is_polled:
                self._poller.unregister(listener.socket.fileno())
                listener.is_polled = False
            listener.socket.close()
        self.listeners.clear()
        if self._spare is not None:
            os.close(self._spare)
            self._spare = None


def _usable_descriptors() -> float:
    """The first descriptor that is reserved for the logs."""
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if descriptors == resource.RLIM_INFINITY:
        return inf
    return min(CONNECTIONS_SHARE * descriptors, descriptors - RESERVED_DESCRIPTORS)


def _set_options(of: SocketType) -> None:
    """Set the options of a connection: no delay of small packets, and keep-alive, which detects a lost peer."""
    of.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    of.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


def bind(host: str, port: int, backlog: int | None) -> socket.socket:
    """A listening socket; an empty host means all interfaces. OSError when the address cannot be bound.

    Without a backlog it is bound only: connections are refused until `start_listening`.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    if not host:
        family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
    else:
        name = host.encode() if host.isascii() else host  # for text Python imports the tables of IDNA, 1.5 ms
        infos = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family = infos[0][0]
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        if sys.platform != "win32":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6 and not host:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listening.bind((host, port))
        if backlog is not None:
            start_listening(listening, backlog)
    except BaseException:
        listening.close()
        raise
    return listening


def start_listening(bound: socket.socket, backlog: int) -> None:
    """Let the system queue connections. OSError when another process listens on the address by now."""
    bound.listen(max(backlog, 511))  # a burst of clients after a restart exceeds Kafka's default of 50
