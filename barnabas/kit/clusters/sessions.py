"""Records the session of a cluster's clients, or answers it from a recording, in place of its broker.

A cassette goes over the control channel: its file is read and written by the test's process. Its text is made and read
in threads, so that the clusters of other tests do not wait.
"""

from __future__ import annotations

from functools import partial
from io import StringIO
from typing import TYPE_CHECKING, Any, Final, Protocol

import trio

from barnabas.kit.cassette.exchange import Exchange
from barnabas.kit.cassette.player import Player
from barnabas.kit.cassette.proxy import Proxy
from barnabas.kit.cassette.replay import Replay
from barnabas.kit.cassette.text import HEADER, CassetteError, read
from barnabas.kit.cassette.writer import Writer
from barnabas.kit.errors import ControlError
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.kit.values import Values

HOST: Final = "127.0.0.1"
MAX_CHARACTERS: Final = 8 * 1024 * 1024
"""Of the cassette of one test, which is in memory, and in one request of the channel."""
TIMINGS: Final = ("fast", "recorded")
"""Answers come at once, or after the time that they took in the session."""


async def session_of(broker: str, request: Values) -> Session:
    """The requested session: a replay of a `cassette`, or else a recording of the clients of `broker`, HOST:PORT.

    ControlError if the text is no cassette, or if no port is left.
    """
    timing = request.text("timing", "fast")
    if timing not in TIMINGS:
        raise ControlError(f"timing must be fast or recorded, not {timing!r}")
    try:
        if not request.has("cassette"):
            return Recording(broker)
        lines = StringIO(request.text("cassette"))
        make = partial(Replay, as_recorded=timing == "recorded")
        return Replaying(await trio.to_thread.run_sync(lambda: make(read(lines))))
    except (CassetteError, KafkaError) as error:
        raise ControlError(f"the cassette cannot be used: {error}") from error
    except OSError as error:
        raise ControlError(f"cannot listen for the session: {error.strerror}") from error


class Session(Protocol):
    """A server that the clients of the cluster reach instead of its broker."""

    bootstrap: str
    is_replay: bool

    async def run(self) -> None:
        """Serve until `end`."""

    async def end(self) -> dict[str, Any]:
        """Close its connections; return the result for the test."""


class Recording:
    """Records the requests and responses between clients and the broker."""

    is_replay = False

    def __init__(self, broker: str) -> None:
        """`broker` is the address of the cluster, HOST:PORT; the other brokers are found by its answers."""
        host, _, port = broker.rpartition(":")
        self._texts: list[tuple[float, str]] = []
        self._characters = 0
        self._writer = Writer(self._keep)
        self._proxy = Proxy((host.strip("[]"), int(port)), (HOST, 0), self._writer.keep)
        self.bootstrap = f"{HOST}:{self._proxy.address[1]}"
        self._scope = trio.CancelScope()
        self._is_written = trio.Event()

    def _keep(self, exchange: Exchange, text: str) -> None:
        self._characters += len(text)
        if self._characters > MAX_CHARACTERS:
            self._texts.clear()
        else:
            self._texts.append((exchange.at, text))

    async def run(self) -> None:
        """Pass requests on until `end`."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._writer.run)
            with self._scope:
                await self._proxy.run()
            self._writer.end()
        self._is_written.set()

    async def end(self) -> dict[str, Any]:
        """The cassette; or why there is none."""
        self._scope.cancel()
        await self._is_written.wait()
        if self._characters > MAX_CHARACTERS:
            reason = f"the session has {self._characters} characters, and a cassette of a test {MAX_CHARACTERS} at most"
            return {"refused": reason}
        in_order = [text for _, text in sorted(self._texts, key=lambda exchange: exchange[0])]
        return {"cassette": "".join([HEADER, "\n", *in_order])}


class Replaying:
    """Answers from a cassette."""

    is_replay = True

    def __init__(self, replay: Replay) -> None:
        self._player = Player(replay, (HOST, 0))
        self.bootstrap = f"{HOST}:{self._player.address[1]}"
        self._scope = trio.CancelScope()

    async def run(self) -> None:
        """Answer requests until `end`."""
        with self._scope:
            await self._player.run()

    async def end(self) -> dict[str, Any]:
        """The requests that the cassette does not have."""
        self._scope.cancel()
        return {"missing": self._player.replay.missing}
