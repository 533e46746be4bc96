"""What trio leaves to chance and to real time: the order of tasks, and how long its threads wait for work."""

from __future__ import annotations

import dis
import sys
import threading
import time
from types import CodeType, FrameType

_DAY_S = 86_400
WORK_S = 30.0
"""How long other threads may work until they wait for work again, seconds."""
_PAUSE_S = 0.0005
_sleep, _monotonic = time.sleep, time.monotonic


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
        return True  # tasks whose turn comes after the caller's
    import trio

    statistics = trio.lowlevel.current_statistics()
    return statistics.tasks_runnable > 0 or statistics.seconds_to_next_deadline <= 0


def seconds_to_next_deadline() -> float:
    """In how many seconds a task of trio has something to do."""
    import trio

    return trio.lowlevel.current_statistics().seconds_to_next_deadline


def wait_for_threads() -> None:
    """Wait until all threads of trio wait for work: until they execute nothing any more."""
    if threading.active_count() == 1:
        return
    end = _monotonic() + WORK_S
    while not _are_idle():
        if _monotonic() > end:
            sys.exit(f"a thread of {threading.enumerate()} has not ended its work in {WORK_S:.0f} s")
        _sleep(_PAUSE_S)


def _are_idle() -> bool:
    """Whether no thread has work, and all of them wait for it: their work so far is counted completely."""
    from trio._core._thread_cache import THREAD_CACHE

    main = threading.main_thread().ident
    frames = [frame for ident, frame in sys._current_frames().items() if ident != main]
    return len(THREAD_CACHE._idle_workers) == len(frames) and all(map(_waits_for_work, frames))


def _waits_for_work(frame: FrameType) -> bool:
    code = frame.f_code
    return code.co_name == "_work" and frame.f_lasti == _first_call(code)


def _first_call(code: CodeType) -> int:
    """Where a function calls the first other one: `_work` of trio acquires a lock."""
    return next(instruction.offset for instruction in dis.get_instructions(code) if instruction.opname == "CALL")
