"""The driver of handlers that wait: what they await, how they end, their response, and that they are freed."""

from __future__ import annotations

import gc
import logging
import weakref
from collections.abc import Generator, Iterator
from typing import Any

import pytest

from barnabas.broker.event_loop.loop import Loop
from barnabas.broker.event_loop.slices import ACTIVE, SLICE_S
from barnabas.broker.event_loop.waiting import Future, Task, TaskGroup, in_slices, pause, sleep_until, start, until
from barnabas.wire.errors import ErrorCode, KafkaError


class Clock:
    """A loop whose time the test moves; steps of work take no time unless they move it."""

    def __init__(self) -> None:
        self.time = 100.0
        self.loop = Loop(lambda: self.time, lambda: 0)
        self.slices = self.loop.slices
        self.outcomes: list[Any] = []

    def start(self, coroutine: Any) -> Task | None:
        return start(coroutine, self.slices, self.outcomes.append)

    def slice(self) -> None:
        """Run one slice."""
        self.loop.timers.fire(self.time)


@pytest.fixture
def clock() -> Clock:
    return Clock()


async def awaiting(future: Future[Any]) -> Any:
    return await future


# ---- futures


@pytest.mark.parametrize("result", [5, None])
def test_a_future_that_is_complete_is_not_waited_for(clock: Clock, result: int | None) -> None:
    future: Future[Any] = Future()
    assert not future.is_done
    future.complete(result)
    assert future.is_done
    assert clock.start(awaiting(future)) is None
    assert clock.outcomes == [result]


def test_the_first_result_counts(clock: Clock) -> None:
    future: Future[int] = Future()
    task = clock.start(awaiting(future))
    assert task is not None
    assert clock.outcomes == []
    future.complete(1)
    future.complete(2)
    assert clock.outcomes == [1]
    assert not task.has_paused


@pytest.mark.parametrize("is_early", [True, False])
def test_an_exception_is_raised_by_the_await(clock: Clock, is_early: bool) -> None:
    future: Future[int] = Future()

    async def handler() -> str:
        with pytest.raises(KafkaError):
            await future
        return "refused"

    error = KafkaError(ErrorCode.NOT_COORDINATOR)
    if is_early:
        future.complete(error)
    clock.start(handler())
    future.complete(error)
    assert clock.outcomes == ["refused"]


@pytest.mark.parametrize("waits", [True, False])
def test_an_exception_of_the_coroutine_is_its_outcome(clock: Clock, waits: bool) -> None:
    future: Future[int] = Future()

    async def handler() -> None:
        if waits:
            await future
        raise ValueError("a bug")

    clock.start(handler())
    future.complete(1)
    assert [str(outcome) for outcome in clock.outcomes] == ["a bug"]


def test_a_task_that_is_cancelled_gives_back_what_it_waits_for(clock: Clock) -> None:
    future: Future[int] = Future()
    released: list[bool] = []

    async def handler() -> int:
        try:
            return await future
        finally:
            released.append(future.is_done)

    task = clock.start(handler())
    assert task is not None
    task.cancel()
    task.cancel()
    assert released == [False]
    future.complete(1)
    clock.slice()
    assert clock.outcomes == []


def test_a_release_that_fails_is_logged(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    async def handler() -> None:
        try:
            await Future[int]()
        finally:
            raise ValueError("a bug")

    task = clock.start(handler())
    assert task is not None
    task.cancel()
    assert "a bug" in caplog.text


def test_a_coroutine_that_closes_its_own_connection_is_closed_at_its_next_wait(clock: Clock) -> None:
    tasks: list[Task | None] = []
    steps: list[str] = []
    first: Future[None] = Future()

    async def handler() -> None:
        await first
        assert tasks[0] is not None
        tasks[0].cancel()
        steps.append("goes on")
        try:
            await Future[None]()
        finally:
            steps.append("closed")

    tasks.append(clock.start(handler()))
    first.complete()
    assert steps == ["goes on", "closed"]
    assert clock.outcomes == []


@pytest.mark.parametrize(("failure", "logged"), [(KafkaError(ErrorCode.NOT_COORDINATOR), 0), (ValueError("a bug"), 1)])
def test_only_a_bug_is_logged_for_a_client_that_has_gone(
    clock: Clock, caplog: pytest.LogCaptureFixture, failure: Exception, logged: int
) -> None:
    """A coordinator that moves fails what waits for it, also the requests of clients that have gone."""
    tasks: list[Task | None] = []
    first: Future[None] = Future()

    async def handler() -> None:
        await first
        assert tasks[0] is not None
        tasks[0].cancel()
        raise failure

    tasks.append(clock.start(handler()))
    first.complete()
    assert len([record for record in caplog.records if record.levelno >= logging.ERROR]) == logged
    assert clock.outcomes == []


# ---- deadlines


def test_a_deadline_ends_a_wait(clock: Clock) -> None:
    future: Future[str] = Future()
    clock.start(until(clock.loop.timers, clock.time + 5, future, "too late"))
    clock.time += 4
    clock.slice()
    assert clock.outcomes == []
    clock.time += 1
    clock.slice()
    assert clock.outcomes == ["too late"]


def test_a_wait_that_has_ended_has_no_deadline(clock: Clock) -> None:
    futures: list[Future[str]] = [Future(), Future(), Future()]
    futures[0].complete("early")
    for future in futures:
        task = clock.start(until(clock.loop.timers, clock.time + 5, future, "too late"))
    futures[1].complete("in time")
    assert task is not None
    task.cancel()
    assert clock.loop.timers.next_deadline() == float("inf")
    assert clock.outcomes == ["early", "in time"]


def test_a_coroutine_may_only_wait_for_a_time(clock: Clock) -> None:
    clock.start(sleep_until(clock.loop.timers, clock.time + 1))
    clock.time += 1
    clock.slice()
    assert clock.outcomes == [None]


# ---- pauses


async def counting(clock: Clock, done: list[str], name: str, count: int, cost_s: float = 0.0) -> str:
    for _ in range(count):
        done.append(name)
        clock.time += cost_s
        await pause()
    return name


def test_the_first_part_runs_in_place_the_rest_in_rotation_between_the_turns(clock: Clock) -> None:
    done: list[str] = []
    tasks = [clock.start(counting(clock, done, name, 3)) for name in "ab"]
    assert done == ["a", "b"]
    assert all(task is not None and task.has_paused for task in tasks)
    clock.slice()
    assert done == ["a", "b", "a", "b", "a", "b"]
    assert clock.outcomes == ["a", "b"]


def test_a_slice_ends_after_its_time(clock: Clock) -> None:
    done: list[str] = []
    clock.start(counting(clock, done, "a", 10, SLICE_S * 0.6))
    for count in (1, 3, 5):
        assert len(done) == count
        clock.slice()


def test_only_some_coroutines_are_in_progress_at_a_time(clock: Clock) -> None:
    done: list[str] = []
    names = [str(number) for number in range(3 * ACTIVE)]
    for name in names:
        clock.start(counting(clock, done, name, 20))
    done.clear()
    while len(done) < 10 * ACTIVE:
        clock.slice()
    assert set(done[: 10 * ACTIVE]) == set(names[:ACTIVE])


def test_steps_of_a_generator_are_awaited(clock: Clock) -> None:
    def steps() -> Generator[None, None, int]:
        yield
        yield
        return 7

    clock.start(in_slices(steps()))
    assert clock.outcomes == []
    clock.slice()
    assert clock.outcomes == [7]


def test_a_paused_task_that_is_cancelled_does_nothing_more(clock: Clock) -> None:
    done: list[str] = []
    task = clock.start(counting(clock, done, "a", 5))
    assert task is not None
    task.cancel()
    clock.slice()
    assert done == ["a"]
    assert clock.slices.is_idle


# ---- several at once


async def together(clock: Clock, coroutines: list[Any], *, pauses: bool = False) -> list[Any]:
    with TaskGroup(clock.slices) as group:
        for coroutine in coroutines:
            group.start(coroutine)
        if pauses:
            await pause()
        return await group.results()


@pytest.mark.parametrize("pauses", [False, True])
def test_results_are_in_the_order_of_what_was_started(clock: Clock, pauses: bool) -> None:
    futures: list[Future[str]] = [Future(), Future(), Future()]
    futures[1].complete("at once")

    async def refused() -> None:
        raise KafkaError(ErrorCode.NOT_COORDINATOR)

    clock.start(together(clock, [*map(awaiting, futures), refused()], pauses=pauses))
    futures[2].complete("b")
    clock.slice()
    assert clock.outcomes == []
    futures[0].complete("a")
    (results,) = clock.outcomes
    assert results[:3] == ["a", "at once", "b"]
    assert isinstance(results[3], KafkaError)


def test_what_has_ended_is_not_waited_for(clock: Clock) -> None:
    assert clock.start(together(clock, [])) is None
    future: Future[str] = Future()
    clock.start(together(clock, [awaiting(future)], pauses=True))
    future.complete("a")
    clock.slice()
    assert clock.outcomes == [[], ["a"]]


def test_all_that_wait_are_cancelled_together(clock: Clock) -> None:
    released: list[int] = []

    async def handler(number: int) -> None:
        try:
            await Future[None]()
        finally:
            released.append(number)

    task = clock.start(together(clock, [handler(number) for number in range(3)]))
    assert task is not None
    task.cancel()
    assert released == [0, 1, 2]


# ---- freeing


class Request:
    """What a weak reference can refer to."""

    def respond(self, outcome: object) -> None:
        """Take the outcome."""


@pytest.fixture
def _without_collections() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


async def holding(request: Request, future: Future[Any], paused: bool) -> Request:
    if paused:
        await pause()
    await until(Loop(lambda: 0.0, lambda: 0).timers, 1.0, future, None)
    return request


@pytest.mark.usefixtures("_without_collections")
@pytest.mark.parametrize("paused", [True, False])
@pytest.mark.parametrize("outcome", [None, KafkaError(ErrorCode.NOT_COORDINATOR), "cancelled"])
def test_what_a_request_holds_is_freed_at_its_end(clock: Clock, outcome: Any, paused: bool) -> None:
    """Although its future is still known to what would have completed it, and its task to its connection."""
    request, response = Request(), Request()
    dead, dead_response = weakref.ref(request), weakref.ref(response)
    future: Future[Any] = Future()
    task = start(holding(request, future, paused), clock.slices, response.respond)
    del request, response
    clock.slice()
    assert task is not None
    assert dead() is not None
    assert dead_response() is not None
    if outcome == "cancelled":
        task.cancel()
    else:
        future.complete(outcome)
    assert dead() is None
    assert dead_response() is None
