"""The client processes of a run: each slot has one, replaced by one with another name after a kill."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from compat.java import program
from tests.support.processes.server import ROOT

STOP_TIMEOUT_S = 90.0


class HungError(RuntimeError):
    """A client does not end."""


def command(client: str, role: str) -> list[str]:
    """The command line of a role with a client library, without the settings."""
    if client == "java":
        return [*program.java("HistoryClient"), role]
    return [sys.executable, "-m", f"compat.exactly_once.{client.replace('-', '_')}_client", role]


class Slot:
    """One role of a run, executed by one process at a time. Its output is written to a file next to its history."""

    def __init__(self, name: str, client: str, folder: Path, settings: Mapping[str, str]) -> None:
        self.name = name
        self.role = name.partition("-")[0]
        self.folder = folder
        self._command = command(client, self.role)
        self._settings = {"slot": name, **settings}
        self._numbers = itertools.count(1)
        self.process: subprocess.Popen[bytes] | None = None
        self.process_name = ""

    def start(self) -> None:
        """Start the next process of this slot."""
        self.process_name = f"{self.name}#{next(self._numbers)}"
        settings = self._settings | {"process": self.process_name}
        settings["history"] = str(self.folder / f"{self.process_name}.jsonl")
        arguments = [f"{name}={value}" for name, value in settings.items()]
        with (self.folder / f"{self.process_name}.log").open("wb") as log:
            self.process = subprocess.Popen([*self._command, *arguments], stdout=log, stderr=log, cwd=ROOT)

    def kill9(self) -> None:
        """Send SIGKILL."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """Send SIGTERM; RuntimeError when the process does not end, or with an error."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill9()
            raise HungError(f"{self.process_name} does not end after SIGTERM:\n{self.log()}") from None
        if code not in (0, 128 + signal.SIGTERM, -signal.SIGTERM):
            raise RuntimeError(f"{self.process_name} ended with {code}:\n{self.log()}")

    def check(self) -> None:
        """Raise a RuntimeError when the process has ended by itself."""
        if self.process is not None and self.process.poll() is not None:
            raise RuntimeError(f"{self.process_name} ended with {self.process.returncode}:\n{self.log()}")

    def silent_s(self) -> float:
        """For how long the process has written nothing to its history, seconds; 0 before its first event."""
        try:
            return time.time() - (self.folder / f"{self.process_name}.jsonl").stat().st_mtime
        except FileNotFoundError:
            return 0.0

    def log(self) -> str:
        """The end of the process's output."""
        return (self.folder / f"{self.process_name}.log").read_text(errors="replace")[-3000:]


class Progress:
    """Counts events of one type in the growing histories of a directory."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.folder, self.kind = folder, kind
        self.count = 0
        self._read: dict[Path, int] = {}

    def update(self) -> int:
        """Read new events; the count so far."""
        for path in self.folder.glob("*.jsonl"):
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                complete, newline, _ = file.read().rpartition(b"\n")
            self._read[path] = self._read.get(path, 0) + len(complete) + len(newline)
            marked = (line for line in complete.split(b"\n") if f'"{self.kind}"'.encode() in line)
            self.count += sum(json.loads(line)["type"] == self.kind for line in marked)
        return self.count
