"""Pages of a topic's records, and the topics to choose from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

import msgspec

from barnabas.client.admin.topics import list_topics
from barnabas.client.cluster import Cluster
from barnabas.client.offsets import end_offsets, start_offsets
from barnabas.console.console import Call
from barnabas.console.failures import unless_unreachable
from barnabas.console.messages.contents.formats import FORMATS
from barnabas.console.messages.pages import Page, read_page
from barnabas.console.messages.starts import NEWEST, format_positions, start_positions
from barnabas.console.pages import link, part
from barnabas.console.resources import resource
from barnabas.console.screens.messages.views import (
    LIMIT,
    LIMIT_MAX,
    Decoders,
    RecordsQuery,
    RecordView,
    formats_of,
    matcher_of,
    page_request,
    positions_of,
    query_span,
    read_here,
    row_view,
    schemas_of,
    without_positions,
    wrong_input,
)
from barnabas.console.tables import Page as TablePage
from barnabas.console.tables import TableQuery, paged
from barnabas.console.values import BadInput

# --- the topics to choose from


_Offsets = dict[tuple[str, int], int]


@dataclass(frozen=True)
class ReadableTopic:
    """A topic and its records, the offsets between start and end of all partitions."""

    name: str
    partitions: int
    records: int | None = None


@dataclass(frozen=True, kw_only=True)
class ChooseQuery(TableQuery):
    """Which topics are shown."""

    internal: bool = False
    """Internal topics too."""


@dataclass(frozen=True)
class Choice:
    """Topics whose messages can be opened."""

    topics: TablePage[ReadableTopic]
    hidden: int
    """Internal topics that are not shown."""
    unknown: str = ""
    """Why the records are not known."""


@resource("/messages", template="messages/choose.html", summary="The topics whose messages can be read.")
def choose_topic(cluster: Cluster, query: ChooseQuery) -> Choice:
    """Records are counted for the shown topics only."""
    described = [topic for topic in list_topics(cluster) if not topic.error_code]
    chosen = [topic for topic in described if query.internal or not topic.is_internal]
    led = {
        topic.name or "": [each.partition_index for each in topic.partitions if each.leader_id >= 0] for topic in chosen
    }
    rows = [ReadableTopic(topic.name or "", len(topic.partitions)) for topic in chosen]
    page = paged(rows, query, columns=("name", "partitions"), search=lambda row: row.name, sort="name")
    named = [(row.name, index) for row in page.rows for index in led[row.name]]

    def ask() -> tuple[_Offsets, _Offsets]:
        return start_offsets(cluster, named), end_offsets(cluster, named)

    nothing: tuple[_Offsets, _Offsets] = ({}, {})
    (starts, ends), unknown = unless_unreachable(cluster, ask, nothing)
    counts: dict[str, int] = {}
    for (name, index), end in ends.items():
        counts[name] = counts.get(name, 0) + end - starts[name, index]
    counted = page.map(lambda row: ReadableTopic(row.name, row.partitions, counts.get(row.name)))
    return Choice(counted, len(described) - len(chosen), unknown)


# --- a page of records


@dataclass(frozen=True, kw_only=True)
class MessagesQuery(RecordsQuery):
    """Which page of records is shown."""

    before: str = ""
    """The records before these positions, newest first: `0:123,1:456` (partition and offset)."""
    after: str = ""
    """The records after these positions, oldest first."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=LIMIT_MAX)] = LIMIT
    seconds: Annotated[float, msgspec.Meta(gt=0, le=10)] = 1.0
    """The longest time of a search; the answer says how to go on."""


@dataclass(frozen=True)
class Messages:
    """A page of records, in the order of reading: newest first when `backwards`.

    `scanned` and `remaining` count offsets; `ended_by` is limit, end, time or size. `unusable`: records that lack a
    field of the filter, or have one of another type. `older`, `newer` and `on` are paths of further pages: `on` goes on
    in the direction of this one.
    """

    topic: str
    records: list[RecordView]
    backwards: bool
    ended_by: str
    scanned: int
    size: int
    remaining: int
    total: int
    unusable: int
    selects: bool
    older: str
    newer: str
    on: str
    low: str
    high: str
    first: dict[int, int]
    end: dict[int, int]
    undecided: int
    """Offsets behind the last stable offset: of open transactions, and all that follows them."""
    partitions: int
    formats: list[str]
    problem: str = ""
    """What is wrong with the criteria, on a page."""


@resource(
    "/messages/{topic}",
    template="messages/messages.html",
    summary="A page of a topic's records.",
    ends_with_client=True,
)
def page_of_messages(cluster: Cluster, query: MessagesQuery, call: Call) -> Messages:
    """Search with `seconds` as the limit of time; `on` goes on behind what was searched.

    A page with wrong criteria has the form with them, to be put right.
    """
    try:
        return _page_of_messages(cluster, query, call)
    except BadInput as error:
        if not call.is_page:
            raise
        plain = MessagesQuery(topic=query.topic, limit=query.limit)
        return replace(_page_of_messages(cluster, plain, call), records=[], problem=str(error), older="", newer="")


def _page_of_messages(cluster: Cluster, query: MessagesQuery, call: Call) -> Messages:
    schemas = schemas_of(call)
    decoders = Decoders.of(schemas, query.key_format, query.value_format)
    matcher = matcher_of(query, decoders, schemas)
    if query.before and query.after:
        raise BadInput("before: give before or after, not both")
    span = query_span(cluster, query)
    if query.before or query.after:
        backwards = bool(query.before)
        positions = positions_of(query.before or query.after, "before" if query.before else "after")
    else:
        backwards = query.start == NEWEST
        with wrong_input("at"):
            positions = start_positions(cluster, query.topic, span, query.start, query.at)
    request = page_request(query, positions, query.limit, query.seconds, backwards=backwards)
    page: Page
    if matcher.selects:
        processes = call.console.messages.processes
        page = processes.result(call.session, read_page, span, request, matcher, is_unwanted=call.is_gone)
    else:
        page = read_here(call, cluster, read_page, span, request, matcher)
    links = _Links(query, page, backwards)
    return Messages(
        query.topic,
        [row_view(record, decoders) for record in page.records],
        backwards,
        page.ended_by,
        page.scanned,
        page.size,
        page.remaining,
        sum(span.end[index] - first for index, first in span.first.items()),
        page.unusable,
        matcher.selects,
        links.older if any(page.low.get(index, first) > first for index, first in span.first.items()) else "",
        links.newer if any(page.high.get(index, end) < end for index, end in span.end.items()) else "",
        (links.older if backwards else links.newer) if page.remaining else "",
        format_positions(page.low),
        format_positions(page.high),
        span.first,
        span.end,
        sum(max(0, end - span.stable[index]) for index, end in span.end.items()),
        len(cluster.find_topic(query.topic).leaders),
        formats_of(schemas, FORMATS),
    )


class _Links:
    """The paths of the pages before and after a page."""

    def __init__(self, query: MessagesQuery, page: Page, backwards: bool) -> None:
        path = f"/messages/{part(query.topic)}"
        kept: dict[str, Any] = without_positions(query)
        if query.limit != LIMIT:
            kept["limit"] = query.limit
        self.older = link(path, before=format_positions(page.low), **kept)
        self.newer = link(path, after=format_positions(page.high), **kept)
        self.backwards = backwards
