"""A broker that waits for its controllers: clients are refused until it serves, so that they ask other brokers."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.support.cluster.clusters import Cluster
from tests.support.waiting import ANY_ERROR, wait_for


@pytest.fixture
def waiting(tmp_path: Path) -> Cluster:
    """A broker that runs, and a controller that does not yet."""
    cluster = Cluster(tmp_path, brokers=1)
    cluster.brokers[1].spawn()
    wait_for(
        lambda: "Cannot fetch the cluster's metadata" in cluster.brokers[1].log(),
        "a broker without controllers",
        errors=ANY_ERROR,
    )
    return cluster


def test_connections_are_refused_until_the_broker_serves(waiting: Cluster) -> None:
    broker = waiting.brokers[1]
    try:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((broker.host, broker.port), timeout=10)
        waiting.quorum.start()
        broker.wait_ready()
        socket.create_connection((broker.host, broker.port), timeout=10).close()
    finally:
        waiting.stop()


def test_an_address_that_was_taken_meanwhile_is_one_sentence(waiting: Cluster) -> None:
    broker = waiting.brokers[1]
    try:
        with socket.create_server((broker.host, broker.port)):
            waiting.quorum.start()
            assert broker.process is not None
            assert broker.process.wait(60) == 2
        assert f"barnabas serve: Cannot listen on 127.0.0.1:{broker.port}: " in broker.log()
        assert "Traceback" not in broker.log()
    finally:
        waiting.stop()
