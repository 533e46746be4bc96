"""Simulated time: both clocks of a run, and the scheduled events."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count
from math import inf

START_MS = 1_700_000_000_000


class Clock:
    """Advances from event to event; events of one moment run in the order in which they were scheduled."""

    def __init__(self) -> None:
        self.now = 1000.0
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._tie = count()

    @property
    def now_ms(self) -> int:
        """The wall clock, milliseconds since 1970."""
        return START_MS + int(self.now * 1000)

    def after(self, seconds: float, callback: Callable[[], None]) -> None:
        """Schedule `callback`."""
        heapq.heappush(self._heap, (self.now + seconds, next(self._tie), callback))

    def next_moment(self) -> float:
        """The moment of the next event, or infinity."""
        return self._heap[0][0] if self._heap else inf

    def step(self) -> None:
        """Run the next event."""
        moment, _, callback = heapq.heappop(self._heap)
        self.now = max(self.now, moment)
        callback()
