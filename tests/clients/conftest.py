"""Fixtures of the suites with real clients: one Spark session per test process, and topics."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bench.servers import Server
from compat.jars import JarsUnavailableError

QUICK = {
    "spark__driver__extraJavaOptions": "-Duser.timezone=UTC -XX:TieredStopAtLevel=1",
    "spark__ui__showConsoleProgress": "false",
    "spark__sql__codegen__wholeStage": "false",
    "spark__sql__streaming__noDataProgressEventInterval": "100",
}
"""Tests are too short for the optimizing compiler; a stream without data reports progress every 100 ms."""


@pytest.fixture(scope="session")
def spark_session() -> Iterator[Any]:
    """One Spark session for all tests of this process: a start takes longer than most tests."""
    from compat.spark.session import spark_session

    try:
        started = spark_session("tests", **QUICK)
    except JarsUnavailableError as error:
        pytest.skip(str(error))
    yield started
    started.stop()


@pytest.fixture
def spark(spark_session: Any) -> Iterator[Any]:
    """The session. Streams that a failed test left running are stopped afterwards."""
    yield spark_session
    for query in spark_session.streams.active:
        query.stop()


@pytest.fixture
def create(broker: Server, topic_name: Callable[..., str]) -> Callable[..., str]:
    """A factory of topics: `create(partitions=1, name=None, **config) -> name`."""
    from tests.clients.spark_kit import create_topic

    def create_named(partitions: int = 1, name: str | None = None, **config: str) -> str:
        return create_topic(broker, name or topic_name(), partitions, **config)

    return create_named
