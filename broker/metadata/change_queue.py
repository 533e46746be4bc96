"""The changes of the metadata that are in progress or waiting: one is made after the other, in the order of requests.

A change begins when the one before it is in effect and answered, so it is validated against an image that has all
earlier changes. A change that fails does not stop the ones behind it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from barnabas.broker.event_loop.guarded import answer_for, call_guarded
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.event_loop.steps import SteppedWork, StepRunner, Steps

R = TypeVar("R")
Answer: TypeAlias = Callable[[R | KafkaError], None]

ANSWERING = "Answering a change of the metadata"


class ChangeQueue:
    """Makes changes, one at a time."""

    def __init__(self, runner: StepRunner) -> None:
        self._runner = runner
        self._waiting: deque[tuple[Callable[[], Steps[Any]], Answer[Any]]] = deque()
        self._work: SteppedWork | None = None
        self._is_busy = False
        self._is_closed = False

    def add(self, change: Callable[[], Steps[R]], then: Answer[R]) -> None:
        """Make a change after all that were added before; then call `then` with its result or its KafkaError.

        After a bug, which is logged, `then` is called with UNKNOWN_SERVER_ERROR.
        """
        if self._is_closed:
            call_guarded(ANSWERING, then, KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "The broker is shutting down."))
            return
        self._waiting.append((change, then))
        if not self._is_busy:
            self._is_busy = True
            self._work = self._runner.start(self._make_all(), _ignore)

    def close(self) -> None:
        """Finish the change in progress, waiting for the disk; those behind it are refused, as are later ones."""
        self._is_closed = True
        refused, self._waiting = self._waiting, deque()
        if self._is_busy and self._work is not None:
            self._work.finish()
        for _, then in refused:
            call_guarded(ANSWERING, then, KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "The broker is shutting down."))

    def _make_all(self) -> Steps[None]:
        """Make the changes that wait, and those that are added meanwhile, each in a step at least."""
        while self._waiting:
            change, then = self._waiting.popleft()
            try:
                outcome = yield from change()
            except Exception as error:
                outcome = answer_for("A change of the metadata", error)
            call_guarded(ANSWERING, then, outcome)
            if self._waiting:
                yield None
        self._is_busy = False


def _ignore(_: None) -> None:
    """Each change has been answered."""
