"""Log lines that any peer can cause, such as failed log-ins: so many in a window, then one line that counts the others.

An address has a share of the window, so that one that floods the log does not hide the lines about others. What is kept
is bounded: an address is known only while it has a line in the window.
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import Final

from barnabas.broker.event_loop.loop import Loop

WINDOW_S: Final = 10.0
LINES: Final = 100
"""Lines in a window."""
LINES_OF_ADDRESS: Final = 10
"""Lines about one address in a window."""


class LimitedLog:
    """The lines of one kind."""

    __slots__ = ("_addresses", "_left_out", "_level", "_logger", "_loop", "_what")

    def __init__(self, loop: Loop, logger: logging.Logger, level: int, what: str) -> None:
        """`what` is the subject of the lines, in the plural."""
        self._loop = loop
        self._logger = logger
        self._level = level
        self._what = what
        self._addresses: Counter[str] = Counter()
        self._left_out = 0

    def line(self, address: str, text: str, *values: object) -> None:
        """Log a line about an address, or count it."""
        lines = self._addresses
        if not lines:
            self._loop.timers.at(self._loop.now() + WINDOW_S, self._end_window)
        if lines[address] >= LINES_OF_ADDRESS or lines.total() >= LINES:
            self._left_out += 1
            return
        lines[address] += 1
        self._logger.log(self._level, text, *values)

    def detail(self, text: str, *values: object) -> None:
        """Log a line for debugging: at the level DEBUG, without a limit."""
        self._logger.debug(text, *values)

    def _end_window(self) -> None:
        left_out, self._left_out = self._left_out, 0
        self._addresses.clear()
        if left_out:
            self._logger.log(self._level, "%d more %s within %g s were not logged", left_out, self._what, WINDOW_S)
