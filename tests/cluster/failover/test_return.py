"""Brokers, topics and replicas that are removed and return under the same name or id work again; nothing old is kept.

A broker is unregistered and registers again, or has another address; a topic is deleted and made again; a replica
leaves a broker and returns. Meanwhile clients go on, and other brokers have objects for it: clients, fetchers,
sessions, watches, coordinators.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer, Producer

from barnabas.broker.net.client.network_client import NetworkClient
from barnabas.broker.replicas.leader.fetch_sessions import FetchSession
from barnabas.broker.replicas.partition import Partition
from barnabas.client.admin.cluster import unregister_broker
from barnabas.client.admin.reassignments import reassign
from barnabas.client.admin.topics import delete_topics
from tests.cluster.load.work import create_topic
from tests.support.cluster.asking import client, is_in_sync, partitions
from tests.support.cluster.clusters import Cluster
from tests.support.cluster.quorums import HOST
from tests.support.processes.ports import free_port
from tests.support.waiting import ANY_ERROR, wait_for

pytestmark = pytest.mark.timeout(300)
"""Each wait has a deadline of its own."""
OF_SESSIONS = {"session.timeout.ms": 6000, "auto.offset.reset": "earliest", "enable.auto.commit": True}


class Reader:
    """A consumer of a topic that stays while the topic and the brokers come and go."""

    def __init__(self, cluster: Cluster, topic: str, group: str) -> None:
        settings = {"topic.metadata.refresh.interval.ms": 500, "allow.auto.create.topics": False}
        self._consumer = Consumer(
            {"bootstrap.servers": cluster.bootstrap, "group.id": group, "log_level": 0, **OF_SESSIONS, **settings}
        )
        self._consumer.subscribe([topic])
        self.seen: list[bytes] = []

    def wait_for(self, value: bytes) -> None:
        """Wait until the record has come."""

        def has_come() -> bool:
            messages = self._consumer.consume(100, 0.2)
            self.seen += [message.value() for message in messages if message.error() is None]
            return value in self.seen

        wait_for(has_come, lambda: f"the record {value!r}; the last ones are {self.seen[-3:]}", errors=ANY_ERROR)

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()


@pytest.fixture
def reader(local_cluster: Cluster, topic: str) -> Iterator[Reader]:
    """Reads a topic of three replicas that is there."""
    create_topic(local_cluster.bootstrap, topic, 3)
    in_sync(local_cluster, topic)
    group_reader = Reader(local_cluster, topic, f"group-{topic}")
    try:
        write(local_cluster, topic, b"before")
        group_reader.wait_for(b"before")
        yield group_reader
    finally:
        group_reader.close()


def in_sync(cluster: Cluster, topic: str) -> None:
    """Wait until every partition has three replicas in sync."""
    wait_for(lambda: is_in_sync(cluster.bootstrap, topic, 3), f"three replicas of {topic} in sync", errors=ANY_ERROR)


def write(cluster: Cluster, topic: str, value: bytes) -> None:
    """Write a record to each partition; all replicas have it."""
    failed: list[object] = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 0})
    for index in range(3):
        producer.produce(topic, value, partition=index, on_delivery=lambda error, _: error and failed.append(error))
    assert producer.flush(60) == 0, "not every record is acknowledged"
    assert failed == []


def goes_on(cluster: Cluster, topic: str, reader: Reader, value: bytes) -> None:
    """Replicas come in sync, and records are written and read."""
    in_sync(cluster, topic)
    write(cluster, topic, value)
    reader.wait_for(value)


def test_a_broker_that_is_unregistered_and_registers_again(local_cluster: Cluster, topic: str, reader: Reader) -> None:
    """Both as a leader that others follow again, and as a follower."""
    node = local_cluster.brokers[3]
    assert node.stop() == 0
    with client(local_cluster.brokers[1].bootstrap) as asking:
        unregister_broker(asking, 3)
    write(local_cluster, topic, b"without it")
    node.restart()
    goes_on(local_cluster, topic, reader, b"after")
    for leader in (3, 1):
        lead_by(local_cluster, topic, leader)
        goes_on(local_cluster, topic, reader, b"led by %d" % leader)


def lead_by(cluster: Cluster, topic: str, broker: int) -> None:
    """Have a broker lead all partitions: it is the only replica for a moment, then the others follow it anew."""
    others = sorted(cluster.brokers.keys() - {broker})
    for replicas in ([broker], [broker, *others]):
        place(cluster, topic, replicas)


def place(cluster: Cluster, topic: str, replicas: list[int]) -> None:
    """Have all partitions of the topic on these brokers; the first is the preferred leader."""

    def is_placed() -> bool:
        placed = partitions(cluster.bootstrap, topic).values()
        return all(
            sorted(partition.replica_nodes) == sorted(replicas) == sorted(partition.isr_nodes) for partition in placed
        )

    with client(cluster.bootstrap) as asking:
        reassign(asking, {(topic, index): replicas for index in range(3)})
    wait_for(is_placed, f"{topic} on {replicas}", errors=ANY_ERROR)


def test_a_broker_with_another_address(local_cluster: Cluster, topic: str, reader: Reader) -> None:
    node = local_cluster.brokers[3]
    assert node.stop() == 0
    node.port = free_port()
    node.config["listeners"] = f"PLAINTEXT://{HOST}:{node.port}"
    node.config.pop("advertised.listeners", None)
    node.restart()
    goes_on(local_cluster, topic, reader, b"after")
    lead_by(local_cluster, topic, 3)
    goes_on(local_cluster, topic, reader, b"led by it")


def test_a_topic_that_is_made_again(local_cluster: Cluster, topic: str, reader: Reader) -> None:
    """The group's offsets have gone with the topic: a new member begins at the beginning (R8)."""
    reader.close()
    for round_ in range(3):
        with client(local_cluster.bootstrap) as asking:
            delete_topics(asking, [topic])
        wait_for(lambda: not partitions(local_cluster.bootstrap, topic), f"{topic} is deleted", errors=ANY_ERROR)
        create_topic(local_cluster.bootstrap, topic, 3)
        again = Reader(local_cluster, topic, f"group-{topic}")
        try:
            goes_on(local_cluster, topic, again, b"round %d" % round_)
        finally:
            again.close()
    nothing_is_kept()


def test_a_replica_that_leaves_and_returns(local_cluster: Cluster, topic: str, reader: Reader) -> None:
    for replicas in ([2, 1], [1, 3], [3, 2]):
        place(local_cluster, topic, replicas)
        place(local_cluster, topic, [*replicas, *({1, 2, 3} - set(replicas))])
        goes_on(local_cluster, topic, reader, b"after %d and %d" % tuple(replicas))
    nothing_is_kept()


KEPT: dict[type, Callable[..., bool]] = {
    Partition: lambda one: one.is_closed,
    FetchSession: lambda one: one.is_closed,
    NetworkClient: lambda one: one._is_closed,
}
"""Types of objects that brokers create for a node, topic or epoch, and how a closed one is recognised."""


def nothing_is_kept() -> None:
    """No object refers to a closed one, once requests that have waited are answered."""

    def kept() -> list[str]:
        gc.collect()
        return [
            repr(instance) for instance in gc.get_objects() if type(instance) in KEPT and KEPT[type(instance)](instance)
        ]

    wait_for(lambda: not kept(), lambda: f"closed parts are freed: {kept()[:5]}", errors=ANY_ERROR)
