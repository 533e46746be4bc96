"""Each test has a cluster of its own in the same process: names, configs and offsets of another one are not in it."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest
import trio
from confluent_kafka import Producer

from barnabas.kit.clusters.virtual_cluster import remove_in_thread
from barnabas.testing import Broker, Cluster, RefusedError
from tests.support.sockets import is_ended_by_peer
from tests.testkit.plugin.inner_pytest import run


def test_clusters_share_nothing(barnabas_broker: Broker) -> None:
    first, second = barnabas_broker.open(), barnabas_broker.open({"num.partitions": 4})
    try:
        first.topic("orders").produce("of the first")
        assert second.topic("orders").records() == []
        second.topic("orders").produce("of the second")
        assert [record.text for record in first.topic("orders").records()] == ["of the first"]
        assert len(_partitions(first)) == 1
        assert len(_partitions(second)) == 4
        assert _cluster_id(first) != _cluster_id(second)
    finally:
        first.close()
        second.close()


def _partitions(cluster: Cluster) -> list[object]:
    body = {"topics": [{"name": "orders"}], "responsePartitionLimit": 100, "cursor": None}
    partitions: list[object] = cluster.request("DescribeTopicPartitions", body)["topics"][0]["partitions"]
    return partitions


def _cluster_id(cluster: Cluster) -> str:
    body = {"includeClusterAuthorizedOperations": False, "endpointType": 1, "includeFencedBrokers": False}
    cluster_id: str = cluster.request("DescribeCluster", body)["clusterId"]
    return cluster_id


def test_a_closed_cluster_is_gone(barnabas_broker: Broker) -> None:
    cluster = barnabas_broker.open()
    host, port = cluster.bootstrap_servers.rsplit(":", 1)
    client = socket.create_connection((host, int(port)))
    cluster.close()
    with client:
        client.settimeout(20)
        assert is_ended_by_peer(client)
    with pytest.raises(RefusedError, match="it was closed, or never opened"):
        cluster.topic("orders").records()
    with pytest.raises(RefusedError, match="it was closed, or never opened"):
        cluster.close()


def test_a_context_closes_it(barnabas_broker: Broker) -> None:
    with barnabas_broker.open() as cluster:
        cluster.topic("orders").produce("x")
    with barnabas_broker.open() as closed:
        closed.close()
    for target in (cluster, closed):
        with pytest.raises(RefusedError, match="it was closed"):
            target.topic("orders").records()


@pytest.mark.parametrize("mode", ["off", "warn"])
def test_a_test_may_close_its_own(tmp_path: Path, mode: str) -> None:
    text = """
def test_what_the_service_does_without_a_broker(kafka):
    kafka.close()

def test_the_same_to_await(async_kafka):
    import asyncio
    asyncio.run(async_kafka.close())
"""
    assert "2 passed" in run(tmp_path, text, "--barnabas-lint", mode)


def test_many_clusters_leave_no_memory_behind(barnabas_broker: Broker) -> None:
    for _ in range(60):
        cluster = barnabas_broker.open()
        cluster.topic("orders").produce("x")
        cluster.close()
    open_now = barnabas_broker.channel.call("GET", "/v1/clusters")["clusters"]
    assert len(open_now) < 20, "clusters of other tests of this run at most"


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({"num.partitions": "many"}, "num.partitions"),
        ({"no.such.key": "1"}, "no.such.key"),
        ({"listeners": "PLAINTEXT://203.0.113.1:0"}, "Cannot listen on 203.0.113.1:0"),
    ],
)
def test_configs_that_no_cluster_starts_with(barnabas_broker: Broker, config: dict[str, str], sentence: str) -> None:
    with pytest.raises(RefusedError, match=sentence):
        barnabas_broker.open(config)


def test_the_brokers_own_cluster_cannot_be_closed(barnabas_broker: Broker) -> None:
    with pytest.raises(RefusedError, match="ends with its process"):
        barnabas_broker.channel.call("DELETE", "/v1/clusters/0")


def test_directories_are_removed_in_a_thread_also_at_the_end(tmp_path: Path) -> None:
    """The removal is awaited while the process ends: nothing is left behind."""
    folder = tmp_path / "data"
    (folder / "orders-0").mkdir(parents=True)

    async def end() -> None:
        with trio.CancelScope() as scope:
            scope.cancel()
            await remove_in_thread([str(folder)])

    trio.run(end)
    assert not folder.exists()


def test_a_cluster_that_nobody_used_is_another_one_for_the_next_test(barnabas_broker: Broker) -> None:
    """It may be reused at another address: a client that connects late finds no listener."""
    for _ in range(10):
        cluster = barnabas_broker.open()
        host, port = cluster.bootstrap_servers.rsplit(":", 1)
        cluster.close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((host, int(port))).close()
        with pytest.raises(RefusedError, match="it was closed, or never opened"):
            cluster.topic("orders").records()


def test_clients_find_a_cluster_that_was_given_on(barnabas_broker: Broker) -> None:
    """The address that it tells is the one that it has now."""
    for _ in range(6):
        barnabas_broker.open().close()
    with barnabas_broker.open() as cluster:
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
        producer.produce("orders", "x")
        assert producer.flush(20) == 0
        assert [record.text for record in cluster.topic("orders").records()] == ["x"]
        body = {"topics": [], "allowAutoTopicCreation": False, "includeTopicAuthorizedOperations": False}
        (broker,) = cluster.request("Metadata", body)["brokers"]
        assert f"{broker['host']}:{broker['port']}" == cluster.bootstrap_servers


def _connect(cluster: Cluster) -> None:
    host, port = cluster.bootstrap_servers.rsplit(":", 1)
    socket.create_connection((host, int(port))).close()
    cluster.clock.freeze()  # answered after the broker has accepted it


@pytest.mark.parametrize(
    "use",
    [
        lambda cluster: cluster.topic("orders").produce("x"),
        lambda cluster: cluster.request("ListGroups", {"statesFilter": [], "typesFilter": []}),
        lambda cluster: cluster.clock.freeze(),
        lambda cluster: cluster.faults.add("Produce", error="NOT_LEADER_OR_FOLLOWER"),
        lambda cluster: cluster.snapshot(),
        lambda cluster: cluster.requests(),
        _connect,
    ],
    ids=["record", "request", "clock", "fault", "snapshot", "requests", "connection"],
)
def test_a_cluster_that_was_used_is_not_given_on(barnabas_broker: Broker, use: Callable[[Cluster], object]) -> None:
    """Each cluster has an id that no other has; one that is given on keeps it."""
    seen: set[str] = set()
    for _ in range(6):
        with barnabas_broker.open() as cluster:
            seen.add(_cluster_id(cluster))
            use(cluster)
    assert len(seen) == 6


def test_forks_are_not_given_on(barnabas_broker: Broker) -> None:
    with barnabas_broker.open() as parent:
        parent.topic("orders").produce("x")
        snapshot = parent.snapshot()
        for _ in range(3):
            parent.fork(snapshot).close()
    clusters = [barnabas_broker.open() for _ in range(6)]
    for cluster in clusters:
        assert cluster.topic("orders").records() == []
        cluster.close()
