"""What the machine is, and how fast: figures of different machines can be compared by the calibration."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path

from tests.soak.records import Machine

SLOW = 1.3
"""The calibration of the machine that the seconds of parts are declared for."""
ADDITIONS = 10_000_000
_SAMPLE = 20
"""Each sample does this part of the additions; the fastest one counts, since other work only makes it slower."""
_LOOP = compile(f"total = 0\nfor number in range({ADDITIONS // _SAMPLE}): total += number", "calibration", "exec")


def this_machine() -> Machine:
    """The machine that this process runs on."""
    return Machine(cores(), _model(), platform.python_version(), round(calibration(), 2))


def cores() -> int:
    """How many CPUs this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def load() -> float:
    """How many processes were ready to run on each CPU, in the last minute."""
    return os.getloadavg()[0] / cores()


def load_now() -> float:
    """How many other processes are: at the moment, if that is less than in the last minute, which may have ended."""
    counts = Path("/proc/loadavg")
    if not counts.exists():
        return load()
    running = int(counts.read_text().split()[3].partition("/")[0]) - 1
    return min(load(), running / cores())


def calibration() -> float:
    """Seconds of CPU that ten million additions take."""
    return min(_sample() for _ in range(5)) * _SAMPLE


def _sample() -> float:
    began = time.thread_time()
    exec(_LOOP, {})
    return time.thread_time() - began


def _model() -> str:
    """The model of the CPU, or its architecture where that is not known."""
    cpus = Path("/proc/cpuinfo")
    if cpus.exists():
        for line in cpus.read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.machine()
