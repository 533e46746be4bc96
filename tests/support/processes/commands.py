"""Runs `barnabas` commands in processes of their own, which are forked from one that has imported the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

from tests.support.processes.forking import ForkServer, read_at_start

FORKS = ForkServer(
    *("barnabas.cli.app", "barnabas.cli.consume_run", "barnabas.cli.produce_run"),
    *("barnabas.client.admin", "barnabas.client.security"),
    *("barnabas.cli.serve", "barnabas.broker.server"),
)


def run_barnabas(
    arguments: Sequence[str], environment: Mapping[str, str], stdin: bytes = b"", timeout: float = 60
) -> subprocess.CompletedProcess[bytes]:
    """Run `python -m barnabas ARGUMENTS` in this environment; in a new interpreter if that has to read a variable."""
    if read_at_start(environment) == read_at_start(os.environ):
        return FORKS.run("barnabas", arguments, env=environment, stdin=stdin, timeout=timeout)
    command = [sys.executable, "-m", "barnabas", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, env=environment, timeout=timeout, check=False)
