"""Fixtures of the suites with real clients: the one Spark session of a run, and topics to work on."""

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
"""Nothing here runs long enough to be worth an optimizing compiler, and a stream without data says so often."""


@pytest.fixture(scope="session")
def spark_session() -> Iterator[Any]:
    """One Spark session for the whole run: to start one takes longer than most tests."""
    from compat.spark.session import spark_session

    try:
        started = spark_session("tests", **QUICK)
    except JarsUnavailableError as error:
        pytest.skip(str(error))
    yield started
    started.stop()


@pytest.fixture
def spark(spark_session: Any) -> Iterator[Any]:
    """The session, left as it was found: a stream that a failed test left running is stopped."""
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
