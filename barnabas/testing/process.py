"""The broker's process: started from a test, ready before the start returns, ended with the test run.

It runs with an isolated import path, so nothing of the user's directory reaches it, and nothing of it the user's
interpreter. It holds one end of a pipe: when the process of the tests ends, in whatever way, so does the broker. Its
log is a file without a name, and the one with the token is removed as soon as it was read, so nothing is left then.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
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
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by stop
        with tempfile.TemporaryDirectory(prefix="barnabas-test-") as folder:
            self.control: dict[str, Any] = self._start(
                Path(folder) / "control.json", config, arguments, listen, environment
            )

    def _start(
        self,
        file: Path,
        config: Mapping[str, str],
        arguments: Sequence[str],
        listen: str,
        environment: Mapping[str, str] | None,
    ) -> dict[str, Any]:
        command = [sys.executable, "-I", "-m", "barnabas", "serve", "--listen", listen, "--control"]
        command += ["--control-file", str(file), "--end-with-stdin", *arguments]
        for key, value in config.items():
            command += ["--set", f"{key}={value}"]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
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
        control: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return control

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    @property
    def log(self) -> bytes:
        """What the broker has logged, until it is ended."""
        descriptor = self._log.fileno()
        return os.pread(descriptor, os.fstat(descriptor).st_size, 0)  # the broker writes on where it is

    def why_ended(self) -> str:
        """What a failure says of a process that has ended by itself; "" while it runs."""
        code = self._process.poll()
        if code is None or self._log.closed:
            return ""
        return f". Its process has ended with exit code {code}; it said last: {self._said() or 'nothing'}"

    def _said(self) -> str:
        self._process.wait()
        return self.log.decode("utf-8", "replace")[-LOG_SHOWN:].strip()

    def stop(self) -> None:
        """End it. A fork of the process that has started it leaves it alone."""
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
        self._log.close()
