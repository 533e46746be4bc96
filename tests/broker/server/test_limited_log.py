"""Log lines that any peer can cause are limited, of one address and of all, and what was left out is counted."""

from __future__ import annotations

import logging

import pytest

from barnabas.broker.event_loop.limited_log import LINES, LINES_OF_ADDRESS, WINDOW_S, LimitedLog
from barnabas.broker.event_loop.loop import Loop


class Clocked:
    """A limited log with a clock of its own."""

    def __init__(self) -> None:
        self.time = 100.0
        self.loop = Loop(lambda: self.time, lambda: 0)
        self.log = LimitedLog(self.loop, logging.getLogger("limited"), logging.WARNING, "failures")

    def advance(self, seconds: float) -> None:
        self.time += seconds
        self.loop.timers.fire(self.time)


def test_an_address_has_a_share_and_what_is_left_out_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    clocked = Clocked()
    for number in range(LINES_OF_ADDRESS + 5):
        clocked.log.line("10.0.0.1", "failure %d", number)
    clocked.log.line("10.0.0.2", "of another")
    expected = [*(f"failure {number}" for number in range(LINES_OF_ADDRESS)), "of another"]
    assert caplog.messages == expected
    clocked.advance(WINDOW_S)
    assert caplog.messages == [*expected, "5 more failures within 10 s were not logged"]


def test_a_new_window_begins_with_the_next_line(caplog: pytest.LogCaptureFixture) -> None:
    clocked = Clocked()
    for _ in range(LINES_OF_ADDRESS + 1):
        clocked.log.line("10.0.0.1", "before")
    clocked.advance(WINDOW_S)
    caplog.clear()
    clocked.advance(100 * WINDOW_S)
    clocked.log.line("10.0.0.1", "after")
    clocked.advance(WINDOW_S)
    assert caplog.messages == ["after"]
    assert clocked.loop.timers.next_deadline() == float("inf")


def test_many_addresses_share_the_lines_of_a_window(caplog: pytest.LogCaptureFixture) -> None:
    clocked = Clocked()
    for number in range(LINES + 50):
        clocked.log.line(f"10.0.0.{number}", "failure")
    assert len(caplog.messages) == LINES
    assert len(clocked.log._addresses) == LINES  # not one for each address
    clocked.advance(WINDOW_S)
    assert caplog.messages[-1] == "50 more failures within 10 s were not logged"
