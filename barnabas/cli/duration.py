"""Durations on the command line: `2`, `2s`, `500ms`, `1.5m`, `1h`."""

from __future__ import annotations

import re

import click

_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "": 1.0}
_DURATION = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*(ms|s|m|h|)")


class Duration(click.ParamType):  # type: ignore[type-arg]
    """A positive duration; the value is in seconds."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Seconds; other texts are a usage error."""
        if isinstance(value, float):
            return value
        match = _DURATION.fullmatch(str(value).strip())
        seconds = float(match[1]) * _UNITS_S[match[2]] if match is not None else 0.0
        if seconds <= 0:
            self.fail(f"{value!r} is not a duration such as 2s, 500ms, 1m or a number of seconds", param, ctx)
        return seconds
