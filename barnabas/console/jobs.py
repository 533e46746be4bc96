"""Work that goes on after the answer to an action: moves of partitions. Each runs in a thread, with its progress.

At most `RUNNING_MAX` at a time; the last `KEPT` are remembered. They end with the process: what a broker was asked to
do goes on there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from http import HTTPStatus
from threading import Lock, Thread
from time import time

from barnabas.console.failures import Refused, answer

RUNNING_MAX = 4
KEPT = 20
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Job:
    """One piece of work."""

    id: int
    title: str
    user: str
    started_ms: int
    state: str = "running"
    """running, done or failed."""
    text: str = ""
    """The progress, then the outcome."""
    ended_ms: int | None = None


class Jobs:
    """The work of one console."""

    def __init__(self) -> None:
        self._jobs: dict[int, Job] = {}
        self._lock = Lock()
        self._last = 0

    def all(self) -> list[Job]:
        """The jobs that run, and those that ended last, the newest first."""
        with self._lock:
            return sorted(self._jobs.values(), key=lambda job: -job.id)

    def start(self, title: str, user: str, work: Callable[[Progress], str]) -> Job:
        """Start `work`, which gets a function for its progress and returns the outcome. `Refused` if too much runs."""
        with self._lock:
            if sum(job.state == "running" for job in self._jobs.values()) >= RUNNING_MAX:
                raise Refused(HTTPStatus.CONFLICT, f"{RUNNING_MAX} jobs run already: wait until one has ended")
            self._last += 1
            job = self._jobs[self._last] = Job(self._last, title, user, int(time() * 1000))
            for old in sorted(self._jobs)[:-KEPT]:
                if self._jobs[old].state != "running":
                    del self._jobs[old]
        Thread(target=self._run, args=[job.id, work], name=f"job {job.id}", daemon=True).start()
        return job

    def _run(self, number: int, work: Callable[[Progress], str]) -> None:
        try:
            text, state = work(lambda text: self._change(number, text=text)), "done"
        except Exception as error:
            text, state = answer(error).text, "failed"
        self._change(number, text=text, state=state, ended_ms=int(time() * 1000))

    def _change(self, number: int, **changes: object) -> None:
        with self._lock:
            self._jobs[number] = replace(self._jobs[number], **changes)  # type: ignore[arg-type]
