"""Connections that have not authenticated yet, the oldest first: their number, their time and their memory are limited.

Kafka has no limits of this kind but connections.max.idle.ms, so these keys are Barnabas' own. A connection has
`barnabas.authentication.timeout.ms` for its TLS handshake and its log-in together. While there are
`barnabas.unauthenticated.connections.max`, a listener on which clients authenticate accepts another one only in place
of the oldest, and only if the oldest has had `GRACE_S`: clients that all connect at once after a restart of the broker
wait in the system's queue, and connections that stop in the middle of authenticating are closed. Requests of more than
64 KB that are being received share `barnabas.unauthenticated.requests.max.bytes`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from barnabas.broker.event_loop.limited_log import LimitedLog
from barnabas.broker.net.frame_buffers import FrameBuffers

if TYPE_CHECKING:
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.event_loop.timers import Timer
    from barnabas.broker.net.connection import Connection
    from barnabas.broker.net.limits import Limits

logger = logging.getLogger("kafka.network.Selector")

GRACE_S: Final = 2.0
"""How long a connection keeps its place while others wait for one, seconds."""


class Unauthenticated:
    """The connections on which clients have to authenticate, and have not."""

    __slots__ = ("_close", "_limits", "_log", "_loop", "_since", "_timer", "buffers")

    def __init__(self, loop: Loop, limits: Limits, close: Callable[[Connection], None]) -> None:
        """`close` closes a connection, which calls `remove`."""
        self._loop = loop
        self._close = close
        self._since: dict[Connection, float] = {}  # in their order, so the first is the oldest
        self._timer: Timer | None = None
        self._log = LimitedLog(loop, logger, logging.WARNING, "connections that were closed before they authenticated")
        self.buffers = FrameBuffers(limits.max_unauthenticated_bytes, kept_bytes=0)
        self.set_limits(limits)

    def __len__(self) -> int:
        return len(self._since)

    def set_limits(self, limits: Limits) -> None:
        """Replace the limits, for connections that are open too."""
        self._limits = limits
        self.buffers.max_bytes = limits.max_unauthenticated_bytes
        if self._timer is not None:
            self._timer.cancel()
        self._expire()

    def add(self, connection: Connection) -> None:
        """Add an accepted connection, whose time begins now; if there are too many, the oldest is closed."""
        self._since[connection] = self._loop.now()
        most = self._limits.max_unauthenticated
        if len(self._since) > most:
            oldest = next(iter(self._since))
            self._end(oldest, f"{_limit(most)} is reached, and it is the oldest that has not authenticated")
        self._watch()

    def remove(self, connection: Connection) -> None:
        """A connection is authenticated or closed."""
        self._since.pop(connection, None)

    def hold(self, now: float) -> tuple[float, str] | None:
        """In how many seconds one more connection may be accepted, and because of which limit; None if now."""
        most = self._limits.max_unauthenticated
        if len(self._since) < most:
            return None
        room_at = next(iter(self._since.values())) + GRACE_S
        return None if now >= room_at else (room_at - now, _limit(most))

    def _watch(self) -> None:
        """Set one timer, for the oldest connection: the others have more time."""
        if self._timer is None and self._since:
            oldest = next(iter(self._since.values()))
            self._timer = self._loop.timers.at(oldest + self._limits.authentication_s, self._expire)

    def _expire(self) -> None:
        self._timer = None
        now, limit_s = self._loop.now(), self._limits.authentication_s
        late = list(takewhile(lambda waiting: self._since[waiting] + limit_s <= now, self._since))
        for connection in late:
            self._end(connection, f"it has not authenticated within {limit_s:g} s (barnabas.authentication.timeout.ms)")
        self._watch()

    def _end(self, connection: Connection, why: str) -> None:
        self._log.line(
            connection.peer_host,
            "Closing the connection from %s:%d to the listener %s: %s",
            *(connection.peer_host, connection.peer_port, connection.listener, why),
        )
        self._close(connection)


def _limit(most: int) -> str:
    return f"barnabas.unauthenticated.connections.max={most}"
