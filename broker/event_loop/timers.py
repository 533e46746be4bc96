"""Timers: callbacks at a time of the monotonic clock, run by one task.

A heap with lazy removal: `cancel` marks the entry, which is removed from the heap at its deadline. The task sleeps in a
cancel scope whose deadline is the earliest of all timers, so setting a timer costs a heap push and no task switch. A
callback that raises is logged and does not stop the others. Connections are served between two rounds, and a round is
bounded by time, however many timers are due. (`coord.timers` keeps deadlines by key, without callbacks.)
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Callable
from itertools import count
from math import inf

import trio

logger = logging.getLogger("kafka.server.Timers")


FIRE_S = 0.001
"""How long callbacks run between two turns, seconds."""


class Timer:
    """One callback with its deadline; `cancel` may be called at any time, also after the callback has run."""

    __slots__ = ("callback", "deadline")

    def __init__(self, deadline: float, callback: Callable[[], None]) -> None:
        self.deadline = deadline
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        """Do not run the callback."""
        self.callback = None


class Timers:
    """All timers of the broker, in seconds of the monotonic clock."""

    def __init__(self, now: Callable[[], float], after_firing: Callable[[], None] | None = None) -> None:
        """`now` is the monotonic clock, seconds; `after_firing` runs once after each round of callbacks."""
        self._now = now
        self.heap: list[tuple[float, int, Timer]] = []
        """Deadlines with their timers, the earliest first; cancelled ones too."""
        self._tie = count()
        self._scope: trio.CancelScope | None = None
        self.after_firing = after_firing

    def at(self, deadline: float, callback: Callable[[], None]) -> Timer:
        """Call `callback` as soon as the clock has reached `deadline`."""
        timer = Timer(deadline, callback)
        heapq.heappush(self.heap, (deadline, next(self._tie), timer))
        if self._scope is not None and deadline < self._scope.deadline:
            self._scope.deadline = deadline
        return timer

    def fire(self, now: float) -> int:
        """Run the callbacks due at `now`, for `FIRE_S` at most; returns their number. Other due callbacks stay due."""
        heap = self.heap
        fired = 0
        end = self._now() + FIRE_S
        while heap and heap[0][0] <= now:
            timer = heapq.heappop(heap)[2]
            callback, timer.callback = timer.callback, None
            if callback is None:
                continue
            fired += 1
            try:
                callback()
            except Exception:
                logger.exception("A timer's callback failed")
            if self._now() >= end:
                break
        if fired and self.after_firing is not None:
            self.after_firing()
        return fired

    def next_deadline(self) -> float:
        """The earliest deadline of a timer that is not cancelled, or infinity."""
        heap = self.heap
        while heap and heap[0][2].callback is None:
            heapq.heappop(heap)
        return heap[0][0] if heap else inf

    async def run(self) -> None:
        """Run callbacks at their deadlines until cancelled."""
        while True:
            with trio.CancelScope(deadline=self.next_deadline()) as self._scope:
                await trio.sleep_forever()
            self._scope = None  # timers added by callbacks are seen by the next round
            self.fire(self._now())
