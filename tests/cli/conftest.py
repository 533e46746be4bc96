"""Runs the command line in a separate process."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from barnabas.cli import main
from tests.support.processes.commands import run_barnabas
from tests.support.processes.server import TEST_VARIABLES

COMMAND = [sys.executable, "-m", "barnabas"]


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
    given = stdin.encode() if isinstance(stdin, str) else stdin
    return Ran(run_barnabas(arguments, clean | environment, given))


@pytest.fixture
def run(broker) -> Callable[..., Ran]:
    """`run("topic", "list")` against the session's broker."""

    def against_broker(*arguments: str, **options: Any) -> Ran:
        return run_command(*arguments, bootstrap=broker.bootstrap, **options)

    return against_broker


def call_command(*arguments: str, stdin: str | bytes = b"", bootstrap: str = "") -> Ran:
    """As `run_command`, but in this process, which saves the start of a process."""
    given = stdin.encode() if isinstance(stdin, str) else stdin
    stdout, stderr = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryFile() as file:
        for name in TEST_VARIABLES:  # a broker would take them for keys
            patch.delenv(name, raising=False)
        patch.setenv("BARNABAS_BOOTSTRAP_SERVERS", bootstrap)
        patch.setenv("XDG_CONFIG_HOME", "/nonexistent")
        file.write(given)
        file.seek(0)
        patch.setattr("sys.stdin", io.TextIOWrapper(file, encoding="utf-8"))
        patch.setattr("sys.stdout", stdout)
        patch.setattr("sys.stderr", stderr)
        code = main(arguments)
    written = [stream.buffer.getvalue() for stream in (stdout, stderr)]  # type: ignore[attr-defined]
    return Ran(subprocess.CompletedProcess(arguments, code, *written))


@pytest.fixture
def call(broker) -> Callable[..., Ran]:
    """`call("topic", "list")`: as `run`, but in this process."""
    return partial(call_command, bootstrap=broker.bootstrap)
