"""Work that is too long for one turn of the event loop, done in slices between the turns.

Work is a generator that yields after every step; a step takes at most about a millisecond. `ACTIVE` pieces of work
share one slice of `SLICE_S` between two turns, a step each in rotation. So however much work there is, connections are
served again after one slice. Further work waits, so that the memory of results that are half done is bounded: it takes
the place of work that is done, or has done `STEPS` steps. The order between two pieces of work is not defined: work
that must follow other work is started by its callback.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from barnabas.broker.event_loop.timers import Timers

logger = logging.getLogger("kafka.server.KafkaServer")

R = TypeVar("R")

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


class SlicedWork:
    """One piece of work in progress. Work that is done drops its callbacks, since they refer to it."""

    __slots__ = ("_failed", "_steps", "_then", "is_done", "steps_done")

    def __init__(
        self,
        steps: Generator[None, None, Any],
        then: Callable[[Any], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self._steps = steps
        self._then = then
        self._failed = failed
        self.is_done = False
        self.steps_done = 0  # since it waited

    def cancel(self) -> None:
        """Do no further step and call neither callback; the generator is closed."""
        if not self.is_done:
            steps = self._steps
            self._finish()
            steps.close()

    def step(self) -> bool:
        """Do one step; after the last one, or a failed one, call the callback. Whether there are more."""
        self.steps_done += 1
        then, failed = self._then, self._failed
        try:
            next(self._steps)
        except StopIteration as end:
            self._finish()
            then(end.value)
        except Exception as error:
            self._finish()
            failed(error)
        return not self.is_done

    def _finish(self) -> None:
        self.is_done = True
        self._steps, self._then, self._failed = _NO_STEPS, _ignore, _ignore


def _no_steps() -> Generator[None, None, None]:
    yield from ()


_NO_STEPS = _no_steps()


def _ignore(_: object) -> None:
    """The callback of work that is done."""


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

    def start(
        self,
        steps: Generator[None, None, R],
        then: Callable[[R], None],
        failed: Callable[[Exception], None],
    ) -> SlicedWork:
        """Do `steps` between the following turns; then call `then` with the value that the generator returns.

        `failed` is called instead with an exception that a step has raised.
        """
        work = SlicedWork(steps, then, failed)
        self.add(work)
        return work

    def add(self, work: Work) -> None:
        """Do the steps of `work` between the following turns."""
        self._waiting.append(work)
        self._schedule()

    def begin(
        self,
        steps: Generator[None, None, R],
        then: Callable[[R], None],
        failed: Callable[[Exception], None],
    ) -> None:
        """Like `start`, but the first step is done at once: most work needs no other."""
        try:
            next(steps)
        except StopIteration as end:
            then(end.value)
        except Exception as error:
            failed(error)
        else:
            self.start(steps, then, failed)

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
