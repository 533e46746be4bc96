"""A broker for one demonstration: a process of its own on a free port of this machine, ended when it is done."""

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
    """Start a broker on the data in `work`; gives its address. PipelineError when it does not start.

    It is in a process group of its own, so that Ctrl-C ends the demonstration first, and the demonstration ends it.
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
        if not process.stdout.readline():  # the ready line, written after the ready file; nothing: it has ended
            raise PipelineError(f"the broker did not start: {log.read_text().strip().splitlines()[-1:]}")
        yield ready.read_text().strip()
    finally:
        process.terminate()
        try:
            process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
