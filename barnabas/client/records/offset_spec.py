"""Positions in a partition in the notation of rpk and kcat, and their offsets.

beginning, start, earliest      the first record
end, latest                     after the last record
42                              an offset
-10                             the last ten records
@1763715600000                  the first record at or after a time: ms (13 digits) or seconds (10 digits),
@2026-11-21T09:00               a date or time (UTC without a zone), or
@-1h                            a duration ago (s, m, h, d)
FROM:TO                         a range; either side may be left out; TO is exclusive

"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import time_ns
from typing import TYPE_CHECKING

from barnabas.terminal.times import date_ms

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster

TopicPartition = tuple[str, int]

_WORDS = {"beginning": "start", "start": "start", "earliest": "start", "end": "end", "latest": "end"}
_UNITS_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_TIME = r"@\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?)?|@-?\d+[smhd]|@\d+"
_PLACE = re.compile(rf"(?P<time>{_TIME})|(?P<number>[+-]?\d+)|(?P<word>[a-z]+)")


@dataclass(slots=True)
class OffsetSpec:
    """A position: kind is start, end, offset, last (the last `value` records) or time (`value` in ms)."""

    kind: str
    value: int = 0


def parse_offset_spec(text: str) -> OffsetSpec:
    """Parse a position. ValueError with a sentence."""
    match = _PLACE.fullmatch(text)
    spec = None if match is None else _from_match(match)
    if spec is None:
        raise ValueError(
            f"{text!r} is not a position in a partition: beginning, end, an offset, -N for the last N, or @TIME"
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


def resolve_offset_specs(
    cluster: Cluster,
    specs: Mapping[TopicPartition, OffsetSpec],
    *,
    isolation_level: int = 0,
    on_moved: Callable[[TopicPartition, int, str], None] | None = None,
) -> dict[TopicPartition, int]:
    """The offset of each position, moved to the nearest end of its partition if it is outside.

    `on_moved(partition, offset, why)` is called for each offset or time that was outside: `beyond`, `before`, `late`.
    """
    from barnabas.client.offsets import end_offsets, list_offsets, start_offsets

    partitions = list(specs)
    starts, ends = start_offsets(cluster, partitions), end_offsets(cluster, partitions, isolation_level)
    times = {partition: spec.value for partition, spec in specs.items() if spec.kind == "time"}
    by_time = list_offsets(cluster, times) if times else {}
    offsets: dict[TopicPartition, int] = {}
    for partition, spec in specs.items():
        start, end = starts[partition], ends[partition]
        at_time = by_time.get(partition, -1)
        offset = {
            "start": start,
            "end": end,
            "offset": spec.value,
            "last": end - spec.value,
            "time": end if at_time < 0 else at_time,
        }[spec.kind]
        offsets[partition] = min(max(offset, start), end)
        if on_moved is None:
            continue
        if spec.kind == "offset" and offsets[partition] != offset:
            on_moved(partition, offsets[partition], "beyond" if offset > end else "before")
        elif spec.kind == "time" and at_time < 0:
            on_moved(partition, end, "late")
    return offsets
