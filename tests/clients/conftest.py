"""Fixtures of the suites with real clients: the Spark session as Spark's own, and topics."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.processes.server import Server


def pytest_configure(config: pytest.Config) -> None:
    """Load the Spark session's plugin."""
    config.pluginmanager.import_plugin("tests.support.spark.session")


@pytest.fixture
def spark(spark_session: Any) -> Iterator[Any]:
    """The session with Spark's defaults where the pipeline has other SQL settings."""
    from barnabas.spark.session.spark import EVERYWHERE
    from tests.support.spark.session import lent

    own = {key: value for key, value in EVERYWHERE.items() if key != "spark.sql.session.timeZone"}
    with lent(spark_session, without=own) as session:
        yield session


@pytest.fixture
def create(broker: Server, topic_name: Callable[..., str]) -> Callable[..., str]:
    """A factory of topics: `create(partitions=1, name=None, **config) -> name`."""
    from tests.clients.spark.spark_kit import create_topic

    def create_named(partitions: int = 1, name: str | None = None, **config: str) -> str:
        return create_topic(broker, name or topic_name(), partitions, **config)

    return create_named
