"""Waiting for something that other processes, threads or tasks do: with a deadline, and with a name.

The time is for a machine that is four times slower than any and busy besides: a test that passes never waits for its
end. It is shorter than the limit of a test (`timeout` in pyproject.toml), so that the failure says what was missing.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import trio

T = TypeVar("T")
What = str | Callable[[], str]
"""The name of the condition; a function is called at the deadline, and can describe the progress."""
Errors = tuple[type[BaseException], ...]
ANY_ERROR: Errors = (Exception,)
"""For conditions that ask a broker which may be down meanwhile."""
TIMEOUT_S = 60.0
PAUSE_S, LONGEST_PAUSE_S, GROWTH = 0.02, 0.25, 1.2
"""Between two looks: a wait that takes long looks less often."""


def wait_for(
    condition: Callable[[], T],
    what: What,
    timeout_s: float = TIMEOUT_S,
    *,
    errors: Errors = (),
    pause_s: float = PAUSE_S,
) -> T:
    """Ask until the answer is true; the answer. AssertionError with `what` after `timeout_s` seconds.

    An exception of `errors` counts as no; at the deadline the last one is in the message.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        failure: BaseException | None = None
        try:
            if response := condition():
                return response
        except errors as error:
            failure = error
        if time.monotonic() > deadline:
            raise AssertionError(_sentence(what, timeout_s, failure)) from failure
        time.sleep(pause_s)
        pause_s = min(pause_s * GROWTH, LONGEST_PAUSE_S)


async def wait_for_async(
    condition: Callable[[], T | Awaitable[T]],
    what: What,
    timeout_s: float = TIMEOUT_S,
    *,
    errors: Errors = (),
    pause_s: float = PAUSE_S,
) -> T:
    """The same in a task of trio, whose loop goes on meanwhile. The condition may be a coroutine function."""
    deadline = trio.current_time() + timeout_s
    while True:
        failure: BaseException | None = None
        try:
            result = condition()
            if response := await result if isinstance(result, Awaitable) else result:
                return response
        except errors as error:
            failure = error
        if trio.current_time() > deadline:
            raise AssertionError(_sentence(what, timeout_s, failure)) from failure
        await trio.sleep(pause_s)
        pause_s = min(pause_s * GROWTH, LONGEST_PAUSE_S)


@contextmanager
def within(what: What, timeout_s: float = TIMEOUT_S) -> Iterator[None]:
    """A block of a task of trio that waits for something: AssertionError with `what` if it takes longer."""
    with trio.move_on_after(timeout_s) as limit:
        yield
    if limit.cancelled_caught:
        raise AssertionError(_sentence(what, timeout_s, None))


class Advance:
    """A count that has to grow by `steps`, and counts as stuck when it has not grown in `silence_s`.

    How fast it grows is no condition: on a busy machine that is not known.
    """

    def __init__(self, count: Callable[[], int], steps: int, name: str, silence_s: float = TIMEOUT_S) -> None:
        self._count, self._steps, self._name, self._silence_s = count, steps, name, silence_s
        self._first = self._last = count()
        self._since = time.monotonic()

    def is_done(self) -> bool:
        """Whether it has grown enough. AssertionError if it is stuck."""
        now = time.monotonic()
        if (count := self._count()) > self._last:
            self._last, self._since = count, now
        done = self._last - self._first
        if done < self._steps and now - self._since > self._silence_s:
            raise AssertionError(f"{self._name}: nothing in {self._silence_s:g} s, after {done} of {self._steps} steps")
        return done >= self._steps


def wait_for_all(advances: Iterable[Advance], check: Callable[[], object] = lambda: None) -> None:
    """Wait until each has grown enough; `check` is called in each round. AssertionError if one is stuck."""
    waiting = list(advances)
    while waiting := [counter for counter in waiting if not counter.is_done()]:
        check()
        time.sleep(PAUSE_S)


class Deadline:
    """The end of a loop that works while it waits: `check` in each round."""

    def __init__(self, what: What, timeout_s: float = TIMEOUT_S) -> None:
        self._what = what
        self._timeout_s = timeout_s
        self._end = time.monotonic() + timeout_s

    @property
    def left_s(self) -> float:
        """Seconds until the deadline, 0.0 after it."""
        return max(0.0, self._end - time.monotonic())

    def check(self) -> None:
        """AssertionError with `what` when the time is over."""
        if time.monotonic() > self._end:
            raise AssertionError(_sentence(self._what, self._timeout_s, None))


def _sentence(what: What, timeout_s: float, failure: BaseException | None) -> str:
    name = what() if callable(what) else what
    return f"waited {timeout_s:g} s for {name}" + (f"; the last answer was {failure!r}" if failure is not None else "")
