"""A pytest plugin: one Spark session, the pipeline's, for all tests of a process, with settings for short tests.

A start takes longer than most tests. The files that use it are one group of a parallel run (`tests/parallel.py`), so
that one process has it. The folders' `conftest.py` load this plugin.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
WORKERS = Path(__file__).resolve().parent / "workers"
POM = ROOT / "barnabas" / "spark" / "session" / "pom.xml"
MARKS = [
    pytest.mark.spark,
    pytest.mark.jvm,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore"),  # py4j leaves sockets
]
"""The marks of tests that use the session."""
QUICK = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-Duser.timezone=UTC -XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.streaming.noDataProgressEventInterval": "100",
    "spark.sql.execution.arrow.localRelationThreshold": "0",
    "spark.python.daemon.module": "prepared_daemon",
    "spark.executorEnv.PYTHONPATH": f"{WORKERS}{os.pathsep}{ROOT}",
}
"""Tests are too short for the optimizing compiler; a stream without data reports progress every 100 ms.

A DataFrame of a test's rows (`frame_of`) is a scan, as a source's DataFrame, and not a constant of the plan.
Python workers are forked from a process that has imported their modules; they can import this repository.
"""


@pytest.fixture(scope="session")
def spark_jars() -> Iterator[Path]:
    """The directory of the connector's jars, set in the environment for all sessions."""
    from tests.support.jvm.jars import JarsUnavailableError, fetch

    try:
        jars = fetch(POM)
    except JarsUnavailableError as error:
        pytest.skip(str(error))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BARNABAS_SPARK_JARS", str(jars))
        yield jars


@pytest.fixture(scope="session")
def spark_session(spark_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The session."""
    from barnabas.spark.session.spark import session

    where = tmp_path_factory.mktemp("spark")
    settings = {"spark.local.dir": str(where / "local"), "spark.sql.warehouse.dir": str(where / "warehouse")}
    started = session("tests", master="local[2]", settings=QUICK | settings, log=where / "spark.log")
    yield started
    started.stop()


@contextmanager
def lent(session: Any, without: Mapping[str, str] | None = None) -> Iterator[Any]:
    """The session for one test, without these settings, which have Spark's defaults then.

    Streams that a failed test left running are stopped afterwards.
    """
    before = {key: session.conf.get(key) for key in without or {}}
    for key in before:
        session.conf.unset(key)
    try:
        yield session
    finally:
        for query in session.streams.active:
            query.stop()
        for key, value in before.items():
            session.conf.set(key, value)


def frame_of(session: Any, rows: Sequence[Sequence[Any]], types: str) -> Any:
    """A DataFrame of rows with these columns, `a INT, b STRING`; structs in them are dicts.

    By Arrow: after `createDataFrame(rows, types)` each use of the frame needs a Python worker.
    """
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    schema = to_arrow_schema(StructType.fromDDL(types))
    columns = [[row[n] for row in rows] for n in range(len(schema))]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return session.createDataFrame(pa.Table.from_arrays(arrays, schema=schema), types)
