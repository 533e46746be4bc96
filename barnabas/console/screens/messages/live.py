"""The records of a topic as they arrive, as server-sent events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import msgspec

from barnabas.client.cluster import Cluster
from barnabas.console.console import Call
from barnabas.console.events import Event
from barnabas.console.messages.starts import format_positions
from barnabas.console.messages.tail import PER_SECOND, tail
from barnabas.console.pages import visible
from barnabas.console.resources import stream
from barnabas.console.screens.messages.views import (
    Decoders,
    RecordsQuery,
    RecordView,
    matcher_of,
    positions_of,
    query_span,
    row_view,
    schemas_of,
)


@dataclass(frozen=True, kw_only=True)
class TailQuery(RecordsQuery):
    """What is followed; `start` and `at` have no meaning here."""

    after: str = ""
    """Follow from these positions, to count what came meanwhile; empty: from the end."""
    per_second: Annotated[int, msgspec.Meta(ge=1, le=200)] = PER_SECOND


@dataclass(frozen=True)
class Row:
    """A record as a line of a page: texts have no characters that cannot be seen."""

    partition: int
    offset: int
    timestamp: int
    key: str
    value: str
    value_format: str
    size: int
    state: str
    problem: str


@dataclass(frozen=True)
class Arrival:
    """Records that arrived, oldest first; how many more came that are not shown, and how many were looked at."""

    rows: list[Row]
    skipped: int
    seen: int


@dataclass(frozen=True)
class Following:
    """The first event: the positions from which the tail follows, and how many offsets came since `after`."""

    positions: str
    missed: int


@stream("/messages/{topic}/events", summary="The records of a topic as they arrive.")
def live_records(cluster: Cluster, query: TailQuery, call: Call) -> Iterator[Event | None]:
    """A step without records is None. At most `per_second` records a second: others are counted."""
    schemas = schemas_of(call)
    decoders = Decoders.of(schemas, query.key_format, query.value_format)
    matcher = matcher_of(query, decoders, schemas)
    span = query_span(cluster, query)
    missed = 0
    if query.after:
        before = span.clamped(positions_of(query.after, "after"))
        missed = sum(span.end[partition] - offset for partition, offset in before.items())
    yield Event(Following(format_positions(span.end), missed), "following")
    for arrived in tail(
        cluster,
        query.topic,
        span.end,
        matcher,
        committed_only=query.committed_only,
        per_second=query.per_second,
    ):
        if not arrived.seen:
            yield None
            continue
        rows = [_row(row_view(record, decoders)) for record in arrived.records]
        yield Event(Arrival(rows, arrived.skipped, arrived.seen), "records")


def _row(view: RecordView) -> Row:
    return Row(
        view.partition,
        view.offset,
        view.timestamp,
        visible(view.key.text),
        visible(view.value.text),
        view.value.format,
        view.value.size,
        view.state,
        visible(view.problem),
    )
