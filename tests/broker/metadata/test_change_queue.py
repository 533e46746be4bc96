"""The queue of metadata changes: their order, and how many are made in a turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from barnabas.broker.event_loop.loop import Loop
from barnabas.broker.event_loop.slices import SLICE_S
from barnabas.broker.event_loop.steps import IN_PLACE_S, StepRunner
from barnabas.broker.metadata.change_queue import ChangeQueue
from tests.support.world import Clock, Flushes

if TYPE_CHECKING:
    from barnabas.broker.event_loop.steps import Steps

CHANGE_S = 0.0001
"""How long a change takes, seconds."""


class Queue:
    """A queue whose changes advance the clock."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.loop = Loop(lambda: self.clock.now, lambda: self.clock.now_ms)
        self.disk = Flushes()
        self.queue = ChangeQueue(StepRunner(self.loop, self.disk))
        self.answers: list[object] = []

    def add(self, name: object, *, waits: bool = False) -> None:
        self.queue.add(lambda: self._change(name, waits), self.answers.append)

    def _change(self, name: object, waits: bool) -> Steps[object]:
        if waits:
            yield _nothing
        self.clock.now += CHANGE_S
        return name

    def fire(self) -> None:
        self.loop.timers.fire(self.clock.now)


def _nothing() -> None:
    pass


@pytest.fixture
def queue() -> Queue:
    return Queue()


def test_an_idle_queue_makes_a_change_at_once(queue: Queue) -> None:
    for name in range(3):
        queue.add(name)
        assert queue.answers == list(range(name + 1))


def test_thousands_of_changes_that_wait_are_made_in_many_turns(queue: Queue) -> None:
    queue.disk.is_paused = True
    queue.add(0, waits=True)
    for name in range(1, 3000):
        queue.add(name)
    assert queue.answers == []
    queue.disk.run()
    most = count = len(queue.answers)
    assert count <= IN_PLACE_S / CHANGE_S + 1
    while len(queue.answers) < 3000:
        queue.fire()
        most, count = max(most, len(queue.answers) - count), len(queue.answers)
    assert most <= max(SLICE_S, IN_PLACE_S) / CHANGE_S + 1
    assert queue.answers == list(range(3000))


def test_a_change_that_an_answer_adds_is_made_after_those_that_wait(queue: Queue) -> None:
    queue.disk.is_paused = True
    again: Callable[[object], None] = lambda _: queue.add("last")  # noqa: E731
    queue.queue.add(lambda: queue._change("first", True), again)
    queue.add("second")
    queue.disk.run()
    assert queue.answers == ["second", "last"]
    queue.add("later")
    assert queue.answers[-1] == "later"
