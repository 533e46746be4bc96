"""Work in slices: a slice between two turns is shared by all work in progress, a step each."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from barnabas.broker.event_loop.loop import Loop
from barnabas.broker.event_loop.slices import ACTIVE, SLICE_S, STEPS
from barnabas.broker.event_loop.waiting import start_later

STEP_S = SLICE_S / 3.5


class _Clock:
    """A monotonic clock that advances with the work."""

    def __init__(self) -> None:
        self.time = 100.0

    def now(self) -> float:
        return self.time


class _Worker:
    def __init__(self) -> None:
        self.clock = _Clock()
        self.loop = Loop(self.clock.now, lambda: 0)
        self.done: list[str] = []
        self.ends: list[object] = []

    def work(self, name: str, steps: int) -> Generator[None, None, str]:
        for _ in range(steps):
            self.done.append(name)
            self.clock.time += STEP_S
            yield
        return name

    def start(self, name: str, steps: int) -> None:
        start_later(self.work(name, steps), self.loop.slices, self.ends.append)

    def fire(self) -> None:
        self.loop.timers.fire(self.clock.time)


def test_a_slice_ends_after_its_time_and_the_next_goes_on() -> None:
    worker = _Worker()
    worker.start("a", 6)
    timers = worker.loop.timers
    due = timers.next_deadline()
    timers.fire(due)
    assert len(worker.done) == 4
    assert worker.ends == []
    assert timers.next_deadline() > due
    worker.fire()
    assert len(worker.done) == 6
    assert worker.ends == ["a"]


def test_long_work_does_not_hold_short_work() -> None:
    worker = _Worker()
    worker.start("long", 1000)
    worker.start("short", 2)
    for _ in range(2):
        worker.loop.timers.fire(worker.loop.timers.next_deadline())
    assert worker.ends == ["short"]
    assert len(worker.done) <= 8


def test_only_some_work_is_in_progress_at_a_time() -> None:
    """The memory of unfinished work is bounded."""
    worker = _Worker()
    begun: list[set[str]] = []
    for number in range(20):
        worker.start(f"{number}", 12)
    while len(worker.ends) < 20:
        worker.fire()
        worker.loop.timers.fire(worker.loop.timers.next_deadline())
        begun.append(set(worker.done) - set(map(str, worker.ends)))
    assert max(map(len, begun)) == ACTIVE
    assert [len(ended) for ended in (worker.done, worker.ends)] == [240, 20]


def test_long_work_lets_work_that_waits_take_its_place() -> None:
    worker = _Worker()
    for number in range(ACTIVE):
        worker.start(f"long {number}", 100 * STEPS)
    worker.start("short", 2)
    while not worker.ends:
        worker.fire()
        worker.loop.timers.fire(worker.loop.timers.next_deadline())
    assert worker.ends == ["short"]
    assert len(worker.done) <= ACTIVE * (STEPS + 4) + 2  # slices have room for steps of others


def test_an_exception_ends_its_work_only(caplog: pytest.LogCaptureFixture) -> None:
    worker = _Worker()

    def failing() -> Generator[None, None, None]:
        yield
        raise ValueError("wrong")

    def bad_callback(_: object) -> None:
        raise KeyError("callback")

    start_later(failing(), worker.loop.slices, worker.ends.append)
    start_later(worker.work("b", 1), worker.loop.slices, bad_callback)
    worker.start("c", 3)
    for _ in range(3):
        worker.fire()
    assert str(worker.ends[0]) == "wrong"
    assert worker.ends[1:] == ["c"]
    assert "callback" in caplog.text


def test_cancelled_work_is_closed_and_not_reported() -> None:
    worker = _Worker()
    closed: list[bool] = []

    def work() -> Generator[None, None, None]:
        try:
            while True:
                yield
        finally:
            closed.append(True)

    started = start_later(work(), worker.loop.slices, worker.ends.append)
    worker.start("b", 5)
    worker.loop.timers.fire(worker.loop.timers.next_deadline())
    started.cancel()
    started.cancel()
    worker.fire()
    assert closed == [True]
    assert worker.ends == ["b"]
