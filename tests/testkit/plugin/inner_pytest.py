"""Runs pytest on a file that a test writes, in a process of its own.

`run` has that process forked from one that has imported pytest and the kit's modules, and loads the plugin of Barnabas
and no other that happens to be installed here; `run_anew` is a new interpreter with all of them, as a user's is.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from _pytest.config import default_plugins

from tests.support.processes.forking import ForkServer

FORKS = ForkServer(
    *("pytest", *(f"_pytest.{name}" for name in default_plugins)),
    *("barnabas.testing.broker", "barnabas.testing.fixtures.clients", "barnabas.testing.cluster"),
    *("confluent_kafka.admin", "kafka", "aiokafka"),
)
ARGUMENTS = ("-q", "-p", "no:cacheprovider", "-W", "ignore")


def run(folder: Path, text: str, *arguments: str, code: int = 0) -> str:
    """A run of pytest on a file with this text; its output."""
    (folder / "test_it.py").write_text(text)
    plugins = ["-p", "barnabas.testing.plugin", *(["-p", "xdist"] if "-n" in arguments else [])]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    argv = [*ARGUMENTS, *plugins, *arguments]
    return _output(FORKS.run("pytest", argv, cwd=folder, env=environment, timeout=100), code)


def run_anew(folder: Path, text: str, *arguments: str, code: int = 0) -> str:
    """The same in a new interpreter, with all plugins that are installed."""
    (folder / "test_it.py").write_text(text)
    command = [sys.executable, "-m", "pytest", *ARGUMENTS, *arguments]
    return _output(subprocess.run(command, cwd=folder, capture_output=True, timeout=100, check=False), code)


def _output(ended: subprocess.CompletedProcess[bytes], code: int) -> str:
    written = (ended.stdout + ended.stderr).decode()
    assert ended.returncode == code, written
    return written
