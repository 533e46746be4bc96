"""What else the machine does: shares of its CPU time from /proc/stat, and the wait for a calm moment.

On a virtual machine the host takes time away (steal); other programs take it as well. Both make a figure worthless, so
that they stand beside it.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

ROW_LIMIT_S = 30.0
SAMPLE_S = 0.5
IDLE_ENOUGH = 0.8
STAT = Path("/proc/stat")
IDLE, IOWAIT, STEAL = 3, 4, 7  # columns behind `cpu`
COLUMNS = 8  # what follows (guest) is part of user


@dataclass(frozen=True)
class Noise:
    """Shares of all cores' time between two moments, and the one-minute load average at the second."""

    steal: float
    idle: float
    load: float


class Watch:
    """Counts from its making on."""

    def __init__(self) -> None:
        self._before = _ticks()

    def read(self) -> Noise:
        """What has been since; nothing where there is no /proc/stat."""
        spent = [after - before for after, before in zip(_ticks(), self._before, strict=True)]
        total = sum(spent) or 1
        steal, idle = spent[STEAL] / total, (spent[IDLE] + spent[IOWAIT]) / total
        return Noise(steal, idle, os.getloadavg()[0])


def _ticks() -> list[int]:
    if not STAT.exists():
        return [0] * COLUMNS
    return [int(word) for word in STAT.read_text().split("\n", 1)[0].split()[1 : 1 + COLUMNS]]


class Calm:
    """Waits for calm before rows, a while before each and `limit_s` in all: some machines are never calm."""

    def __init__(self, limit_s: float) -> None:
        self._left_s = limit_s

    def wait(self) -> None:
        """When the load average is above the cores, wait until the cores are idle or the average has fallen.

        The average remembers our own last load for a minute; idle cores show that it is no longer there.
        """
        started = time.monotonic()
        patience_s = min(ROW_LIMIT_S, self._left_s)
        while os.getloadavg()[0] > (os.cpu_count() or 1) and time.monotonic() - started < patience_s:
            watch = Watch()
            time.sleep(SAMPLE_S)
            if watch.read().idle >= IDLE_ENOUGH:
                break
        self._left_s -= time.monotonic() - started
