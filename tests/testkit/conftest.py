"""One broker for each test process; every test has a virtual cluster of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.testing import Broker, Cluster


@pytest.fixture(scope="session")
def test_broker() -> Iterator[Broker]:
    broker = Broker()
    with broker:
        yield broker


@pytest.fixture
def kafka(test_broker: Broker) -> Iterator[Cluster]:
    cluster = test_broker.open()
    yield cluster
    cluster.close()
