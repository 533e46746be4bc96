"""The records of `produce`: lines or other pieces of a stream, JSON lines, whole files.

Each input yields blocks of records as they become available. A record that is wrong is a usage error that names it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Protocol

import click

from barnabas.cli.options.escapes import unescape
from barnabas.client.records.record_json import ParsedRecord, parse_record
from barnabas.wire.batches.records import Header

CHUNK_BYTES = 1 << 18

Waiting = Callable[[], AbstractContextManager[None]]
"""A context for waiting for input, in which Ctrl-C raises at once."""


class Input(Protocol):
    """Records from somewhere. `number` is that of the record that is parsed, from 1."""

    number: int

    def blocks(self, waiting: Waiting) -> Iterator[Iterable[ParsedRecord | None]]:
        """Records as they become available, each parsed when it is taken; None for a line without one."""


@dataclass
class Fields:
    """What the options say about every record."""

    key: bytes | None
    key_delimiter: bytes | None
    headers: list[Header]
    empty_is_null: bool
    timestamp: int | None

    def record(self, key: bytes | None, value: bytes | None) -> ParsedRecord:
        """A record of this key and value."""
        if self.empty_is_null:
            key, value = key or None, value or None
        return ParsedRecord(key, value, self.headers, None, self.timestamp)


@dataclass(eq=False)
class StreamInput:
    """The pieces of a stream between delimiters. Lines end with \\n or \\r\\n."""

    source: BinaryIO
    delimiter: bytes
    fields: Fields
    number: int = field(default=0, init=False)

    def blocks(self, waiting: Waiting) -> Iterator[Iterable[ParsedRecord | None]]:
        """Records as they become available."""
        for pieces in read_pieces(self.source, self.delimiter, waiting):
            yield map(self._record, pieces)

    def _record(self, piece: bytes) -> ParsedRecord | None:
        self.number += 1
        fields = self.fields
        key, value = fields.key, piece
        if fields.key_delimiter is not None:
            key, delimiter, value = piece.partition(fields.key_delimiter)
            if not delimiter:
                name = fields.key_delimiter.decode(errors="replace")
                raise click.UsageError(f"{self._name} {self.number} has no {name!r} between key and value (-K)")
        return fields.record(key, value)

    @property
    def _name(self) -> str:
        return "line" if self.delimiter == b"\n" else "record"


@dataclass(eq=False)
class JsonInput:
    """A JSON object a line, as `consume --json` prints them. Headers and timestamp of options are added or replace."""

    source: BinaryIO
    fields: Fields
    number: int = field(default=0, init=False)

    def blocks(self, waiting: Waiting) -> Iterator[Iterable[ParsedRecord | None]]:
        """Records as they become available."""
        for lines in read_pieces(self.source, b"\n", waiting):
            yield map(self._record, lines)

    def _record(self, line: bytes) -> ParsedRecord | None:
        self.number += 1
        if not line.strip():
            return None
        try:
            record = parse_record(line)
        except ValueError as error:
            raise click.UsageError(f"line {self.number} {error}") from None
        fields = self.fields
        record.headers += fields.headers
        if fields.key is not None:
            record.key = fields.key
        if fields.timestamp is not None:
            record.timestamp = fields.timestamp
        return record


@dataclass(eq=False)
class FilesInput:
    """Each file is the value of one record."""

    paths: Sequence[Path]
    fields: Fields
    number: int = field(default=0, init=False)

    def blocks(self, waiting: Waiting) -> Iterator[Iterable[ParsedRecord | None]]:
        """One record a block."""
        for path in self.paths:
            self.number += 1
            with waiting():
                value = path.read_bytes()
            yield [self.fields.record(self.fields.key, value)]


def read_pieces(
    source: BinaryIO, delimiter: bytes, waiting: Waiting, keeps_returns: bool = False
) -> Iterator[list[bytes]]:
    """Read pieces in blocks as they become available; of lines \\r before \\n is removed, unless it is kept."""
    rest = b""
    is_lines = delimiter == b"\n" and not keeps_returns
    while chunk := _read(source, waiting):
        pieces = (rest + chunk).split(delimiter)
        rest = pieces.pop()
        yield [piece.removesuffix(b"\r") for piece in pieces] if is_lines else pieces
    if rest:
        yield [rest.removesuffix(b"\r") if is_lines else rest]


def _read(source: BinaryIO, waiting: Waiting) -> bytes:
    with waiting():
        return os.read(source.fileno(), CHUNK_BYTES)


def parse_headers(texts: Sequence[str], empty_is_null: bool = False) -> list[Header]:
    """Parse `NAME=VALUE` headers in order; other texts are a usage error."""
    headers: list[Header] = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise click.BadParameter(f"must be NAME=VALUE, not {text!r}", param_hint="-H")
        headers.append((name, None if empty_is_null and not value else value.encode()))
    return headers


def parse_delimiter(text: str, option: str) -> bytes:
    """A delimiter with its escapes decoded; an empty one is a usage error."""
    delimiter = unescape(text, option)
    if not delimiter:
        raise click.BadParameter("must not be empty", param_hint=option)
    return delimiter
