"""Records as files, with their progress."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec

from barnabas.client.cluster import Cluster
from barnabas.console.console import Call
from barnabas.console.failures import answer
from barnabas.console.messages.exports import MEDIA_TYPES, Contents, check_format, exported, watched
from barnabas.console.messages.starts import NEWEST, OLDEST, Span, start_positions
from barnabas.console.resources import Download, download, resource
from barnabas.console.screens.messages.views import (
    Decoders,
    RecordsQuery,
    Text,
    matcher_of,
    page_request,
    positions_of,
    query_span,
    schemas_of,
    wrong_input,
)

MOST_RECORDS = 2**40


@dataclass(frozen=True, kw_only=True)
class ExportQuery(RecordsQuery):
    """What is exported: from `after`, or from where `start` says (newest: from the oldest), to `up_to` or the end."""

    format: Literal["jsonl", "csv", "parquet"] = "jsonl"
    exact: bool = True
    """Keys and values as they are stored; otherwise decoded by the formats."""
    after: str = ""
    up_to: str = ""
    """Positions as in the links of a page."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST_RECORDS)] = MOST_RECORDS
    id: Annotated[str, msgspec.Meta(max_length=64)] = ""
    """A random name of the export, by which its progress is asked for."""


@download("/messages/{topic}/export", summary="Records as JSON lines, CSV or Parquet.")
def export_records(cluster: Cluster, query: ExportQuery, call: Call) -> Iterator[Download | bytes]:
    """Merged by time over partitions, oldest first. The end of the partitions is that of the beginning."""
    schemas = schemas_of(call)
    decoders = Decoders.of(schemas, query.key_format, query.value_format)
    matcher = matcher_of(query, decoders, schemas)
    with wrong_input("format"):
        check_format(query.format)
    span = query_span(cluster, query)
    if query.after:
        positions = positions_of(query.after, "after")
    else:
        with wrong_input("at"):
            start = OLDEST if query.start == NEWEST else query.start
            positions = start_positions(cluster, query.topic, span, start, query.at)
    if query.up_to:
        up_to = positions_of(query.up_to, "up_to")
        ends = {partition: min(end, up_to.get(partition, end)) for partition, end in span.end.items()}
        span = Span(span.first, ends, span.stable)
    progress = call.console.messages.exports.begin(call.session.user, query.id)
    request = page_request(query, positions, query.limit, 1.0, backwards=False)
    started = span.clamped(positions)
    progress.total = sum(span.end[partition] - position for partition, position in started.items())
    yield Download(f"{query.topic}.{query.format}", MEDIA_TYPES[query.format])
    contents = Contents(decoders.key, decoders.value, query.exact)
    processes = call.console.messages.processes
    pieces = processes.steps(call.session, exported, span, request, matcher, query.format, contents)
    try:
        with closing(pieces):
            yield from watched(pieces, progress)
    except Exception as error:
        progress.failure = "stopped" if progress.is_stopped else answer(error).text
        raise


@dataclass(frozen=True, kw_only=True)
class ProgressQuery:
    """Which export; with `stop` it ends."""

    topic: str
    id: Text
    stop: bool = False


@dataclass(frozen=True)
class ExportProgress:
    """How far an export is, in offsets of `total`. `failure` is a sentence; an unknown export has `is_known` false."""

    is_known: bool
    scanned: int = 0
    total: int = 0
    records: int = 0
    size: int = 0
    is_done: bool = False
    failure: str = ""


@resource("/messages/{topic}/export-progress", summary="How far an export is; stops it if asked.")
def export_progress(query: ProgressQuery, call: Call) -> ExportProgress:
    """Of the user's own exports."""
    progress = call.console.messages.exports.of(call.session.user, query.id)
    if progress is None:
        return ExportProgress(is_known=False)
    progress.is_stopped = progress.is_stopped or query.stop
    return ExportProgress(
        True, progress.scanned, progress.total, progress.records, progress.size, progress.is_done, progress.failure
    )
