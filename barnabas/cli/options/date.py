"""Dates in ISO 8601 on the command line: `2026-12-24`, `2026-12-24T18:00`, `2026-12-24T18:00+01:00`; UTC by default."""

from __future__ import annotations

import click

from barnabas.cli.options.times import date_ms


class Date(click.ParamType):  # type: ignore[type-arg]
    """A date; the value is in ms since 1970."""

    name = "date"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Milliseconds; other texts are a usage error."""
        if isinstance(value, int):
            return value
        time_ms = date_ms(str(value).strip())
        if time_ms is None:
            self.fail(f"{value!r} is not a date such as 2026-12-24 or 2026-12-24T18:00+01:00", param, ctx)
        return time_ms
