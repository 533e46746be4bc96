"""Load of the machine by other programs: shares of CPU time from /proc/stat, and waiting until it is idle.

On a virtual machine the host uses a part of the CPU time (steal), and so do other programs. Both distort a figure, so
they are reported with it.
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
IDLE, IOWAIT, STEAL = 3, 4, 7  # columns after `cpu`
COLUMNS = 8  # the next columns (guest) are included in user


@dataclass(frozen=True)
class Noise:
    """Shares of all cores' time between two moments, and the one-minute load average at the second."""

    steal: float
    idle: float
    load: float


class Watch:
    """Measures from its creation on."""

    def __init__(self) -> None:
        self._before = _ticks()

    def read(self) -> Noise:
        """The shares since then; None without /proc/stat."""
        spent = [after - before for after, before in zip(_ticks(), self._before, strict=True)]
        total = sum(spent) or 1
        steal, idle = spent[STEAL] / total, (spent[IDLE] + spent[IOWAIT]) / total
        return Noise(steal, idle, os.getloadavg()[0])


def _ticks() -> list[int]:
    if not STAT.exists():
        return [0] * COLUMNS
    return [int(word) for word in STAT.read_text().split("\n", 1)[0].split()[1 : 1 + COLUMNS]]


class Calm:
    """Waits for an idle machine before rows, limited per row and to `limit_s` in total."""

    def __init__(self, limit_s: float) -> None:
        self._left_s = limit_s

    def wait(self) -> None:
        """If the load average is above the number of cores, wait until the cores are idle or the average has fallen.

        The average includes the benchmark's own load of the last minute; idle cores show that it has ended.
        """
        started = time.monotonic()
        patience_s = min(ROW_LIMIT_S, self._left_s)
        while os.getloadavg()[0] > (os.cpu_count() or 1) and time.monotonic() - started < patience_s:
            watch = Watch()
            time.sleep(SAMPLE_S)
            if watch.read().idle >= IDLE_ENOUGH:
                break
        self._left_s -= time.monotonic() - started
