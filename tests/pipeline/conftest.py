"""Fixtures of the pipeline's tests: a Spark session, topics, the command line.

The session is the pipeline's own (`barnabas.pipeline.spark`), with jars out of the project's `.cache`. Tests that use
it have the marks `spark` and `jvm`; those of the command line that end before Spark starts need neither.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from bench.servers import Server
from tests.support.lazy import skip_without

skip_without("pyspark", "confluent_kafka")

from compat.jars import JarsUnavailableError, fetch  # noqa: E402
from tests.pipeline.runs import create as create_on  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
POM = ROOT / "barnabas" / "pipeline" / "pom.xml"
HERE = Path(__file__).resolve().parent
WITH_SPARK = ("spark", "spark_jars")
Command = Callable[..., subprocess.CompletedProcess[str]]
Create = Callable[..., str]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that use Spark."""
    for item in items:
        is_here = str(item.path).startswith(f"{HERE}/")
        if is_here and any(name in getattr(item, "fixturenames", ()) for name in WITH_SPARK):
            has_tools = shutil.which("java") and shutil.which("mvn")
            for mark in (
                pytest.mark.spark,
                pytest.mark.jvm,
                pytest.mark.timeout(300),
                pytest.mark.filterwarnings("ignore"),
                pytest.mark.skipif(not has_tools, reason="needs Java and Maven"),
            ):
                item.add_marker(mark)


@pytest.fixture(scope="session")
def spark_jars() -> Iterator[Path]:
    """The directory of the connector's jars, set in the environment for all sessions."""
    try:
        jars = fetch(POM)
    except JarsUnavailableError as error:
        pytest.skip(str(error))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BARNABAS_SPARK_JARS", str(jars))
        yield jars


@pytest.fixture(scope="session")
def spark(spark_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One Spark session of the pipeline for all tests; its workers can import this repository."""
    from barnabas.pipeline.spark import session

    where = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
        "spark.local.dir": str(where / "local"),
        "spark.sql.warehouse.dir": str(where / "warehouse"),
        "spark.sql.shuffle.partitions": "2",
        "spark.executorEnv.PYTHONPATH": str(ROOT),
    }
    started = session("tests", master="local[2]", settings=settings, log=where / "spark.log")
    yield started
    started.stop()


@pytest.fixture
def create(broker: Server, topic_name: Callable[..., str]) -> Create:
    """A factory of topics: `create(partitions=1, name=None) -> name`."""

    def create_topic(partitions: int = 1, name: str | None = None) -> str:
        return create_on(broker, name or topic_name(), partitions)

    return create_topic


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """`command("run", "etl", ..., env={...})`: run `barnabas pipeline` in `tmp_path`.

    A variable of `env` that is None is removed.
    """

    def run(*arguments: object, env: Mapping[str, str | None] | None = None) -> subprocess.CompletedProcess[str]:
        changed: dict[str, str | None] = {**os.environ, "PYTHONPATH": str(ROOT), **(env or {})}
        return subprocess.run(
            [sys.executable, "-m", "barnabas", "pipeline", *map(str, arguments)],
            env={name: value for name, value in changed.items() if value is not None},
            cwd=tmp_path, capture_output=True, text=True, check=False, timeout=110,
        )  # fmt: skip

    return run
