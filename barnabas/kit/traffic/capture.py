"""What goes over the connections of a broker, while somebody watches: requests and responses as bytes, with times.

Nothing is decoded here: the broker's loop copies the first bytes of a frame and looks at its header; who watches
decodes (the console, in a process of its own). While nobody watches, connections are as they are without a capture: a
watch replaces `dispatch` and `on_output` of each connection and `prepare` of each listener, and puts them back when
nobody has asked for `LEASE_S`.

Bounded: `MAX_ENTRIES` exchanges and `MAX_BYTES` of their frames are kept, the last ones, and of each frame
`KEPT_BYTES`. Bytes with passwords, tokens or keys are never kept: those of SASL, of SCRAM credentials, of delegation
tokens, and of changes of configs that are secret.
"""

from __future__ import annotations

import time
from base64 import b64encode
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from barnabas.wire.api_keys import ApiKey
from barnabas.wire.errors import ProtocolError

if TYPE_CHECKING:
    from barnabas.broker.event_loop.timers import Timer, Timers
    from barnabas.broker.net.acceptor import Listener
    from barnabas.broker.net.connection import Connection
    from barnabas.broker.net.reactor import Reactor

MAX_ENTRIES: Final = 4_000
MAX_BYTES: Final = 16 * 1024 * 1024
KEPT_BYTES: Final = 32 * 1024
LEASE_S: Final = 15.0
"""A watch ends this long after the last question, seconds."""
MAX_ANSWERED: Final = 100
"""Exchanges of one answer, and `MAX_ANSWERED_BYTES` of frames: it is made between two turns, in about a millisecond."""
MAX_ANSWERED_BYTES: Final = 128 * 1024

WAITS, ANSWERED, UNANSWERED, CLOSED, REFUSED = "waits", "answered", "unanswered", "closed", "refused"

SECRET_APIS: Final = frozenset(
    {
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
        ApiKey.ENVELOPE,
    }
)
"""APIs whose requests or responses have secrets."""
CONFIG_APIS: Final = frozenset({ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS})
SECRET_WORDS: Final = (b"password", b"secret", b"jaas", b"keystore", b"truststore", b"credential")
"""In the names of configs whose values are secret."""

_HEADER: Final = Struct(">hhih")
_RESPONSE: Final = Struct(">ii")


@dataclass(eq=False, slots=True)
class Exchange:
    """A request and its response. `time` is in seconds since 1970, `took` in seconds, None while it waits."""

    connection: int
    peer: str
    listener: str
    principal: str
    client_id: str | None
    api: int
    """-1: a token of SASL that has no header."""
    version: int
    correlation_id: int
    request_size: int
    request: bytes = b""
    """The first bytes of the frame, without its size."""
    is_hidden: bool = False
    """Whether the bytes have secrets, and are not kept."""
    started: float = field(default_factory=time.monotonic)
    time: float = field(default_factory=time.time)
    took: float | None = None
    outcome: str = WAITS
    why: str = ""
    """Why the connection was closed, if it was refused."""
    response_size: int = 0
    response: list[bytes | int] = field(default_factory=list)
    """The first bytes of the frame, without its size; a number stands for as many bytes of a log file."""
    number: int = 0
    """In the order of the ends; 0 while it waits."""

    @property
    def kept(self) -> int:
        """Bytes in memory."""
        return len(self.request) + sum(len(part) for part in self.response if isinstance(part, bytes))

    def to_json(self) -> dict[str, Any]:
        """The exchange for the control channel; bytes are base64."""
        return {
            "number": self.number,
            "time": self.time,
            "connection": self.connection,
            "peer": self.peer,
            "listener": self.listener,
            "principal": self.principal,
            "client_id": self.client_id,
            "api": self.api,
            "version": self.version,
            "correlation_id": self.correlation_id,
            "outcome": self.outcome,
            "why": self.why,
            "took": self.took if self.took is not None else time.monotonic() - self.started,
            "hidden": self.is_hidden,
            "request_size": self.request_size,
            "request": b64encode(self.request).decode(),
            "response_size": self.response_size,
            "response": [part if isinstance(part, int) else b64encode(part).decode() for part in self.response],
        }


class _Attached(NamedTuple):
    """A connection that is watched, with what it had before."""

    number: int
    dispatch: Callable[..., None]
    on_output: Callable[..., None]
    on_close: Callable[[], None]


class Capture:
    """The exchanges of a broker's connections while somebody watches."""

    def __init__(self) -> None:
        self._reactor: Reactor | None = None
        self._asked = 0.0
        self._lease: Timer | None = None
        self._attached: dict[Connection, _Attached] = {}
        self._prepared: list[tuple[Listener, Callable[[Connection], None] | None]] = []
        self._waiting: dict[Connection, Exchange] = {}
        self._done: deque[Exchange] = deque()
        self._kept = 0
        self._count = 0
        self._connections = 0

    def watch(self, reactor: Reactor, timers: Timers, now: Callable[[], float]) -> None:
        """Watch all connections of a reactor, from now on, until nobody asks; `now` is the clock of `timers`."""
        self._asked = now()
        if self._reactor is reactor:
            return
        self.end()
        self._end_later(timers, now)
        self._reactor = reactor
        for listener in reactor.acceptor.listeners:
            self._prepared.append((listener, listener.prepare))
            listener.prepare = partial(self._prepare, listener.prepare)
        for connection in list(reactor.connections):
            self._attach(connection)

    def _end_later(self, timers: Timers, now: Callable[[], float]) -> None:
        def end_unless_asked() -> None:
            if now() - self._asked >= LEASE_S:
                self.end()
            else:
                self._end_later(timers, now)

        self._lease = timers.at(self._asked + LEASE_S, end_unless_asked)

    def end(self) -> None:
        """Put all connections back, and forget what was kept."""
        if self._lease is not None:
            self._lease.cancel()
        for listener, prepare in self._prepared:
            listener.prepare = prepare
        self._prepared.clear()
        for connection, attached in self._attached.items():
            connection.dispatch, connection.on_output = attached.dispatch, attached.on_output
            connection.on_close.remove(attached.on_close)
        self._reactor = None
        self._attached.clear()
        self._waiting.clear()
        self._done.clear()
        self._kept = 0

    def after(self, number: int, select: Callable[[Exchange], bool]) -> dict[str, Any]:
        """The selected exchanges that ended after a number, and those that wait; `next` is the number to ask with.

        `lost` are exchanges that were forgotten before somebody asked.
        """
        first = self._done[0].number if self._done else self._count + 1
        answered: list[dict[str, Any]] = []
        size = 0
        next_number = self._count
        for exchange in islice(self._done, max(0, number - first + 1), None):
            if not select(exchange):
                continue
            if len(answered) >= MAX_ANSWERED or size >= MAX_ANSWERED_BYTES:
                next_number = exchange.number - 1
                break
            answered.append(exchange.to_json())
            size += exchange.kept
        waiting = [exchange for exchange in self._waiting.values() if select(exchange)]
        return {
            "requests": answered,
            "waiting": [exchange.to_json() | {"request": ""} for exchange in waiting[:MAX_ANSWERED]],
            "next": next_number,
            "lost": max(0, first - 1 - number) if number else 0,
        }

    # -- connections

    def _prepare(self, prepare: Callable[[Connection], None] | None, connection: Connection) -> None:
        """A listener has accepted a connection."""
        if prepare is not None:
            prepare(connection)
        self._attach(connection)

    def _attach(self, connection: Connection) -> None:
        self._connections += 1
        on_close = partial(self._on_close, connection)
        self._attached[connection] = _Attached(self._connections, connection.dispatch, connection.on_output, on_close)
        connection.dispatch = partial(self._dispatch, connection.dispatch)
        connection.on_output = partial(self._on_output, connection.on_output)
        connection.on_close.append(on_close)

    def _dispatch(self, dispatch: Callable[..., None], connection: Connection, frame: memoryview) -> None:
        exchange = self._begun(connection, frame)
        position = len(connection.out)
        try:
            dispatch(connection, frame)
        except ProtocolError as error:
            self._end(exchange, REFUSED, str(error))
            raise
        if len(connection.out) > position:
            self._responded(exchange, list(islice(connection.out, position, None)))
        elif connection.delayed is not None:
            self._waiting[connection] = exchange
        else:
            self._end(exchange, CLOSED if connection.is_closing else UNANSWERED)

    def _begun(self, connection: Connection, frame: memoryview) -> Exchange:
        api, version, correlation_id, client_id_size = -1, 0, 0, -1
        authenticator: Any = connection.authenticator
        is_token = authenticator is not None and authenticator.takes_tokens
        client_id = None
        if len(frame) >= _HEADER.size and not is_token:
            api, version, correlation_id, client_id_size = _HEADER.unpack_from(frame)
            if client_id_size >= 0:
                client_id = str(frame[_HEADER.size : _HEADER.size + client_id_size], "utf-8", "replace")[:256]
        kept = frame[:KEPT_BYTES]
        is_hidden = is_token or _has_secret(api, kept)
        return Exchange(
            connection=self._attached[connection].number,
            peer=f"{connection.peer_host}:{connection.peer_port}",
            listener=connection.listener,
            principal=str(connection.principal),
            client_id=client_id,
            api=api,
            version=version,
            correlation_id=correlation_id,
            request_size=len(frame),
            request=b"" if is_hidden else bytes(kept),
            is_hidden=is_hidden,
        )

    def _on_output(self, on_output: Callable[..., None], connection: Connection) -> None:
        """A response may have been appended to the output of a connection whose request waited."""
        exchange = self._waiting.get(connection)
        if exchange is not None:
            chunks = _response_in(connection.out, exchange.correlation_id)
            if chunks:
                del self._waiting[connection]
                self._responded(exchange, chunks)
            elif connection.delayed is None:
                del self._waiting[connection]
                self._end(exchange, CLOSED if connection.is_closing else UNANSWERED)
        on_output(connection)

    def _on_close(self, connection: Connection) -> None:
        self._attached.pop(connection, None)
        exchange = self._waiting.pop(connection, None)
        if exchange is not None:
            self._end(exchange, CLOSED)

    # -- exchanges

    def _responded(self, exchange: Exchange, chunks: Sequence[Any]) -> None:
        exchange.response_size = sum(map(len, chunks)) - 4
        if not exchange.is_hidden:
            exchange.response = _first_bytes(chunks)
        self._end(exchange, ANSWERED)

    def _end(self, exchange: Exchange, outcome: str, why: str = "") -> None:
        exchange.took = time.monotonic() - exchange.started
        exchange.outcome, exchange.why = outcome, why
        self._count += 1
        exchange.number = self._count
        self._done.append(exchange)
        self._kept += exchange.kept
        while len(self._done) > MAX_ENTRIES or self._kept > MAX_BYTES:
            self._kept -= self._done.popleft().kept


def _has_secret(api: int, frame: memoryview) -> bool:
    if api in SECRET_APIS:
        return True
    if api not in CONFIG_APIS:
        return False
    data = bytes(frame).lower()
    return any(word in data for word in SECRET_WORDS)


def _response_in(out: Iterable[Any], correlation_id: int) -> list[Any]:
    """The chunks of the response at the end of an output; none if another one is there."""
    chunks: list[Any] = []
    size = 0
    for chunk in reversed(list(out)):
        chunks.append(chunk)
        size += len(chunk)
        if isinstance(chunk, bytes | bytearray | memoryview) and len(chunk) >= _RESPONSE.size:
            announced, answered = _RESPONSE.unpack_from(chunk)
            if answered == correlation_id and announced == size - 4:
                return chunks[::-1]
    return []


def _first_bytes(chunks: Sequence[Any]) -> list[bytes | int]:
    """The first bytes of a response without its size; the length of each piece of a file."""
    parts: list[bytes | int] = []
    room = KEPT_BYTES
    for number, chunk in enumerate(chunks):
        skipped = 0 if number else 4
        if isinstance(chunk, bytes | bytearray | memoryview):
            data = bytes(memoryview(chunk)[skipped : skipped + room])
            room -= len(data)
            parts.append(data)
            if len(data) < len(chunk) - skipped:
                break
        else:
            parts.append(len(chunk))
    return parts
