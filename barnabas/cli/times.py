"""Durations on the command line (`90s`, `15m`, `2h`, `7d`, ISO 8601's `PT1H30M`), and times in output."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import click

_SHORT = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_ISO = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")
_UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def duration(value: str | int) -> int:
    """A duration in ms, as the `type` of an option; a default is in ms already."""
    if isinstance(value, int):
        return value
    if match := _SHORT.fullmatch(value):
        return round(float(match[1]) * _UNIT_MS[match[2]])
    match = _ISO.fullmatch(value)
    if match is None or not any(match.groups()):
        raise click.BadParameter(f"{value!r} is not a duration: 90s, 15m, 2h, 7d or PT1H30M")
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return round((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)


def iso_time(time_ms: int) -> str | None:
    """A time in ms as text in UTC with ms; None for a time that is not set (negative)."""
    if time_ms < 0:
        return None
    try:
        moment = datetime.fromtimestamp(time_ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return f"{time_ms} ms"  # after the year 9999
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
