"""Says on stderr what a program waits for: one line at the start, then one every ten seconds until it is done.

`say_by` replaces the printer, for JSON lines. The lines are for people who would otherwise see nothing for minutes,
while Maven downloads, Java starts or Spark plans the first batch.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

EVERY_S = 10.0
"""Interval between two lines about the same activity, seconds."""
Printer = Callable[[str, float], None]
"""Called with the activity and its seconds so far; 0 when it starts."""


def line(what: str, seconds: float) -> str:
    """An activity and its duration, for people."""
    return f"{what}, {seconds:.0f} s" if seconds else what


def print_line(what: str, seconds: float) -> None:
    """A line on stderr."""
    print(line(what, seconds), file=sys.stderr, flush=True)


_printers: list[Printer] = [print_line]


def say_by(printer: Printer | None) -> None:
    """Report activities with this function; None: with lines on stderr again."""
    _printers[:] = [printer or print_line]


def say(what: str, seconds: float = 0) -> None:
    """Report an activity once."""
    _printers[0](what, seconds)


@contextmanager
def saying(what: str, detail: str = "") -> Iterator[None]:
    """Report `what` now, with a detail, and every ten seconds until the block ends."""
    began = time.monotonic()
    done = threading.Event()

    def remind() -> None:
        while not done.wait(EVERY_S):
            say(what, time.monotonic() - began)

    say(what + detail)
    thread = threading.Thread(target=remind, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
