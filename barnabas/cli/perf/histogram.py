"""Percentiles of many durations in little memory: counts by value, with three significant digits."""

from __future__ import annotations

from math import floor, log10

PERCENTILES = (50.0, 95.0, 99.0, 99.9)


class Histogram:
    """Durations in seconds. A percentile is off by less than 0.5 %; the largest value is exact."""

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0
        self.largest = 0.0
        self._counts: dict[float, int] = {}

    def add(self, seconds: float, count: int = 1) -> None:
        """Add a duration, `count` times."""
        self.count += count
        self.total += seconds * count
        self.largest = max(self.largest, seconds)
        digits = 2 - floor(log10(seconds)) if seconds > 0 else 0
        rounded = round(seconds, digits)
        self._counts[rounded] = self._counts.get(rounded, 0) + count

    def percentile(self, percent: float) -> float | None:
        """The smallest duration that `percent` % of all do not exceed; None without any."""
        if not self.count:
            return None
        needed = self.count * percent / 100
        seen = 0
        for seconds in sorted(self._counts):
            seen += self._counts[seconds]
            if seen >= needed:
                return min(seconds, self.largest)
        return self.largest

    def row(self) -> dict[str, object]:
        """Average, percentiles and maximum in ms, for a table or a document."""
        average = self.total / self.count if self.count else None
        row: dict[str, object] = {"avg_ms": milliseconds(average)}
        for percent in PERCENTILES:
            row[f"p{percent:g}_ms"] = milliseconds(self.percentile(percent))
        return row | {"max_ms": milliseconds(self.largest if self.count else None)}


def milliseconds(seconds: float | None) -> float | None:
    """Milliseconds with three digits after the point."""
    return None if seconds is None else round(seconds * 1000, 3)
