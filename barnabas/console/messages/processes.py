"""Processes that read records for a console: searches, exports, and values too large for the console's own process.

A search decodes every record, which holds the interpreter's lock: in a thread of the console it would share its speed
with all pages, and slow them. So it is a task of another process (`reading_process.py`), which ends with the console.
Processes start at the first task, at most `MOST_PROCESSES` run, and an idle one ends by itself. A task that nobody
waits for any more, or that takes longer than its limit, ends with its process.

Tasks, their arguments and what they give are pickled: both sides are this program.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from multiprocessing.connection import Pipe
from threading import BoundedSemaphore, Event, Lock
from time import monotonic
from typing import TYPE_CHECKING, Any

from barnabas.client.errors import ClientError, TimedOut
from barnabas.console.failures import Refused

if TYPE_CHECKING:
    from barnabas.console.guard.sessions import Session
    from barnabas.console.settings import Settings

MOST_PROCESSES = 4
FREE_WAIT_S = 5.0
"""How long a task waits for a process that is free."""
LOOK_S = 0.1
"""How often a waiting caller looks whether its client is gone."""
STEP_LIMIT_S = 60.0
"""The longest time of a step of a task, seconds."""
_PROGRAM = "import sys; sys.path[:] = {path!r}; from barnabas.console.messages.reading_process import main; main({fd})"


@dataclass(frozen=True, slots=True)
class Task:
    """`function(cluster, *arguments)`; a generator gives several steps. `properties` are keys of TLS and SASL."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    bootstrap: str
    properties: Mapping[str, str]
    timeout_s: float


class ReadingProcesses:
    """The processes of one console. Methods may be called from any thread."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._free = BoundedSemaphore(MOST_PROCESSES)
        self._idle: list[_Process] = []
        self._busy: set[_Process] = set()
        self._lock = Lock()

    def result(
        self, session: Session, function: Callable[..., Any], *arguments: Any, is_unwanted: Event | None = None
    ) -> Any:
        """What `function(cluster, *arguments)` returns. Errors: those of the function, TimedOut, Refused."""
        steps = self.steps(session, function, *arguments, is_unwanted=is_unwanted)
        try:
            return next(steps)
        finally:
            steps.close()

    def steps(
        self, session: Session, function: Callable[..., Any], *arguments: Any, is_unwanted: Event | None = None
    ) -> Generator[Any, None, None]:
        """What the generator `function(cluster, *arguments)` yields. Closing this ends it with its process.

        `is_unwanted` is set when nobody waits any more. Errors: those of the function, TimedOut, Refused.
        """
        if not self._free.acquire(timeout=FREE_WAIT_S):
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "too many searches are running: try again in a moment")
        process = None
        is_over = False
        try:
            settings = self._settings
            process = self._begin(Task(function, arguments, settings.bootstrap, session.properties, settings.timeout_s))
            while not is_over:
                kind, value = process.receive(is_unwanted)
                is_over = kind != "step"
                if kind == "failure":
                    raise value
                if kind != "end":
                    yield value
        finally:
            if process is not None and is_over:
                self._give_back(process)
            elif process is not None:
                self._end(process)
            self._free.release()

    def end_idle(self) -> None:
        """End the processes without a task: each keeps connections that are logged in as the last task's user."""
        with self._lock:
            processes = list(self._idle)
            self._idle.clear()
        for process in processes:
            process.end()

    def close(self) -> None:
        """End every process."""
        with self._lock:
            processes = [*self._idle, *self._busy]
            self._idle.clear()
        for process in processes:
            process.end()

    def _begin(self, task: Task) -> _Process:
        """A process that has got the task: an idle one, unless it has ended meanwhile, or a new one."""
        while True:
            with self._lock:
                process = self._idle.pop() if self._idle else _Process()
                self._busy.add(process)
            if process.is_new or process.is_alive():
                try:
                    process.send(task)
                except OSError:
                    if process.is_new:
                        raise ClientError("a process that reads records could not be started") from None
                else:
                    return process
            self._end(process)

    def _give_back(self, process: _Process) -> None:
        with self._lock:
            self._busy.discard(process)
            self._idle.append(process)

    def _end(self, process: _Process) -> None:
        with self._lock:
            self._busy.discard(process)
        process.end()


class _Process:
    """A process, and the connection to it. One task at a time."""

    def __init__(self) -> None:
        self._connection, other = Pipe()
        environment = {name: value for name, value in os.environ.items() if not name.startswith("BARNABAS_")}
        with other:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", _PROGRAM.format(path=sys.path, fd=other.fileno())],
                stdin=subprocess.DEVNULL,
                env=environment,
                pass_fds=[other.fileno()],
                start_new_session=True,  # Ctrl-C is for the console, which then ends this
            )
        self.is_new = True

    def is_alive(self) -> bool:
        """Whether an idle process can take a task: it has not ended, and does not end now."""
        return self._process.poll() is None and not self._connection.poll(0)

    def send(self, task: Task) -> None:
        """Begin a task. OSError if the process has ended."""
        self._connection.send(task)

    def receive(self, is_unwanted: Event | None) -> tuple[str, Any]:
        """The next message: step, result, failure or end. TimedOut; ClientError if the process has ended."""
        until = monotonic() + STEP_LIMIT_S
        while not self._connection.poll(LOOK_S if is_unwanted is not None else max(0.0, until - monotonic())):
            if is_unwanted is not None and is_unwanted.is_set():
                raise ClientError("the search was stopped")
            if monotonic() >= until:
                raise TimedOut(f"the records were not read in {STEP_LIMIT_S:.0f} s")
        try:
            message: tuple[str, Any] = self._connection.recv()
        except (EOFError, OSError):
            raise ClientError("the process that read the records has ended: try again") from None
        self.is_new = False
        return message

    def end(self) -> None:
        """End the process now, whatever it does."""
        self._process.kill()
        self._process.wait()
        self._connection.close()
