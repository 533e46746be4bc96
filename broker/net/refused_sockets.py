"""Accepted sockets that are closed without being served, after a delay: it slows clients that reconnect too fast.

They are neither read nor written. There are never more than `MOST`: further ones are closed at once.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import socket

    from barnabas.broker.event_loop.loop import Loop

logger = logging.getLogger("kafka.network.SocketServer")

MOST: Final = 200


class RefusedSockets:
    """The sockets that wait to be closed."""

    __slots__ = ("_loop", "_sockets")

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._sockets: set[socket.SocketType] = set()

    def __len__(self) -> int:
        return len(self._sockets)

    def close_later(self, accepted: socket.SocketType, wait_s: float) -> None:
        """Close a socket in `wait_s` seconds."""
        if len(self._sockets) >= MOST:
            accepted.close()
            return
        logger.debug("Closing a connection in %g s: its address connects too fast", wait_s)
        self._sockets.add(accepted)
        self._loop.timers.at(self._loop.now() + wait_s, lambda: self._close(accepted))

    def _close(self, accepted: socket.SocketType) -> None:
        self._sockets.discard(accepted)
        accepted.close()

    def close(self) -> None:
        """Close all now."""
        while self._sockets:
            self._sockets.pop().close()
