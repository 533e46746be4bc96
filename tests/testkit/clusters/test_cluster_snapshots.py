"""Snapshots of clusters of several brokers: restored at their addresses, forked, and saved for `serve --brokers`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from barnabas.testing import Broker, Cluster, RefusedError


@pytest.fixture
def three(barnabas_broker: Broker) -> Iterator[Cluster]:
    cluster = barnabas_broker.open({"num.partitions": 3}, brokers=3)
    yield cluster
    cluster.close()


def _values(kafka: Cluster) -> list[str]:
    return sorted(record.text or "" for record in kafka.topic("orders").records())


def _partitions(kafka: Cluster) -> dict[int, tuple[int, list[int]]]:
    """Leader and replicas in sync of each partition."""
    body = {"topics": [{"name": "orders"}], "responsePartitionLimit": 10, "cursor": None}
    partitions: list[dict[str, Any]] = kafka.request("DescribeTopicPartitions", body)["topics"][0]["partitions"]
    return {
        partition["partitionIndex"]: (partition["leaderId"], sorted(partition["isrNodes"])) for partition in partitions
    }


def _send(kafka: Cluster, *values: str, **settings: Any) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, **settings})
    for number, value in enumerate(values):
        producer.produce("orders", value, partition=number % 3)
    assert producer.flush(60) == 0


def _consume(kafka: Cluster, count: int) -> None:
    """Read on as the group g, and commit."""
    settings = {"group.id": "g", "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, **settings})
    consumer.subscribe(["orders"])
    while count:
        message = consumer.poll(0.1)
        count -= message is not None and not message.error()
    consumer.commit(asynchronous=False)
    consumer.close()


def test_a_cluster_is_restored_at_its_addresses(three: Cluster) -> None:
    three.topic("orders").create(3)
    _send(three, "a", "b", "c")
    _consume(three, 3)
    three.elect("orders", 0, leader=2)
    addresses, before = three.bootstrap_servers, _partitions(three)
    offsets = three.group("g").describe().offsets
    snap = three.snapshot()
    three.elect("orders", 0, leader=3)
    _send(three, "d", "e", "f")
    _consume(three, 3)
    three.topic("made-later").create()
    for _ in range(2):
        three.restore(snap)
        assert three.bootstrap_servers == addresses
        assert _partitions(three) == before
        assert _values(three) == ["a", "b", "c"]
        assert three.group("g").describe().offsets == offsets
        assert three.topic("made-later").records() == []
    _send(three, "g")
    assert _values(three) == ["a", "b", "c", "g"]


def test_what_only_a_leader_has_acknowledged_is_part_of_a_snapshot(three: Cluster) -> None:
    three.topic("orders").create(3)
    values = [f"{number:04}" for number in range(300)]
    _send(three, *values, acks=1)
    snap = three.snapshot()
    three.restore(snap)
    assert _values(three) == values


def test_a_client_goes_on_after_a_restore(three: Cluster) -> None:
    three.topic("orders").create(3)
    producer = Producer({"bootstrap.servers": three.bootstrap_servers, "enable.idempotence": True})
    producer.produce("orders", "kept", partition=0)
    producer.flush()
    snap = three.snapshot()
    three.restore(snap)
    producer.produce("orders", "again", partition=0)
    assert producer.flush(60) == 0
    assert _values(three) == ["again", "kept"]


def test_an_open_transaction_is_part_of_a_snapshot(three: Cluster) -> None:
    three.topic("orders").create(3)
    producer = Producer({"bootstrap.servers": three.bootstrap_servers, "transactional.id": "t"})
    producer.init_transactions()
    producer.begin_transaction()
    for index in range(3):
        producer.produce("orders", "open", partition=index)
    producer.flush()
    snap = three.snapshot()
    producer.commit_transaction()
    three.topic("orders").wait_for(3)
    fork = three.fork(snap)
    assert _values(fork) == []
    fork.fence_producer("t")
    _send(fork, "next")
    assert _values(fork) == ["next"]
    assert _values(three) == ["open", "open", "open"]
    fork.close()


def test_a_broker_that_was_killed_is_killed_in_the_snapshot_too(three: Cluster) -> None:
    three.topic("orders").create(3)
    _send(three, "a", "b", "c")
    three.kill(2)
    _send(three, "d", "e", "f")
    fork = three.fork()
    with pytest.raises(RefusedError, match="Broker 2 is not running"):
        fork.kill(2)
    assert _values(fork) == ["a", "b", "c", "d", "e", "f"]
    fork.start(2)
    fork.elect("orders", 0, leader=2)
    assert _values(fork) == ["a", "b", "c", "d", "e", "f"]
    three.start(2)
    three.elect("orders", 0, leader=2)
    fork.close()


def test_the_clock_is_part_of_a_snapshot(three: Cluster) -> None:
    three.clock.freeze()
    date = datetime(2031, 2, 3, tzinfo=UTC)
    three.clock.jump(date)
    three.topic("orders").produce("a")
    snap = three.snapshot()
    three.clock.advance("3d")
    fork = three.fork(snap)
    assert fork.clock.now == date
    fork.close()
    three.restore(snap)
    assert three.clock.now == date
    assert _values(three) == ["a"]


def test_segments_that_are_closed_are_shared_and_survive_their_deletion(three: Cluster) -> None:
    three.clock.freeze()
    topic = three.topic("orders")
    topic.create(1, {"segment.bytes": "1048576", "retention.ms": "60000"})
    for number in range(30):
        topic.produce(bytes([number]) * 100_000)
    snap = three.snapshot()
    three.clock.advance("1h")
    assert topic.records() == []
    three.restore(snap)
    assert [record.value for record in topic.records()] == [bytes([number]) * 100_000 for number in range(30)]


def test_what_cannot_be_done(three: Cluster, kafka: Cluster, barnabas_broker: Broker) -> None:
    two = barnabas_broker.open(brokers=2)
    with pytest.raises(RefusedError, match="The snapshot is not of a cluster of 3 brokers"):
        three.restore(two.snapshot())
    with pytest.raises(RefusedError, match="The snapshot is not of a cluster of 3 brokers"):
        three.restore(kafka.snapshot())
    with pytest.raises(RefusedError, match="The snapshot is of a cluster of several brokers"):
        kafka.restore(three.snapshot())
    two.close()


@pytest.mark.parametrize("brokers", [1, 3])
def test_a_saved_snapshot_is_the_directory_of_a_cluster(barnabas_broker: Broker, tmp_path: Path, brokers: int) -> None:
    kafka = barnabas_broker.open(brokers=brokers)
    kafka.topic("orders").create(3)
    _send(kafka, "a", "b", "c")
    saved = kafka.snapshot().save(tmp_path / "data")
    kafka.close()
    ready = tmp_path / "ready"
    command = [sys.executable, "-m", "barnabas", "serve", "--brokers", str(brokers), "--data-dir", str(saved)]
    command += ["--listen", "127.0.0.1:0", "--ready-file", str(ready)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as cluster:
        assert cluster.stdout is not None
        try:
            while not ready.exists():
                assert cluster.stdout.readline()
            settings = {"group.id": "other", "auto.offset.reset": "earliest"}
            consumer = Consumer({"bootstrap.servers": ready.read_text().split()[0], **settings})
            consumer.subscribe(["orders"])
            values = []
            while len(values) < 3:
                message = consumer.poll(0.1)
                if message is not None and not message.error():
                    values.append(message.value())
            consumer.close()
        finally:
            cluster.terminate()
    assert sorted(values) == [b"a", b"b", b"c"]
