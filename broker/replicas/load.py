"""The load of this broker, for `barnabas cluster status` and load-aware producers (`wire/clients/broker_load.py`).

Nothing is counted for it: rates come from two samples of counters that exist anyway. While there are requests, a sample
is taken each second; rates are over the last five seconds, or since the start for the first request. Disks are read in
a thread.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.wire.clients.broker_load import BrokerLoad

if TYPE_CHECKING:
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.event_loop.steps import StepRunner, Steps
    from barnabas.broker.replicas.partitions import Partitions
    from barnabas.storage.directories.log_dirs import LogDirs

LOOK_S: Final = 1.0
WINDOW: Final = 5
"""The number of samples over which rates are computed."""
IDLE_S: Final = 30.0
"""How long samples are taken after the last request, seconds."""


class Look(NamedTuple):
    """The counters at one moment."""

    at: float
    cpu_s: float
    bytes: int
    messages: int


class Load:
    """Computes the load of this broker."""

    def __init__(
        self, loop: Loop, started_at: float, partitions: Partitions, log_dirs: LogDirs, runner: StepRunner
    ) -> None:
        """`started_at`: when the broker was started, by the loop's clock."""
        self._started_at = started_at
        self._loop = loop
        self._partitions = partitions
        self._log_dirs = log_dirs
        self._runner = runner
        self._looks: deque[Look] = deque(maxlen=WINDOW + 1)
        self._asked_at = -IDLE_S
        self._is_looking = False

    def current(self, then: Callable[[BrokerLoad], None]) -> None:
        """Call `then` with the load, when the disks have answered."""
        self._asked_at = self._loop.now()
        if not self._is_looking:
            self._looks.clear()
            self._look()
        self._runner.start(self._disk_used(), lambda used: then(self._load(used)), lambda _: then(self._load(1.0)))

    def _look(self) -> None:
        now = self._loop.now()
        self._is_looking = now - self._asked_at < IDLE_S
        if not self._is_looking:
            return
        grown = messages = 0
        for partition in self._partitions:
            grown += partition.bytes_appended
            messages += partition.log.log_end_offset
        self._looks.append(Look(now, time.process_time(), grown, messages))
        self._loop.timers.at(now + LOOK_S, self._look)

    def _load(self, disk_used: float) -> BrokerLoad:
        uptime_s = self._loop.now() - self._started_at
        first = self._looks[0] if len(self._looks) > 1 else Look(self._loop.now() - uptime_s, 0.0, 0, 0)
        last = self._looks[-1]
        seconds = max(last.at - first.at, 0.001)
        memory = _memory_bytes()
        has_first = len(self._looks) > 1
        return BrokerLoad(
            cpu=min(1.0, (last.cpu_s - first.cpu_s) / seconds / (os.cpu_count() or 1)),
            memory=memory / _machine_memory(),
            memory_bytes=memory,
            disk=disk_used,
            bytes_per_s=max(0.0, (last.bytes - first.bytes) / seconds),
            messages_per_s=max(0.0, (last.messages - first.messages) / seconds) if has_first else 0.0,
            leaders=sum(1 for partition in self._partitions if partition.is_leader),
            uptime_s=uptime_s,
        )

    def _disk_used(self) -> Steps[float]:
        """The used part of the fullest file system."""
        used: list[float] = []

        def ask() -> None:
            for log_dir in self._log_dirs.working:
                size, free = log_dir.volume()
                used.append(1 - free / max(1, size))

        yield ask
        return max(used, default=1.0)


def _machine_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _memory_bytes() -> int:
    """Resident memory of this process; where /proc is missing, its largest so far."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        import resource
        import sys

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
