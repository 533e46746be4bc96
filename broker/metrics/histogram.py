"""Histograms of times, as Prometheus defines them: how many values are at most each of some bounds, and their sum."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Final

BOUNDS_S: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0)
"""The bounds of times, seconds: from a request without a wait to the session timeout of a consumer."""


class Histogram:
    """The times of one kind of event since the start, seconds."""

    __slots__ = ("counts", "longest", "seconds")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_S) + 1)
        """By bound: how many times are at most it and above the bound before; the last are above all bounds."""
        self.seconds = 0.0
        """The sum of all times."""
        self.longest = 0.0

    def add(self, seconds: float, weight: int = 1) -> None:
        """Count a time, `weight` times."""
        self.counts[bisect_left(BOUNDS_S, seconds)] += weight
        self.seconds += seconds * weight
        self.longest = max(self.longest, seconds)

    def add_all(self, times: list[float]) -> None:
        """Count many times; the list is sorted and emptied."""
        if not times:
            return
        times.sort()
        below = 0
        for index, bound in enumerate(BOUNDS_S):
            position = bisect_right(times, bound)
            self.counts[index] += position - below
            below = position
            if below == len(times):
                break
        self.counts[-1] += len(times) - below
        self.seconds += sum(times)
        self.longest = max(self.longest, times[-1])
        times.clear()

    @staticmethod
    def sum(parts: Iterable[Histogram]) -> Histogram:
        """A histogram of all times of several."""
        whole = Histogram()
        for part in parts:
            whole.counts = [known + count for known, count in zip(whole.counts, part.counts, strict=True)]
            whole.seconds += part.seconds
            whole.longest = max(whole.longest, part.longest)
        return whole

    @property
    def count(self) -> int:
        """The number of times."""
        return sum(self.counts)

    def cumulative(self) -> Sequence[tuple[str, int]]:
        """Label `le` and count of each bucket, of `+Inf` too."""
        total = 0
        buckets = []
        for bound, count in zip((*BOUNDS_S, None), self.counts, strict=True):
            total += count
            buckets.append(("+Inf" if bound is None else f"{bound:g}", total))
        return buckets

    def quantile(self, fraction: float) -> float:
        """The time that `fraction` of the times do not exceed, seconds: linear within a bucket, as in Prometheus.

        0 without times; the last bound for times above it.
        """
        rank = fraction * self.count
        below, lower = 0, 0.0
        for bound, count in zip(BOUNDS_S, self.counts, strict=False):
            if count and below + count >= rank:
                return lower + (min(bound, max(self.longest, lower)) - lower) * (rank - below) / count
            below, lower = below + count, bound
        return BOUNDS_S[-1] if below < self.count else 0.0
