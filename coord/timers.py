"""Deadlines by key for the coordinators."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from heapq import heappop, heappush
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from barnabas.coord.machine import Moment

R = TypeVar("R")

RETRY_S = 1.0
"""Delay before a timer is handled again whose handling has failed, seconds."""


class Timers:
    """Deadlines by key, earliest first; keys with equal deadlines come out in the order they were set.

    Moving a deadline later (a heartbeat) costs one dictionary store: the heap entry is moved when it reaches the head.
    """

    __slots__ = ("_deadlines", "_heap", "_queued", "_sequence", "has_earlier")

    def __init__(self) -> None:
        self._deadlines: dict[Hashable, float] = {}
        self._queued: dict[Hashable, float] = {}
        self._heap: list[tuple[float, int, Hashable]] = []
        self._sequence = 0
        self.has_earlier = False
        """Whether a deadline that is earlier than the last result of `next_deadline` was set since that call."""

    def set(self, key: Hashable, deadline: float) -> None:
        """Set the deadline of `key` (monotonic seconds), replacing an earlier one."""
        self._deadlines[key] = deadline
        queued = self._queued.get(key)
        if queued is None or deadline < queued:
            self._push(key, deadline)

    def set_if_unset(self, key: Hashable, deadline: float) -> None:
        """Set the deadline of `key` (monotonic seconds) unless it has one."""
        if key not in self._deadlines:
            self.set(key, deadline)

    def retry(self, key: Hashable, now: float) -> None:
        """Set a deadline that has failed to be handled again, unless the key has a new one."""
        self.set_if_unset(key, now + RETRY_S)

    def cancel(self, key: Hashable) -> None:
        """Remove the deadline of `key`, if it has one."""
        self._deadlines.pop(key, None)

    def deadline(self, key: Hashable) -> float | None:
        """The deadline of `key`, or None."""
        return self._deadlines.get(key)

    def next_deadline(self) -> float | None:
        """The earliest deadline, or None when nothing is set."""
        self.has_earlier = False
        self._settle()
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now: float) -> Hashable | None:
        """Remove and return the key with the earliest deadline if that is at or before `now`, else return None."""
        self._settle()
        if not self._heap or self._heap[0][0] > now:
            return None
        _, _, key = heappop(self._heap)
        del self._queued[key]
        del self._deadlines[key]
        return key

    def run_due(self, at: Moment, result: R, due: Callable[[Hashable, Moment, R], None]) -> R:
        """Call `due(key, at, result)` for each deadline up to `at`, in order, until `result` is true; returns it.

        A deadline whose handling fails is set again for later, and the exception raised.
        """
        while not result and (key := self.pop_due(at.now)) is not None:
            try:
                due(key, at, result)
            except Exception:
                self.retry(key, at.now)
                raise
        return result

    def __len__(self) -> int:
        return len(self._deadlines)

    def _push(self, key: Hashable, deadline: float) -> None:
        self._sequence += 1
        self._queued[key] = deadline
        entry = (deadline, self._sequence, key)
        heappush(self._heap, entry)
        if self._heap[0] is entry:
            self.has_earlier = True

    def _settle(self) -> None:
        """Drop or move the head of the heap until it is a valid deadline."""
        while self._heap:
            queued, _, key = self._heap[0]
            if self._queued.get(key) != queued:  # an earlier entry of the same key replaced this one
                heappop(self._heap)
                continue
            current = self._deadlines.get(key)
            if current == queued:
                return
            heappop(self._heap)
            del self._queued[key]
            if current is not None:
                self._push(key, current)
