"""Work in steps that may wait for a disk: in place for a moment, then between the turns, waiting in threads.

The work is a generator. It yields None after each step of at most about a millisecond, or a function that waits for a
disk: that is run in a thread, and the generator goes on when it has ended. An exception of the function is raised in
the generator. Short work is done before `start` returns; the rest is done in slices (`broker.event_loop.slices`).

Why this is no coroutine of the driver (`waiting`): the same steps must also run without a loop, in a start and in a
stop (`run_in_place`, `finish`), where the caller does the disk jobs itself; and `storage`, which knows no loop, has
most of them. Handlers await such work with `run_steps`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from barnabas.broker.event_loop.guarded import log_failure

if TYPE_CHECKING:
    from barnabas.broker.event_loop.disk_threads import DiskExecutor
    from barnabas.broker.event_loop.loop import Loop

R = TypeVar("R")
DiskWork: TypeAlias = Callable[[], None]
Steps: TypeAlias = Generator[DiskWork | None, None, R]

IN_PLACE_S = 0.001
"""How long work is done in place before it goes on between the turns, seconds."""


class SteppedWork:
    """One piece of work in progress."""

    __slots__ = ("_executor", "_failed", "_failure", "_loop", "_steps", "_then", "_waits_for", "is_done", "steps_done")

    def __init__(
        self,
        loop: Loop,
        executor: DiskExecutor,
        steps: Steps[Any],
        then: Callable[[Any], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self._loop = loop
        self._executor = executor
        self._steps = steps
        self._then = then
        self._failed = failed
        self._failure: Exception | None = None
        self._waits_for: DiskWork | None = None
        self.is_done = False
        self.steps_done = 0  # since it waited for other work

    def advance(self) -> None:
        """Do steps in place, for `IN_PLACE_S` at most, then go on between the turns."""
        now = self._loop.now
        end = now() + IN_PLACE_S
        while self._step():
            if now() >= end:
                self.steps_done = 0
                self._loop.slices.add(self)
                return

    def step(self) -> bool:
        """Do one step between the turns; whether there are more."""
        self.steps_done += 1
        try:
            return not self.is_done and self._step()
        except Exception as error:  # of `then`
            self._failed(error)
            return False

    def finish(self) -> None:
        """Do all remaining steps now and wait for the disk: for a stop, when no client is served any more."""
        while not self.is_done:
            waits_for, self._waits_for = self._waits_for, None
            if waits_for is not None:
                self._failure = _failure_of(waits_for)
            self._step(is_last=True)

    def _step(self, *, is_last: bool = False) -> bool:
        """Do one step; False when the work is done, or waits for a disk."""
        failure, self._failure = self._failure, None
        try:
            waits_for = next(self._steps) if failure is None else self._steps.throw(failure)
        except StopIteration as end:
            self.is_done = True
            self._then(end.value)
            return False
        except Exception as error:
            self.is_done = True
            self._failed(error)
            return False
        if waits_for is None:
            return True
        self._waits_for = waits_for
        if not is_last:
            self._executor.submit(waits_for, lambda failure: self._waited(waits_for, failure))
        return False

    def _waited(self, waited_for: DiskWork, failure: Exception | None) -> None:
        if self._waits_for is waited_for:  # else `finish` has done it again
            self._waits_for = None
            self._failure = failure
            self.advance()


class StepRunner:
    """Runs work in steps, with one loop and one executor."""

    __slots__ = ("_executor", "_loop")

    def __init__(self, loop: Loop, executor: DiskExecutor) -> None:
        self._loop = loop
        self._executor = executor

    def start(
        self, steps: Steps[R], then: Callable[[R], None], failed: Callable[[Exception], None] | None = None
    ) -> SteppedWork:
        """Do the steps; then call `then` with the value that the generator returns.

        `failed` is called instead with an exception that a step has raised; without it the exception is logged.
        """
        work = SteppedWork(self._loop, self._executor, steps, then, failed or _log)
        work.advance()
        return work


def run_in_place(steps: Steps[R]) -> R:
    """Do all steps now and wait for the disk: for a start and a stop, when no client is served."""
    failure: Exception | None = None
    while True:
        try:
            waits_for = next(steps) if failure is None else steps.throw(failure)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        failure = None if waits_for is None else _failure_of(waits_for)


def _failure_of(work: DiskWork) -> Exception | None:
    try:
        work()
    except Exception as error:
        return error
    return None


def _log(error: Exception) -> None:
    log_failure("Work in steps", error)
