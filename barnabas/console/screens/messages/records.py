"""One record with its batch, parts of large values, two records side by side."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import msgspec

from barnabas.client.cluster import Cluster
from barnabas.client.errors import ResponseTooLarge
from barnabas.client.records.record_json import MAX_INT64
from barnabas.console.console import Call
from barnabas.console.messages.comparing import Comparison, compared
from barnabas.console.messages.contents.formats import FORMATS, GUESS, Decoder
from barnabas.console.messages.one_record import Part, Side, read_part, read_pieces, read_record
from barnabas.console.messages.pages import LARGEST_ANSWER_BYTES
from barnabas.console.messages.snippets import Snippet, snippets
from barnabas.console.pages import link, part, visible
from barnabas.console.resources import Download, download, resource
from barnabas.console.screens.messages.views import (
    ContentView,
    Decoders,
    HeaderView,
    RecordView,
    Text,
    formats_of,
    read_here,
    schemas_of,
    whole_view,
    wrong_input,
)

SHOWN_CHARACTERS = 64 * 1024
"""Of a key or value on a page; the rest is loaded on demand."""

Partition = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Offset = Annotated[int, msgspec.Meta(ge=0, le=MAX_INT64)]
SideName = Literal["key", "value"]


@dataclass(frozen=True, kw_only=True)
class RecordQuery:
    """Which record, and how it is decoded."""

    topic: str
    partition: Partition
    offset: Offset
    key_format: Text = GUESS
    value_format: Text = GUESS


@dataclass(frozen=True)
class OneRecord:
    """A record, with what can be copied, and the offsets of its partition."""

    topic: str
    record: RecordView
    snippets: list[Snippet]
    first: int
    end: int
    stable: int
    shown: int
    """Characters of the texts that are here; the rest is at `part`."""
    formats: list[str]


@resource("/messages/{topic}/{partition}/{offset}", template="messages/record.html", summary="One record.")
def one_record(cluster: Cluster, query: RecordQuery, call: Call) -> OneRecord:
    """Long texts are cut: `part` has the rest."""
    schemas = schemas_of(call)
    decoders = Decoders.of(schemas, query.key_format, query.value_format)
    record, span = read_here(call, cluster, read_record, query.topic, query.partition, query.offset)
    settings = call.settings
    made = snippets(record, query.topic, settings.bootstrap, call.origin, settings.properties)
    return OneRecord(
        query.topic,
        _shortened(whole_view(record, decoders)),
        made,
        span.first[query.partition],
        span.end[query.partition],
        span.stable[query.partition],
        SHOWN_CHARACTERS,
        formats_of(schemas, FORMATS),
    )


def _shortened(view: RecordView) -> RecordView:
    return replace(
        view,
        key=_short(view.key),
        value=_short(view.value),
        headers=[HeaderView(header.name, _short(header.value)) for header in view.headers],
    )


def _short(content: ContentView) -> ContentView:
    if len(content.text) <= SHOWN_CHARACTERS:
        return content
    return replace(content, text=content.text[:SHOWN_CHARACTERS], is_cut=True, content=None)


# --- parts of large values


@dataclass(frozen=True, kw_only=True)
class PartQuery(RecordQuery):
    """A part of a key or value: `at` counts characters of the decoded form, bytes of text and hex."""

    side: SideName = "value"
    form: Literal["decoded", "text", "hex"] = "decoded"
    at: Annotated[int, msgspec.Meta(ge=0)] = 0
    length: Annotated[int, msgspec.Meta(ge=1, le=1024 * 1024)] = 256 * 1024


@resource("/messages/{topic}/{partition}/{offset}/part", summary="A part of a large key or value, as text.")
def part_of_record(cluster: Cluster, query: PartQuery, call: Call) -> Part:
    """The record is read again: the console keeps nothing. Characters that cannot be seen are escapes."""
    is_key = query.side == "key"
    with wrong_input("key_format" if is_key else "value_format"):
        decoder = Decoder((query.key_format if is_key else query.value_format) or GUESS, schemas_of(call))
    side = Side(query.topic, query.partition, query.offset, is_key)
    read: Part = read_here(call, cluster, read_part, side, query.form, decoder, query.at, query.at + query.length)
    return replace(read, text=visible(read.text))


@dataclass(frozen=True, kw_only=True)
class RawQuery:
    """Which key or value."""

    topic: str
    partition: Partition
    offset: Offset
    side: SideName = "value"


@download("/messages/{topic}/{partition}/{offset}/raw", summary="The bytes of a key or value.")
def raw_bytes(cluster: Cluster, query: RawQuery, call: Call) -> Iterator[Download | bytes]:
    """As they are stored; null is no bytes."""
    side = Side(query.topic, query.partition, query.offset, query.side == "key")
    described = Download(f"{query.topic}-{query.partition}-{query.offset}.{query.side}", "application/octet-stream")
    try:
        with cluster.limited_to(LARGEST_ANSWER_BYTES):
            pieces = list(read_pieces(cluster, side))
    except ResponseTooLarge:
        with closing(call.console.messages.processes.steps(call.session, read_pieces, side)) as steps:
            first = next(steps)
            yield described
            yield first
            yield from steps
    else:
        yield described
        yield from pieces


# --- two records


@dataclass(frozen=True, kw_only=True)
class CompareQuery:
    """Two records, each as `PARTITION:OFFSET`."""

    topic: str
    left: Text
    right: Text
    right_topic: str = ""
    """The topic of the right record; empty: the same."""
    key_format: Text = GUESS
    value_format: Text = GUESS


@dataclass(frozen=True)
class Compared:
    """Two records and the lines of their parts."""

    topic: str
    left: RecordView
    right: RecordView
    right_topic: str
    parts: list[Comparison]
    left_path: str
    right_path: str


@resource("/messages/{topic}/compare", template="messages/compare.html", summary="Two records, line by line.")
def compare_records(cluster: Cluster, query: CompareQuery, call: Call) -> Compared:
    """Key, value and headers are compared as they are decoded."""
    decoders = Decoders.of(schemas_of(call), query.key_format, query.value_format)
    right_topic = query.right_topic or query.topic
    views = []
    for field, topic, text in (("left", query.topic, query.left), ("right", right_topic, query.right)):
        with wrong_input(field):
            partition, offset = parse_place(text)
        record, _ = read_here(call, cluster, read_record, topic, partition, offset)
        views.append(whole_view(record, decoders))
    left, right = views
    parts = [
        compared("Key", visible(left.key.text), visible(right.key.text)),
        compared("Value", visible(left.value.text), visible(right.value.text)),
        compared("Headers", _header_lines(left), _header_lines(right)),
    ]
    return Compared(
        query.topic, left, right, right_topic, parts, _record_path(query.topic, left), _record_path(right_topic, right)
    )


def parse_place(text: str) -> tuple[int, int]:
    """Partition and offset of `0:123`. ValueError."""
    partition, _, offset = text.partition(":")
    if not all(number.isascii() and number.isdigit() and len(number) < 19 for number in (partition, offset)):
        raise ValueError(f"a record is named by partition and offset, as 0:123, not by {text!r}")
    return int(partition), int(offset)


def _header_lines(view: RecordView) -> str:
    return visible("\n".join(f"{header.name}: {header.value.text}" for header in view.headers))


def _record_path(topic: str, view: RecordView) -> str:
    return link(f"/messages/{part(topic)}/{view.partition}/{view.offset}")
