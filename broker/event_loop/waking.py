"""Calls many waiters of one event, some at the end of each turn, so that others are served before all are called.

    waking = Waking(loop, waiters, call, done)     # more than FEW
    waking.begin()

A change during a pass causes another pass, since waiters that were called before it and still wait have not seen it.
Invariants: a waiter that has been removed is not called; one that is there at the last `begin` is called after it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from barnabas.broker.event_loop.loop import Loop

FEW: Final = 16
"""Up to so many waiters are called at once: an answer takes about 0.1 ms."""
PIECE_S: Final = 0.001
"""How long waiters are called at the end of a turn, seconds."""

W = TypeVar("W")


def do_in_pieces(loop: Loop, items: deque[W], do: Callable[[W], object], then: Callable[[], object]) -> None:
    """Remove each item and call `do` with it, for `PIECE_S` now and at the end of each turn; then call `then`.

    `do` raises nothing. Each item is freed after its call, not all of them at the end.
    """
    end = loop.now() + PIECE_S
    while items:
        do(items.popleft())
        if loop.now() >= end:
            loop.call_after_turn(lambda: do_in_pieces(loop, items, do, then))
            return
    then()


class Waking(Generic[W]):
    """One pass over the waiters, or several."""

    __slots__ = ("_call", "_done", "_is_again", "_is_calling", "_loop", "_waiters")

    def __init__(
        self, loop: Loop, waiters: Mapping[object, W], call: Callable[[W], None], done: Callable[[], None]
    ) -> None:
        """`call` calls one of the values of `waiters` and raises nothing; `done` is called after the last pass."""
        self._loop = loop
        self._waiters = waiters
        self._call = call
        self._done = done
        self._is_calling = False
        self._is_again = False

    def begin(self) -> None:
        """Call all current waiters; if a pass is in progress, in another one after it."""
        if self._is_calling:
            self._is_again = True
            return
        self._is_calling = True
        do_in_pieces(self._loop, deque(self._waiters), self._wake, self._passed)

    def _wake(self, key: object) -> None:
        woken = self._waiters.get(key)
        if woken is not None:
            self._call(woken)

    def _passed(self) -> None:
        self._is_calling = False
        if self._is_again:
            self._is_again = False
            self._loop.call_after_turn(self.begin)
        else:
            self._done()
