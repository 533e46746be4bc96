"""Records as pages and the JSON API show them, and the queries that several message screens have in common."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec

from barnabas.client.cluster import Cluster
from barnabas.client.errors import ResponseTooLarge
from barnabas.console.console import Call
from barnabas.console.messages.contents.formats import GUESS, Content, Decoder
from barnabas.console.messages.contents.schemas import Schemas
from barnabas.console.messages.criteria import Criteria, Matcher
from barnabas.console.messages.found_records import BatchInfo, FoundRecord
from barnabas.console.messages.pages import LARGEST_ANSWER_BYTES, PageRequest
from barnabas.console.messages.starts import Positions, Span, parse_positions, parse_time, partitions_of, read_span
from barnabas.console.values import BadInput

CONTENT_BYTES = 16 * 1024
"""The longest key or value whose decoded content is in lists of the JSON API."""
"""Of a text in a list."""
LIMIT = 50
LIMIT_MAX = 1000

Text = Annotated[str, msgspec.Meta(max_length=4000)]
Isolation = Literal["read_uncommitted", "read_committed"]


@contextmanager
def wrong_input(field: str = "") -> Iterator[None]:
    """A ValueError in the block is a wrong value of this field."""
    try:
        yield
    except ValueError as error:
        raise BadInput(f"{field}: {error}" if field else str(error)) from None


@dataclass(frozen=True, kw_only=True)
class RecordsQuery:
    """Which records of a topic are meant, and how they are decoded."""

    topic: str
    partitions: Text = ""
    """Such as 0,2-5; empty: all."""
    start: Literal["newest", "oldest", "offset", "time", "group"] = "newest"
    at: Text = ""
    """The offset, the time (ms, seconds, a date, or -1h) or the group of `start`."""
    key: Text = ""
    """Text that the key contains, or /REGEX/."""
    value: Text = ""
    """Text that the value contains, or /REGEX/."""
    header: Text = ""
    """A header's name, or name=text, or name=/REGEX/."""
    filter: Text = ""
    """An expression, such as value.amount > 100 and headers.source == "web"."""
    since: Text = ""
    until: Text = ""
    """Times of records: ms, seconds, a date, or -1h; the second is exclusive."""
    key_format: Text = GUESS
    value_format: Text = GUESS
    isolation: Isolation = "read_uncommitted"
    control: bool = False
    """Show control records, and with read_committed the records of aborted transactions."""

    @property
    def committed_only(self) -> bool:
        """Whether only committed records are wanted."""
        return self.isolation == "read_committed"


@dataclass(frozen=True)
class ContentView:
    """A key or a value. `text` is cut in lists; `content` is JSON, null for long ones and those that are text."""

    format: str
    size: int
    text: str
    is_cut: bool = False
    schema: str = ""
    problem: str = ""
    content: Any = None


@dataclass(frozen=True)
class HeaderView:
    """A header's name and value, as text."""

    name: str
    value: ContentView


@dataclass(frozen=True)
class RecordView:
    """A record. `state`: committed, aborted, undecided or control; empty without a transaction."""

    partition: int
    offset: int
    timestamp: int
    key: ContentView
    value: ContentView
    headers: list[HeaderView]
    state: str
    batch: BatchInfo
    sequence: int
    control: str = ""
    problem: str = ""


@dataclass(frozen=True)
class Decoders:
    """The decoders of keys and values of a query."""

    key: Decoder
    value: Decoder
    text: Decoder

    @classmethod
    def of(cls, schemas: Schemas, key_format: str, value_format: str) -> Decoders:
        """`BadInput` if there is no such format or schema."""
        with wrong_input("key_format"):
            key = Decoder(key_format or GUESS, schemas)
        with wrong_input("value_format"):
            return cls(key, Decoder(value_format or GUESS, schemas), Decoder("guess", Schemas()))


def row_view(record: FoundRecord, decoders: Decoders) -> RecordView:
    """A record of a list: texts are one line and cut."""
    return _record_view(record, decoders, is_whole=False)


def whole_view(record: FoundRecord, decoders: Decoders) -> RecordView:
    """A record alone: texts have all lines of what was kept of it."""
    return _record_view(record, decoders, is_whole=True)


def _record_view(record: FoundRecord, decoders: Decoders, *, is_whole: bool) -> RecordView:
    headers = [
        HeaderView(name, _content_view(decoders.text, value, len(value or b""), is_whole=is_whole))
        for name, value in record.headers
    ]
    return RecordView(
        record.partition,
        record.offset,
        record.timestamp,
        _content_view(decoders.key, record.key, record.key_size, is_whole=is_whole),
        _content_view(decoders.value, record.value, record.value_size, is_whole=is_whole),
        headers,
        record.state,
        record.batch,
        record.sequence,
        record.control,
        record.problem,
    )


def _content_view(decoder: Decoder, data: bytes | None, size: int, *, is_whole: bool) -> ContentView:
    content = decoder.content(data, size)
    text = content.text if is_whole else content.line
    is_cut = data is not None and len(data) < size
    return ContentView(
        content.format,
        size,
        text,
        is_cut or (not is_whole and text != content.text and text.endswith("…")),
        content.schema,
        content.problem,
        _json_content(content) if is_whole or size <= CONTENT_BYTES else None,
    )


def _json_content(content: Content) -> Any:
    """The content in JSON: as text of JSON, since numbers may have more than 64 bits and texts half surrogates."""
    if content.format in ("text", "hex", "base64", "null"):
        return None
    try:
        return msgspec.Raw(json.dumps(content.value, allow_nan=False).encode())
    except ValueError:
        return None  # NaN or Infinity


# --- from a query to what the messages' functions take


def wanted_partitions(cluster: Cluster, query: RecordsQuery) -> list[int]:
    """The partitions of a query. `BadInput`, `NotFound`."""
    return partitions_of(cluster, query.topic, _partition_numbers(query.partitions))


def _partition_numbers(text: str) -> list[int]:
    numbers: list[int] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        first, _, last = part.partition("-")
        last = last or first
        if not (first.isascii() and first.isdigit() and last.isascii() and last.isdigit()) or len(first + last) > 12:
            raise BadInput(f"partitions: such as 0,2-5, not {text!r}")
        if int(last) - int(first) > 100_000:
            raise BadInput(f"partitions: {part} are too many")
        numbers += range(int(first), int(last) + 1)
    return numbers


def query_span(cluster: Cluster, query: RecordsQuery) -> Span:
    """What can be read of the query's partitions."""
    return read_span(cluster, query.topic, wanted_partitions(cluster, query), committed_only=query.committed_only)


def matcher_of(query: RecordsQuery, decoders: Decoders, schemas: Schemas) -> Matcher:
    """The criteria of a query. `BadInput` names the field that is wrong."""
    with wrong_input("since"):
        since = parse_time(query.since) if query.since else None
    with wrong_input("until"):
        until = parse_time(query.until) if query.until else None
    criteria = Criteria(query.key, query.value, query.header, query.filter, since, until)
    knows_json_only = decoders.value.format in ("guess", "json") and schemas.registry is None
    parts = {
        "key": Criteria(key=query.key),
        "value": Criteria(value=query.value),
        "header": Criteria(header=query.header),
        "filter": Criteria(expression=query.filter),
    }
    for field, part in parts.items():
        with wrong_input(field):
            Matcher(part)
    return Matcher(criteria, None if knows_json_only else decoders.value.value)


def positions_of(text: str, field: str) -> Positions:
    """Positions of a query. `BadInput`."""
    with wrong_input(field):
        return parse_positions(text)


def page_request(
    query: RecordsQuery, positions: Positions, limit: int, seconds: float, *, backwards: bool
) -> PageRequest:
    """The request of a page of the query."""
    return PageRequest(
        query.topic,
        positions,
        limit,
        backwards,
        seconds,
        committed_only=query.committed_only,
        shows_control=query.control,
    )


def formats_of(schemas: Schemas, formats: Sequence[str]) -> list[str]:
    """The formats that a page offers: without a schema, and with each schema and message of the console."""
    offered = list(formats)
    for schema in schemas.list():
        if schema.kind == "avro":
            offered.append(f"avro:{schema.name}")
        else:
            offered += [f"protobuf:{schema.name}#{message}" for message in schema.messages]
    return offered


def without_positions(query: RecordsQuery) -> dict[str, Any]:
    """The parameters of a query but the topic and where it begins, that differ from the defaults: for links."""
    names = ("partitions", "key", "value", "header", "filter", "since", "until")
    kept: dict[str, Any] = {name: getattr(query, name) for name in names if getattr(query, name)}
    for name in ("key_format", "value_format"):
        if getattr(query, name) not in ("", GUESS):
            kept[name] = getattr(query, name)
    if query.committed_only:
        kept["isolation"] = query.isolation
    if query.control:
        kept["control"] = "true"
    return kept


def read_here(call: Call, cluster: Cluster, function: Callable[..., Any], *arguments: Any) -> Any:
    """What `function(cluster, *arguments)` returns; it runs in another process if it has to read large records."""
    try:
        with cluster.limited_to(LARGEST_ANSWER_BYTES):
            return function(cluster, *arguments)
    except ResponseTooLarge:
        return call.console.messages.processes.result(call.session, function, *arguments)


def schemas_of(call: Call) -> Schemas:
    """The schemas of the console."""
    return call.console.messages.schemas
