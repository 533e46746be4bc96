"""A `barnabas serve` that a test starts, reads and ends."""

from __future__ import annotations

import os
import select
import subprocess

from tests.support.processes.commands import COMMAND


class Serving:
    """A `barnabas serve` whose stdout and stderr the test reads."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("KAFKA_", "BARNABAS_"))}
        self.process = subprocess.Popen(
            [*COMMAND, "serve", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=clean | environment,
            bufsize=0,  # unbuffered, so that bytes after the line stay in the pipe
        )
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], 30)
        self.first_line = self.process.stdout.readline().decode() if ready else ""

    def __enter__(self) -> Serving:
        return self

    def __exit__(self, *exception: object) -> None:
        self.process.kill()
        self.process.communicate()

    def stop(self, number: int) -> tuple[int, str, str]:
        """Send a signal; the exit code, the rest of stdout, and stderr."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out.decode(), err.decode()
