"""A broker of some checkout in a process of its own, which is counted and controlled through a socket."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
INJECTED = Path(__file__).parent / "injected"
START_S = 60.0
STOP_S = 30.0
ANSWER_S = 60.0
DEADLINES = 100
PAUSE_S = 2.0
"""The least time to pass: longer than the intervals of the loop, which begin again then."""
WARM_UP_S = 5.0
"""By how much the clocks are set forward after the start: imports that were put off and first jobs are done then."""


@dataclass
class Counts:
    """Counts: bytecodes by (file, function), and system calls by name."""

    functions: dict[tuple[str, str], int] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)

    @property
    def bytecodes(self) -> int:
        """All bytecodes."""
        return sum(self.functions.values())


class CountedBroker:
    """`barnabas serve` of a checkout. It is free at first; `hold` stops its clocks and begins with counting."""

    def __init__(self, folder: Path, sets: dict[str, str], checkout: Path = ROOT) -> None:
        """`sets` are its config keys, with `listeners`; files are made in `folder`."""
        self.checkout = checkout.resolve()
        self.log_path = folder / "broker.log"
        self._ready_file = folder / "ready"
        self._arguments = ["serve", "--data-dir", str(folder / "data"), "--ready-file", str(self._ready_file)]
        for key, value in sets.items():
            self._arguments += ["--set", f"{key}={value}"]
        self._control, self._theirs = socket.socketpair()
        self._control.settimeout(ANSWER_S)
        self._answers = self._control.makefile("rb")
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> CountedBroker:
        fd = self._theirs.fileno()
        command = [sys.executable, str(INJECTED), str(fd), str(self.checkout), *self._arguments]
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.checkout,
                env=self._environment(),
                pass_fds=[fd],
            )
        self._theirs.close()
        try:
            self._wait_ready()
            self._check_code()
            self.hold()
            self._ask("advance", seconds=WARM_UP_S)
            self.go()
            self.free()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _environment(self) -> dict[str, str]:
        others = ("BARNABAS_", "KAFKA_", "PYTHON")  # config keys, and what changes how Python runs
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(others)}
        return inherited | {"PYTHONPATH": str(self.checkout), "PYTHONHASHSEED": "0"}

    def _wait_ready(self) -> None:
        assert self.process is not None
        deadline = time.monotonic() + START_S
        while not self._ready_file.exists():
            if self.process.poll() is not None:
                raise RuntimeError(f"the broker exited with {self.process.returncode}:\n{self.log()[-4000:]}")
            if time.monotonic() > deadline:
                raise RuntimeError(f"the broker was not ready in {START_S:.0f} s:\n{self.log()[-4000:]}")
            time.sleep(0.01)

    def _check_code(self) -> None:
        """RuntimeError if code of the broker is not the checkout's."""
        self.hold()
        foreign = {
            file for file in self._ask("where").values() if not Path(file).resolve().is_relative_to(self.checkout)
        }
        self.free()
        if foreign:
            raise RuntimeError(f"not of {self.checkout}: {', '.join(sorted(foreign))}")

    def close(self) -> None:
        """Stop the process."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._answers.close()
        self._control.close()

    def log(self) -> str:
        """The output of the process."""
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    # -- commands

    def hold(self) -> None:
        """Stop its clocks, and keep it where it waits when it has nothing left to do."""
        self._ask("hold")

    def go(self, size: int = 0, *, is_counted: bool = False, call_s: float = 0.0) -> None:
        """Let it serve what was sent, `size` bytes, until nothing is left to do; what it does may be counted.

        Each system call that is counted sets its clocks forward by `call_s`.
        """
        self._ask("go", size=size, is_counted=is_counted, call_s=call_s)

    def advance(self, seconds: float) -> None:
        """Set the clocks of the broker, which is held, forward."""
        self._ask("advance", seconds=seconds)

    def pass_deadlines(self, seconds: float) -> None:
        """Set the clocks forward, past periodic jobs and timers, until none is due in the next `seconds`.

        The broker is held, before and after.
        """
        self.advance(PAUSE_S)
        for _ in range(DEADLINES):
            due_s = self._ask("due")["seconds"]
            if due_s > seconds:
                return
            self.advance(max(0.0, due_s) + 0.001)
            self.go()
        raise RuntimeError(f"there is always something due in {seconds} s")

    def free(self) -> None:
        """Let it serve with running clocks again."""
        self._tell("free")

    def take(self) -> Counts:
        """What was counted since the last time. The broker is held."""
        response = self._ask("take")
        return Counts({(file, name): count for file, name, count in response["functions"]}, response["calls"])

    def _tell(self, command: str, **values: Any) -> None:
        self._control.sendall(json.dumps({"do": command, **values}).encode() + b"\n")

    def _ask(self, command: str, **values: Any) -> Any:
        self._tell(command, **values)
        try:
            line = self._answers.readline()
        except TimeoutError:
            raise RuntimeError(
                f"the broker did not obey {command!r} in {ANSWER_S:.0f} s:\n{self.log()[-4000:]}"
            ) from None
        if not line:
            raise RuntimeError(f"the broker has ended:\n{self.log()[-4000:]}")
        return json.loads(line)
