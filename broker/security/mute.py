"""Mutes a connection: its requests are not handled, and it is not read, until its client has waited (KIP-219).

The response has been sent before, and tells the client for how long. What the muting does is what a delayed response
does: one that never has a message. So it ends when the connection closes, and does not hold back a stop.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from barnabas.broker.net.delayed_response import DelayedResponse

if TYPE_CHECKING:
    from barnabas.broker.loop import Loop
    from barnabas.broker.net.connection import Connection

logger = logging.getLogger("kafka.server.ClientQuotaManager")


TIMER_S: Final = 30.0
"""The longest timer, which is set again: one that is cancelled is kept until its deadline."""


def mute(connection: Connection, loop: Loop, throttle_ms: int) -> None:
    """Serve nothing of a connection for so long; its idle time begins after that."""
    if connection.is_closing:
        return
    logger.debug("Throttling %s:%d for %d ms", connection.peer_host, connection.peer_port, throttle_ms)
    until = loop.state_now() + throttle_ms / 1000
    muted = DelayedResponse()

    def wait() -> None:
        now = loop.state_now()
        if now >= until:
            muted.resolve(None)
        else:
            muted.on_cancel = loop.state_timers.at(min(until, now + TIMER_S), wait).cancel

    wait()
    connection.delayed = muted
    muted.attach(lambda _: _unmute(connection))


def _unmute(connection: Connection) -> None:
    connection.delayed = None
    connection.last_active = connection.clock()
    connection.on_output(connection)
