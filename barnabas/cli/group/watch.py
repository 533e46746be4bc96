"""Shows something again and again: redrawn on a terminal, else one block after the other, each with its time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import sleep, time_ns

import click

from barnabas.cli.options.times import iso_time
from barnabas.terminal.screen import can_redraw
from barnabas.terminal.tables import is_document

CLEAR = "\x1b[H\x1b[2J"


def watch(prepare: Callable[[], Callable[[], None]], interval_s: float, count: int | None, output: str) -> None:
    """Call what `prepare` returns, which prints, every `interval_s` seconds, `count` times or until Ctrl-C.

    `prepare` fetches everything first, so that the screen is cleared only when there is something to print.
    """
    redraws = can_redraw(sys.stdout) and not is_document(output)
    shown = 0
    while True:
        draw = prepare()
        now = iso_time(time_ns() // 1_000_000)
        if redraws:
            sys.stdout.write(CLEAR)
            click.echo(f"every {interval_s:g} s, at {now}; Ctrl-C ends")
        elif not is_document(output):
            click.echo(f"{'' if shown == 0 else chr(10)}at {now}")
        draw()
        sys.stdout.flush()
        shown += 1
        if shown == count:
            return
        sleep(interval_s)
