"""Other load of the machine: CPU shares from /proc/stat, and a wait until the machine is idle.

CPU time that is used by other programs, or by the host of a virtual machine (steal), makes a figure unreliable, so each
row of the report has these shares.
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
COLUMNS = 8  # the columns after these (guest) are included in user


@dataclass(frozen=True)
class Noise:
    """Shares of all cores' time in an interval, and the one-minute load average at its end."""

    steal: float
    idle: float
    load: float


class CpuShares:
    """Measures from its creation on."""

    def __init__(self) -> None:
        self._before = _ticks()

    def read(self) -> Noise:
        """The shares since the creation; zero without /proc/stat."""
        spent = [after - before for after, before in zip(_ticks(), self._before, strict=True)]
        total = sum(spent) or 1
        steal, idle = spent[STEAL] / total, (spent[IDLE] + spent[IOWAIT]) / total
        return Noise(steal, idle, os.getloadavg()[0])


def _ticks() -> list[int]:
    if not STAT.exists():
        return [0] * COLUMNS
    return [int(word) for word in STAT.read_text().split("\n", 1)[0].split()[1 : 1 + COLUMNS]]


class IdleWait:
    """Waits for an idle machine before each row, up to ROW_LIMIT_S, and `limit_s` in total."""

    def __init__(self, limit_s: float) -> None:
        self._left_s = limit_s

    def wait(self) -> None:
        """If the load average is above the number of cores, wait until it has fallen or the cores are idle.

        The load average includes the last case of the benchmark for a minute; therefore idle cores are sufficient.
        """
        started = time.monotonic()
        limit_s = min(ROW_LIMIT_S, self._left_s)
        while os.getloadavg()[0] > (os.cpu_count() or 1) and time.monotonic() - started < limit_s:
            cpu = CpuShares()
            time.sleep(SAMPLE_S)
            if cpu.read().idle >= IDLE_ENOUGH:
                break
        self._left_s -= time.monotonic() - started
