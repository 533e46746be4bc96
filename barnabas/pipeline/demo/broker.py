"""The broker of a demonstration: a separate process on a free local port, stopped at the end."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from barnabas.pipeline.errors import PipelineError

PATIENCE_S = 30


@contextmanager
def own_broker(work: Path) -> Iterator[str]:
    """Start a broker on the data in `work`; yields its address. PipelineError if it does not start.

    It has its own process group, so that Ctrl-C stops the demonstration, which then stops the broker.
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
        if not process.stdout.readline():  # the ready line, written after the ready file; empty if the broker has ended
            raise PipelineError(f"the broker did not start: {log.read_text().strip().splitlines()[-1:]}")
        yield ready.read_text().strip()
    finally:
        process.terminate()
        try:
            process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
