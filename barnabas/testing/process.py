"""The broker's process: started from a test, ready before the start returns, ended with the test run.

It runs with an isolated import path, so nothing of the user's directory reaches it, and nothing of it the user's
interpreter. It holds one end of a pipe: when the process of the tests ends, in whatever way, so does the broker.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from shutil import rmtree
from typing import Any, Final

from barnabas.testing.errors import BrokerError

READY: Final = "started on"
STOP_S: Final = 10.0
LOG_SHOWN: Final = 4000
"""Characters of the broker's log that an error shows."""


class BrokerProcess:
    """A process of `barnabas serve --control`."""

    def __init__(
        self,
        config: Mapping[str, str],
        arguments: Sequence[str] = (),
        listen: str = "127.0.0.1:0",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start it, and wait until it serves. BrokerError with its own words if it does not.

        `environment` is that of the process; by default that of this one.
        """
        self._owner = os.getpid()
        self._folder = Path(tempfile.mkdtemp(prefix="barnabas-test-"))
        self.log = self._folder / "broker.log"
        """What the broker has logged."""
        file = self._folder / "control.json"
        command = [sys.executable, "-I", "-m", "barnabas", "serve", "--listen", listen, "--control"]
        command += ["--control-file", str(file), "--end-with-stdin", *arguments]
        for key, value in config.items():
            command += ["--set", f"{key}={value}"]
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                encoding="utf-8",
                env=environment,
                start_new_session=True,  # Ctrl-C is for the tests; the broker ends when they do
            )
        assert self._process.stdout is not None
        while READY not in (line := self._process.stdout.readline()):
            if not line:
                text = self._said()
                self.stop()
                raise BrokerError(f"The broker did not start: {text}")
        self.control: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    def why_ended(self) -> str:
        """What a failure says of a process that has ended by itself; "" while it runs."""
        code = self._process.poll()
        if code is None or not self.log.exists():
            return ""
        return f". Its process has ended with exit code {code}; it said last: {self._said() or 'nothing'}"

    def _said(self) -> str:
        self._process.wait()
        return self.log.read_text(encoding="utf-8", errors="replace")[-LOG_SHOWN:].strip()

    def stop(self) -> None:
        """End it, and remove what it has left. A fork of the process that has started it leaves it alone."""
        if self._owner != os.getpid():
            return
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        rmtree(self._folder, ignore_errors=True)
