"""The console's side of one HTTP connection, with limits that uvicorn does not have: number, and time for a request.

A client that opens connections and sends nothing, or a header byte by byte, holds a connection for `HEADERS_S` at most.
Header lines are limited by h11 (64 KiB), bodies by `barnabas.console.guard.bodies`.
"""

from __future__ import annotations

import asyncio  # noqa: TID251 - the loop of uvicorn
import logging
from typing import ClassVar, Final

from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_CONNECTIONS: Final = 256
HEADERS_S: Final = 10.0
"""How long a request's header lines may take, from its connection or from the response before it, seconds."""

logger = logging.getLogger("barnabas.console")


class GuardedProtocol(H11Protocol):
    """A connection of a browser. To be given to uvicorn's `Config` as `http`."""

    headers_s: ClassVar[float] = HEADERS_S
    most: ClassVar[int] = MAX_CONNECTIONS
    _limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Close the connection when there are too many; else wait for its first request."""
        super().connection_made(transport)
        if len(self.connections) > self.most:
            logger.warning("There are %d connections to the console: another one is closed", self.most)
            transport.abort()
            return
        self._follow()

    def data_received(self, data: bytes) -> None:
        """Take bytes: the time limit ends with the last header line."""
        super().data_received(data)
        self._follow()

    def on_response_complete(self) -> None:
        """The next request has its own time."""
        super().on_response_complete()
        self._follow()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the time limit."""
        self._stop()
        super().connection_lost(exc)

    def _follow(self) -> None:
        """Have a time limit exactly while header lines are waited for."""
        is_waiting = self.cycle is None or self.cycle.response_complete
        if not is_waiting:
            self._stop()
        elif self._limit is None and not self.transport.is_closing():
            self._limit = self.loop.call_later(self.headers_s, self._too_slow)

    def _stop(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None

    def _too_slow(self) -> None:
        self._limit = None
        self.transport.abort()
