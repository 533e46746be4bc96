"""Topics are read from their logs: what clients wrote, committed records only, waits without sleeps."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from confluent_kafka import Producer

from barnabas.testing import Cluster, Record, RefusedError


def transactional(kafka: Cluster, name: str) -> Producer:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": name, "log_level": 2})
    producer.init_transactions(10)
    return producer


def test_a_record_of_a_client_is_found_with_all_that_it_has(kafka: Cluster, confluent: Any) -> None:
    kafka.topic("orders").create(3)
    producer = confluent.producer(compression_type="zstd")
    producer.produce("orders", b'{"n": 1}', key="k", headers={"h": b"1"}, partition=2, timestamp=1_700_000_000_000)
    producer.flush(10)
    record = kafka.topic("orders").assert_produced(key="k")
    assert record == Record("orders", 2, 0, b"k", b'{"n": 1}', (("h", b"1"),))
    assert (record.timestamp, record.json(), record.header("h")) == (1_700_000_000_000, {"n": 1}, b"1")


def test_what_a_test_looks_for(kafka: Cluster) -> None:
    topic = kafka.topic("orders")
    topic.create(2)
    for number in range(4):
        topic.produce(f"v{number}", key=f"k{number % 2}", headers={"number": str(number)}, partition=number % 2)
    assert [record.text for record in topic.records(key="k0")] == ["v0", "v2"]
    assert [record.text for record in topic.records(value="v3")] == ["v3"]
    assert [record.text for record in topic.records(headers={"number": "2"})] == ["v2"]
    assert [record.text for record in topic.records(partition=1)] == ["v1", "v3"]
    assert [record.text for record in topic.records(where=lambda record: record.offset == 1)] == ["v2", "v3"]
    assert len(topic.wait_for(2, where=lambda record: record.offset == 1)) == 2
    assert topic.records(key="none") == []


def test_null_keys_and_values(kafka: Cluster) -> None:
    topic = kafka.topic("orders")
    record = topic.produce(None, key="gone")
    assert (record.value, record.text, record.json()) == (None, None, None)
    assert topic.produce("x").key is None


def test_keys_choose_partitions_as_clients_do(kafka: Cluster, confluent: Any) -> None:
    kafka.topic("a").create(7)
    kafka.topic("b").create(7)
    producer = confluent.producer(partitioner="murmur2_random")
    keys = [f"key-{number}" for number in range(20)]
    for key in keys:
        producer.produce("a", "x", key=key)
    producer.flush(10)
    of_client = {record.key: record.partition for record in kafka.topic("a").wait_for(20)}
    assert {
        record.key: record.partition for record in [kafka.topic("b").produce("x", key=key) for key in keys]
    } == of_client


def test_only_committed_records_of_transactions(kafka: Cluster) -> None:
    topic = kafka.topic("orders")
    producer = transactional(kafka, "t")
    for value, is_committed in (("aborted", False), ("committed", True)):
        producer.begin_transaction()
        producer.produce("orders", value)
        producer.flush(10)
        assert topic.records(value=value) == []
        producer.commit_transaction(10) if is_committed else producer.abort_transaction(10)
    assert [record.text for record in topic.wait_for(1)] == ["committed"]


def test_a_wait_ends_with_the_record(kafka: Cluster) -> None:
    """Of a topic that does not exist yet, and of a partition that has records."""
    topic = kafka.topic("orders")
    for number in (1, 2):
        results: list[list[Record]] = []
        waiting = threading.Thread(
            target=lambda count, collected: collected.append(topic.wait_for(count)), args=(number, results)
        )
        waiting.start()
        topic.produce(f"v{number}")
        waiting.join(20)
        assert [one.text for one in results[0]] == [f"v{one}" for one in range(1, number + 1)]


def test_no_more_than_was_seen(kafka: Cluster) -> None:
    topic = kafka.topic("orders")
    topic.assert_no_more()
    topic.produce("a")
    with pytest.raises(
        AssertionError, match=r"1 more records of orders than were expected\.\nThe records:\n  orders-0@0"
    ):
        topic.assert_no_more()
    topic.assert_produced("a")
    topic.assert_no_more()
    assert kafka.topic("orders") is topic


def test_a_failure_says_what_is_there(kafka: Cluster) -> None:
    topic = kafka.topic("orders")
    topic.produce(json.dumps({"n": 1}), key="k", headers={"h": "v"})
    with pytest.raises(AssertionError) as caught:
        topic.wait_for(2, key="other", timeout=0)
    assert str(caught.value).startswith(
        "2 records of orders with key='other' expected within 0 s, 0 found. It has 1 in all.\n"
        "The records:\n  orders-0@0 key='k' value='{\"n\": 1}' h='v'"
    )
    kafka.topic("none").create()
    with pytest.raises(AssertionError, match="The topic has no committed records"):
        kafka.topic("none").wait_for(timeout=0)
    topic.produce("again", key="k")
    with pytest.raises(AssertionError, match="2 records of orders with key='k', not 1"):
        topic.assert_produced(key="k")


def test_topics_that_cannot_be(kafka: Cluster) -> None:
    with pytest.raises(RefusedError, match="INVALID_TOPIC_EXCEPTION"):
        kafka.topic("a b").create()
    with pytest.raises(RefusedError, match="INVALID_CONFIG"):
        kafka.topic("orders").create(config={"cleanup.policy": "no"})
    kafka.topic("orders").create(2, {"cleanup.policy": "compact"})
    kafka.topic("orders").create(2)
    response = kafka.request(
        "DescribeConfigs",
        {
            "resources": [{"resourceType": 2, "resourceName": "orders", "configurationKeys": ["cleanup.policy"]}],
            "includeSynonyms": False,
            "includeDocumentation": False,
        },
    )
    assert response["results"][0]["configs"][0]["value"] == "compact"


def test_the_name_of_a_topic_that_there_is_not(kafka: Cluster) -> None:
    kafka.topic("orders").produce("x")
    with pytest.raises(AssertionError, match="There is no such topic; there are orders"):
        kafka.topic("order").wait_for(1, timeout=0.01)


@pytest.mark.parametrize("value", [5, {"id": 7}, ["x"]])
def test_what_has_no_form_in_bytes(kafka: Cluster, value: Any) -> None:
    with pytest.raises(TypeError, match="are bytes or texts, not"):
        kafka.topic("orders").produce(value)
    assert kafka.topic("orders").records() == []


def test_records_that_are_trimmed(kafka: Cluster) -> None:
    topic = kafka.topic("orders")
    topic.create(2)
    for value in ("a", "b", "c"):
        topic.produce(value, partition=0)
        topic.produce(value, partition=1)
    topic.trim(1, partition=1)
    topic.trim(2, partition=0)
    assert [(record.partition, record.text) for record in topic.records()] == [(0, "c"), (1, "b"), (1, "c")]
    topic.trim()
    assert topic.records() == []
    assert topic.produce("d", partition=0).offset == 3
    for name, index, sentence in (("none", None, "no topic 'none'"), ("orders", 7, "no partition orders-7")):
        with pytest.raises(RefusedError, match=f"There is {sentence}"):
            kafka.topic(name).trim(partition=index)
    with pytest.raises(RefusedError, match="Partition orders-0: OFFSET_OUT_OF_RANGE"):
        topic.trim(99, partition=0)


def test_a_topic_that_somebody_else_creates_meanwhile(kafka: Cluster) -> None:
    """Its partitions are opened after its name is known; a caller in between has to try again."""
    for number in range(50):
        topic = f"orders-{number}"
        others = [threading.Thread(target=kafka.topic(topic).create, args=(20,)) for _ in range(2)]
        for thread in others:
            thread.start()
        kafka.topic(topic).produce("x")
        for thread in others:
            thread.join()


def test_a_partition_that_there_is_not(kafka: Cluster) -> None:
    kafka.topic("orders").create(2)
    for partition in (2, -1):
        with pytest.raises(RefusedError, match=f"There is no partition orders-{partition}; it has 2"):
            kafka.topic("orders").produce("x", partition=partition)
