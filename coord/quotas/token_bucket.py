"""A bucket of tokens, for uses that come in bursts: it is filled at the limit's rate, up to what all windows allow.

It may go below zero by one use, however large; the next one waits until it is at zero again. Times are milliseconds.
Source: Kafka 4.4 `TokenBucket`, `ControllerMutationQuotaManager`. KIP-599.
"""

from __future__ import annotations

from barnabas.coord.quotas.rate import MAX_THROTTLE_MS


class TokenBucket:
    """The tokens of the clients that share a quota; full at first."""

    __slots__ = ("_filled_ms", "_tokens", "window_s")

    def __init__(self, windows: int, window_ms: int) -> None:
        """It holds what a limit allows in `windows` windows of `window_ms`."""
        self.window_s = windows * window_ms / 1000
        self._tokens = float("inf")
        self._filled_ms = 0

    def record(self, value: float, limit: float, now_ms: int) -> None:
        """So many tokens were used."""
        self._fill(limit, now_ms)
        self._tokens = min(limit * self.window_s, self._tokens - value)

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """How long to wait until no token is missing; 0 if none is."""
        self._fill(limit, now_ms)
        if self._tokens >= 0:
            return 0
        return int(min(-self._tokens / limit * 1000 + 0.5, MAX_THROTTLE_MS)) if limit > 0 else MAX_THROTTLE_MS

    def is_as_new(self, limit: float, now_ms: int) -> bool:
        """Whether a new bucket would hold the same."""
        self._fill(limit, now_ms)
        return self._tokens >= limit * self.window_s

    def _fill(self, limit: float, now_ms: int) -> None:
        added = limit * (now_ms - self._filled_ms) / 1000
        self._tokens = min(limit * self.window_s, self._tokens + added)
        self._filled_ms = now_ms
