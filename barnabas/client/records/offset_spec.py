"""Positions in a partition in the notation of rpk and kcat.

beginning, start, earliest      the first record
end, latest                     after the last record
42                              an offset
-10                             the last ten records
@1763715600000                  the first record at or after a time: ms (13 digits) or seconds (10 digits),
@2026-11-21T09:00               a date or time (UTC without a zone; a space may be in place of T), or
@-1h                            a duration ago (s, m, h, d)
FROM:TO                         a range; either side may be left out; TO is exclusive
"""

from __future__ import annotations

import re
from time import time_ns

from barnabas.client.positions import OffsetSpec
from barnabas.terminal.times import date_ms

_WORDS = {"beginning": "start", "start": "start", "earliest": "start", "end": "end", "latest": "end"}
_UNITS_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_TIME = r"@\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?)?|@-?\d+[smhd]|@\d+"
_PLACE = re.compile(rf"(?P<time>{_TIME})|(?P<number>[+-]?\d+)|(?P<word>[a-z]+)")


def parse_offset_spec(text: str) -> OffsetSpec:
    """Parse a position. ValueError with a sentence."""
    match = _PLACE.fullmatch(text)
    spec = None if match is None else _from_match(match)
    if spec is None:
        raise ValueError(
            f"{text!r} is not a position in a partition: beginning, end, an offset, -N for the last N, or @TIME; "
            "times are @2026-11-21, @'2026-11-21 09:00:00' (UTC without a zone as +01:00), @-1h, and @ with ms"
        )
    return spec


def parse_range(text: str) -> tuple[OffsetSpec, OffsetSpec | None]:
    """`FROM`, `FROM:TO`, `:TO` or `FROM:`; without FROM from the beginning, without TO no end (None)."""
    match = _PLACE.match(text)
    cut = match.end() if match is not None else 0
    if text[cut : cut + 1] != ":":
        return parse_offset_spec(text), None
    first, last = text[:cut], text[cut + 1 :]
    start = parse_offset_spec(first) if first else OffsetSpec("start")
    return start, parse_offset_spec(last) if last else None


def _from_match(match: re.Match[str]) -> OffsetSpec | None:
    if match["word"]:
        kind = _WORDS.get(match["word"])
        return None if kind is None else OffsetSpec(kind)
    if match["number"]:
        number = int(match["number"])
        return OffsetSpec("last", -number) if match["number"].startswith("-") else OffsetSpec("offset", number)
    time_ms = _time_ms(match["time"][1:])
    return None if time_ms is None else OffsetSpec("time", time_ms)


def _time_ms(text: str) -> int | None:
    if text[-1] in _UNITS_MS:
        number = int(text[:-1])
        return time_ns() // 1_000_000 - abs(number) * _UNITS_MS[text[-1]]
    if text.isdigit():
        return int(text) * 1000 if len(text) <= 10 else int(text)
    return date_ms(text)
