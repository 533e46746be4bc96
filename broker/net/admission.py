"""Whether an accepted connection is served: the limits of connections, in all and by address, and before log-in.

Kafka's `max.connections`, `max.connections.per.ip`, creation rates, and the limits of clients that have not
authenticated (`unauthenticated`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from barnabas.broker.net.connection_quotas import ConnectionQuotas
from barnabas.broker.net.frame_buffers import FrameBuffers
from barnabas.broker.net.unauthenticated import Unauthenticated

if TYPE_CHECKING:
    from socket import SocketType

    from barnabas.broker.event_loop.limited_log import LimitedLog
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.net.acceptor import Listener
    from barnabas.broker.net.connection import Connection
    from barnabas.broker.net.limits import Limits
    from barnabas.broker.net.refused_sockets import RefusedSockets


class Admission:
    """The connections of one reactor, as far as their number is limited."""

    def __init__(
        self,
        loop: Loop,
        limits: Limits,
        refusals: LimitedLog,
        close: Callable[[Connection], None],
        may_accept: Callable[[], None],
    ) -> None:
        """`close` closes a connection; `may_accept` is called when a listener that was held back may accept again."""
        self._loop = loop
        self._refusals = refusals
        self._close = close
        self._may_accept = may_accept
        self._quotas = ConnectionQuotas(limits, loop.now())
        self.connection_counts = self._quotas.of_listener
        """Open connections by listener."""
        self._buffers = FrameBuffers(limits.max_queued_bytes)
        self._unauthenticated = Unauthenticated(loop, limits, close)
        self._refused: RefusedSockets | None = None
        self.ip_throttle_s: Callable[[str], float] | None = None
        """Counts a new connection of an address: in how many seconds it is to be closed, 0 if it is to be served."""

    def set_limits(self, limits: Limits) -> None:
        """Replace the limits; open connections stay open."""
        self._quotas.set_limits(limits, self._loop.now())
        self._unauthenticated.set_limits(limits)
        self._may_accept()

    def hold(self, listener: Listener, now: float) -> tuple[float, str] | None:
        """For how long a listener must not accept a connection now, and because of which limit; None if it may."""
        held = self._quotas.hold(listener.name, now)
        return self._unauthenticated.hold(now) if held is None and listener.authenticates else held

    def admits(self, listener: Listener, accepted: SocketType, host: str) -> bool:
        """Whether an accepted socket is served; any other is closed here."""
        quotas = self._quotas
        quotas.accepted(listener.name)
        if self.ip_throttle_s is not None and (wait_s := self.ip_throttle_s(host)):
            self._close_later(accepted, wait_s)
            return False
        if not quotas.allows(host):
            limit = quotas.limit_of(host)
            text = "Refused a connection from %s: max.connections.per.ip=%d is reached"
            self._refusals.line(host, text, host, limit)
            accepted.close()
            return False
        return True

    def _close_later(self, accepted: SocketType, wait_s: float) -> None:
        """Close a connection of an address that connects too fast, in `wait_s` seconds."""
        if self._refused is None:
            from barnabas.broker.net.refused_sockets import RefusedSockets

            self._refused = RefusedSockets(self._loop)
        self._refused.close_later(accepted, wait_s)

    def buffers_of(self, listener: Listener) -> FrameBuffers:
        """The buffers for the frames of a new connection."""
        return self._unauthenticated.buffers if listener.authenticates else self._buffers

    def opened(self, listener: Listener, connection: Connection, connections: Iterable[Connection]) -> None:
        """A connection was opened. If `max.connections` is exceeded, another one of `connections` is closed for it."""
        if listener.authenticates:
            connection.on_authenticated = self._on_authenticated
            self._unauthenticated.add(connection)
        if self._quotas.opened(listener.name, connection.peer_host):
            self._close_idlest(connections, listener.name)

    def _close_idlest(self, connections: Iterable[Connection], inter_broker: str) -> None:
        """Close the connection of another listener that was idle for the longest time: this one is exempt."""
        others = [connection for connection in connections if connection.listener != inter_broker]
        if others:
            idlest = min(others, key=lambda connection: connection.last_active)
            peer = (idlest.peer_host, idlest.peer_port)
            text = "Closing the idlest connection, from %s:%d: max.connections is reached"
            self._refusals.line(idlest.peer_host, text, *peer)
            self._close(idlest)

    def _on_authenticated(self, connection: Connection) -> None:
        self._unauthenticated.remove(connection)
        connection.use_buffers(self._buffers)
        self._may_accept()

    def closed(self, connection: Connection) -> None:
        """A connection was closed."""
        self._unauthenticated.remove(connection)
        self._quotas.closed(connection.listener, connection.peer_host)
        self._may_accept()

    def close(self) -> None:
        """Close the sockets that wait to be closed."""
        if self._refused is not None:
            self._refused.close()


def plain_host(host: str) -> str:
    """An IPv4 address in its usual form, also when it was accepted by a dual-stack socket."""
    return host.removeprefix("::ffff:") if "." in host else host
