"""Places in a partition, as they are written after -o and --to."""

from __future__ import annotations

import time

import click
import pytest

from barnabas.cli.places import Place, parse_place, parse_range


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("beginning", Place("start")),
        ("earliest", Place("start")),
        ("start", Place("start")),
        ("end", Place("end")),
        ("latest", Place("end")),
        ("0", Place("offset", 0)),
        ("42", Place("offset", 42)),
        ("-10", Place("last", 10)),
        ("@1763715600000", Place("time", 1763715600000)),
        ("@1763715600", Place("time", 1763715600000)),
        ("@2025-11-21", Place("time", 1763683200000)),
        ("@2025-11-21T09:00", Place("time", 1763715600000)),
        ("@2025-11-21T09:00:00.500Z", Place("time", 1763715600500)),
        ("@2025-11-21T10:00:00+01:00", Place("time", 1763715600000)),
    ],
)
def test_place(text: str, place: Place) -> None:
    assert parse_place(text, "-o") == place


def test_place_of_a_time_ago() -> None:
    before = time.time_ns() // 1_000_000
    place = parse_place("@-2h", "-o")
    after = time.time_ns() // 1_000_000
    assert place.kind == "time"
    assert before - 7_200_000 <= place.value <= after - 7_200_000


@pytest.mark.parametrize(
    "text", ["", "middle", "1.5", "@", "@yesterday", "@2025-13-01", "--1", "END", "1 ", "@-1w", "²"]
)
def test_what_is_no_place_is_a_usage_error(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is no place in a partition"):
        parse_place(text, "-o")


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("5", Place("offset", 5), None),
        ("5:10", Place("offset", 5), Place("offset", 10)),
        (":10", Place("start"), Place("offset", 10)),
        (":end", Place("start"), Place("end")),
        ("-5:", Place("last", 5), None),
        ("@2025-11-21T09:00:@2025-11-21T09:00:01", Place("time", 1763715600000), Place("time", 1763715601000)),
        ("@2025-11-21T09:00:30:end", Place("time", 1763715630000), Place("end")),
        ("@1763715600000:@1763715600001", Place("time", 1763715600000), Place("time", 1763715600001)),
    ],
)
def test_range(text: str, start: Place, end: Place | None) -> None:
    assert parse_range(text, "-o") == (start, end)


@pytest.mark.parametrize("text", ["5:10:15", "a:b", "5:x", "5-10"])
def test_what_is_no_range_is_a_usage_error(text: str) -> None:
    with pytest.raises(click.BadParameter):
        parse_range(text, "-o")
