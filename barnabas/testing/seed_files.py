"""Seed files: the records that a cluster begins with, as `barnabas consume --json` writes them, a line each.

    {"topic": "orders", "partition": 0, "key": "7", "value": "{\"id\": 7}", "headers": [{"name": "h", "value": "x"}]}

Without a topic it is the name of the file. Bytes that are no text are base64, in `key_base64` and `value_base64`;
offsets are assigned by the load. The default timestamp is the time of the load.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from barnabas.testing.errors import SeedError
from barnabas.testing.records import to_base64

Seed: TypeAlias = "dict[str, list[dict[str, Any]]]"
"""Records by topic, as the control channel takes them."""
_FIELDS = {
    "topic", "partition", "offset", "timestamp", "key", "key_base64", "value", "value_base64", "headers"
}  # fmt: skip


def read_seed(path: Path) -> Seed:
    """The records of a file. SeedError names the line that is none."""
    seed: Seed = {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SeedError(f"Cannot read the seed file {path}: {error}") from None
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                topic, record = _parsed(json.loads(line), path.stem)
            except ValueError as error:
                raise SeedError(f"{path}, line {number}: {error}") from None
            seed.setdefault(topic, []).append(record)
    return seed


def partitions_of(records: list[dict[str, Any]]) -> int:
    """How many partitions the records name."""
    return 1 + max((record["partition"] or 0 for record in records), default=0)


def _parsed(line: Any, default_topic: str) -> tuple[str, dict[str, Any]]:
    if not isinstance(line, dict):
        raise ValueError("a record is an object of JSON")
    unknown = sorted(line.keys() - _FIELDS)
    if unknown:
        raise ValueError(f"a record has no {', '.join(unknown)}; it has {', '.join(sorted(_FIELDS))}")
    record = {
        "key": _data(line, "key"),
        "value": _data(line, "value"),
        "headers": _headers(line.get("headers") or []),
        "timestamp": _number(line, "timestamp"),
        "partition": _number(line, "partition"),
    }
    return str(line.get("topic") or default_topic), record


def _headers(headers: Any) -> dict[str, str | None]:
    if not isinstance(headers, list) or not all(isinstance(header, dict) and "name" in header for header in headers):
        raise ValueError("headers are a list of objects, each with a name and a value")
    return {header["name"]: _data(header, "value") for header in headers}


def _number(values: Mapping[str, Any], name: str) -> int | None:
    number = values.get(name)
    if number is not None and (type(number) is not int or number < 0):
        raise ValueError(f"{name} must be a whole number, not {number!r}")
    return number


def _data(values: Mapping[str, Any], name: str) -> str | None:
    """Bytes for the control channel: a text, base64, or null."""
    encoded: str | None = values.get(f"{name}_base64")
    if encoded is not None:
        try:
            b64decode(encoded if isinstance(encoded, str) else "?", validate=True)
        except ValueError:
            raise ValueError(f"{name}_base64 must be base64, not {encoded!r}") from None
        return encoded
    text = values.get(name)
    if text is not None and not isinstance(text, str):
        raise ValueError(f"{name} must be a text or null, not {text!r}: JSON is written into a text")
    return to_base64(text)
