"""How fast something is used: Kafka's rate over windows, and the time to wait until it is within a limit again.

A window begins with the first use after the one before has ended. A window whose last use is as long ago as all windows
together last counts no longer. Missing windows count as windows without use: a new client may use at once what it may
use in all windows but one. Times are milliseconds. Source: Kafka 4.4 `SampledStat`, `Rate`, `QuotaUtils`.
"""

from __future__ import annotations

from typing import Final

MAX_THROTTLE_MS: Final = 2**31 - 1
"""The longest throttle time that a response can have."""


class _Sample:
    """The use in one window."""

    __slots__ = ("last_ms", "start_ms", "value")

    def __init__(self, now_ms: int) -> None:
        self.reset(now_ms)

    def reset(self, now_ms: int) -> None:
        self.start_ms = self.last_ms = now_ms
        self.value = 0.0


class Rate:
    """The use per second over `windows` windows of `window_ms`, the one in progress included."""

    __slots__ = ("_current", "_samples", "window_ms", "windows")

    def __init__(self, windows: int, window_ms: int) -> None:
        self.windows = windows
        self.window_ms = window_ms
        self._samples: list[_Sample] = []
        self._current = 0

    def record(self, value: float, now_ms: int) -> None:
        """Add a use; a negative value takes back a recorded use."""
        samples = self._samples
        if not samples:
            samples.append(_Sample(now_ms))
        sample = samples[self._current]
        if now_ms - sample.start_ms >= self.window_ms:
            self._current = (self._current + 1) % (self.windows + 1)  # one more than counts: it may overlap
            if self._current == len(samples):
                samples.append(_Sample(now_ms))
            sample = samples[self._current]
            sample.reset(now_ms)
        sample.value += value
        sample.last_ms = now_ms

    def measure(self, now_ms: int) -> float:
        """The use per second."""
        elapsed_ms = self.elapsed_ms(now_ms)
        return sum(sample.value for sample in self._samples) / (elapsed_ms / 1000)

    def elapsed_ms(self, now_ms: int) -> int:
        """The time that the rate is over: from the start of the oldest window, at least all windows but one."""
        self._forget(now_ms)
        elapsed = now_ms - min((sample.start_ms for sample in self._samples), default=now_ms)
        missing = self.windows - 1 - elapsed // self.window_ms
        return max(elapsed + max(missing, 0) * self.window_ms, 1)

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """How long to wait until the rate is at the limit, if nothing more is used; 0 while it is not above."""
        rate = self.measure(now_ms)
        if rate <= limit:
            return 0
        wait_ms = (rate - limit) / limit * self.elapsed_ms(now_ms) if limit > 0 else MAX_THROTTLE_MS
        return int(min(wait_ms + 0.5, MAX_THROTTLE_MS))

    def is_as_new(self, _limit: float, now_ms: int) -> bool:
        """Whether nothing that was used counts any longer, so that a new rate would measure the same."""
        return all(now_ms - sample.last_ms >= self.windows * self.window_ms for sample in self._samples)

    def _forget(self, now_ms: int) -> None:
        oldest_ms = now_ms - self.windows * self.window_ms
        for sample in self._samples:
            if sample.last_ms <= oldest_ms:
                sample.reset(now_ms)
