"""`barnabas clock`: the clock of a broker with `serve --control`, for tests in any language."""

from __future__ import annotations

from typing import Any

import click

from barnabas.cli.command_groups import Group
from barnabas.cli.options.duration import Duration
from barnabas.cli.options.parameters import output_option
from barnabas.cli.testkit.control_channel import control_options, perform
from barnabas.terminal.tables import show_fields
from barnabas.terminal.times import date_ms, iso_time

ADVANCE_S = 60.0
"""How long an advance may take, seconds of real time."""


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


@click.group(cls=Group)
def clock() -> None:
    """Freeze, advance and set the clock of a broker that runs with --control.

    Sessions, transactions, share locks, tokens, quotas, retention and compaction go by it, and so do the timestamps
    that the broker gives. Each command shows the time that the broker has then.
    """


@clock.command()
@control_options
@output_option
def now(file: str | None, url: str | None, number: int, output: str) -> None:
    """Show the time that the broker has."""
    _show(perform(file, url, number, "clock"), output)


@clock.command()
@control_options
@output_option
def freeze(file: str | None, url: str | None, number: int, output: str) -> None:
    """Let time stand still."""
    _show(perform(file, url, number, "clock_freeze"), output)


@clock.command()
@click.argument("time_s", type=Duration(), metavar="TIME")
@control_options
@output_option
def advance(time_s: float, file: str | None, url: str | None, number: int, output: str) -> None:
    """Let time pass, and wait until all that is due has happened.

    \b
    barnabas clock advance 7d
    """
    _show(perform(file, url, number, "clock_advance", {"seconds": time_s}, ADVANCE_S), output)


@clock.command()
@click.argument("date_ms", type=Date(), metavar="DATE")
@control_options
@output_option
def jump(date_ms: int, file: str | None, url: str | None, number: int, output: str) -> None:
    """Set the date, forward or back, in UTC unless it names a zone.

    The time between does not pass: no session expires.

    \b
    barnabas clock jump 2026-12-24T18:00
    """
    _show(perform(file, url, number, "clock_jump", {"to_ms": date_ms}), output)


@clock.command()
@control_options
@output_option
def resume(file: str | None, url: str | None, number: int, output: str) -> None:
    """Let time run again, from where it stands."""
    _show(perform(file, url, number, "clock_resume"), output)


def _show(state: dict[str, Any], output: str) -> None:
    show_fields({"now": iso_time(state["now_ms"]), "frozen": state["frozen"]}, output)
