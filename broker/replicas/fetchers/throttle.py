"""The quota for replication traffic of throttled replicas, as bytes a second over the last ten seconds.

A replica is throttled if `follower.replication.throttled.replicas` of its topic names it (`partition:broker`, or `*`)
and it is not in sync. While the rate is above the quota, throttled replicas are not fetched; fetched records are always
appended. Pure; times are seconds of the monotonic clock. Source: Kafka's `ReplicationQuotaManager` (KIP-73).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

WINDOW_S: Final = 1.0
"""Kafka's replication.quota.window.size.seconds."""
WINDOWS: Final = 11
"""Kafka's replication.quota.window.num; the last one is in progress."""


class ReplicationQuota:
    """The bytes of throttled replicas in the last windows."""

    __slots__ = ("_bytes", "_windows")

    def __init__(self) -> None:
        self._windows: deque[tuple[int, int]] = deque()  # (number of the window, bytes)
        self._bytes = 0

    def record(self, size: int, now: float) -> None:
        """Count `size` bytes that were fetched for throttled replicas."""
        number = int(now / WINDOW_S)
        self._bytes += size
        if self._windows and self._windows[-1][0] == number:
            size += self._windows.pop()[1]
        self._windows.append((number, size))
        self._expire(now)

    def _expire(self, now: float) -> None:
        oldest = int(now / WINDOW_S) - WINDOWS + 1
        while self._windows and self._windows[0][0] < oldest:
            self._bytes -= self._windows.popleft()[1]

    def is_exceeded(self, rate: int, now: float) -> bool:
        """Whether more than `rate` bytes a second were fetched."""
        self._expire(now)
        return self._bytes > rate * (WINDOWS - 1) * WINDOW_S


def is_throttled(entries: Sequence[str], index: int, node_id: int) -> bool:
    """Whether a topic's list of throttled replicas names the replica of a partition on a node."""
    return "*" in entries or f"{index}:{node_id}" in entries
