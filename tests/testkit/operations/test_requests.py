"""The control channel's view of clients: their requests, and the timeline of their actions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import trio
from confluent_kafka import Consumer, Producer

from barnabas.testing import Broker, Cluster
from tests.support.lazy import lazy, skip_without

skip_without("kafka")
kafka_python = lazy("kafka")


@pytest.fixture
def producer(kafka: Cluster) -> Producer:
    return Producer({"bootstrap.servers": kafka.bootstrap_servers, "client.id": "shop"})


@pytest.fixture
def consumer(kafka: Cluster) -> Iterator[Consumer]:
    client = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "client.id": "billing",
            "group.id": "bills",
            "auto.offset.reset": "earliest",
        }
    )
    yield client
    client.close()


def _send(producer: Producer, value: str) -> None:
    producer.produce("orders", value)
    assert producer.flush(10) == 0


def test_a_produce_request_is_recorded(kafka: Cluster, producer: Producer) -> None:
    _send(producer, "a")
    (request,) = kafka.requests("Produce", topic="orders", client_id="shop")
    assert (request.api, request.client_id, request.topics) == ("Produce", "shop", ("orders",))
    assert (request.errors, request.outcome) == ((), "answered")
    assert request.details["records"] == 1
    assert request.details["acks"] == -1
    assert request.took is not None
    assert request.took >= 0
    assert kafka.requests("Produce", topic="other") == []
    assert kafka.requests("Produce", client_id="other") == []


def test_topics_are_named_also_where_a_request_has_their_ids(kafka: Cluster) -> None:
    kafka.topic("orders").create()
    with kafka_python.KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, client_id="python") as producer:
        producer.send("orders", b"a").get(10)
    assert kafka.requests("Produce", client_id="python")[0].topics == ("orders",)


def test_what_the_control_channel_itself_asks_is_left_out(kafka: Cluster) -> None:
    kafka.topic("orders").produce("a")
    kafka.request("ListGroups", {"statesFilter": [], "typesFilter": []})
    assert kafka.requests() == []
    assert kafka.timeline() == []


def test_other_clusters_requests_are_not_seen(kafka: Cluster, barnabas_broker: Broker, producer: Producer) -> None:
    other = barnabas_broker.open()
    _send(producer, "a")
    assert other.requests() == []
    other.close()


def test_the_timeline_of_a_group(kafka: Cluster, producer: Producer, consumer: Consumer) -> None:
    for value in "abc":
        _send(producer, value)
    consumer.subscribe(["orders"])
    while (message := consumer.poll(1)) is None or message.value() != b"c":
        pass
    consumer.commit(asynchronous=False)
    lines = kafka.timeline(group="bills")
    apis = [line.split("  ")[2] for line in lines]
    assert [api for api in apis if api in {"SyncGroup", "OffsetCommit"}] == ["SyncGroup", "OffsetCommit"]
    assert "JoinGroup" in apis
    assert "offsets=orders-0:3" in lines[-1]
    assert any("Produce ×3  orders" in line and "records=3" in line for line in kafka.timeline(client_id="shop"))
    assert kafka.timeline(last=1, group="bills") == lines[-1:]


def test_a_failure_shows_what_clients_did(kafka: Cluster, producer: Producer, consumer: Consumer) -> None:
    _send(producer, "a")
    with pytest.raises(AssertionError, match=r"(?s)What clients did last:\n.*shop  Produce  orders"):
        kafka.topic("orders").wait_for(2, timeout=0)
    consumer.subscribe(["orders"])
    consumer.poll(10)
    with pytest.raises(AssertionError, match=r"(?s)What members of bills did last:.*billing  JoinGroup  group bills"):
        kafka.group("bills").assert_committed("orders", 99, timeout=0)


def test_a_transaction_is_recorded(kafka: Cluster) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": "t"})
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce("orders", "a")
    assert producer.flush(10) == 0
    producer.abort_transaction(10)
    assert [request.details["committed"] for request in kafka.requests("EndTxn", transactional_id="t")] == [False]
    assert any("EndTxn  transactional id t  " in line and "committed=False" in line for line in kafka.timeline())


def test_errors_are_those_of_the_items(kafka: Cluster) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "message.timeout.ms": 10_000})
    kafka.faults.add("Produce", error="CORRUPT_MESSAGE", count=1)
    _send(producer, "a")
    first, second = kafka.requests("Produce")
    assert first.errors == (("orders-0", "CORRUPT_MESSAGE"),)
    assert first.error == "CORRUPT_MESSAGE"
    assert second.error is None


def test_the_form_to_await() -> None:
    async def run() -> Any:
        async with Broker() as kafka:
            await kafka.topic("t").produce("x")
            return await kafka.requests("Produce"), await kafka.timeline()

    assert trio.run(run) == ([], [])


def test_several_brokers_are_one_cluster(barnabas_broker: Broker) -> None:
    kafka = barnabas_broker.open(brokers=2)
    kafka.topic("orders").create(2)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "client.id": "shop"})
    with kafka.faults.add("Produce", error="NOT_LEADER_OR_FOLLOWER", count=1) as rule:
        for partition in (0, 1):
            producer.produce("orders", "a", partition=partition)
        assert producer.flush(20) == 0
        assert rule.hits == 1
    assert {request.client_id for request in kafka.requests()} == {"shop"}
    kafka.close()
