"""Calls many who wait for one thing, a piece at the end of each turn, so that nobody else waits for all of them.

    waking = Waking(loop, waiters, call, done)     # more than FEW
    waking.begin()

A change while the pass is under way makes another pass, since those who were called and wait on have not seen it.
Invariants: a waiter that has been removed is not called; one that is there at the last `begin` is called after it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from barnabas.broker.loop import Loop

FEW: Final = 16
"""So many are called at once: an answer takes about 0.1 ms."""
PIECE_S: Final = 0.001
"""How long waiters are called at the end of a turn, seconds."""

W = TypeVar("W")


def call_in_pieces(loop: Loop, calls: deque[Callable[[], object]]) -> None:
    """Call each once, in their order, and take it out of `calls`: for `PIECE_S` now, and at the end of each turn."""
    end = loop.now() + PIECE_S
    while calls:
        calls.popleft()()
        if loop.now() >= end:
            loop.call_after_turn(lambda: call_in_pieces(loop, calls))
            return


class Waking(Generic[W]):
    """One pass over those who wait, or several."""

    __slots__ = ("_call", "_done", "_is_again", "_keys", "_loop", "_waiters")

    def __init__(
        self, loop: Loop, waiters: Mapping[object, W], call: Callable[[W], None], done: Callable[[], None]
    ) -> None:
        """`call` calls one of the values of `waiters` and raises nothing; `done` is called after the last pass."""
        self._loop = loop
        self._waiters = waiters
        self._call = call
        self._done = done
        self._keys: deque[object] | None = None
        self._is_again = False

    def begin(self) -> None:
        """Call everybody who waits now; if a pass is under way, in another one after it."""
        if self._keys is not None:
            self._is_again = True
            return
        self._keys = deque(self._waiters)  # one that was called is freed then, not all at the end
        self._go_on()

    def _go_on(self) -> None:
        loop, waiters, keys = self._loop, self._waiters, self._keys
        assert keys is not None
        end = loop.now() + PIECE_S
        while keys:
            woken = waiters.get(keys.popleft())
            if woken is None:
                continue
            self._call(woken)
            if loop.now() >= end:
                loop.call_after_turn(self._go_on)
                return
        self._keys = None
        if self._is_again:
            self._is_again = False
            loop.call_after_turn(self.begin)
        else:
            self._done()
