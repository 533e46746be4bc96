"""A simulated `World`: clocks that only tests advance, and work for the disk that tests hold back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from barnabas.broker.event_loop.disk_threads import DiskExecutor
from barnabas.broker.world import World

START_MS = 1_700_000_000_000


class Clock:
    """Both clocks of a broker; only tests advance them."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.now_ms = START_MS

    def advance(self, seconds: float) -> None:
        self.now += seconds
        self.now_ms += int(seconds * 1000)


class Flushes:
    """Runs what waits for a disk in `submit`, or keeps it until a test runs it."""

    def __init__(self) -> None:
        self.is_paused = False
        self.held: list[tuple[Callable[[], None], Callable[[Exception | None], None]]] = []

    def submit(self, work: Callable[[], None], then: Callable[[Exception | None], None]) -> None:
        self.held.append((work, then))
        if not self.is_paused:
            self.run()

    def run(self, in_thread: Callable[[Callable[[], None]], None] = lambda work: work()) -> None:
        """Run the oldest that was kept; `in_thread` calls the part that would run in a thread."""
        work, then = self.held.pop(0)
        failure = None
        try:
            in_thread(work)
        except Exception as error:
            failure = error
        then(failure)


class HasClock(Protocol):
    """A broker in memory, or what all parts of a simulated run share."""

    @property
    def clock(self) -> Any:
        """Has `now` and `now_ms`."""


def simulated_world(owner: HasClock, disk: DiskExecutor, **seams: Any) -> World:
    """A world with the owner's clock, which is looked up at each call: a test may replace it."""
    return World(now=lambda: owner.clock.now, now_ms=lambda: owner.clock.now_ms, disk=disk, **seams)
