"""KIP-932: parsing `share.auto.offset.reset`."""

from __future__ import annotations

import pytest

from barnabas.coord.auto_offset_reset import AutoOffsetReset, parse_auto_offset_reset
from tests.support.cases import for_each


@for_each(
    ("text", "expected"),
    [
        ("earliest", AutoOffsetReset("earliest")),
        ("latest", AutoOffsetReset("latest")),
        ("by_duration:P1D", AutoOffsetReset("by_duration", 86_400_000)),
        ("by_duration:PT1H2M3.004S", AutoOffsetReset("by_duration", 3_723_004)),
        ("by_duration:P1DT1S", AutoOffsetReset("by_duration", 86_401_000)),
        ("by_duration:pt0.5s", AutoOffsetReset("by_duration", 500)),
        ("by_duration:PT0S", AutoOffsetReset("by_duration", 0)),
        ("by_duration:PT1M-30S", AutoOffsetReset("by_duration", 30_000)),
    ],
)
def test_a_start_is_read_as_java_reads_durations(text, expected):
    assert parse_auto_offset_reset(text) == expected


@for_each(
    "text",
    [
        "",
        "none",
        "Earliest",
        "by_duration",
        "by_duration:",
        "by_duration:P",
        "by_duration:PT",
        "by_duration:P1DT",
        "by_duration:1h",
        "by_duration:-PT1S",
        "by_duration:PT-1S",
        "earliest:PT1S",
        "by_duration:PT1S ",
    ],
)
def test_anything_else_is_no_start(text):
    with pytest.raises(ValueError, match="is no"):
        parse_auto_offset_reset(text)
