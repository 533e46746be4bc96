"""The broker's process: started from a test, ready before the start returns, ended with the test run.

It runs with an isolated import path and without this machine's variables for Kafka, so the user's directory and shell
do not affect it, and it does not affect the user's interpreter. It holds one end of a pipe: when the process of the
tests ends, in whatever way, so does the broker. No file is left then: its log has no name, and the file with the token
is removed as soon as it was read.
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

__tracebackhide__ = True
"""For pytest: a failure is shown where the test made it."""

READY: Final = "started on"
STOP_S: Final = 10.0
LOG_SHOWN: Final = 4000
"""Bytes of the broker's log that an error shows."""
NOT_PASSED_ON: Final = ("KAFKA_", "BARNABAS_", "CLUSTER_ID")
"""Variables that are set for another broker: with its KAFKA_ADVERTISED_LISTENERS clients would go there."""


class BrokerProcess:
    """A process of `barnabas serve --control`."""

    def __init__(
        self,
        config: Mapping[str, str],
        arguments: Sequence[str] = (),
        listen: str = "127.0.0.1:0",
        variables: Mapping[str, str] | None = None,
    ) -> None:
        """Start it, and wait until it serves. BrokerError with its own words if it does not.

        `variables` are set in its environment; this process's own variables for Kafka are not.
        """
        self._owner = os.getpid()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the process
        command = [sys.executable, "-I", "-m", "barnabas", "serve", "--listen", listen, "--control"]
        command += ["--end-with-stdin", *arguments]
        for key, value in config.items():
            command += ["--set", f"{key}={value}"]
        with tempfile.TemporaryDirectory(prefix="barnabas-test-") as folder:
            file = Path(folder) / "control.json"
            self._process = subprocess.Popen(
                [*command, "--control-file", str(file)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                text=True,
                encoding="utf-8",
                env=_inherited() | dict(variables or {}),
                start_new_session=True,  # Ctrl-C is for the tests; the broker ends when they do
            )
            self._wait_until_ready()
            self.control: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))

    def _wait_until_ready(self) -> None:
        assert self._process.stdout is not None
        while READY not in (line := self._process.stdout.readline()):
            if not line:
                log = self._end_of_log()
                self.stop()
                raise BrokerError(f"The broker did not start: {log}")

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    def logged(self) -> bytes:
        """The broker's log, until it is ended."""
        descriptor = self._log.fileno()
        return os.pread(descriptor, os.fstat(descriptor).st_size, 0)  # the broker writes on where it is

    def why_ended(self) -> str:
        """A sentence for a failure about a process that has ended by itself; "" while it runs."""
        code = self._process.poll()
        if code is None or self._log.closed:
            return ""
        return f". Its process has ended with exit code {code}; it said last: {self._end_of_log() or 'nothing'}"

    def _end_of_log(self) -> str:
        self._process.wait()
        return self.logged()[-LOG_SHOWN:].decode("utf-8", errors="replace").strip()

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


def _inherited() -> dict[str, str]:
    """The environment of this process without the variables for another broker."""
    return {name: value for name, value in os.environ.items() if not name.startswith(NOT_PASSED_ON)}
