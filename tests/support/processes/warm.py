"""Broker processes forked from a process that has imported the broker, as `barnabas serve --brokers` forks them.

A start that is not the subject of a test costs a tenth of one with a new interpreter. `launch` starts such a process;
it can be killed, paused and waited for like any other. `python -m tests.support.processes.warm` is the process that
forks: it reads from its input what to start, reports the processes that have ended, and kills the remaining ones when
its input ends.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import os
import queue
import runpy
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.waiting import Deadline

ROOT = Path(__file__).resolve().parents[3]
SERVE = ("-m", "barnabas", "serve")
START_S = 300.0
"""The first process waits for the imports, which a busy machine takes long for."""


class WarmProcess:
    """A process that was forked, with the interface of `subprocess.Popen`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._has_ended = threading.Event()

    def ended(self, code: int) -> None:
        """Note that it has ended."""
        self.returncode = code
        self._has_ended.set()

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end. subprocess.TimeoutExpired."""
        if not self._has_ended.wait(timeout):
            raise subprocess.TimeoutExpired("barnabas serve", timeout or 0.0)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)


class Forker:
    """The process that forks, and what it has forked."""

    def __init__(self) -> None:
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("BARNABAS_", "KAFKA_"))
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.processes.warm"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env=environment,
            start_new_session=True,  # Ctrl-C is for the tests; it ends when they do
            text=True,
        )
        self._lock = threading.Lock()
        self._started: queue.SimpleQueue[WarmProcess] = queue.SimpleQueue()
        self._running: dict[int, WarmProcess] = {}
        self._listener = threading.Thread(target=self._listen, name="forked processes", daemon=True)
        self._listener.start()
        atexit.register(self.close)

    def start(self, arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> WarmProcess:
        """Start `barnabas ARGUMENTS`, with its output appended to a file."""
        order = {"arguments": list(arguments), "environment": dict(environment), "log": str(log)}
        with self._lock:
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
            return self._next()

    def _next(self) -> WarmProcess:
        deadline = Deadline("a process that is forked", START_S)
        while True:
            try:
                return self._started.get(timeout=1.0)
            except queue.Empty:
                deadline.check()
                if not self.is_running:
                    raise RuntimeError(f"the process that forks has ended with {self._process.poll()}") from None

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            message = json.loads(line)
            if "code" in message:
                self._running.pop(message["pid"]).ended(message["code"])
            else:
                process = self._running[message["pid"]] = WarmProcess(message["pid"])
                self._started.put(process)

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def close(self) -> None:
        """End it, and what it has forked."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._listener.join()
        self._process.stdout.close()


_forkers: dict[int, Forker] = {}
"""By the id of the process that uses it: one that was forked from the tests has its own."""


def launch(command: Sequence[str], environment: Mapping[str, str], log: Path) -> WarmProcess:
    """Start a command that begins with `python -m barnabas serve`, in this checkout."""
    assert tuple(command[1:4]) == SERVE, command
    forker = _forkers.get(os.getpid())
    if forker is None or not forker.is_running:
        forker = _forkers[os.getpid()] = Forker()
    return forker.start(command[3:], environment, log)


# -- the process that forks


class Forking:
    """Starts what its input says, until the input ends."""

    def __init__(self) -> None:
        self._running: set[int] = set()
        self._woken, self._wakes = os.pipe()
        for end in (self._woken, self._wakes):
            os.set_blocking(end, False)

    def run(self) -> None:
        """Do so."""
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wakes)
        rest = b""
        while True:
            ready, _, _ = select.select([0, self._woken], [], [])
            if self._woken in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._woken, 4096)
                self._reap()
            if 0 in ready:
                data = os.read(0, 1 << 16)
                if not data:
                    return self._kill_all()
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    self._start(json.loads(line))

    def _start(self, order: dict[str, Any]) -> None:
        from barnabas.supervise.node import fork

        pid = fork(lambda: _serve(order["arguments"], order["environment"]), order["log"], self._let_go)
        self._running.add(pid)
        _tell(pid=pid)

    def _let_go(self) -> None:
        os.close(self._woken)
        os.close(self._wakes)

    def _reap(self) -> None:
        for pid in sorted(self._running):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                self._running.remove(pid)
                _tell(pid=pid, code=os.waitstatus_to_exitcode(status))

    def _kill_all(self) -> None:
        for pid in self._running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in self._running:
            os.waitpid(pid, 0)


def _tell(**values: int) -> None:
    os.write(1, json.dumps(values).encode() + b"\n")


def _serve(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """The body of a process, run as if the interpreter had started with it."""
    os.environ.clear()
    os.environ.update(environment)
    for folder in environment.get("PYTHONPATH", "").split(os.pathsep):
        if folder and (Path(folder) / "sitecustomize.py").exists():
            runpy.run_path(str(Path(folder) / "sitecustomize.py"))
    from barnabas.cli import main as command_line

    sys.argv = ["barnabas", *arguments]
    return command_line(arguments)


def _import_everything() -> None:
    """What a broker imports for its start and after it."""
    from barnabas.broker.apis.registry import BROKER_APIS, CONTROLLER_APIS
    from barnabas.broker.start import warm_up
    from barnabas.cli import serve  # noqa: F401
    from barnabas.supervise.members import import_the_broker

    import_the_broker()
    apis = {**BROKER_APIS, **CONTROLLER_APIS}.values()
    names = [
        "broker.start.builder",
        "broker.start.controller_builder",
        "broker.net.client.outgoing",
        "broker.start.ready",
        *warm_up.LATE,
    ]
    for _ in warm_up.import_all([*names, *(f"broker.apis.{name}" for name in dict.fromkeys(apis))]):
        pass


if __name__ == "__main__":
    _import_everything()
    gc.freeze()
    Forking().run()
