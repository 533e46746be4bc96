"""Requests: what the clients of our broker ask and what it answers, as it happens; one request in all its parts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from time import monotonic, sleep
from typing import Any, Final

from barnabas.client.admin.topics import list_topics
from barnabas.client.cluster import Cluster
from barnabas.console.console import Call
from barnabas.console.control import WATCH, check_allowed
from barnabas.console.events import Event
from barnabas.console.failures import Refused
from barnabas.console.pages import visible
from barnabas.console.requests.decoding import Topics
from barnabas.console.requests.log import Exchange, RequestFilter, RequestLogs
from barnabas.console.resources import resource, stream
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.codec.json_form import api_name

SHOWN: Final = 100
PERIOD_S: Final = 0.5
"""How often a live view is filled, seconds."""
CHECK_S: Final = 30.0
"""How often it is checked that its user may still see it, seconds."""
MAX_NAMES: Final = 5
NOT_AVAILABLE: Final = (
    "The requests of clients are told by our broker only: 'barnabas serve --console' shows them here, also with "
    "--brokers N, and 'barnabas console -b ADDRESS --control-file FILE' those of a broker with --control."
)


@dataclass(frozen=True)
class RequestRow:
    """One request, as the list shows it."""

    node: int
    """The broker of a cluster; 0 for a broker alone."""
    number: int
    time_ms: int
    took_ms: float
    connection: int
    client: str
    principal: str
    api: str
    version: int
    names: str
    """Topics, groups and transactional ids."""
    outcome: str
    errors: list[str]
    request_size: int
    response_size: int


@dataclass(frozen=True)
class RequestsView:
    """The last requests, the newest first."""

    available: bool
    why: str
    """Why there are none to be shown."""
    requests: list[RequestRow]
    waiting: list[RequestRow]
    kept: int
    lost: int
    """Requests that came too fast to be kept."""
    apis: list[str]
    nodes: list[int] = field(default_factory=list)
    """The brokers of a cluster; none for a broker alone."""
    silent: list[int] = field(default_factory=list)
    """Brokers that do not answer."""


@resource("/requests", template="requests/list.html", summary="The last requests of clients, with errors and times.")
def list_of_requests(cluster: Cluster, call: Call, query: RequestFilter) -> RequestsView:
    """The list as it is now; `/requests/events` goes on with what is new."""
    apis = sorted(api_name(key) for key in ApiKey)
    if not call.console.requests.is_available:
        return RequestsView(False, NOT_AVAILABLE, [], [], 0, 0, apis)
    log, topics = _log(cluster, call)
    rows = _rows(log.newest(), query, topics)
    waiting = [_row(exchange, topics) for exchange in log.waiting if query.selects(exchange, topics)]
    return RequestsView(True, "", rows, waiting, log.count, log.lost, apis, log.nodes, log.silent)


def _rows(newest: Iterator[Exchange], query: RequestFilter, topics: Topics) -> list[RequestRow]:
    rows = []
    for exchange in newest:
        if query.selects(exchange, topics):
            rows.append(_row(exchange, topics))
            if len(rows) == SHOWN:
                break
    return rows


def _row(exchange: Exchange, topics: Topics) -> RequestRow:
    names = exchange.names(topics)
    every = [*names.topics, *names.groups, *names.transactional_ids]
    text = ", ".join(every[:MAX_NAMES]) + (f" and {len(every) - MAX_NAMES} more" if len(every) > MAX_NAMES else "")
    return RequestRow(
        node=exchange.node,
        number=exchange.number,
        time_ms=int(exchange.time * 1000),
        took_ms=round(exchange.took * 1000, 2),
        connection=exchange.connection,
        client=visible(exchange.client_id),
        principal=visible(exchange.principal),
        api=exchange.api_name,
        version=exchange.version,
        names=visible(text),
        outcome=exchange.outcome,
        errors=[visible(error) for error in (*names.errors, *([exchange.why] if exchange.why else []))],
        request_size=exchange.request_size,
        response_size=exchange.response_size,
    )


@stream("/requests/events", summary="New requests of clients, the newest first, about twice a second.")
def new_requests(cluster: Cluster, call: Call, query: RequestFilter) -> Iterator[Event | None]:
    """Each event has the rows that are new, the requests that wait, and how many rows were left out."""
    if not call.console.requests.is_available:
        raise Refused(HTTPStatus.CONFLICT, NOT_AVAILABLE)
    log, topics = _log(cluster, call)
    checked = monotonic()
    after = log.last_numbers()
    while True:
        sleep(PERIOD_S)
        if monotonic() - checked > CHECK_S:
            log, topics = _log(cluster, call)
            checked = monotonic()
        log.fill()
        arrived = list(log.newest(after))
        after |= {exchange.node: exchange.number for exchange in reversed(arrived)}
        new = [exchange for exchange in arrived if query.selects(exchange, topics)]
        waiting = [_row(exchange, topics) for exchange in log.waiting if query.selects(exchange, topics)]
        yield Event(
            {
                "requests": [_row(exchange, topics) for exchange in new[:SHOWN]],
                "more": max(0, len(new) - SHOWN),
                "waiting": waiting[:SHOWN],
                "lost": log.lost,
            }
        )


@dataclass(frozen=True)
class RequestQuery:
    """Which request."""

    number: int
    node: int = 0
    """The broker of a cluster; 0 for a broker alone."""


@dataclass(frozen=True)
class RequestView:
    """One request in all its parts."""

    row: RequestRow
    peer: str
    listener: str
    topics: list[str]
    groups: list[str]
    transactional_ids: list[str]
    request: dict[str, Any] | None
    """In Kafka's JSON form; records are the headers of their batches."""
    response: dict[str, Any] | None
    why_request: str
    """Why the request is not decoded."""
    why_response: str
    request_bytes: str
    """A hex dump of the first bytes."""
    response_bytes: str


@resource("/requests/{number}", template="requests/one.html", summary="One request: JSON and bytes, both ways.")
def one_request(cluster: Cluster, call: Call, query: RequestQuery) -> RequestView:
    """What is kept of it; the ring forgets."""
    if not call.console.requests.is_available:
        raise Refused(HTTPStatus.NOT_FOUND, NOT_AVAILABLE)
    log, topics = _log(cluster, call)
    exchange = log.find(query.node, query.number)
    if exchange is None:
        raise Refused(HTTPStatus.NOT_FOUND, f"request {query.number} is not kept any more, or there was none")
    decoded = exchange.whole(topics)
    dumps = exchange.dumps()
    return RequestView(
        row=_row(exchange, topics),
        peer=exchange.peer,
        listener=exchange.listener,
        topics=decoded.topics,
        groups=decoded.groups,
        transactional_ids=decoded.transactional_ids,
        request=decoded.request,
        response=decoded.response,
        why_request=decoded.why_request,
        why_response=decoded.why_response,
        request_bytes=dumps[0],
        response_bytes=dumps[1],
    )


def _log(cluster: Cluster, call: Call) -> tuple[RequestLogs, Topics]:
    """The rings, filled, and the topics by their ids. `Refused` for a user who may not see it."""
    check_allowed(cluster, WATCH, "To see the requests of all clients")
    log = call.console.requests
    log.fill()
    return log, call.console.topics.of(lambda: {topic.topic_id: topic.name or "" for topic in list_topics(cluster)})
