"""Records as a test sees them, and the conditions on records that it looks for."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Text: TypeAlias = "bytes | str"
"""Bytes, or a text for its bytes in UTF-8."""


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a log. `timestamp` is in milliseconds since 1970."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp: int = field(default=-1, compare=False)

    @property
    def text(self) -> str | None:
        """The value as a text. UnicodeDecodeError if it is none."""
        return None if self.value is None else self.value.decode()

    def json(self) -> Any:
        """The value, decoded from JSON. ValueError if it is none."""
        return None if self.value is None else json.loads(self.value)

    def header(self, name: str) -> bytes | None:
        """The last header with this name, None if there is none."""
        return dict(self.headers).get(name)

    def __str__(self) -> str:
        parts = [
            f"{self.topic}-{self.partition}@{self.offset}",
            f"key={_shown(self.key)}",
            f"value={_shown(self.value)}",
        ]
        parts += [f"{name}={_shown(value)}" for name, value in self.headers]
        return " ".join(parts)


def record_of(values: Mapping[str, Any]) -> Record:
    """A record from the control channel's JSON."""
    return Record(
        topic=values["topic"],
        partition=values["partition"],
        offset=values["offset"],
        key=_from_base64(values["key"]),
        value=_from_base64(values["value"]),
        headers=tuple((name, _from_base64(value)) for name, value in values["headers"]),
        timestamp=values["timestamp"],
    )


@dataclass(frozen=True, slots=True)
class Condition:
    """The conditions on a record; None means any."""

    key: Text | None = None
    value: Text | None = None
    headers: Mapping[str, Text | None] | None = None
    partition: int | None = None
    where: Callable[[Record], bool] | None = None

    def to_json(self) -> dict[str, Any]:
        """The part that the broker looks for; `where` is called in this process."""
        headers = {name: to_base64(value) for name, value in (self.headers or {}).items()}
        return {
            "key": to_base64(self.key),
            "value": to_base64(self.value),
            "headers": headers or None,
            "partition": self.partition,
        }

    def of(self, result: Mapping[str, Any]) -> list[Record]:
        """The records in an answer of the control channel that `where` accepts."""
        return [record for record in map(record_of, result["records"]) if self.where is None or self.where(record)]

    def __str__(self) -> str:
        parts = [f"{name}={value!r}" for name, value in (("key", self.key), ("value", self.value)) if value is not None]
        parts += [f"header {name}={value!r}" for name, value in (self.headers or {}).items()]
        parts += [] if self.partition is None else [f"in partition {self.partition}"]
        parts += [] if self.where is None else [f"where {getattr(self.where, '__name__', 'the condition')} holds"]
        return f" with {', '.join(parts)}" if parts else ""


def to_base64(data: Text | None) -> str | None:
    """Bytes or text for the control channel. TypeError for anything else, of which there is no one form in bytes."""
    if data is None:
        return None
    if not isinstance(data, (str, bytes, bytearray, memoryview)):
        raise TypeError(f"Keys, values and headers are bytes or texts, not {data!r}; write json.dumps(…) or str(…)")
    return b64encode(data.encode() if isinstance(data, str) else bytes(data)).decode("ascii")


def _from_base64(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text)


def _shown(data: bytes | None) -> str:
    if data is None:
        return "null"
    shown = repr(data[:80])[1:]
    return shown if len(data) <= 80 else f"{shown}… ({len(data)} bytes)"
