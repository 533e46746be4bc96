"""Starts a broker for the demonstration, as a child process on a free port, and stops it at the end."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from barnabas.spark.errors import PipelineError

STOP_TIMEOUT_S = 30


@contextmanager
def running_broker(work: Path) -> Iterator[str]:
    """Run a broker with its data in `work`; yields its address. PipelineError if it does not start.

    It has its own process group, so Ctrl-C is sent only to the demonstration, which then stops the broker.
    """
    ready = work / "broker-ready"
    command = [sys.executable, "-m", "barnabas", "serve", "--listen", "127.0.0.1:0", "--ready-file", str(ready)]
    command += ["--data-dir", str(work / "broker")]
    log = work / "broker.log"
    with log.open("ab") as errors:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, process_group=0
        )
    try:
        assert process.stdout is not None
        if not process.stdout.readline():  # the ready line, written after the ready file; empty if the broker exited
            raise PipelineError(f"the broker did not start: {log.read_text().strip().splitlines()[-1:]}")
        yield ready.read_text().strip()
    finally:
        process.terminate()
        try:
            process.communicate(timeout=STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
