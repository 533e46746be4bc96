"""Runs one command with a limit, and stops it with all that it has started."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from tests.soak.records import ROOT

TIMED_OUT: Final = -1
GRACE_S: Final = 10.0
"""How long a stopped command may clean up, seconds."""
_OWN: Final = ("BARNABAS_SEED", "BARNABAS_SEEDS", "BARNABAS_EXAMPLES", "BARNABAS_CRASH_STATES", "BARNABAS_FAULTS",
               "BARNABAS_FUZZ", "BARNABAS_KILLS", "BARNABAS_MUTANTS_DAY")  # fmt: skip
"""Variables of sizes and seeds: a command is repeated by itself, so the caller's variables are left out."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command has ended."""

    code: int
    seconds: float
    cpu_seconds: float
    output: str
    folder: Path | None
    """What it has left of temporary files, if it has failed."""


class StoppedError(Exception):
    """The command was stopped by `Process.stop`."""


class Process:
    """A command, `NAME=VALUE ... python ARGUMENTS`, that runs in the project's folder and writes to a log."""

    def __init__(self, command: str, log: Path) -> None:
        """Start it. Its temporary files are in a folder of its own, by which what it has started is found too."""
        self.log = log
        self._folder = Path(tempfile.mkdtemp(prefix="soak-"))
        self._is_stopped = False
        self._has_ended = threading.Event()
        variables, arguments = split(command)
        assert arguments[0] == "python", command
        inherited = {name: value for name, value in os.environ.items() if name not in _OWN}
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as file:
            self._process = subprocess.Popen(
                [sys.executable, *arguments[1:]],
                cwd=ROOT,
                env=inherited
                | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", "TMPDIR": str(self._folder)}
                | variables,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._began = time.monotonic()

    def wait(self, limit_s: float) -> Ended:
        """Wait for its end; at the limit it is stopped, and the code is -1. StoppedError after `stop`."""
        is_late = threading.Event()

        def end() -> None:
            is_late.set()
            self._end()

        timer = threading.Timer(limit_s, end)
        timer.start()
        _, status, usage = os.wait4(self._process.pid, 0)
        self._process.returncode = os.waitstatus_to_exitcode(status)
        self._has_ended.set()
        seconds = time.monotonic() - self._began
        timer.cancel()
        timer.join()
        if self._is_stopped:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise StoppedError
        code = TIMED_OUT if is_late.is_set() else self._process.returncode
        is_empty = code == 0 or not any(self._folder.iterdir())
        if is_empty:
            shutil.rmtree(self._folder, ignore_errors=True)
        return Ended(
            code,
            seconds,
            usage.ru_utime + usage.ru_stime,
            self.log.read_text(errors="replace"),
            None if is_empty else self._folder,
        )

    def stop(self) -> None:
        """Stop it with all that it has started; `wait` raises StoppedError."""
        self._is_stopped = True
        self._end()

    def _end(self) -> None:
        """Interrupt as Ctrl-C does, so that files and processes are removed; kill what remains after `GRACE_S`."""
        started = self._started()
        try:
            os.killpg(self._process.pid, signal.SIGINT)
        except ProcessLookupError:
            pass
        self._has_ended.wait(GRACE_S)
        for process in {*started, *self._started()}:
            try:
                process.kill()
            except psutil.Error:
                continue

    def _started(self) -> list[psutil.Process]:
        """It and its descendants, and those whose parents have ended: they have its folder in their environment."""
        try:
            processes = [psutil.Process(self._process.pid)]
            processes += processes[0].children(recursive=True)
        except psutil.Error:
            processes = []
        known = {process.pid for process in processes}
        return processes + [
            process for process in psutil.process_iter() if process.pid not in known and self._is_ours(process)
        ]

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            return process.environ().get("TMPDIR") == str(self._folder)
        except psutil.Error:
            return False


def split(command: str) -> tuple[dict[str, str], list[str]]:
    """The variables in front of a command, and its words."""
    words = shlex.split(command)
    count = next(number for number, word in enumerate(words) if "=" not in word)
    return dict(word.split("=", 1) for word in words[:count]), words[count:]
