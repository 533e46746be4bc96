"""Snapshots of virtual clusters, with real clients: restored, forked, and saved for `barnabas serve`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import AdminClient

from barnabas.storage import layout
from barnabas.testing import Broker, Cluster, RefusedError


def _values(kafka: Cluster, topic: str = "orders") -> list[str | None]:
    return [record.text for record in kafka.topic(topic).records()]


def _producer(kafka: Cluster, **settings: Any) -> Producer:
    return Producer({"bootstrap.servers": kafka.bootstrap_servers, **settings})


def _committed(kafka: Cluster) -> int:
    topics = [{"name": "orders", "partitionIndexes": [0]}]
    groups = [{"groupId": "g", "topics": topics}]
    response = kafka.request("OffsetFetch", {"groups": groups, "requireStable": False}, 8)
    return int(response["groups"][0]["topics"][0]["partitions"][0]["committedOffset"])


def _consume(kafka: Cluster, count: int) -> list[str]:
    """Read on as the group g, and commit."""
    consumer = Consumer(
        {"bootstrap.servers": kafka.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["orders"])
    values = []
    while len(values) < count:
        message = consumer.poll(0.1)
        if message is not None and not message.error():
            values.append(message.value().decode())
    consumer.commit(asynchronous=False)
    consumer.close()
    return values


def test_a_cluster_is_restored_at_its_address(kafka: Cluster) -> None:
    topic = kafka.topic("orders")
    topic.create(config={"retention.ms": "123456789"})
    for value in "abc":
        topic.produce(value)
    assert _consume(kafka, 2)[:2] == ["a", "b"]
    before = _committed(kafka)
    snap = kafka.snapshot()
    address = kafka.bootstrap_servers
    topic.produce("later")
    kafka.topic("made-later").create()
    _consume(kafka, 1)
    kafka.restore(snap)
    assert kafka.bootstrap_servers == address
    assert _values(kafka) == ["a", "b", "c"]
    assert _committed(kafka) == before
    topics = AdminClient({"bootstrap.servers": address}).list_topics(timeout=10).topics
    assert "orders" in topics
    assert "made-later" not in topics
    assert topic.produce("d").offset == 3
    kafka.restore(snap)
    assert _values(kafka) == ["a", "b", "c"]


def test_a_client_goes_on_after_a_restore(kafka: Cluster) -> None:
    kafka.topic("orders").create()
    producer = _producer(kafka)
    producer.produce("orders", "kept")
    producer.flush()
    snap = kafka.snapshot()
    producer.produce("orders", "undone")
    producer.flush()
    kafka.restore(snap)
    producer.produce("orders", "again")
    assert producer.flush(30) == 0
    assert _values(kafka) == ["kept", "again"]


def test_forks_are_independent(barnabas_broker: Broker) -> None:
    kafka = barnabas_broker.open()
    kafka.topic("orders").produce("both")
    fork = kafka.fork()
    kafka.topic("orders").produce("mine")
    fork.topic("orders").produce("its own")
    twin = fork.fork()
    fork.topic("orders").produce("more")
    assert _values(kafka) == ["both", "mine"]
    assert _values(fork) == ["both", "its own", "more"]
    assert _values(twin) == ["both", "its own"]
    kafka.close()
    assert _values(twin) == ["both", "its own"]
    fork.close()
    twin.close()
    with pytest.raises(RefusedError, match="There is no cluster"):
        fork.snapshot()


def test_segments_that_are_closed_are_shared_and_survive_their_deletion(kafka: Cluster) -> None:
    kafka.clock.freeze()
    topic = kafka.topic("orders")
    topic.create(config={"segment.bytes": "1048576", "retention.ms": "60000"})
    for number in range(30):
        topic.produce(bytes([number]) * 100_000)
    snap = kafka.snapshot()
    kafka.clock.advance("1h")
    assert topic.records() == []
    kafka.restore(snap)
    assert [record.value for record in topic.records()] == [bytes([number]) * 100_000 for number in range(30)]


def test_an_open_transaction_is_part_of_a_snapshot(kafka: Cluster) -> None:
    kafka.topic("orders").create()
    producer = _producer(kafka, **{"transactional.id": "t"})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("orders", "open")
    producer.flush()
    fork = kafka.fork()
    producer.commit_transaction()
    assert _values(kafka) == ["open"]
    state = fork.request("DescribeTransactions", {"transactionalIds": ["t"]}, 0)["transactionStates"][0]
    assert state["transactionState"] == "Ongoing"
    assert _values(fork) == []
    active = _active_producers(fork)
    assert [entry["currentTxnStartOffset"] for entry in active] == [0]
    fork.clock.advance("10m")  # it times out there
    fork.topic("orders").produce("next")
    assert _values(fork) == ["next"]
    assert _values(kafka) == ["open"]
    fork.close()


def _active_producers(kafka: Cluster) -> list[dict[str, Any]]:
    topics = [{"name": "orders", "partitionIndexes": [0]}]
    response = kafka.request("DescribeProducers", {"topics": topics}, 0)
    producers: list[dict[str, Any]] = response["topics"][0]["partitions"][0]["activeProducers"]
    return producers


def test_an_idempotent_producer_is_recognized_by_the_restored_cluster(kafka: Cluster) -> None:
    kafka.topic("orders").create()
    producer = _producer(kafka, **{"enable.idempotence": True})
    producer.produce("orders", "a")
    producer.flush()
    before = _active_producers(kafka)
    assert len(before) == 1
    kafka.restore(kafka.snapshot())
    assert _active_producers(kafka) == before
    delivered: list[KafkaError | None] = []
    producer.produce("orders", "b", on_delivery=lambda error, _: delivered.append(error))
    assert producer.flush(30) == 0
    assert delivered == [None]
    assert _values(kafka) == ["a", "b"]


def test_the_clock_is_part_of_a_snapshot(kafka: Cluster) -> None:
    frozen = kafka.clock.freeze()
    snap = kafka.snapshot()
    kafka.clock.advance("3d")
    kafka.restore(snap)
    assert kafka.clock.now == frozen
    fork = kafka.fork()
    assert fork.clock.now == frozen
    fork.close()


def test_a_saved_snapshot_is_a_data_directory(kafka: Cluster, tmp_path: Path, start_broker: Any) -> None:
    kafka.topic("orders").create(partitions=3)
    for value in ("a", "b"):
        kafka.topic("orders").produce(value, partition=1)
    _consume(kafka, 2)
    saved = kafka.snapshot().save(tmp_path / "data")
    assert (saved / layout.CLEAN_SHUTDOWN).exists()
    check = subprocess.run(
        [sys.executable, "-m", "barnabas", "storage", "check", str(saved)], capture_output=True, text=True, check=False
    )
    assert check.returncode == 0, check.stdout + check.stderr
    server = start_broker(data_dir=saved)
    consumer = Consumer({"bootstrap.servers": server.bootstrap, "group.id": "other", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    records = []
    while len(records) < 2:
        message = consumer.poll(0.1)
        if message is not None and not message.error():
            records.append((message.partition(), message.offset(), message.value()))
    consumer.close()
    assert records == [(1, 0, b"a"), (1, 1, b"b")]
    with pytest.raises(RefusedError, match=r"Cannot make .*data: File exists"):
        kafka.snapshot().save(saved)


def test_what_cannot_be_done(kafka: Cluster) -> None:
    snap = kafka.snapshot()
    snap.remove()
    with pytest.raises(RefusedError, match="There is no snapshot"):
        kafka.restore(snap)
    with pytest.raises(RefusedError, match="There is no snapshot"):
        kafka.fork(snap)


@pytest.mark.trio
async def test_the_awaited_form(barnabas_broker: Broker) -> None:
    kafka = await barnabas_broker.open_async()
    await kafka.topic("orders").produce("a")
    snap = await kafka.snapshot()
    await kafka.topic("orders").produce("b")
    fork = await kafka.fork(snap)
    await kafka.restore(snap)
    for cluster in (kafka, fork):
        assert [record.text for record in await cluster.topic("orders").records()] == ["a"]
        await cluster.close()
