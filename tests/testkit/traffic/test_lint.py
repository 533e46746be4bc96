"""Warnings about what clients do wrong on the wire: each mistake is found, and ordinary use is not."""

from __future__ import annotations

import time
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from barnabas.testing import Broker, Cluster, RefusedError
from tests.support.lazy import lazy, skip_without

skip_without("kafka", "aiokafka")
aiokafka = lazy("aiokafka")
kafka_python = lazy("kafka")


def _rules(kafka: Cluster) -> set[str]:
    return {finding.rule for finding in kafka.lint()}


def _consumer(kafka: Cluster, **more: Any) -> Consumer:
    config = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest"}
    return Consumer(config | more)


@pytest.mark.kafka(ignore_lint=["tiny-batches"])
def test_a_flush_for_each_record(kafka: Cluster) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "client.id": "shop", "linger.ms": 0})
    for number in range(200):
        producer.produce("orders", str(number))
        producer.flush(10)
    (finding,) = kafka.lint()
    assert (finding.rule, finding.client_id) == ("tiny-batches", "shop")
    assert "one record each to orders" in finding.text
    assert "linger.ms" in finding.explanation
    with pytest.raises(
        AssertionError, match=r"tiny-batches by shop: \d+ requests with one record each to orders\. Each"
    ):
        kafka.assert_no_lint()
    kafka.assert_no_lint(ignore=["tiny-batches"])


def test_records_that_fill_a_batch_alone_are_no_finding(kafka: Cluster) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 0})
    for _ in range(150):
        producer.produce("orders", bytes(20_000))
        producer.flush(10)
    assert kafka.lint() == []


@pytest.mark.kafka(ignore_lint=["commit-per-record"])
def test_a_commit_for_each_record(kafka: Cluster) -> None:
    topic = kafka.topic("orders")
    topic.create()
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for number in range(100):
        producer.produce("orders", str(number))
    producer.flush(10)
    consumer = _consumer(kafka, **{"enable.auto.commit": False, "client.id": "billing"})
    consumer.subscribe(["orders"])
    count = 0
    while count < 100:
        message = consumer.poll(10)
        assert message is not None
        consumer.commit(message, asynchronous=False)
        count += 1
    consumer.close()
    (finding,) = kafka.lint()
    assert (finding.rule, finding.client_id) == ("commit-per-record", "billing")


@pytest.mark.kafka(ignore_lint=["fetch-busy-loop"])
def test_fetches_that_do_not_wait(kafka: Cluster) -> None:
    kafka.topic("orders").create()
    consumer = _consumer(kafka, **{"fetch.wait.max.ms": 0, "fetch.error.backoff.ms": 0})
    consumer.subscribe(["orders"])
    while len(kafka.requests("Fetch")) < 300:
        consumer.poll(0.1)
    assert "fetch-busy-loop" in _rules(kafka)
    consumer.close()


@pytest.mark.kafka(ignore_lint=["retry-storm"])
def test_retries_without_a_pause(kafka: Cluster) -> None:
    kafka.topic("orders").create()
    kafka.faults.add("Produce", error="NOT_ENOUGH_REPLICAS", count=60)
    producer = Producer(
        {"bootstrap.servers": kafka.bootstrap_servers, "retry.backoff.ms": 1, "retry.backoff.max.ms": 1}
    )
    producer.produce("orders", "a")
    assert producer.flush(30) == 0
    findings = [finding for finding in kafka.lint() if finding.rule == "retry-storm"]
    assert [finding.text for finding in findings] == ["60 times Produce with NOT_ENOUGH_REPLICAS"]


@pytest.mark.kafka(ignore_lint=["unkeyed-into-compacted"])
def test_records_without_a_key_for_a_compacted_topic(kafka: Cluster) -> None:
    kafka.topic("state").create(config={"cleanup.policy": "compact"})
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    producer.produce("state", "a")
    producer.flush(10)
    assert _rules(kafka) == {"unkeyed-into-compacted"}


@pytest.mark.kafka(ignore_lint=["transaction-left-open"])
def test_a_transaction_that_nobody_ends(kafka: Cluster) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": "t"})
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce("orders", "a")
    assert producer.flush(10) == 0
    assert _rules(kafka) == set()  # it may still end it
    del producer
    deadline = time.monotonic() + 10
    while "transaction-left-open" not in _rules(kafka):
        assert time.monotonic() < deadline


@pytest.mark.kafka(ignore_lint=["producer-per-record"])
def test_a_producer_for_each_record(kafka: Cluster) -> None:
    for _ in range(12):
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "client.id": "shop"})
        producer.produce("orders", "a")
        producer.flush(10)
    assert _rules(kafka) == {"producer-per-record"}


def test_a_member_that_was_removed(barnabas_broker: Broker) -> None:
    kafka = barnabas_broker.open()
    kafka.topic("orders").produce("a")
    consumer = _consumer(kafka, **{"heartbeat.interval.ms": 100, "session.timeout.ms": 6000})
    consumer.subscribe(["orders"])
    assert consumer.poll(10) is not None
    assert _rules(kafka) == set()
    kafka.clock.advance("1h")
    deadline = time.monotonic() + 20
    while "member-removed" not in _rules(kafka):
        assert time.monotonic() < deadline
        consumer.poll(0.1)
    consumer.close()
    assert kafka.close_with_lint() == []  # the test has moved the clock: that is no mistake of the client


def test_what_is_found_at_the_end(barnabas_broker: Broker) -> None:
    kafka = barnabas_broker.open()
    kafka.topic("state").create(config={"cleanup.policy": "compact"})
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    producer.produce("state", "a")
    producer.flush(10)
    assert [finding.rule for finding in kafka.close_with_lint()] == ["unkeyed-into-compacted"]


def test_a_rule_that_is_unknown(kafka: Cluster) -> None:
    with pytest.raises(
        RefusedError, match="There is no rule tiny-batch; the rules are tiny-batches, commit-per-record"
    ):
        kafka.lint(ignore=["tiny-batch"])


# Ordinary use: nothing is found.


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_confluent_kafka_at_work(kafka: Cluster, protocol: str) -> None:
    kafka.topic("orders").create(4)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": "t"})
    producer.init_transactions(10)
    for batch in range(5):
        producer.begin_transaction()
        for number in range(200):
            producer.produce("orders", f"{batch}-{number}")
        producer.commit_transaction(10)
    consumers = [_consumer(kafka, **{"group.protocol": protocol}) for _ in range(2)]
    count = 0
    for consumer in consumers:
        consumer.subscribe(["orders"])
    while count < 1000:
        for consumer in consumers:
            count += sum(message.error() is None for message in consumer.consume(100, 0.05))
    for consumer in consumers:
        consumer.close()
    assert kafka.lint() == []


def test_single_events_now_and_then(kafka: Cluster) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for number in range(30):
        producer.produce("orders", str(number))
        producer.flush(10)
    consumer = _consumer(kafka, **{"enable.auto.commit": False})
    consumer.subscribe(["orders"])
    for _ in range(30):
        consumer.commit(consumer.poll(10), asynchronous=False)
    consumer.close()
    assert kafka.lint() == []


def test_kafka_python_at_work(kafka: Cluster) -> None:
    with kafka_python.KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, linger_ms=5) as producer:
        for number in range(500):
            producer.send("orders", str(number).encode())
    consumer = kafka_python.KafkaConsumer(
        "orders",
        bootstrap_servers=kafka.bootstrap_servers,
        group_id="g",
        auto_offset_reset="earliest",
        consumer_timeout_ms=10_000,
    )
    for _ in range(500):
        next(consumer)
    consumer.poll(timeout_ms=1000)
    consumer.close()
    assert kafka.lint() == []


def test_aiokafka_at_work(kafka: Cluster) -> None:
    import asyncio  # noqa: TID251 - what aiokafka runs on

    async def run() -> None:
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers)
        await producer.start()
        sent = [await producer.send("orders", str(number).encode()) for number in range(500)]
        await asyncio.gather(*sent)
        await producer.stop()
        consumer = aiokafka.AIOKafkaConsumer(
            "orders", bootstrap_servers=kafka.bootstrap_servers, group_id="g", auto_offset_reset="earliest"
        )
        await consumer.start()
        for _ in range(500):
            await consumer.getone()
        await consumer.stop()

    asyncio.run(run())
    assert kafka.lint() == []


def test_a_retry_after_an_error(kafka: Cluster) -> None:
    kafka.faults.add("Produce", error="NOT_LEADER_OR_FOLLOWER", count=3)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    producer.produce("orders", "a")
    assert producer.flush(30) == 0
    assert kafka.lint() == []
