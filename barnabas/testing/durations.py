"""Durations as tests give them: seconds, a timedelta, or a text such as "500ms", "30s", "5m", "2h", "7d", "1d12h"."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final, TypeAlias

Amount: TypeAlias = "float | str | timedelta"

_UNITS_S: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)")


def seconds_of(amount: Amount) -> float:
    """The seconds of a duration. ValueError if the text is none."""
    if isinstance(amount, timedelta):
        return amount.total_seconds()
    if not isinstance(amount, str):
        return float(amount)
    text = amount.replace(" ", "")
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"{amount!r} is no duration; write 500ms, 30s, 5m, 2h, 7d or 1d12h")
    return sum(float(number) * _UNITS_S[unit] for number, unit in parts)
