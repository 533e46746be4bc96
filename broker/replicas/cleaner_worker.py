"""The process that compacts: tasks come in on stdin, what has become of them goes out on stdout, a JSON line each.

Compaction is a loop over every record, which in the broker's own process would take the interpreter from its
connections. So it runs beside it, only while there is something to clean, and gives way to it; it reads segments and
writes `.cleaned` files, and the broker puts these in place. For each task it answers any number of `group` lines and
then `done` or `failed`. It ends with its stdin, and dies with its broker: nobody may write into a data directory that
may have another owner already.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator

from barnabas.storage.cleaning.cleaner import Cleaner
from barnabas.storage.cleaning.task import CleaningTask
from barnabas.storage.files import Files
from barnabas.wire.errors import KafkaError

NICENESS = 5
"""Where there is no SCHED_BATCH."""
_PR_SET_PDEATHSIG = 1


class Throttle:
    """Waits so that no more than `per_second` bytes are read and written in a second, if that is not 0."""

    def __init__(
        self, per_second: float, now: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._per_second = per_second
        self._now = now
        self._sleep = sleep
        self._free_from = now()
        """When what was told so far has had its time."""

    def __call__(self, size: int) -> None:
        if self._per_second <= 0:
            return
        now = self._now()
        self._free_from = max(self._free_from, now) + size / self._per_second
        if self._free_from > now:
            self._sleep(self._free_from - now)


def main() -> None:
    """Clean until stdin ends."""
    _die_with(int(sys.argv[1]))
    _give_way()
    gc.disable()  # millions of keys, and no cycles
    for line in sys.stdin:
        for answer, value in _answers(CleaningTask.from_json(line)):
            sys.stdout.write(json.dumps({answer: value}) + "\n")
            sys.stdout.flush()


def _answers(task: CleaningTask) -> Iterator[tuple[str, object]]:
    """The lines for one task: their kind and their content."""
    throttle = Throttle(task.io_per_second)

    def check(size: int) -> None:
        _exit_if_alone()
        throttle(size)

    cleaner = Cleaner(task, Files(), check)
    try:
        for group in cleaner.run():
            yield "group", group
    except KafkaError as error:
        yield "failed", {"errno": None, "reason": str(error)}
    except OSError as error:
        yield "failed", {"errno": error.errno, "reason": str(error)}
    except Exception as error:
        traceback.print_exc()
        yield "failed", {"errno": None, "reason": f"the cleaner has failed: {error!r}"}
    else:
        yield "done", cleaner.done


def _exit_if_alone() -> None:
    """The broker writes nothing while a task is under way: what can be read from it is its end."""
    if select.select([sys.stdin], [], [], 0)[0]:
        sys.exit(1)


def _give_way() -> None:
    """Never run instead of a broker that has just been woken, yet get a fair share of the processors.

    Measured with both processors busy: of the policies tried it left the broker the lowest p99 at the highest speed.
    """
    try:
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    except (AttributeError, OSError):  # another system, or a container that forbids it
        os.nice(NICENESS)


def _die_with(parent: int) -> None:
    """Have the system end this process with its parent, where it can (Linux)."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(1)


if __name__ == "__main__":
    main()
