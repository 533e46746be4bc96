"""Several brokers in one process: kills, restarts, elections, seen by real clients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from barnabas.testing import Broker, Cluster, RefusedError


@pytest.fixture
def three(barnabas_broker: Broker) -> Iterator[Cluster]:
    cluster = barnabas_broker.open(brokers=3)
    cluster.topic("orders").create()
    yield cluster
    cluster.close()


def _partition(kafka: Cluster) -> dict[str, Any]:
    body = {"topics": [{"name": "orders"}], "responsePartitionLimit": 10, "cursor": None}
    partition: dict[str, Any] = kafka.request("DescribeTopicPartitions", body)["topics"][0]["partitions"][0]
    return partition


def _send(producer: Producer, *values: str) -> None:
    for value in values:
        producer.produce("orders", value)
    assert producer.flush(60) == 0


def test_three_brokers_replicate(three: Cluster) -> None:
    assert len(three.bootstrap_servers.split(",")) == 3
    assert sorted(_partition(three)["replicaNodes"]) == [1, 2, 3]
    _send(Producer({"bootstrap.servers": three.bootstrap_servers, "acks": "all"}), "a", "b")
    assert [record.text for record in three.topic("orders").records()] == ["a", "b"]
    assert three.topic("orders").produce("c").offset == 2


@pytest.mark.parametrize("leader", [1, 2, 3])
def test_another_leader_is_elected(three: Cluster, leader: int) -> None:
    producer = Producer({"bootstrap.servers": three.bootstrap_servers})
    _send(producer, "before")
    three.elect("orders", 0, leader=leader)
    assert _partition(three)["leaderId"] == leader
    _send(producer, "after")
    assert [record.text for record in three.topic("orders").records()] == ["before", "after"]


def test_no_acknowledged_record_is_lost_when_the_leader_is_killed(three: Cluster) -> None:
    three.elect("orders", 0, leader=2)
    producer = Producer({"bootstrap.servers": three.bootstrap_servers, "acks": "all", "enable.idempotence": True})
    _send(producer, "a", "b")
    three.kill(2)
    _send(producer, "c", "d")
    assert _partition(three)["leaderId"] in {1, 3}
    three.start(2)
    three.elect("orders", 0, leader=2)
    _send(producer, "e")
    consumer = Consumer(
        {"bootstrap.servers": three.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["orders"])
    values: list[bytes] = []
    while len(values) < 5:
        message = consumer.poll(0.1)
        if message is not None and not message.error():
            values.append(message.value())
    consumer.close()
    assert values == [b"a", b"b", b"c", b"d", b"e"]


def test_what_cannot_be_done(three: Cluster, kafka: Cluster) -> None:
    with pytest.raises(RefusedError, match="There is no broker 4"):
        three.kill(4)
    with pytest.raises(RefusedError, match="Broker 1 is running"):
        three.start(1)
    three.kill(3)
    with pytest.raises(RefusedError, match="Broker 3 is not running"):
        three.kill(3)
    with pytest.raises(RefusedError, match="Broker 3 is not running"):
        three.elect("orders", 0, leader=3)
    with pytest.raises(RefusedError, match="There is no partition nothing-0"):
        three.elect("nothing", 0, leader=1)
    with pytest.raises(RefusedError, match="open one with brokers=3"):
        kafka.kill(1)
    channel = three._link.channel
    for wrong, sentence in (
        ({"brokers": 10}, "brokers must be 1 to 9, not 10"),
        ({"brokers": 3, "seed": 7}, "seed is for clusters of one broker"),
        ({"brokers": 3, "as_version": "1.0"}, "as_version is one of"),
        ({"brokers": 3, "config": {"num.partitions": "many"}}, "num.partitions"),
        ({"brokers": 3, "config": {"broker.rack": "a", "log.cleaner.threads": "-1"}}, "log.cleaner.threads"),
    ):
        with pytest.raises(RefusedError, match=sentence):
            channel.call("POST", "/v1/clusters", wrong)
    for broker in (1, 2):
        three.kill(broker)
    with pytest.raises(RefusedError, match="No broker of this cluster is running"):
        three.topic("orders").records()
