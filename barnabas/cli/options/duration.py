"""Durations on the command line: `2`, `2s`, `500ms`, `1.5m`, `1h`, `7d`, and ISO 8601's `PT1H30M`."""

from __future__ import annotations

import re

import click

_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "": 1.0}
_SHORT = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*(ms|s|m|h|d|)")
_ISO = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")


class Duration(click.ParamType):  # type: ignore[type-arg]
    """A duration; the value is in seconds. It must be longer than zero, unless `may_be_zero`."""

    name = "duration"

    def __init__(self, *, may_be_zero: bool = False) -> None:
        self.may_be_zero = may_be_zero

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Seconds; other texts are a usage error."""
        if isinstance(value, float):
            return value
        seconds = seconds_of(str(value).strip())
        if seconds is None or (seconds == 0 and not self.may_be_zero):
            self.fail(f"{value!r} is not a duration such as 2s, 500ms, 1m, 7d or a number of seconds", param, ctx)
        return seconds


def seconds_of(text: str) -> float | None:
    """The seconds of a duration; None for other texts."""
    if match := _SHORT.fullmatch(text):
        return float(match[1]) * _UNITS_S[match[2]]
    match = _ISO.fullmatch(text)
    if match is None or not any(match.groups()):
        return None
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
