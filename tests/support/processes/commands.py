"""Runs `barnabas` commands: in forks of a process that has imported the command line, or in the process of the test."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from barnabas.cli import main
from tests.support.processes.forking import ForkServer, read_at_start
from tests.support.processes.server import TEST_VARIABLES

COMMAND = [sys.executable, "-m", "barnabas"]
KCAT = shutil.which("kcat") or shutil.which("kafkacat")
FORKS = ForkServer(
    *("barnabas.cli.app", "barnabas.cli.records.consume_run", "barnabas.cli.records.produce_run"),
    *("barnabas.client.admin.topics", "barnabas.client.security"),
    *("barnabas.cli.serve.run", "barnabas.broker.server"),
)


def run_barnabas(
    arguments: Sequence[str], environment: Mapping[str, str], stdin: bytes = b"", timeout: float = 60
) -> subprocess.CompletedProcess[bytes]:
    """Run `python -m barnabas ARGUMENTS` in this environment; in a new interpreter if that has to read a variable."""
    if read_at_start(environment) == read_at_start(os.environ):
        return FORKS.run("barnabas", arguments, env=environment, stdin=stdin, timeout=timeout)
    command = [sys.executable, "-m", "barnabas", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, env=environment, timeout=timeout, check=False)


class Ran:
    """The output and the exit code of a command."""

    def __init__(self, done: subprocess.CompletedProcess[bytes]) -> None:
        self.code = done.returncode
        self.stdout_bytes = done.stdout
        self.stdout = done.stdout.decode(errors="surrogateescape")
        self.stderr = done.stderr.decode()

    @property
    def lines(self) -> list[str]:
        return self.stdout.splitlines()

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)

    def ok(self) -> Ran:
        assert self.code == 0, self.stderr
        return self


def clean_environment() -> dict[str, str]:
    """The environment without KAFKA_* and BARNABAS_* variables and without the user's profiles."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("KAFKA_", "BARNABAS_"))}
    return clean | {"XDG_CONFIG_HOME": "/nonexistent"}


def run_command(*arguments: str, stdin: str | bytes = b"", bootstrap: str | None = None, **environment: str) -> Ran:
    """Run `barnabas ARGUMENTS` without KAFKA_* and BARNABAS_* variables and without the user's profiles."""
    clean = clean_environment()
    if bootstrap is not None:
        clean["BARNABAS_BOOTSTRAP_SERVERS"] = bootstrap
    stdin_bytes = stdin.encode() if isinstance(stdin, str) else stdin
    return Ran(run_barnabas(arguments, clean | environment, stdin_bytes))


def call_command(*arguments: str, stdin: str | bytes = b"", bootstrap: str = "") -> Ran:
    """As `run_command`, but in this process, which saves the start of a process."""
    stdin_bytes = stdin.encode() if isinstance(stdin, str) else stdin
    stdout, stderr = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryFile() as file:
        for name in TEST_VARIABLES:  # a broker would take them for keys
            patch.delenv(name, raising=False)
        patch.setenv("BARNABAS_BOOTSTRAP_SERVERS", bootstrap)
        patch.setenv("XDG_CONFIG_HOME", "/nonexistent")
        file.write(stdin_bytes)
        file.seek(0)
        patch.setattr("sys.stdin", io.TextIOWrapper(file, encoding="utf-8"))
        patch.setattr("sys.stdout", stdout)
        patch.setattr("sys.stderr", stderr)
        code = main(arguments)
    written = [stream.buffer.getvalue() for stream in (stdout, stderr)]  # type: ignore[attr-defined]
    return Ran(subprocess.CompletedProcess(arguments, code, *written))
