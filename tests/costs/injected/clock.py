"""The clocks of a counted broker: they stand still while it is counted, and go on where they stood afterwards.

Whatever a broker decides by a clock (how long a turn lasts, whether a request was expensive, which timers are due)
would differ from run to run. While the clocks stand, every request is as fast as can be. They can be advanced to a time
at which something is due.
"""

from __future__ import annotations

import time
from collections.abc import Callable


class Clock:
    """Replaces the functions of `time`."""

    def __init__(self) -> None:
        self.call_s = 0.0
        """By how much a system call sets the clocks forward, seconds."""
        self.system_call: Callable[[str], None] = _ignore
        """Told of a clock that costs a system call."""
        self._real_s = time.perf_counter
        self._real = {name: getattr(time, name) for name in ("monotonic", "perf_counter", "thread_time", "time")}
        self._stopped: dict[str, float] | None = None
        self._stopped_s = 0.0
        self._behind_s = 0.0
        """By how much the clocks are behind the real ones, seconds."""

    def install(self) -> None:
        """Replace the clocks. Modules imported before keep the functions that they have imported by name."""
        for name in ("monotonic", "perf_counter", "time"):
            setattr(time, name, self._reader(name))
            setattr(time, f"{name}_ns", self._reader_ns(name))
        time.thread_time = self.thread_time

    def _reader(self, name: str) -> Callable[[], float]:
        return lambda: self.read(name)

    def _reader_ns(self, name: str) -> Callable[[], int]:
        return lambda: int(self.read(name) * 1e9)

    def read(self, name: str) -> float:
        """What a clock shows, seconds."""
        source = self._real[name]() if self._stopped is None else self._stopped[name]
        return source - self._behind_s

    def thread_time(self) -> float:
        """The CPU time of a thread: costs a system call, unlike the others on Linux."""
        self.system_call("clock_gettime")
        return self._real["thread_time"]() if self._stopped is None else self._stopped["thread_time"]

    @property
    def is_stopped(self) -> bool:
        """Whether the clocks stand."""
        return self._stopped is not None

    def stop(self) -> None:
        """Stop the clocks."""
        if self._stopped is None:
            self._stopped = {name: source() for name, source in self._real.items()}
            self._stopped_s = self._real_s()  # last, so that no clock goes back

    def advance(self, seconds: float) -> None:
        """Set the clocks forward."""
        self._behind_s -= seconds

    def called(self) -> None:
        """The loop has made a system call that counts."""
        self._behind_s -= self.call_s

    def go_on(self) -> None:
        """Start the clocks again, from the time they show."""
        if self._stopped is not None:
            self._stopped = None
            self._behind_s += self._real_s() - self._stopped_s


def _ignore(_: str) -> None:
    """Nothing is counted."""
