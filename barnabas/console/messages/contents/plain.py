"""Values of any decoder as what JSON has: objects, lists, texts, numbers, true, false and null.

Filters compare these values, pages show them. Times become ISO 8601, decimals become numbers where a float has the same
digits, and bytes become text where they are, otherwise hexadecimal with 0x.
"""

from __future__ import annotations

import json
import re
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def plain_value(value: Any) -> Any:
    """The value in types of JSON. Values of unknown types become text. RecursionError if it is too deep."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dict):
        return {_name(name): plain_value(item) for name, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [plain_value(item) for item in value]
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes_text(bytes(value))
    if isinstance(value, Decimal):
        return _number(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    return str(value) if isinstance(value, UUID) else repr(value)


def _name(name: Any) -> str:
    return name if isinstance(name, str) else str(plain_value(name))


def _number(value: Decimal) -> int | float | str:
    if not value.is_finite():
        return str(value)
    exponent = value.as_tuple().exponent
    if isinstance(exponent, int) and exponent >= 0 and value.adjusted() < 300:
        return int(value)
    number = float(value)
    return number if Decimal(repr(number)) == value else str(value)


def bytes_text(value: bytes) -> str:
    """Bytes as text if they are printable UTF-8, otherwise `0x` and hexadecimal digits."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return f"0x{value.hex()}"
    return text if is_printable(text) else f"0x{value.hex()}"


def is_printable(text: str) -> bool:
    """Whether a text has no control characters but those of lines and tabulators."""
    return text.isprintable() or _CONTROL.search(text) is None


def pretty(value: Any) -> str:
    """Several lines of JSON."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def compact(value: Any) -> str:
    """One line of JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
