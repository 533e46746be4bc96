"""Callbacks that wait until an offset of a partition is reached: acknowledgements, coordinators, committed reads.

    waits.add(offset, then)      # then(ErrorCode.NONE) once an offset above it is reached, then(error) if it never is
    waits.reached(end)

They are called in the order of their offsets, for `PIECE_S` at once and the rest at the ends of the following turns, so
that a commit for which thousands wait does not delay other requests. Invariants: each is called once, unless it is
forgotten before; a callback whose offset was reached never gets an error; while callbacks of reached offsets are still
to be called, one that is added behind them is called after them. (R12, R13)
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from barnabas.broker.event_loop.guarded import log_failure
from barnabas.broker.event_loop.waking import FEW, PIECE_S
from barnabas.wire.errors import ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.event_loop.loop import Loop

Then: TypeAlias = "Callable[[ErrorCode], None]"


_Wait: TypeAlias = "list[Any]"
"""An offset and a callback, None once it is forgotten. A list: it is made for each acknowledgement."""
_OFFSET: Final = itemgetter(0)


class OffsetWaits:
    """The waits of one partition for one kind of offset."""

    __slots__ = ("_loop", "_reached", "_waits", "_what", "is_calling", "queue")

    def __init__(self, loop: Loop, what: str) -> None:
        """`what` names the callbacks, for the log line about one that fails."""
        self._loop = loop
        self._what = what
        self.queue: deque[_Wait] = deque()
        """The waits, by offset."""
        self._waits: dict[int, _Wait] = {}  # by the id of the callback, which the wait keeps alive
        self._reached = -1
        self.is_calling = False
        """Whether callbacks of reached offsets are still to be called."""

    def add(self, offset: int, then: Then) -> None:
        """Wait until an offset above `offset` is reached."""
        wait = self._waits[id(then)] = [offset, then]
        queue = self.queue
        if queue and queue[-1][0] > offset:
            queue.insert(bisect_right(queue, offset, key=_OFFSET), wait)
        else:
            queue.append(wait)

    def forget(self, then: Then) -> None:
        """Do not call `then` any more."""
        wait = self._waits.pop(id(then), None)
        if wait is None:
            return
        wait[1] = None
        queue = self.queue
        while queue and queue[0][1] is None:
            queue.popleft()

    def reached(self, end: int) -> None:
        """Everything below `end` is reached."""
        self._reached = end
        if not self.is_calling:
            self.is_calling = True
            self._go_on()

    def fail(self, error: ErrorCode) -> None:
        """Call all others with `error`: their offsets are never reached. Callbacks of reached offsets get no error."""
        if not self.queue:
            self._reached = -1
            return
        failing = OffsetWaits(self._loop, self._what)
        failing.queue, self.queue = self.queue, failing.queue
        failing._waits, self._waits = self._waits, failing._waits
        failing._reached, self._reached = self._reached, -1
        failing.is_calling = True
        failing._go_on(error)

    def take_all(self) -> list[tuple[int, Then]]:
        """The waits in their order, which the caller takes over."""
        taken = [(offset, then) for offset, then in self.queue if then is not None]
        self.queue.clear()
        self._waits.clear()
        return taken

    def _go_on(self, error: ErrorCode | None = None) -> None:
        """Call the callbacks of reached offsets, with an error the others too, for `PIECE_S`."""
        queue, waits, loop = self.queue, self._waits, self._loop
        remaining, end = FEW, 0.0
        while queue and (error is not None or queue[0][0] < self._reached):
            offset, then = queue.popleft()
            if then is None:
                continue
            waits.pop(id(then), None)
            try:
                then(ErrorCode.NONE if error is None or offset < self._reached else error)
            except Exception as failure:
                log_failure(self._what, failure)
            remaining -= 1
            if remaining <= 0:
                now = loop.now()
                if not end:
                    end = now + PIECE_S
                elif now >= end:
                    loop.call_after_turn(lambda: self._go_on(error))
                    return
        self.is_calling = False
