"""Connections that a task of trio serves each, beside the reactor: those of the two HTTP servers.

There are at most so many at a time; further ones wait in the system's queue. What goes wrong in one concerns no other.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeAlias

import trio

if TYPE_CHECKING:
    import socket

ACCEPT_PAUSE_S: Final = 0.1
"""Pause after an accept that failed, because no descriptor is left."""
CLOSE_S: Final = 1.0
"""How long a close may take, seconds."""

Serve: TypeAlias = Callable[[trio.SocketStream], Awaitable[None]]
"""Serves a connection until it is to be closed."""


async def serve_in_tasks(listening: socket.socket, most: int, serve: Serve, logger: logging.Logger) -> None:
    """Serve at most `most` connections at a time until cancelled; the socket is closed then."""
    limit = trio.Semaphore(most)
    async with trio.SocketListener(trio.socket.from_stdlib_socket(listening)) as listener, trio.open_nursery() as tasks:
        while True:
            await limit.acquire()
            try:
                stream = await listener.accept()
            except OSError as error:
                limit.release()
                logger.debug("A connection cannot be accepted: %s", error)
                await trio.sleep(ACCEPT_PAUSE_S)
                continue
            tasks.start_soon(_serve_one, stream, serve, limit, logger)


async def _serve_one(stream: trio.SocketStream, serve: Serve, limit: trio.Semaphore, logger: logging.Logger) -> None:
    try:
        await serve(stream)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        pass  # the client has gone
    except Exception:
        logger.exception("A connection failed")
    finally:
        limit.release()
        with trio.CancelScope(shield=True, deadline=trio.current_time() + CLOSE_S):
            await stream.aclose()
