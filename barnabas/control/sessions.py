"""A cluster whose clients' session is recorded, or answered from a recording: what stands before its broker.

A cassette goes over the control channel: its file is read and written by the test's process.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

import trio

from barnabas.cassette.exchange import CassetteError, Exchange, read, text_of
from barnabas.cassette.player import Player
from barnabas.cassette.proxy import Proxy
from barnabas.control.errors import ControlError
from barnabas.wire.errors import KafkaError

HOST: Final = "127.0.0.1"
MAX_BYTES: Final = 32 * 1024 * 1024
"""Requests and responses that are kept of one session."""


class Session(Protocol):
    """What clients of the cluster reach instead of its broker."""

    bootstrap: str
    is_replay: bool

    async def run(self) -> None:
        """Serve until `end`."""

    def end(self) -> dict[str, Any]:
        """Close its connections; what the test is to know."""


class Recording:
    """Records what goes through."""

    is_replay = False

    def __init__(self, broker: str) -> None:
        """`broker` is the address of the cluster, HOST:PORT; the other brokers are found by its answers."""
        host, _, port = broker.rpartition(":")
        self._exchanges: list[Exchange] = []
        self._bytes = 0
        self._proxy = Proxy((host.strip("[]"), int(port)), (HOST, 0), self._keep)
        self.bootstrap = f"{HOST}:{self._proxy.address[1]}"
        self._scope = trio.CancelScope()

    def _keep(self, exchange: Exchange) -> None:
        self._bytes += len(exchange.request or b"") + len(exchange.response or b"")
        if self._bytes <= MAX_BYTES:
            self._exchanges.append(exchange)

    async def run(self) -> None:
        """Pass requests on until `end`."""
        with self._scope:
            await self._proxy.run()

    def end(self) -> dict[str, Any]:
        """The cassette; or why there is none."""
        self._scope.cancel()
        if self._bytes > MAX_BYTES:
            return {"refused": f"The session has {self._bytes} bytes, of which a cassette takes {MAX_BYTES}"}
        return {"cassette": text_of(sorted(self._exchanges, key=lambda one: one.at))}


class Replaying:
    """Answers from a cassette."""

    is_replay = True

    def __init__(self, cassette: str) -> None:
        """ControlError if it is none."""
        try:
            self._player = Player(read(cassette), (HOST, 0))
        except (CassetteError, KafkaError) as error:
            raise ControlError(f"The cassette cannot be read: {error}") from error
        self.bootstrap = f"{HOST}:{self._player.address[1]}"
        self._scope = trio.CancelScope()

    async def run(self) -> None:
        """Answer requests until `end`."""
        with self._scope:
            await self._player.run()

    def end(self) -> dict[str, Any]:
        """What was asked that the cassette does not have."""
        self._scope.cancel()
        return {"missing": self._player.replay.missing}
