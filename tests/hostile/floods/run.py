"""One flood: what it is, and one run of it."""

from __future__ import annotations

import contextlib
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from barnabas.wire.schema import Message
from tests.hostile.attacker import Attacker, frame
from tests.hostile.harness import HealthyClient
from tests.hostile.secured import SecuredVictim

DIAL_S: Final = 0.5
"""How long an attacker waits for the broker's system to accept a connection, seconds."""
HELD: Final = 600
"""Connections that an attack keeps open; the oldest is closed for a further one."""
MB: Final = 1 << 20


class Run:
    """An attack in progress: `for number in run` is a step of it, until it has had its steps or its time."""

    def __init__(
        self,
        victim: SecuredVictim,
        *,
        steps: float,
        seconds: float = float("inf"),
        beside: HealthyClient | None = None,
        folder: Path,
    ) -> None:
        """`folder` is for files of the attack."""
        self.victim = victim
        self.folder = folder
        self.steps = 0
        self.refused = 0
        """Connections that could not be made, or were closed while something was sent."""
        self._limit = steps
        self._end = time.monotonic() + seconds
        self._beside = beside
        self._held: deque[socket.socket] = deque()
        self._attackers: dict[str, Attacker] = {}

    def __iter__(self) -> Iterator[int]:
        for number in count():
            is_over = number >= self._limit or time.monotonic() >= self._end
            if is_over or (self._beside is not None and self._beside.is_stalled):
                return
            self.steps = number + 1
            yield number

    def dial(self, source: str = "127.0.0.1") -> socket.socket | None:
        """A connection of TCP that is kept; None if it could not be made."""
        connection = socket.socket()
        connection.settimeout(DIAL_S)
        try:
            connection.bind((source, 0))
            connection.connect((self.victim.host, self.victim.port))
        except OSError:
            connection.close()
            self.refused += 1
            return None
        self._keep(connection)
        return connection

    def send(self, data: bytes, source: str = "127.0.0.1") -> socket.socket | None:
        """A new connection of TCP that sends this first."""
        connection = self.dial(source)
        if connection is not None:
            self.try_send(connection, data)
        return connection

    def try_send(self, made: socket.socket, data: bytes) -> bool:
        """Send on a connection that the broker may have closed, or does not read."""
        try:
            made.sendall(data)
        except OSError:
            self.refused += 1
            return False
        return True

    def attacker(self, *, logs_in: bool = True) -> Attacker | None:
        """A new connection, after the handshake of TLS and the log-in, that is kept; None if it could not be made."""
        try:
            client = Attacker(self.victim, self._beside, logs_in=logs_in)
        except OSError:
            self.refused += 1
            return None
        client.socket.settimeout(DIAL_S)
        self._keep(client.socket)
        return client

    def _keep(self, connection: socket.socket) -> None:
        self._held.append(connection)
        if len(self._held) > HELD:
            self._held.popleft().close()

    def now_ms(self) -> int:
        """The time of records: old ones would be deleted."""
        return int(time.time() * 1000)

    def ask(self, request: Message, version: int, *, name: str = "") -> Any:
        """The answer to a request on a connection that is used again, by its name; None if the broker closed it."""
        attacker = self._attackers.get(name)
        if attacker is None:
            attacker = self._attackers[name] = Attacker(self.victim, self._beside)
        try:
            return attacker(request, version)
        except ConnectionError:
            self.refused += 1
            del self._attackers[name]
            attacker.close()
            return None

    def pipeline(self, requests: list[tuple[Message, int]], *, name: str = "") -> list[Any]:
        """The answers to requests that are sent at once."""
        attacker = self._attackers.get(name)
        if attacker is None:
            attacker = self._attackers[name] = Attacker(self.victim, self._beside)
        first = len(attacker.sent)
        attacker.sent += [(request.api_key, version) for request, version in requests]
        attacker.socket.sendall(b"".join(frame(pair[0], pair[1], first + at) for at, pair in enumerate(requests)))
        return [attacker.read() for _ in requests]

    def close(self) -> None:
        """Close all that the run has opened."""
        for held in self._held:
            with contextlib.suppress(OSError):
                held.close()
        for attacker in self._attackers.values():
            attacker.close()


class Flood(NamedTuple):
    """An attack, and what bounds it."""

    name: str
    act: Callable[[Run], None]
    listeners: tuple[str, ...]
    bound: str
    """The config keys that hold it, as in the report."""
    steps: int = 100
    """Of the short form."""
    config: Mapping[str, str] = MappingProxyType({})
    memory: int = 200 * MB
    """The most resident memory of the broker."""
