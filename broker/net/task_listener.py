"""Connections that are each served by a task of trio, beside the reactor: of the two HTTP servers, and of cassettes.

Their number is limited; further ones wait in the system's queue, also while no descriptor is left, which is logged. An
error in one connection does not affect the others.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from math import inf
from typing import TYPE_CHECKING, Final, TypeAlias

import trio

from barnabas.broker.net.acceptor import WARNING_INTERVAL_S

if TYPE_CHECKING:
    import socket

ACCEPT_PAUSE_S: Final = 0.1
"""Pause after an accept that failed, because no descriptor is left."""
CLOSE_S: Final = 1.0
"""How long a close may take, seconds."""

Serve: TypeAlias = Callable[[trio.SocketStream], Awaitable[None]]
"""Serves a connection until it is to be closed."""


async def serve_in_tasks(listening: socket.socket, limit: trio.Semaphore, serve: Serve, logger: logging.Logger) -> None:
    """Serve as many connections at a time as `limit` lets in, until cancelled; the socket is closed then."""
    next_warning = -inf
    async with trio.SocketListener(trio.socket.from_stdlib_socket(listening)) as listener, trio.open_nursery() as tasks:
        while True:
            await limit.acquire()
            try:
                stream = await listener.accept()
            except OSError as error:
                limit.release()
                if trio.current_time() >= next_warning:
                    next_warning = trio.current_time() + WARNING_INTERVAL_S
                    logger.warning("Cannot accept connections for now: %s", error.strerror)
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
