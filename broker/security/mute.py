"""Mutes a connection: its requests are not handled, and it is not read, until its client has waited (KIP-219).

The response has been sent before, with the throttle time. The connection waits as for a request that has no response.
So the wait ends when the connection closes, and does not delay a stop.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from barnabas.broker.event_loop.waiting import sleep_until, start

if TYPE_CHECKING:
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.net.connection import Connection

logger = logging.getLogger("kafka.server.ClientQuotaManager")


TIMER_S: Final = 30.0
"""The longest timer, which is set again: one that is cancelled is kept until its deadline."""


def mute(connection: Connection, loop: Loop, throttle_ms: int) -> None:
    """Serve nothing of a connection for `throttle_ms`; its idle time begins after that."""
    if connection.is_closing:
        return
    logger.debug("Throttling %s:%d for %d ms", connection.peer_host, connection.peer_port, throttle_ms)
    until = loop.state_now() + throttle_ms / 1000
    task = start(_pass(loop, until), loop.slices, lambda _: _unmute(connection))
    if task is not None:
        connection.delayed = task


async def _pass(loop: Loop, until: float) -> None:
    while (now := loop.state_now()) < until:
        await sleep_until(loop.state_timers, min(until, now + TIMER_S))


def _unmute(connection: Connection) -> None:
    connection.delayed = None
    connection.last_active = connection.clock()
    connection.on_output(connection)
