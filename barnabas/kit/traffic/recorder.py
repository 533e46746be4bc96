"""The requests of a cluster's clients, in a ring in memory: client, API, topics, groups and outcome.

An entry is made when a request arrives and completed when it is answered; it has no references into a message, which
would keep the memory of its frame. Requests of the control channel itself are not recorded.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from barnabas.kit.traffic.details import of_request, of_response
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.codec.json_form import api_name
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.names import Named, errors_in, named_by

if TYPE_CHECKING:
    from barnabas.broker.context import Broker, RequestContext
    from barnabas.broker.net.connection import Connection
    from barnabas.wire.schema import Message

ENTRIES: Final = 2_000
"""Requests that are kept, the last ones: about 1 kB each."""
MAX_CLIENTS: Final = 500
"""Clients whose requests are counted; the one that came first is forgotten for another."""


@dataclass(eq=False, slots=True)
class Entry:
    """One request. Times are in seconds: `time` since 1970, `took` until it was answered, None if it was not yet."""

    number: int
    connection: int
    client_id: str | None
    api: ApiKey
    version: int
    started: float = field(default_factory=time.monotonic)
    time: float = field(default_factory=time.time)
    took: float | None = None
    outcome: str = "waits"
    """waits, answered, unanswered (acks=0) or closed."""
    topics: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    transactional_ids: tuple[str, ...] = ()
    errors: tuple[tuple[str, str], ...] = ()
    """Where an error is (a topic's partition, a group; empty: the whole response), and its name."""
    details: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The entry for the control channel."""
        return {
            "number": self.number,
            "time": self.time,
            "connection": self.connection,
            "client_id": self.client_id,
            "api": api_name(self.api),
            "version": self.version,
            "topics": list(self.topics),
            "groups": list(self.groups),
            "transactional_ids": list(self.transactional_ids),
            "errors": list(map(list, self.errors)),
            "outcome": self.outcome,
            "took": self.took,
            "details": self.details,
        }


@dataclass(eq=False, slots=True)
class ClientCounts:
    """How many requests a client id has made since the start, in all and by API."""

    requests: int = 0
    errors: int = 0
    """Responses with an error."""
    apis: dict[str, int] = field(default_factory=dict)


class Recorder:
    """The last requests of one cluster's clients."""

    def __init__(self, size: int = ENTRIES) -> None:
        self.entries: deque[Entry] = deque(maxlen=size)
        self.count = 0
        """How many requests there have been."""
        self.clients: dict[str, ClientCounts] = {}
        self._connections: dict[Connection, int] = {}
        self._next_connection = 1

    def begin(self, ctx: RequestContext, request: Message) -> tuple[Entry, Named]:
        """Record a request that has arrived; return its entry, and the names in it."""
        number = self._connections.get(ctx.connection)
        if number is None:
            number = self._opened(ctx.connection)
        self.count += 1
        entry = Entry(self.count, number, ctx.client_id, ctx.api_key, ctx.api_version)
        named = named_by(request, ctx.broker.image)
        if ctx.api_key == ApiKey.FETCH:
            _add_session(ctx.broker, request, named)
        entry.topics = tuple(named.topics)
        entry.groups = tuple(named.groups)
        entry.transactional_ids = tuple(named.transactional_ids)
        entry.details = of_request(request, ctx)
        self.entries.append(entry)
        counts = self._counts(entry)
        counts.requests += 1
        api = api_name(entry.api)
        counts.apis[api] = counts.apis.get(api, 0) + 1
        return entry, named

    def end(self, entry: Entry, outcome: Message | Exception | None, ctx: RequestContext) -> None:
        """Complete the entry of a request that has this outcome; a response is decoded."""
        entry.took = time.monotonic() - entry.started
        if outcome is None and ctx.connection.is_closing:
            entry.outcome = "closed"
        elif outcome is None:
            entry.outcome = "unanswered"
        elif isinstance(outcome, Exception):
            entry.outcome = "answered"
            code = outcome.code if isinstance(outcome, KafkaError) else ErrorCode.UNKNOWN_SERVER_ERROR
            entry.errors = (("", code.name),)
        else:
            entry.outcome = "answered"
            entry.errors = tuple(errors_in(outcome, ctx.broker.image))
            entry.details |= of_response(outcome)
        if entry.errors:
            self._counts(entry).errors += 1

    def _counts(self, entry: Entry) -> ClientCounts:
        name = entry.client_id or ""
        counts = self.clients.get(name)
        if counts is None:
            if len(self.clients) >= MAX_CLIENTS:
                del self.clients[next(iter(self.clients))]
            counts = self.clients[name] = ClientCounts()
        return counts

    def open_connections(self) -> set[int]:
        """The numbers of the connections that are open."""
        return set(self._connections.values())

    def closed(self, entry: Entry) -> None:
        """The connection was closed before the request was answered."""
        if entry.took is None:
            entry.took = time.monotonic() - entry.started
            entry.outcome = "closed"

    def _opened(self, connection: Connection) -> int:
        number = self._connections[connection] = self._next_connection
        self._next_connection += 1

        def forget() -> None:
            self._connections.pop(connection, None)

        connection.on_close.append(forget)
        return number


def _add_session(broker: Broker, request: Any, named: Named) -> None:
    """Add the partitions of a fetch session: an incremental fetch names its changes only."""
    session = broker.fetch_sessions.find(request.session_id)
    if session is not None:
        for partition in session.partitions.values():
            topic = broker.image.topic_by_id(partition.topic_id)
            name = partition.topic or (topic.name if topic is not None else "")
            named.topics[name] = None
            named.partitions.add((name, partition.index))
