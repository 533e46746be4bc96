"""A record as one line of JSON, and back: `consume --json | produce --json` copies records exactly.

    {"topic": "t", "partition": 0, "offset": 7, "timestamp": 1763715600000, "key": "k", "value": "v",
     "headers": [{"name": "h", "value": "x"}]}

Bytes that are not UTF-8 are base64, in `key_base64` and `value_base64`. Null is null.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from dataclasses import dataclass

from barnabas.terminal.suggestion import suggestion
from barnabas.wire.batches.records import Header, Record

FIELDS = ("topic", "partition", "offset", "timestamp", "key", "key_base64", "value", "value_base64", "headers")
MAX_INT32, MAX_INT64 = 2**31 - 1, 2**63 - 1


def json_line(partition: tuple[str, int], record: Record) -> bytes:
    """A record as one line of JSON."""
    fields: dict[str, object] = {
        "topic": partition[0],
        "partition": partition[1],
        "offset": record.offset,
        "timestamp": record.timestamp,
    }
    fields |= _text("key", record.key) | _text("value", record.value)
    if record.headers:
        fields["headers"] = [{"name": name} | _text("value", value) for name, value in record.headers]
    return json.dumps(fields, ensure_ascii=False).encode() + b"\n"


def shown_json(line: bytes) -> bytes:
    """A line of JSON with the characters that would control a terminal as `\\uXXXX`, which means the same."""
    text = line.decode(errors="surrogateescape")
    if text[:-1].isprintable():
        return line
    return "".join(char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text).encode()


def _text(name: str, value: bytes | None) -> dict[str, object]:
    if value is None:
        return {name: None}
    try:
        return {name: value.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": b64encode(value).decode()}


@dataclass(slots=True)
class ParsedRecord:
    """A record from JSON. `partition` and `timestamp` are None where the object has none."""

    key: bytes | None
    value: bytes | None
    headers: list[Header]
    partition: int | None
    timestamp: int | None


def parse_record(line: bytes) -> ParsedRecord:
    """The record of a line. ValueError with the end of a sentence that begins with the line's number."""
    try:
        fields = json.loads(line)
    except ValueError as error:
        raise ValueError(f"is not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise ValueError('is not a JSON object, such as {"key": "k", "value": "v"}')
    if fields and not any(name in FIELDS or suggestion(name, FIELDS) for name in fields):
        raise ValueError(
            f"has an unknown field {next(iter(fields))!r}: each line is a record, and an object that is a value "
            'goes into its field value, as in {"value": {...}}; without --json each line is a value as it is'
        )
    for name in fields:
        if name not in FIELDS:
            raise ValueError(f"has an unknown field {name!r}{suggestion(name, FIELDS)}")
    if "value" not in fields and "value_base64" not in fields:
        raise ValueError('has neither value nor value_base64; a tombstone has "value": null')
    return ParsedRecord(
        _bytes("key", fields),
        _bytes("value", fields),
        _headers(fields.get("headers")),
        _number("partition", fields, 0, MAX_INT32),
        _number("timestamp", fields, -1, MAX_INT64),
    )


def _bytes(name: str, fields: dict[str, object]) -> bytes | None:
    coded = fields.get(f"{name}_base64")
    if coded is not None:
        if fields.get(name) is not None:
            raise ValueError(f"has both {name} and {name}_base64")
        try:
            return b64decode(str(coded), validate=True)
        except Base64Error as error:
            raise ValueError(f"has a {name}_base64 that is not base64: {error}") from None
    value = fields.get(name)
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"has a {name} with half of a surrogate pair, which no UTF-8 text has") from None


def _headers(headers: object) -> list[Header]:
    """`[{"name": "h", "value": "x"}, ...]`, or an object of names and values."""
    if headers is None:
        return []
    if isinstance(headers, dict):
        return [(str(name), _bytes("value", {"value": value})) for name, value in headers.items()]
    if not isinstance(headers, list):
        raise ValueError("has headers that are neither a list nor an object")
    decoded: list[Header] = []
    for header in headers:
        if not isinstance(header, dict) or not isinstance(header.get("name"), str):
            raise ValueError('has a header that is not of the form {"name": "h", "value": "x"}')
        decoded.append((header["name"], _bytes("value", header)))
    return decoded


def _number(name: str, fields: dict[str, object], least: int, most: int) -> int | None:
    value = fields.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ValueError(f"has a {name} that is not an integer of at least {least}: {value!r}")
    return value
