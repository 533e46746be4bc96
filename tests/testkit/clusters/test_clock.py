"""The clock of a virtual cluster, with real clients: everything that is due has happened when `advance` returns."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer

from barnabas.testing import Broker, Cluster, RefusedError
from barnabas.testing.clock import seconds_of
from tests.support.cases import for_each
from tests.support.processes.commands import run_barnabas


def _states(kafka: Cluster, group: str) -> str:
    response = kafka.request("DescribeGroups", {"groups": [group], "includeAuthorizedOperations": False}, 5)
    return str(response["groups"][0]["groupState"])


def _joined(kafka: Cluster, group: str, **settings: Any) -> Consumer:
    """A consumer that has an assignment; it sends no heartbeat for a minute."""
    kafka.topic("orders").create()
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": group,
            "session.timeout.ms": 45_000,
            "heartbeat.interval.ms": 40_000,
            "auto.offset.reset": "earliest",
            **settings,
        }
    )
    consumer.subscribe(["orders"])
    while not consumer.assignment():
        consumer.poll(0.1)
    return consumer


def test_time_stands_still_advances_and_runs_again(kafka: Cluster) -> None:
    clock = kafka.clock
    frozen = clock.freeze()
    assert clock.now == frozen
    assert clock.advance("1h30m") == frozen + timedelta(minutes=90) == clock.now
    assert clock.advance(timedelta(seconds=2)) == frozen + timedelta(minutes=90, seconds=2)
    assert clock.resume() >= frozen + timedelta(minutes=90, seconds=2)
    with pytest.raises(RefusedError, match="Time goes forward only"):
        clock.advance(-1)


def test_a_clock_that_runs_goes_on_after_an_advance(kafka: Cluster) -> None:
    before = kafka.clock.now
    assert kafka.clock.advance("1d") >= before + timedelta(days=1)
    assert kafka.clock.now >= before + timedelta(days=1)


def test_each_cluster_has_its_own_clock(barnabas_broker: Broker, kafka: Cluster) -> None:
    other = barnabas_broker.open()
    kafka.clock.freeze()
    kafka.clock.advance("365d")
    assert kafka.clock.now - other.clock.now > timedelta(days=364)
    other.close()


def test_a_jump_sets_the_date_of_records_and_lets_no_session_expire(kafka: Cluster) -> None:
    kafka.topic("dated").create(config={"message.timestamp.type": "LogAppendTime"})
    consumer = _joined(kafka, "g")
    kafka.clock.freeze()
    when = datetime(2040, 2, 29, 12, 0, tzinfo=UTC)
    assert kafka.clock.jump(when) == when
    assert kafka.topic("dated").produce("x").timestamp == when.timestamp() * 1000
    assert _states(kafka, "g") == "Stable"
    past = datetime(2001, 1, 1, tzinfo=UTC)
    kafka.clock.jump(past)
    assert kafka.topic("dated").produce("y").timestamp == past.timestamp() * 1000
    consumer.close()


def test_a_session_expires_in_a_frozen_clock(kafka: Cluster) -> None:
    kafka.clock.freeze()
    consumer = _joined(kafka, "g")
    kafka.clock.advance(44)
    assert _states(kafka, "g") == "Stable"
    kafka.clock.advance(2)
    assert _states(kafka, "g") == "Empty"
    consumer.close()


def test_clients_of_a_frozen_cluster_go_on(kafka: Cluster) -> None:
    """Fetches that wait do so in real time: a consumer polls again and again, and commits."""
    kafka.clock.freeze()
    consumer = _joined(kafka, "g")
    assert consumer.poll(1.5) is None  # several fetches that find nothing
    kafka.topic("orders").produce("late")
    while (message := consumer.poll(1)) is None:
        pass
    assert message.value() == b"late"
    consumer.commit(asynchronous=False)
    consumer.close()
    assert _committed(kafka) == 1


def test_seven_days_of_retention(kafka: Cluster) -> None:
    kafka.clock.freeze()
    topic = kafka.topic("orders")
    topic.create()
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    producer.produce("orders", "old", timestamp=round(kafka.clock.now.timestamp() * 1000))
    producer.flush()
    kafka.clock.advance("6d")
    topic.produce("new")
    kafka.clock.advance("1d")
    assert [record.text for record in topic.records()] == ["old", "new"]
    kafka.clock.advance("6d")  # whole segments are deleted, once their last record is too old
    assert len(topic.records()) == 2
    kafka.clock.advance("10m")
    assert topic.records() == []
    assert topic.produce("next").offset == 2


def test_compaction_and_the_delay_of_tombstones(kafka: Cluster) -> None:
    kafka.clock.freeze()
    topic = kafka.topic("states")
    topic.create(
        config={
            "cleanup.policy": "compact",
            "min.cleanable.dirty.ratio": "0.01",
            "min.compaction.lag.ms": "3600000",
            "segment.ms": "60000",
        }
    )
    for value in ("1", "2", None):
        topic.produce(value, key="k")
    kafka.clock.advance("30m")
    topic.produce("open", key="other")  # closes the segment
    kafka.clock.advance("5m")
    assert len(topic.records()) == 4
    kafka.clock.advance("30m")
    assert [record.value for record in topic.records()] == [None, b"open"]
    kafka.clock.advance("2d")  # delete.retention.ms is one
    topic.produce("open", key="third")
    kafka.clock.advance("2d")
    topic.produce("open", key="fourth")
    kafka.clock.advance("2d")
    assert None not in [record.value for record in topic.records()]


def test_a_transaction_is_timed_out(kafka: Cluster) -> None:
    kafka.clock.freeze()
    topic = kafka.topic("orders")
    topic.create()
    producer = Producer(
        {"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": "t", "transaction.timeout.ms": 60_000}
    )
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("orders", "lost")
    producer.flush()
    kafka.clock.advance(59)
    assert _transaction(kafka) == "Ongoing"
    kafka.clock.advance(11)  # they are looked for every 10 s
    assert _transaction(kafka) == "CompleteAbort"
    assert topic.records() == []
    with pytest.raises(KafkaException):
        producer.commit_transaction()


def _transaction(kafka: Cluster) -> str:
    response = kafka.request("DescribeTransactions", {"transactionalIds": ["t"]}, 0)
    return str(response["transactionStates"][0]["transactionState"])


def test_offsets_of_an_empty_group_expire(kafka: Cluster) -> None:
    kafka.topic("orders").create()
    kafka.topic("orders").produce("x")
    consumer = _joined(kafka, "g")
    while consumer.poll(0.1) is None:
        pass
    consumer.commit(asynchronous=False)
    consumer.close()
    assert _committed(kafka) == 1
    kafka.clock.advance("6d")
    assert _committed(kafka) == 1
    kafka.clock.advance("1d")
    kafka.clock.advance("20m")
    assert _committed(kafka) == -1


def _committed(kafka: Cluster) -> int:
    topics = [{"name": "orders", "partitionIndexes": [0]}]
    groups = [{"groupId": "g", "topics": topics}]
    response = kafka.request("OffsetFetch", {"groups": groups, "requireStable": False}, 8)
    return int(response["groups"][0]["topics"][0]["partitions"][0]["committedOffset"])


def test_a_delegation_token_expires(barnabas_broker: Broker) -> None:
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";'
    kafka = barnabas_broker.open(
        {
            "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": jaas,
            "delegation.token.secret.key": "key-secret",
        }
    )
    kafka.clock.freeze()
    assert "User:alice" in _token(kafka, "create")
    kafka.clock.advance("23h")
    assert "User:alice" in _token(kafka, "list")
    kafka.clock.advance("2h")
    assert "no tokens" in _token(kafka, "list")
    kafka.close()


def _token(kafka: Cluster, command: str) -> str:
    """What `barnabas token` says to alice."""
    settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": "secret",
    }
    options = [word for key, value in settings.items() for word in ("-X", f"{key}={value}")]
    run = run_barnabas(["token", command, "-b", kafka.bootstrap_servers, *options], os.environ)
    return (run.stdout + run.stderr).decode()


@for_each(
    ("amount", "seconds"), [("500ms", 0.5), ("1d12h", 129_600), ("1.5 h", 5400), (3, 3), (timedelta(days=1), 86_400)]
)
def test_amounts(amount: Any, seconds: float) -> None:
    assert seconds_of(amount) == seconds


@for_each("amount", ["", "7", "d", "1 year", "-1s"])
def test_what_is_no_duration(amount: str) -> None:
    with pytest.raises(ValueError, match="is no duration"):
        seconds_of(amount)
