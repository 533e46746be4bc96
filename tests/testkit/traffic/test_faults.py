"""Faults by rule, against clients: what each action does, and which requests a rule fires for."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import pytest
import trio
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.testing import Broker, Cluster, RefusedError
from tests.support.cases import for_each
from tests.support.lazy import lazy, skip_without

skip_without("kafka", "aiokafka")
aiokafka = lazy("aiokafka")
kafka_python = lazy("kafka")


@pytest.fixture
def producer(kafka: Cluster) -> Producer:
    return Producer({"bootstrap.servers": kafka.bootstrap_servers, "client.id": "shop", "retry.backoff.ms": 1})


def _send(producer: Producer, value: str, **more: Any) -> None:
    producer.produce("orders", value, **more)
    assert producer.flush(10) == 0


def _values(kafka: Cluster, topic: str = "orders") -> list[bytes | None]:
    return [record.value for record in kafka.topic(topic).records()]


def test_an_error_is_retried(kafka: Cluster, producer: Producer) -> None:
    _send(producer, "a")
    with kafka.faults.add(api="Produce", topic="orders", nth=2, error="NOT_LEADER_OR_FOLLOWER") as rule:
        _send(producer, "b")
        _send(producer, "c")
        assert rule.hits == 1
    assert _values(kafka) == [b"a", b"b", b"c"]
    assert [request.error for request in kafka.requests("Produce")] == [None, None, "NOT_LEADER_OR_FOLLOWER", None]


def test_an_error_reaches_the_application(kafka: Cluster) -> None:
    kafka.faults.add("Produce", error="NOT_LEADER_OR_FOLLOWER")
    python = kafka_python.KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, retries=0)
    with pytest.raises(kafka_python.errors.NotLeaderForPartitionError):
        python.send("orders", b"a").get(10)
    python.close()
    assert _values(kafka) == []


def test_only_the_items_that_the_rule_names_fail(kafka: Cluster) -> None:
    kafka.topic("orders").create(2)
    kafka.topic("bills").create(1)
    kafka.faults.add("Produce", topic="orders", partition=1, error="MESSAGE_TOO_LARGE")
    results = {}
    client = kafka_python.KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, linger_ms=100, retries=0)
    sent = {("orders", 0): None, ("orders", 1): None, ("bills", 0): None}
    futures = {key: client.send(key[0], b"a", partition=key[1]) for key in sent}
    client.flush(10)
    for key, future in futures.items():
        results[key] = type(future.exception).__name__ if future.failed() else "ok"
    client.close()
    assert results == {("orders", 0): "ok", ("orders", 1): "MessageSizeTooLargeError", ("bills", 0): "ok"}
    assert [(record.partition, record.value) for record in kafka.topic("orders").records()] == [(0, b"a")]


def test_commit_then_error_did_it(kafka: Cluster, producer: Producer) -> None:
    kafka.faults.add("Produce", commit_then_error="REQUEST_TIMED_OUT", count=1)
    _send(producer, "a")
    assert _values(kafka) == [b"a", b"a"]  # a producer that is not idempotent writes it again


def test_the_errors_of_admin_requests_are_those_of_their_items(kafka: Cluster) -> None:
    kafka.faults.add("CreateTopics", topic="bad", error="POLICY_VIOLATION")
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    futures = admin.create_topics([NewTopic("good", 1, 1), NewTopic("bad", 1, 1)])
    futures["good"].result(10)
    with pytest.raises(KafkaException) as raised:
        futures["bad"].result(10)
    assert raised.value.args[0].code() == KafkaError.POLICY_VIOLATION
    assert set(admin.list_topics(timeout=10).topics) == {"good"}


@pytest.mark.parametrize("item", [{}, {"topic": "orders"}, {"topic": "orders", "partition": 0}])
def test_a_fetch_fails_and_goes_on(kafka: Cluster, item: dict[str, Any]) -> None:
    kafka.topic("orders").produce("a")
    rule = kafka.faults.add("Fetch", error="NOT_LEADER_OR_FOLLOWER", count=2, **item)
    consumer = kafka_python.KafkaConsumer(
        "orders", bootstrap_servers=kafka.bootstrap_servers, auto_offset_reset="earliest", consumer_timeout_ms=10_000
    )
    assert next(consumer).value == b"a"
    consumer.close()
    assert rule.hits == 2
    assert kafka.requests("Fetch")[0].errors == (("orders-0", "NOT_LEADER_OR_FOLLOWER"),)


def test_a_whole_response_fails(kafka: Cluster) -> None:
    kafka.topic("orders").produce("a")
    kafka.faults.add("JoinGroup", group="g", error="COORDINATOR_NOT_AVAILABLE", count=1)
    consumer = Consumer(
        {"bootstrap.servers": kafka.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["orders"])
    message = consumer.poll(10)
    assert message is not None
    assert message.value() == b"a"
    consumer.close()
    assert kafka.requests("JoinGroup")[0].errors == (("", "COORDINATOR_NOT_AVAILABLE"),)


@pytest.mark.parametrize(("when", "written"), [("before", [b"a"]), ("after", [b"a", b"a"])])
def test_a_connection_is_dropped(kafka: Cluster, producer: Producer, when: str, written: list[bytes]) -> None:
    rule = kafka.faults.add("Produce", drop=when, count=1)
    _send(producer, "a")
    assert rule.hits == 1
    assert _values(kafka) == written
    assert kafka.requests("Produce")[0].outcome == "closed"


def test_half_an_answer(kafka: Cluster, producer: Producer) -> None:
    kafka.faults.add("Produce", half=True, count=1)
    _send(producer, "a")
    assert _values(kafka) == [b"a", b"a"]


def test_a_corrupt_batch_is_found_by_its_checksum(kafka: Cluster) -> None:
    kafka.topic("orders").produce("a" * 100)
    kafka.faults.add("Fetch", corrupt=True, count=1)
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "check.crcs": True,
        }
    )
    consumer.subscribe(["orders"])
    first = consumer.poll(10)
    assert first is not None
    assert first.error().code() == KafkaError._BAD_MSG
    while (message := consumer.poll(10)) is None or message.error() is not None:
        pass  # librdkafka tells of what it has not read, too
    consumer.close()
    assert message.value() == b"a" * 100


def test_a_throttle_time_is_told(kafka: Cluster) -> None:
    throttled = threading.Event()
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "throttle_cb": lambda event: throttled.set()})
    kafka.faults.add("Produce", throttle_ms=50, count=1)
    _send(producer, "a")
    while not throttled.is_set():
        producer.poll(0.1)


def test_a_request_is_held_until_it_is_released(kafka: Cluster, producer: Producer) -> None:
    with kafka.hold("Produce", topic="orders") as held:
        producer.produce("orders", "a")
        producer.poll(0)
        held.wait(1)
        assert _values(kafka) == []
        held.release()
    assert producer.flush(10) == 0
    assert _values(kafka) == [b"a"]


def test_leaving_the_context_releases(kafka: Cluster, producer: Producer) -> None:
    with kafka.hold("Produce") as held:
        producer.produce("orders", "a")
        held.wait(1)
    assert producer.flush(10) == 0


def test_a_delay_passes(kafka: Cluster, producer: Producer) -> None:
    kafka.faults.add("Produce", delay=0.05, count=1)
    _send(producer, "a")
    (request,) = kafka.requests("Produce")
    assert request.took is not None
    assert request.took >= 0.05
    assert _values(kafka) == [b"a"]


def test_a_predicate_decides_in_this_process(kafka: Cluster, producer: Producer) -> None:
    seen: list[Mapping[str, Any]] = []

    def is_first_of_partition_1(request: Mapping[str, Any]) -> bool:
        seen.append(request)
        return bool(request["topicData"][0]["partitionData"][0]["index"] == 1)

    kafka.topic("orders").create(2)
    rule = kafka.faults.add("Produce", when=is_first_of_partition_1, error="NOT_LEADER_OR_FOLLOWER", count=1)
    _send(producer, "a", partition=0)
    assert rule.hits == 0
    _send(producer, "b", partition=1)
    rule.wait(1)
    assert [body["topicData"][0]["partitionData"][0]["index"] for body in seen][:2] == [0, 1]
    assert sorted(_values(kafka)) == [b"a", b"b"]  # type: ignore[type-var]


@pytest.mark.parametrize("action", [{"delay": 0.01}, {"hold": True}, {"hold": True, "delay": 0.01}])
def test_a_request_that_waits_again_goes_on(kafka: Cluster, producer: Producer, action: dict[str, Any]) -> None:
    rule = kafka.faults.add("Produce", when=lambda _: True, **action)
    kafka.faults.add("Produce", when=lambda _: False, error="INVALID_RECORD")
    producer.produce("orders", "a")
    rule.wait(1)
    rule.remove()
    assert producer.flush(10) == 0
    _send(producer, "b")
    assert _values(kafka) == [b"a", b"b"]
    assert rule.hits == 1


def test_a_client_that_leaves_is_forgotten(kafka: Cluster) -> None:
    leaving = Producer({"bootstrap.servers": kafka.bootstrap_servers, "message.timeout.ms": 1000})
    with kafka.hold("Produce") as held:
        leaving.produce("orders", "a")
        held.wait(1)
        assert leaving.flush(20) == 0  # its records have timed out
        del leaving
        rules = kafka._link.perform("fault_list")["rules"]
        while rules[0]["held"]:
            rules = kafka._link.perform("fault_list")["rules"]
    assert _values(kafka) == []


def test_a_rule_of_a_transactional_id(kafka: Cluster) -> None:
    other, matching = (
        Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": name}) for name in ("a", "b")
    )
    rule = kafka.faults.add("InitProducerId", transactional_id="b", error="TRANSACTIONAL_ID_AUTHORIZATION_FAILED")
    other.init_transactions(10)
    with pytest.raises(KafkaException):
        matching.init_transactions(10)
    assert rule.hits == 1


def test_a_rule_of_a_principal(kafka: Cluster, producer: Producer) -> None:
    nobody = kafka.faults.add("Produce", principal="User:alice")
    anybody = kafka.faults.add("Produce", principal="User:ANONYMOUS")
    _send(producer, "a")
    assert (nobody.hits, anybody.hits) == (0, 1)


def test_a_predicate_that_fails_fails_the_test(kafka: Cluster, producer: Producer) -> None:
    rule = kafka.faults.add("Produce", when=lambda request: request["nonsense"], error="NOT_LEADER_OR_FOLLOWER")
    _send(producer, "a")
    with pytest.raises(AssertionError, match=r"The predicate of the rule api='Produce'.* has failed: KeyError"):
        rule.remove()


def test_probability_is_repeated_by_its_seed(barnabas_broker: Broker) -> None:
    def chosen() -> list[bool]:
        kafka = barnabas_broker.open()
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
        kafka.faults.add("Produce", probability=0.5, seed=7, commit_then_error="INVALID_RECORD")
        outcomes = []
        for _ in range(12):
            _send(producer, "a")
            outcomes.append(kafka.requests("Produce")[-1].error is not None)
        kafka.close()
        return outcomes

    first = chosen()
    assert first == chosen()
    assert len(set(first)) == 2


def test_the_first_rule_that_fires_decides(kafka: Cluster, producer: Producer) -> None:
    first = kafka.faults.add("Produce", client_id="shop", error="NOT_LEADER_OR_FOLLOWER", count=1)
    second = kafka.faults.add("Produce", error="NOT_LEADER_OR_FOLLOWER", count=1)
    other = kafka.faults.add("Produce", client_id="another", error="NOT_LEADER_OR_FOLLOWER")
    counting = kafka.faults.add("Produce")
    _send(producer, "a")
    assert (first.hits, second.hits, other.hits, counting.hits) == (1, 1, 0, 1)


def test_clear_removes_all(kafka: Cluster, producer: Producer) -> None:
    rule = kafka.faults.add("Produce", error="NOT_LEADER_OR_FOLLOWER")
    kafka.faults.clear()
    _send(producer, "a")
    assert rule.hits == 0
    assert kafka.requests("Produce")[0].error is None


def test_a_rule_that_does_not_fire_in_time(kafka: Cluster) -> None:
    rule = kafka.faults.add("Produce", topic="orders", error="NOT_LEADER_OR_FOLLOWER")
    with pytest.raises(AssertionError, match="has not fired 1 time: 0 matching requests, 0 of them hit"):
        rule.wait(timeout=0)


@for_each(
    ("values", "text"),
    [
        ({"api": "Nonsense"}, "There is no API 'Nonsense'"),
        ({"api": "Produce", "error": "NO_SUCH"}, "Kafka has no error 'NO_SUCH'"),
        ({"api": "Produce", "error": "NONE"}, "NONE is no error"),
        ({"api": "Produce", "drop": "sometime"}, 'drop is "before" or "after"'),
        ({"api": "Produce", "corrupt": True}, "corrupt is for Fetch"),
        ({"api": "Produce", "probability": 2.0}, "probability is above 0"),
        ({"api": "Produce", "nth": 0}, "nth counts from 1"),
        ({"api": "Produce", "count": 0}, "count is at least 1"),
        ({"api": "SaslHandshake", "throttle_ms": 5}, "throttle_ms needs an API"),
        ({"api": "Produce", "error": "NOT_COORDINATOR", "half": True}, "A rule does one thing"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(kafka: Cluster, values: dict[str, Any], text: str) -> None:
    with pytest.raises(RefusedError, match=text):
        kafka.faults.add(**values)


def test_the_form_to_await() -> None:
    async def run() -> list[str | None]:
        async with Broker() as kafka:
            faults = kafka.faults
            producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "retry.backoff.ms": 1})
            async with await faults.add("Produce", error="NOT_LEADER_OR_FOLLOWER", count=1) as rule:
                producer.produce("orders", "a")
                assert await trio.to_thread.run_sync(producer.flush, 10) == 0
                await rule.wait()
                assert await rule.hits() == 1
            async with kafka.hold("Produce") as held:
                producer.produce("orders", "b")
                await held.wait()
                await held.release()
            assert await trio.to_thread.run_sync(producer.flush, 10) == 0
            return [request.error for request in await kafka.requests("Produce")]

    assert trio.run(run) == ["NOT_LEADER_OR_FOLLOWER", None, None]


def test_aiokafka_retries(kafka: Cluster) -> None:
    import asyncio  # noqa: TID251 - what aiokafka runs on

    async def run() -> None:
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers, retry_backoff_ms=1)
        await producer.start()
        await producer.send_and_wait("orders", b"a")
        await producer.stop()

    with kafka.faults.add("Produce", topic="orders", error="NOT_LEADER_OR_FOLLOWER", count=1) as rule:
        asyncio.run(run())
        rule.wait(1)
    assert _values(kafka) == [b"a"]
