"""Clocks, timers, callbacks at the end of a turn and work in slices: the event loop as the broker's parts use it.

A part that needs the time, a timer, a call at the end of the turn or time between turns takes a `Loop`. Both clocks are
arguments, so tests control the time.

Sessions, rebalances, transactions, locks, quotas and periodic jobs use a second clock and its timers, `state_now` and
`state_timers`. They are the same as `now` and `timers`, unless the clock of the broker is controlled
(`barnabas.kit.clusters.clock`): then waits of requests, connections and limits of work stay in real time.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

import trio

from barnabas.broker.event_loop.slices import Slices
from barnabas.broker.event_loop.timers import Timers

logger = logging.getLogger("kafka.server.KafkaServer")

CALLBACKS_S = 0.001
"""How long the callbacks at the end of a turn run, seconds."""


class Gathered(Protocol):
    """Appends to one log that are written together."""

    def write(self) -> None:
        """Write them. If that fails, the responses to all of them, which are not sent yet, become errors."""


class Loop:
    """The clocks, the timers, the callbacks that run at the end of a turn and the work done between turns."""

    def __init__(self, now: Callable[[], float], now_ms: Callable[[], int]) -> None:
        """`now` is the monotonic clock of deadlines, in seconds; `now_ms` the wall clock, in ms since 1970."""
        self.now = now
        self.now_ms = now_ms
        self.timers = Timers(now, after_firing=self.end_turn)
        self.state_now = now
        self.state_timers = self.timers
        self.slices = Slices(self.timers, now)
        self.callbacks: deque[Callable[[], None]] = deque()
        """What `end_turn` will run."""
        self.is_gathering = False
        """Whether appends are gathered and written together, before the responses of this turn are sent: while the
        reactor serves several connections."""
        self.gathered: list[Gathered] = []
        """What is not written yet."""

    async def pause(self, seconds: float, unless: trio.Event | None = None) -> None:
        """Wait between two runs of a periodic job, by the clock of the state, or until `unless` is set."""
        with trio.move_on_after(seconds):
            await (trio.Event() if unless is None else unless).wait()

    def at_work(self) -> AbstractContextManager[None]:
        """The context in which a task works for a periodic job while the job itself pauses."""
        return nullcontext()

    def call_after_turn(self, callback: Callable[[], None]) -> None:
        """Run `callback` at the end of the current turn, so that several appends wake a reader once."""
        self.callbacks.append(callback)

    def write_gathered(self) -> None:
        """Write what was gathered in this turn."""
        gathered, self.gathered = self.gathered, []
        for appends in gathered:
            appends.write()

    @property
    def is_idle(self) -> bool:
        """Whether nothing is left to be called at the end of the turn, or done between the turns."""
        return not self.callbacks and self.slices.is_idle

    def end_turn(self) -> None:
        """End the turn: run its callbacks, and the ones they add, for `CALLBACKS_S`; the others in the next turn."""
        callbacks = self.callbacks
        if not callbacks:
            return
        end = self.now() + CALLBACKS_S
        while callbacks:
            callback = callbacks.popleft()
            try:
                callback()
            except Exception:
                logger.exception("A callback at the end of a turn failed")
            if callbacks and self.now() >= end:
                self.timers.at(end, _nothing)  # ends the next turn, which may come from a timer only
                return


def _nothing() -> None:
    """A timer that is due ends a turn (`after_firing`)."""
