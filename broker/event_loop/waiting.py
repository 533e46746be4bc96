"""How handlers wait: a handler that may wait is a coroutine, which the dispatcher runs with the driver of this file.

    @api(OffsetDeleteRequest, send_before_close=True)
    async def offset_delete(ctx: RequestContext, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
        future: Future[OffsetDeleteResponse] = Future()
        ctx.broker.group_coordinators.handle(
            request.group_id, lambda groups, _: groups.offsets.delete(request, future.complete)
        )
        response = await future
        ...  # what was read before the `await` may have changed: read it again
        return response

A handler that never waits stays a plain function; one that rarely waits is a plain function that returns its response,
or a coroutine. The coroutine's first part runs in place, in the turn of its request. A coroutine that never has to
wait is answered like any other handler. What can be awaited:

- `Future`: the result of a part that calls `future.complete`: a coordinator, the controller, a partition, a timer.
  An exception that it is completed with is raised by the `await`. The first `complete` counts. A future that is
  complete already (`is_done`) is awaited without waiting.
- `pause()`: the end of a piece of work of at most about a millisecond: others are served, and the coroutine goes on
  between the turns (`broker.event_loop.slices`). `in_slices(generator)` does the steps of a generator so.
- `in_thread(runner, job)`: a job that waits for a disk. `run_steps(runner, generator)`: work with such jobs
  (`broker.event_loop.steps`).
- `committed(partition, offset)`: a commit. `until(timers, deadline, future, outcome)`: a future with a deadline.
- `sleep_until(timers, deadline)`: only the deadline.
- the results of a `TaskGroup`: several coroutines at once.

An exception is answered: a KafkaError with its error, an OSError with KAFKA_STORAGE_ERROR, any other is logged as a
bug. When the client disconnects the coroutine is closed: `finally` cancels its waits. `send_before_close=True` of
`@api` is for requests that have an effect: a broker that stops sends their responses before it closes the connection.
A response of a coroutine that has paused is long, and is encoded between the turns too.

Invariants: the frame's memory is not valid after the first wait, so data that is needed later is copied before (only
records are views of it). A task that has ended or was cancelled has no references, and completing one of its futures
later has no effect: the objects of a request are freed at once, without the garbage collector.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from functools import partial
from types import CoroutineType, coroutine
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, Self, TypeAlias, TypeVar

from barnabas.broker.event_loop.guarded import call_guarded, kept, log_failure
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.broker.event_loop.slices import Slices
    from barnabas.broker.event_loop.steps import StepRunner, Steps
    from barnabas.broker.event_loop.timers import Timers
    from barnabas.wire.errors import ErrorCode

T = TypeVar("T")
Waiting: TypeAlias = "Coroutine[Future[Any] | None, None, T]"
"""A coroutine of the driver."""

_PENDING: Final[Any] = object()


class Committing(Protocol):
    """A partition, as far as coroutines wait for it."""

    def when_committed(self, offset: int, then: Callable[[ErrorCode], None]) -> None:
        """Call `then` once the record at `offset` is committed, or never will be."""

    def forget(self, then: Callable[[ErrorCode], None]) -> None:
        """Do not call `then` any more."""


class Future(Generic[T]):
    """The result of something that calls back; it is awaited once, or not at all, unless it is reset."""

    __slots__ = ("_outcome", "task")

    def __init__(self) -> None:
        self._outcome: Any = _PENDING
        self.task: Task | None = None
        """The task that awaits it, for the driver."""

    @property
    def is_done(self) -> bool:
        """Whether there is a result, so that awaiting it does not wait."""
        return self._outcome is not _PENDING

    def complete(self, outcome: T | Exception | None = None) -> None:
        """Set the result or exception; the task that awaits it goes on before this returns. Later calls do nothing."""
        if self._outcome is _PENDING:
            self._outcome = outcome
            task = self.task
            if task is not None:
                self.task = None
                task.go_on()

    def __await__(self) -> Generator[Future[T] | None, None, T]:
        if self._outcome is _PENDING:
            yield self
        outcome = self._outcome
        if isinstance(outcome, Exception):
            return self.result()
        return outcome  # type: ignore[no-any-return]

    def result(self) -> T:
        """The result of a future that is complete; an exception is raised."""
        outcome = self._outcome
        if isinstance(outcome, Exception):
            self._outcome = None
            try:
                raise outcome
            finally:
                del outcome  # the exception refers to this frame
        return outcome  # type: ignore[no-any-return]

    def reset(self) -> None:
        """Have no result again: the next `await` waits for the next one."""
        self._outcome = _PENDING


@coroutine
def pause() -> Generator[None, None, None]:
    """End a piece of work: go on between the turns, in rotation with other work."""
    yield


@coroutine
def in_slices(steps: Generator[None, None, T]) -> Generator[None, None, T]:
    """The value of a generator that yields after each step; all but the first are done between the turns."""
    return (yield from steps)


def at_once_or_in_slices(steps: Generator[None, None, T]) -> T | Waiting[T]:
    """The value of a generator whose first step is the last, as usual; else a coroutine that does the other steps."""
    try:
        next(steps)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    return _further(steps)


async def _further(steps: Generator[None, None, T]) -> T:
    await pause()
    return await in_slices(steps)


class Task:
    """A coroutine that waits. It is done when it has ended or was cancelled."""

    __slots__ = ("_coroutine", "_slices", "_then", "has_paused", "send_before_close", "steps_done")

    def __init__(
        self,
        work: Waiting[Any] | Generator[None, None, Any],
        slices: Slices,
        then: Callable[[Any], None],
        *,
        send_before_close: bool = False,
    ) -> None:
        """`then` is called with the coroutine's value, or with an exception that it has raised."""
        self._coroutine: Any = work
        self._slices = slices
        self._then = then
        self.has_paused = False
        self.send_before_close = send_before_close
        self.steps_done = 0  # since it waited for other work

    def waits(self, future: Future[Any] | None) -> None:
        """The coroutine, whose first part has run, awaits a future, or with None the next slice."""
        if future is None:
            self._pause()
        else:
            future.task = self

    def go_on(self) -> None:
        """Run the coroutine up to its next wait."""
        if self.step():
            self._pause()

    def step(self) -> bool:
        """Run the coroutine up to its next wait; whether it is a pause."""
        self.steps_done += 1
        work = self._coroutine
        if work is None:
            return False  # cancelled while it was to go on
        try:
            future = work.send(None)
        except StopIteration as end:
            self._end(end.value)
        except KafkaError as error:
            self._end(kept(error))
        except Exception as error:
            self._end(error)
        else:
            if self._coroutine is None:  # it has closed its own connection
                _close(work)
            elif future is None:
                return True
            else:
                future.task = self
        return False

    def cancel(self) -> None:
        """Close the coroutine, because its client has disconnected; `then` is not called."""
        work, self._coroutine, self._then = self._coroutine, None, _ignore
        if work is not None and not _is_running(work):
            _close(work)

    def _pause(self) -> None:
        self.has_paused = True
        self.steps_done = 0
        self._slices.add(self)

    def _end(self, outcome: Any) -> None:
        then = self._then
        self._coroutine, self._then = None, _ignore
        then(outcome)


def _ignore(outcome: object) -> None:
    """The outcome of a cancelled request is not needed; a bug is logged."""
    if isinstance(outcome, Exception) and not isinstance(outcome, KafkaError):
        log_failure("A request of a client that has disconnected", outcome)


def _is_running(work: Any) -> bool:
    return bool(work.cr_running if isinstance(work, CoroutineType) else work.gi_running)


def _close(work: Any) -> None:
    call_guarded("Releasing what a request waits for", work.close)


def start(
    work: Waiting[T] | Generator[None, None, T], slices: Slices, then: Callable[[T | Exception], None]
) -> Task | None:
    """Run a coroutine, and call `then` with its value or exception; the task if it has to wait."""
    task = Task(work, slices, then)
    task.go_on()
    return task if task._coroutine is not None else None


def start_later(
    work: Waiting[T] | Generator[None, None, T], slices: Slices, then: Callable[[T | Exception], None]
) -> Task:
    """Like `start`, but the first part is done between the turns too."""
    task = Task(work, slices, then)
    task._pause()
    return task


# ---- awaitables


async def committed(partition: Committing, offset: int) -> ErrorCode:
    """NONE once the record at `offset` is committed, or the error if it never will be."""
    future: Future[ErrorCode] = Future()
    then = future.complete
    partition.when_committed(offset, then)
    try:
        return await future
    finally:
        if not future.is_done:
            partition.forget(then)


async def until(timers: Timers, deadline: float, future: Future[T], outcome: T | Exception) -> T:
    """The result of a future, or `outcome` if it has none at the deadline."""
    if future.is_done:
        return await future
    timer = timers.at(deadline, partial(future.complete, outcome))
    try:
        return await future
    finally:
        timer.cancel()


async def sleep_until(timers: Timers, deadline: float) -> None:
    """Wait until the clock of the timers has reached `deadline`."""
    await until(timers, deadline, Future(), None)


async def run_steps(runner: StepRunner, steps: Steps[T]) -> T:
    """The value of work that waits for disks. It goes on if the client disconnects."""
    future: Future[T] = Future()
    runner.start(steps, future.complete, future.complete)
    return await future


def now_or_later(future: Future[T]) -> T | Waiting[T]:
    """The result of a future, or a coroutine that waits for it: for handlers that rarely wait."""
    return future.result() if future.is_done else _later(future)


async def _later(future: Future[T]) -> T:
    return await future


async def in_thread(runner: StepRunner, job: Callable[[], T]) -> T:
    """The value of a job that waits for a disk or a name server. It is finished if the client disconnects."""

    def steps() -> Steps[T]:
        results: list[T] = []
        yield lambda: results.append(job())
        return results[0]

    return await run_steps(runner, steps())


class TaskGroup:
    """Several coroutines at once, whose results are awaited together. Leaving the group cancels them if they wait."""

    __slots__ = ("_done", "_open", "_results", "_slices", "_tasks")

    def __init__(self, slices: Slices) -> None:
        self._slices = slices
        self._results: list[Any] = []
        self._tasks: list[Task] = []
        self._open = 0
        self._done: Future[None] | None = None

    def start(self, work: Waiting[Any]) -> None:
        """Run a coroutine."""
        self._results.append(None)
        self._open += 1
        task = start(work, self._slices, partial(self._end, len(self._results) - 1))
        if task is not None:
            self._tasks.append(task)

    async def results(self) -> list[Any]:
        """The values, and exceptions, in the order in which the coroutines were started, when all have ended."""
        if self._open:
            self._done = Future()
            await self._done
        return self._results

    def _end(self, number: int, result: Any) -> None:
        self._results[number] = result
        self._open -= 1
        if not self._open and self._done is not None:
            self._done.complete()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()


async def outcome_of(outcome: Any) -> Any:
    """The response of a handler, which may have returned a coroutine for it; an exception is raised."""
    if isinstance(outcome, CoroutineType):
        return await outcome
    if isinstance(outcome, Exception):
        raise outcome
    return outcome
