"""Work that is too long for one turn of the event loop, done in slices between the turns.

A step of `Work` takes at most about a millisecond: the part of a coroutine up to its next pause (`waiting`), or a step
of a generator (`steps`). `ACTIVE` pieces of work share one slice of `SLICE_S` between two turns, a step each in
rotation. So however much work there is, connections are served again after one slice. Further work waits, so that the
memory of results that are half done is bounded: it takes the place of work that is done, or has done `STEPS` steps. The
order between two pieces of work is not defined: work that must follow other work is started at its end.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from barnabas.broker.event_loop.timers import Timers

logger = logging.getLogger("kafka.server.KafkaServer")

SLICE_S = 0.0005
"""How long work runs between two turns, seconds."""
ACTIVE = 4
"""How many pieces of work are in progress at a time."""
STEPS = 50
"""The number of steps after which a piece of work makes room for work that waits."""


class Work(Protocol):
    """Work that is done in slices."""

    steps_done: int

    def step(self) -> bool:
        """Do one step; whether there are more. Nothing is done for work that was cancelled."""


class Slices:
    """All work that is done in slices."""

    def __init__(self, timers: Timers, now: Callable[[], float]) -> None:
        """`now` is the monotonic clock of `timers`, seconds."""
        self._timers = timers
        self._now = now
        self._active: deque[Work] = deque()
        self._waiting: deque[Work] = deque()
        self._is_scheduled = False

    @property
    def is_idle(self) -> bool:
        """Whether no work is in progress."""
        return not (self._active or self._waiting)

    def add(self, work: Work) -> None:
        """Do the steps of `work` between the following turns."""
        self._waiting.append(work)
        self._schedule()

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._timers.at(self._now(), self._run)

    def _run(self) -> None:
        """Run one slice. A timer that is due ends the reactor's turn, so turns and slices alternate."""
        self._is_scheduled = False
        end = self._now() + SLICE_S
        while self._fill():
            work = self._active.popleft()
            try:
                has_more = work.step()
            except Exception:
                logger.exception("The callback of work done in slices failed")
                has_more = False
            if has_more:
                self._put_back(work)
            if self._now() >= end:
                break
        if self._fill():
            self._schedule()

    def _fill(self) -> bool:
        """Take the places of work that is done; False if there is no work."""
        while self._waiting and len(self._active) < ACTIVE:
            self._active.append(self._waiting.popleft())
        return bool(self._active)

    def _put_back(self, work: Work) -> None:
        if work.steps_done >= STEPS and self._waiting:
            work.steps_done = 0
            self._waiting.append(work)
        else:
            self._active.append(work)
