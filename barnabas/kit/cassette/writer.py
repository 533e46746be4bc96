"""Turns exchanges into text in a thread, so that only recorded connections wait for that, or for a disk.

At most `WAITING` exchanges wait for the thread; a connection that has one more waits too. So a recording may go on for
hours: it keeps nothing in memory.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import trio

from barnabas.kit.cassette.text import text_of
from barnabas.wire.errors import KafkaError, ProtocolError

if TYPE_CHECKING:
    from barnabas.kit.cassette.exchange import Exchange

logger = logging.getLogger("barnabas.cassette")

WAITING: Final = 8


class Writer:
    """Writes exchanges, in the order in which they were completed."""

    def __init__(self, write: Callable[[Exchange, str], None]) -> None:
        """`write` is called in a thread with each exchange and its text. OSError of it ends `run`."""
        self._write = write
        self._send, self._receive = trio.open_memory_channel["Exchange"](WAITING)

    async def keep(self, exchange: Exchange) -> None:
        """Have an exchange written."""
        await self._send.send(exchange)

    def end(self) -> None:
        """Say that no exchange follows: `run` writes those that wait, and returns."""
        self._send.close()

    async def run(self) -> None:
        """Write until `end`."""
        async with self._receive:
            async for exchange in self._receive:
                await trio.to_thread.run_sync(self._write_one, exchange)

    def _write_one(self, exchange: Exchange) -> None:
        try:
            text = text_of(exchange)
        except (KafkaError, ProtocolError) as error:
            logger.warning("%s is not in the cassette: %s", exchange.api.name, error)
            return
        except Exception:
            logger.exception("A request is not in the cassette")
            return
        self._write(exchange, text)
