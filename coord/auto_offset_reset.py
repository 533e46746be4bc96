"""Where a share group starts in a partition that it has no offset for: `share.auto.offset.reset` (KIP-932)."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

BY_DURATION: Final = "by_duration"

_DURATION: Final = re.compile(
    r"([-+]?)P(?:([-+]?\d+)D)?(T(?:([-+]?\d+)H)?(?:([-+]?\d+)M)?(?:([-+]?\d+)(?:[.,](\d{0,9}))?S)?)?",
    re.IGNORECASE | re.ASCII,
)


class AutoOffsetReset(NamedTuple):
    """Where a share group starts in a partition that it has no position in."""

    strategy: str = "latest"
    """`earliest`, `latest` or `by_duration`."""
    duration_ms: int = 0
    """How far back, for `by_duration`."""


def parse_auto_offset_reset(text: str) -> AutoOffsetReset:
    """Read `earliest`, `latest` or `by_duration:PnDTnHnMn.nS`; ValueError for anything else."""
    if text in {"earliest", "latest"}:
        return AutoOffsetReset(text)
    strategy, _, duration = text.partition(":")
    if strategy != BY_DURATION:
        raise ValueError(f"{text!r} is not an offset reset strategy")
    return AutoOffsetReset(BY_DURATION, _parse_duration_ms(duration))


def _parse_duration_ms(text: str) -> int:
    """A duration as Java's `Duration.parse` reads it, 0 or more; ValueError when it cannot."""
    match = _DURATION.fullmatch(text)
    if match is None or text.upper().endswith(("P", "T")):
        raise ValueError(f"{text!r} is not a duration")
    sign, days, _, hours, minutes, seconds, fraction = match.groups()
    milliseconds = ((int(days or 0) * 24 + int(hours or 0)) * 60 + int(minutes or 0)) * 60_000
    part_ms = int((fraction or "").ljust(9, "0")) // 1_000_000
    milliseconds += int(seconds or 0) * 1000 + (-part_ms if (seconds or "").startswith("-") else part_ms)
    if sign == "-":
        milliseconds = -milliseconds
    if not 0 <= milliseconds < 1 << 63:
        raise ValueError(f"{text!r} is not a duration")
    return milliseconds
