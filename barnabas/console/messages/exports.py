"""A range of a topic as JSON lines, CSV or Parquet, in pieces, with progress that another request can ask for.

JSON lines of exact bytes are those of `consume --json`, so that `produce --json` copies the records. Otherwise keys and
values are what the chosen formats decode. A CSV file has texts as they are: let a spreadsheet import its cells as text,
since it may take one that begins with = for a formula.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from threading import Lock
from time import monotonic
from typing import Any, Protocol

from barnabas.client.cluster import Cluster
from barnabas.client.records.record_json import json_line
from barnabas.console.messages.contents.formats import Content, Decoder
from barnabas.console.messages.criteria import Matcher
from barnabas.console.messages.found_records import FoundRecord
from barnabas.console.messages.pages import PageRequest, read_page
from barnabas.console.messages.starts import Span
from barnabas.terminal.times import iso_time
from barnabas.wire.batches.records import Record

RECORDS_OF_A_PAGE = 2000
SECONDS_OF_A_PAGE = 1.0
ROWS_OF_A_GROUP = 10_000
"""The rows of Parquet that are written together."""
MEDIA_TYPES = {"jsonl": "application/x-ndjson", "csv": "text/csv", "parquet": "application/vnd.apache.parquet"}
COLUMNS = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
MOST_EXPORTS = 100
NO_PARQUET = "Parquet needs pyarrow: pip install pyarrow where the console runs"


class ExportStopped(Exception):  # noqa: N818 (a wish of the user)
    """The user stopped the export."""


@dataclass(slots=True)
class Progress:
    """How far an export is, in offsets. `failure` is a sentence."""

    total: int = 0
    scanned: int = 0
    records: int = 0
    size: int = 0
    is_done: bool = False
    is_stopped: bool = False
    failure: str = ""
    started: float = field(default_factory=monotonic)


class Exports:
    """The progress of exports by the id that the page gave them, for each user; the newest `MOST_EXPORTS`."""

    def __init__(self) -> None:
        self._by_id: dict[tuple[str, str], Progress] = {}
        self._lock = Lock()

    def begin(self, user: str, export_id: str) -> Progress:
        """The progress of a new export."""
        progress = Progress()
        if export_id:
            with self._lock:
                self._by_id[user, export_id] = progress
                while len(self._by_id) > MOST_EXPORTS:
                    del self._by_id[next(iter(self._by_id))]
        return progress

    def of(self, user: str, export_id: str) -> Progress | None:
        """The progress of an export; None if it is not known (yet, or any more)."""
        with self._lock:
            return self._by_id.get((user, export_id))


class Writer(Protocol):
    """Writes records in one format."""

    def begin(self) -> bytes: ...
    def rows(self, topic: str, records: Sequence[FoundRecord]) -> bytes: ...
    def end(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Contents:
    """How keys and values are written: exactly, or decoded."""

    key: Decoder
    value: Decoder
    is_exact: bool


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of the file, and how many offsets and records it is of."""

    data: bytes
    scanned: int = 0
    records: int = 0


def exported(
    cluster: Cluster, span: Span, request: PageRequest, matcher: Matcher, format_: str, contents: Contents
) -> Iterator[Piece]:
    """The pieces of the file, from the request's positions to the end of the span or to `request.limit` records.

    Errors: KafkaError, NotFound, TimedOut, Unreachable.
    """
    positions = span.clamped(request.positions)
    left = request.limit
    writer = _writer_of(format_, contents)
    yield Piece(writer.begin())
    while left > 0:
        limit = min(left, RECORDS_OF_A_PAGE)
        part = replace(
            request, positions=positions, limit=limit, backwards=False, seconds=SECONDS_OF_A_PAGE, is_whole=True
        )
        page = read_page(cluster, span, part, matcher)
        yield Piece(writer.rows(request.topic, page.records), page.scanned, len(page.records))
        left -= len(page.records)
        if not page.remaining:
            break
        positions = page.high
    yield Piece(writer.end())


def watched(pieces: Iterator[Piece], progress: Progress) -> Iterator[bytes]:
    """The bytes of the pieces, while `progress` is kept. ExportStopped when that is stopped."""
    for piece in pieces:
        progress.scanned += piece.scanned
        progress.records += piece.records
        progress.size += len(piece.data)
        if progress.is_stopped:
            raise ExportStopped("the export was stopped")
        yield piece.data
    progress.is_done = True


def check_format(format_: str) -> None:
    """ValueError with a sentence if there is no such format, or pyarrow is missing."""
    if format_ not in MEDIA_TYPES:
        raise ValueError(f"there is no format {format_!r} of exports; there are {', '.join(MEDIA_TYPES)}")
    if format_ == "parquet" and find_spec("pyarrow") is None:
        raise ValueError(NO_PARQUET)


def _writer_of(format_: str, contents: Contents) -> Writer:
    if format_ == "jsonl":
        return JsonLines(contents)
    return Csv(contents) if format_ == "csv" else Parquet(contents)


class JsonLines:
    """One JSON object a line."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents

    def begin(self) -> bytes:
        """Nothing comes before the lines."""
        return b""

    def rows(self, topic: str, records: Sequence[FoundRecord]) -> bytes:
        """The lines of records."""
        if self._contents.is_exact:
            return b"".join(json_line((topic, record.partition), _plain(record)) for record in records)
        return b"".join(self._decoded_line(topic, record) for record in records)

    def _decoded_line(self, topic: str, record: FoundRecord) -> bytes:
        fields = {
            "topic": topic,
            "partition": record.partition,
            "offset": record.offset,
            "timestamp": record.timestamp,
            "key": _content(self._contents.key.content(record.key)),
            "value": _content(self._contents.value.content(record.value)),
            "headers": _headers(record),
        }
        return json.dumps(fields, ensure_ascii=False).encode(errors="replace") + b"\n"

    def end(self) -> bytes:
        """Nothing comes behind them."""
        return b""


class Csv:
    """RFC 4180 with a line of names; null is an empty cell."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents

    def begin(self) -> bytes:
        """The line of names."""
        return _csv_lines([COLUMNS])

    def rows(self, topic: str, records: Sequence[FoundRecord]) -> bytes:
        """The lines of records."""
        return _csv_lines(
            (
                topic,
                record.partition,
                record.offset,
                iso_time(record.timestamp) or "",
                _cell(self._contents.key, record.key),
                _cell(self._contents.value, record.value),
                json.dumps(_headers(record), ensure_ascii=False) if record.headers else "",
            )
            for record in records
        )

    def end(self) -> bytes:
        """Nothing comes behind them."""
        return b""


def _csv_lines(rows: Any) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode(errors="replace")


class Parquet:
    """Columns with types: exact keys and values are binary, decoded ones are text."""

    def __init__(self, contents: Contents) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._contents = contents
        content = pa.binary() if contents.is_exact else pa.string()
        header = pa.struct([("name", pa.string()), ("value", pa.binary())])
        types = (pa.string(), pa.int32(), pa.int64(), pa.timestamp("ms", tz="UTC"), content, content, pa.list_(header))
        self._schema = pa.schema(list(zip(COLUMNS, types, strict=True)))
        self._sink = _Pieces()
        self._writer = pq.ParquetWriter(self._sink, self._schema, compression="zstd")
        self._rows: list[dict[str, object]] = []

    def begin(self) -> bytes:
        """The magic number."""
        return self._sink.take()

    def rows(self, topic: str, records: Sequence[FoundRecord]) -> bytes:
        """The groups of rows that are full."""
        for record in records:
            key, value = record.key, record.value
            self._rows.append(
                {
                    "topic": topic,
                    "partition": record.partition,
                    "offset": record.offset,
                    "timestamp": record.timestamp if record.timestamp >= 0 else None,
                    "key": key if self._contents.is_exact else _cell(self._contents.key, key),
                    "value": value if self._contents.is_exact else _cell(self._contents.value, value),
                    "headers": [{"name": name, "value": content} for name, content in record.headers],
                }
            )
        if len(self._rows) >= ROWS_OF_A_GROUP:
            self._write()
        return self._sink.take()

    def end(self) -> bytes:
        """The last rows, and the footer."""
        if self._rows:
            self._write()
        self._writer.close()
        return self._sink.take()

    def _write(self) -> None:
        import pyarrow as pa

        self._writer.write_table(pa.Table.from_pylist(self._rows, schema=self._schema))
        self._rows.clear()


class _Pieces(io.RawIOBase):
    """A file whose bytes are taken while it is written."""

    def __init__(self) -> None:
        super().__init__()
        self._pieces: list[bytes] = []
        self._position = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        piece = bytes(data)
        self._pieces.append(piece)
        self._position += len(piece)
        return len(piece)

    def tell(self) -> int:
        return self._position

    def take(self) -> bytes:
        taken = b"".join(self._pieces)
        self._pieces.clear()
        return taken


def _plain(record: FoundRecord) -> Record:
    return Record(record.offset, record.timestamp, record.key, record.value, record.headers)


def _content(content: Content) -> Any:
    return content.value if content.format not in ("text", "hex", "base64") else content.text


def _cell(decoder: Decoder, data: bytes | None) -> str | None:
    if data is None:
        return None
    content = decoder.content(data)
    if content.format in ("text", "hex", "base64"):
        return content.text
    return json.dumps(content.value, ensure_ascii=False)


def _headers(record: FoundRecord) -> list[dict[str, object]]:
    return [
        {"name": name, "value": None if value is None else value.decode(errors="replace")}
        for name, value in record.headers
    ]
