"""Positions in a partition, in the notation of -o and --to."""

from __future__ import annotations

import time

import click
import pytest

from barnabas.cli.options.offset_spec import parse_offset_spec, parse_range
from barnabas.client.positions import OffsetSpec
from tests.support.cases import for_each


@for_each(
    ("text", "spec"),
    [
        ("beginning", OffsetSpec("start")),
        ("earliest", OffsetSpec("start")),
        ("start", OffsetSpec("start")),
        ("end", OffsetSpec("end")),
        ("latest", OffsetSpec("end")),
        ("0", OffsetSpec("offset", 0)),
        ("42", OffsetSpec("offset", 42)),
        ("-10", OffsetSpec("last", 10)),
        ("@1763715600000", OffsetSpec("time", 1763715600000)),
        ("@1763715600", OffsetSpec("time", 1763715600000)),
        ("@2025-11-21", OffsetSpec("time", 1763683200000)),
        ("@2025-11-21T09:00", OffsetSpec("time", 1763715600000)),
        ("@2025-11-21 09:00:00", OffsetSpec("time", 1763715600000)),
        ("@2025-11-21T09:00:00.500Z", OffsetSpec("time", 1763715600500)),
        ("@2025-11-21T10:00:00+01:00", OffsetSpec("time", 1763715600000)),
    ],
)
def test_offset_spec(text: str, spec: OffsetSpec) -> None:
    assert parse_offset_spec(text, "-o") == spec


def test_offset_spec_of_a_time_ago() -> None:
    before = time.time_ns() // 1_000_000
    spec = parse_offset_spec("@-2h", "-o")
    after = time.time_ns() // 1_000_000
    assert spec.kind == "time"
    assert before - 7_200_000 <= spec.value <= after - 7_200_000


@for_each("text", ["", "middle", "1.5", "@", "@yesterday", "@2025-13-01", "--1", "END", "1 ", "@-1w", "²"])
def test_an_invalid_offset_spec_is_a_usage_error(text: str) -> None:
    with pytest.raises(click.BadParameter, match=r"is not a position in a partition.* times are @2026-11-21, "):
        parse_offset_spec(text, "-o")


@for_each(
    ("text", "start", "end"),
    [
        ("5", OffsetSpec("offset", 5), None),
        ("5:10", OffsetSpec("offset", 5), OffsetSpec("offset", 10)),
        (":10", OffsetSpec("start"), OffsetSpec("offset", 10)),
        (":end", OffsetSpec("start"), OffsetSpec("end")),
        ("@2025-11-21 09:00:00:end", OffsetSpec("time", 1763715600000), OffsetSpec("end")),
        ("-5:", OffsetSpec("last", 5), None),
        (
            "@2025-11-21T09:00:@2025-11-21T09:00:01",
            OffsetSpec("time", 1763715600000),
            OffsetSpec("time", 1763715601000),
        ),
        ("@2025-11-21T09:00:30:end", OffsetSpec("time", 1763715630000), OffsetSpec("end")),
        ("@1763715600000:@1763715600001", OffsetSpec("time", 1763715600000), OffsetSpec("time", 1763715600001)),
    ],
)
def test_range(text: str, start: OffsetSpec, end: OffsetSpec | None) -> None:
    assert parse_range(text, "-o") == (start, end)


@for_each("text", ["5:10:15", "a:b", "5:x", "5-10"])
def test_an_invalid_range_is_a_usage_error(text: str) -> None:
    with pytest.raises(click.BadParameter):
        parse_range(text, "-o")
