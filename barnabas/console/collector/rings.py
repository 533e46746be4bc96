"""Series of samples, bounded in memory: five minutes in steps of 2 s, and an hour in steps of 30 s.

A value has a slot by its time, so that series which are sampled at different times share one axis. A slot without a
sample is NaN in memory and None outside. Values are 32-bit floats: 1.1 kB a series at most, and exact to seven digits.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from math import isnan, nan
from typing import Final

FINE_STEP_S: Final = 2
FINE_SLOTS: Final = 150
COARSE_STEP_S: Final = 30
COARSE_SLOTS: Final = 120

Point = tuple[float, float | None]
"""Seconds since 1970, and the value; None where nothing was sampled."""


class Ring:
    """The last `slots` values of a series, one for each `step_s` seconds."""

    __slots__ = ("_head", "_newest_slot", "_slots", "_step_s", "_values")

    def __init__(self, step_s: int, slots: int) -> None:
        self._step_s = step_s
        self._slots = slots
        self._values = array("f")
        self._head = -1
        """Where the newest value is in `_values`."""
        self._newest_slot = 0

    def put(self, at_s: float, value: float) -> None:
        """Store a value; the last one of a slot counts. A time before the newest slot is ignored."""
        slot = int(at_s // self._step_s)
        if self._head < 0:
            self._push(value)
        elif slot == self._newest_slot:
            self._values[self._head] = value
            return
        elif slot < self._newest_slot:
            return
        else:
            for _ in range(min(slot - self._newest_slot - 1, self._slots)):
                self._push(nan)
            self._push(value)
        self._newest_slot = slot

    def _push(self, value: float) -> None:
        if len(self._values) < self._slots:
            self._values.append(value)
            self._head = len(self._values) - 1
        else:
            self._head = (self._head + 1) % self._slots
            self._values[self._head] = value

    def points(self, since_s: float = 0.0) -> Iterator[Point]:
        """The points since a time, oldest first."""
        count = len(self._values)
        for age in range(count - 1, -1, -1):
            at_s = float((self._newest_slot - age) * self._step_s)
            if at_s >= since_s:
                value = self._values[(self._head - age) % count]
                yield at_s, None if isnan(value) else value


class History:
    """One series in both steps; a value of the hour is the mean of the samples in its 30 s."""

    __slots__ = ("_coarse", "_coarse_count", "_coarse_slot", "_coarse_sum", "_fine")

    def __init__(self) -> None:
        self._fine = Ring(FINE_STEP_S, FINE_SLOTS)
        self._coarse = Ring(COARSE_STEP_S, COARSE_SLOTS)
        self._coarse_slot = -1
        self._coarse_sum = 0.0
        self._coarse_count = 0

    def put(self, at_s: float, value: float) -> None:
        """Store a sample taken at `at_s`, seconds since 1970."""
        self._fine.put(at_s, value)
        slot = int(at_s // COARSE_STEP_S)
        if slot != self._coarse_slot:
            self._coarse_slot, self._coarse_sum, self._coarse_count = slot, 0.0, 0
        self._coarse_sum += value
        self._coarse_count += 1
        self._coarse.put(at_s, self._coarse_sum / self._coarse_count)

    def points(self, now_s: float, span_s: float) -> list[Point]:
        """The points of the last `span_s` seconds, oldest first: in the fine step if it reaches back so far."""
        ring = self._fine if span_s <= FINE_STEP_S * FINE_SLOTS else self._coarse
        return list(ring.points(now_s - span_s))

    def growth(self, now_s: float, span_s: float) -> float | None:
        """The last value minus the first one of the last `span_s` seconds; None with fewer than two values."""
        values = [value for _, value in self.points(now_s, span_s) if value is not None]
        return values[-1] - values[0] if len(values) > 1 else None


def rate(before: int, before_at_s: float, after: int, after_at_s: float) -> float | None:
    """Units a second between two readings of a counter; None if it went back or no time passed."""
    seconds = after_at_s - before_at_s
    return (after - before) / seconds if seconds > 0 and after >= before else None
