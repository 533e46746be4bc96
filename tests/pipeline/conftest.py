"""Fixtures of the pipeline's tests: the Spark session, topics, the command line.

Tests that use the session have the marks `spark` and `jvm`; tests of the command line that end before Spark starts
need neither.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from tests.support.lazy import skip_without
from tests.support.processes.server import Server

skip_without("pyspark", "confluent_kafka")

from barnabas.cli import main  # noqa: E402
from tests.pipeline.runs import create as create_on  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
WITH_SPARK = ("spark", "spark_jars")
Command = Callable[..., subprocess.CompletedProcess[str]]
Create = Callable[..., str]


def pytest_configure(config: pytest.Config) -> None:
    """Load the Spark session's plugin."""
    config.pluginmanager.import_plugin("tests.support.spark.session")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that use Spark."""
    from tests.support.spark.session import MARKS

    for item in items:
        is_here = str(item.path).startswith(f"{HERE}/")
        if is_here and any(name in getattr(item, "fixturenames", ()) for name in WITH_SPARK):
            for mark in MARKS:
                item.add_marker(mark)


@pytest.fixture(scope="session")
def spark(spark_session: Any) -> Any:
    """The session."""
    return spark_session


@pytest.fixture
def create(broker: Server, topic_name: Callable[..., str]) -> Create:
    """A factory of topics: `create(partitions=1, name=None) -> name`."""

    def create_topic(partitions: int = 1, name: str | None = None) -> str:
        return create_on(broker, name or topic_name(), partitions)

    return create_topic


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """`command("run", "etl", ..., env={...})`: `barnabas pipeline` with `tmp_path` as working directory, here.

    A variable of `env` that is None is removed. A command that starts Spark needs `command_process`.
    """

    def run(*arguments: object, env: Mapping[str, object] | None = None) -> subprocess.CompletedProcess[str]:
        argv = ["pipeline", *map(str, arguments)]
        with monkeypatch.context() as patch:
            patch.chdir(tmp_path)
            for name, value in (env or {}).items():
                if value is None:
                    patch.delenv(name, raising=False)
                else:
                    patch.setenv(name, str(value))
            with redirect_stdout(io.StringIO()) as stdout, redirect_stderr(io.StringIO()) as stderr:
                code = main(argv)
        return subprocess.CompletedProcess(argv, code, stdout.getvalue(), stderr.getvalue())

    return run


@pytest.fixture
def command_process(tmp_path: Path) -> Command:
    """As `command`, in a process of its own."""

    def run(*arguments: object, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "barnabas", "pipeline", *map(str, arguments)],
            env={**os.environ, "PYTHONPATH": str(ROOT), **(env or {})},
            cwd=tmp_path, capture_output=True, text=True, check=False, timeout=110,
        )  # fmt: skip

    return run
