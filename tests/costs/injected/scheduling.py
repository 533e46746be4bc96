"""What trio leaves to chance and to real time: the order of tasks, and how long its threads wait for work."""

from __future__ import annotations

import sys
from types import FrameType

_DAY_S = 86_400


def fix_scheduling() -> None:
    """Have trio keep the order of tasks that can run, which it reverses in half of the cases (`random() < 0.5`).

    Its threads end after ten seconds without work; here they wait for a day.
    """
    import trio._core._run as running
    import trio._core._thread_cache as threads

    running._r.random = lambda: 1.0  # type: ignore[method-assign]
    threads.IDLE_TIMEOUT = _DAY_S


def has_other_tasks() -> bool:
    """Whether a task of trio can run, or has a deadline that is over, besides the one that calls this."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_name != "unrolled_run":
        frame = frame.f_back
    if frame is None:
        return False  # trio itself polls: it does not wait while a task can run
    if frame.f_locals.get("batch"):
        return True  # tasks whose turn comes after that of the caller
    import trio

    statistics = trio.lowlevel.current_statistics()
    return statistics.tasks_runnable > 0 or statistics.seconds_to_next_deadline <= 0


def seconds_to_next_deadline() -> float:
    """In how many seconds a task of trio has something to do."""
    import trio

    return trio.lowlevel.current_statistics().seconds_to_next_deadline
