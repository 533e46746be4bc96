"""What a test makes groups and producers go through, seen by real clients."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from barnabas.testing import Cluster, RefusedError

PROTOCOLS = ["classic", "consumer"]
LIMIT_S = 60.0


class Watched:
    """A consumer that notes what happens to it."""

    def __init__(self, kafka: Cluster, protocol: str, **settings: Any) -> None:
        self.events: list[str] = []
        self.errors: list[KafkaError] = []
        self.values: list[bytes] = []
        config: dict[str, Any] = {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": "g",
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "error_cb": self.errors.append,
            **settings,
        }
        if protocol == "classic":
            config["heartbeat.interval.ms"] = 100
        self.consumer = Consumer(config)
        self.consumer.subscribe(
            ["orders"],
            on_assign=lambda _, partitions: self.events.append(f"assigned {len(partitions)}"),
            on_revoke=lambda _, partitions: self.events.append(f"revoked {len(partitions)}"),
            on_lost=lambda _, partitions: self.events.append(f"lost {len(partitions)}"),
        )
        self.poll_until(lambda: self.events == ["assigned 2"])

    def poll_until(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + LIMIT_S
        while not condition():
            assert time.monotonic() < end, (self.events, self.errors)
            message = self.consumer.poll(0.05)
            if message is not None and message.error():
                self.errors.append(message.error())
            elif message is not None:
                self.values.append(message.value())


@pytest.fixture
def orders(kafka: Cluster) -> Cluster:
    kafka.topic("orders").create(partitions=2)
    return kafka


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_rebalance(orders: Cluster, protocol: str) -> None:
    watched = Watched(orders, protocol)
    assert orders.group("g").rebalance() == 1
    watched.poll_until(lambda: len(watched.events) == 3)
    assert watched.events[1].split()[0] in {"revoked", "lost"}
    assert watched.events[2] == "assigned 2"
    watched.consumer.close()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_member_is_expired_and_joins_again(orders: Cluster, protocol: str) -> None:
    watched = Watched(orders, protocol)
    (member,) = orders.group("g").wait_until_assigned()
    assert orders.group("g").expire(member) == [member.id]
    watched.poll_until(lambda: len(watched.events) == 3)
    assert watched.events[1:] == ["lost 2", "assigned 2"]
    watched.consumer.close()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_static_member_is_fenced(orders: Cluster, protocol: str) -> None:
    watched = Watched(orders, protocol, **{"group.instance.id": "one"})
    orders.group("g").fence("one")
    fenced = KafkaError.FENCED_INSTANCE_ID if protocol == "classic" else KafkaError._FATAL
    watched.poll_until(lambda: any(error.code() in {fenced, KafkaError._FATAL} for error in watched.errors))
    assert any(error.fatal() or error.code() == KafkaError._FATAL for error in watched.errors)
    with pytest.raises(RefusedError, match="has no static member"):
        orders.group("g").fence("another")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_coordinator_is_reloaded_while_its_group_works(orders: Cluster, protocol: str) -> None:
    watched = Watched(orders, protocol)
    orders.clock.freeze()
    orders.group("g").reload(loading="5s")
    described = orders.request("DescribeGroups", {"groups": ["g"], "includeAuthorizedOperations": False}, 5)
    assert described["groups"][0]["errorCode"] == 14  # COORDINATOR_LOAD_IN_PROGRESS
    orders.topic("orders").produce("x", partition=0)
    with pytest.raises(KafkaException) as raised:
        watched.consumer.commit(offsets=[TopicPartition("orders", 0, 1)], asynchronous=False)
    assert raised.value.args[0].code() == KafkaError.COORDINATOR_LOAD_IN_PROGRESS
    watched.poll_until(lambda: watched.values == [b"x"])
    orders.clock.advance("5s")
    assert orders.group("g").describe().state == "Stable"
    watched.consumer.commit(asynchronous=False)
    assert orders.group("g").committed("orders", 0) == 1
    assert watched.events == ["assigned 2"]
    watched.consumer.close()


def test_a_reload_without_a_wait_is_over_when_it_returns(orders: Cluster) -> None:
    watched = Watched(orders, "classic")
    before = orders.group("g").describe()
    orders.group("g").reload()
    assert orders.group("g").describe() == before
    watched.consumer.close()


def test_a_producer_is_fenced(orders: Cluster) -> None:
    producer = Producer({"bootstrap.servers": orders.bootstrap_servers, "transactional.id": "t"})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("orders", "lost")
    producer.flush()
    orders.fence_producer("t")
    with pytest.raises(KafkaException) as raised:
        producer.commit_transaction()
    assert raised.value.args[0].fatal()
    assert orders.topic("orders").records() == []


def test_the_coordinator_of_transactions_is_reloaded_in_a_transaction(orders: Cluster) -> None:
    producer = Producer({"bootstrap.servers": orders.bootstrap_servers, "transactional.id": "t"})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("orders", "kept")
    producer.flush()
    orders.clock.freeze()
    orders.reload_transactions("t", loading="5s")
    with pytest.raises(KafkaException) as raised:
        producer.commit_transaction(1)
    assert raised.value.args[0].retriable()
    orders.clock.advance("5s")
    producer.commit_transaction(30)
    assert [record.text for record in orders.topic("orders").records()] == ["kept"]


def test_what_is_not_there(orders: Cluster) -> None:
    for ask in (orders.group("nobody").rebalance, orders.group("nobody").expire):
        with pytest.raises(RefusedError, match="There is no group 'nobody'"):
            ask()
    watched = Watched(orders, "classic")
    with pytest.raises(RefusedError, match="has no member 'stranger'"):
        orders.group("g").expire("stranger")
    watched.consumer.close()
