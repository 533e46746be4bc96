"""`barnabas txn` with a real transactional producer, and with a transaction that its coordinator does not know."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, KafkaException, Producer

from barnabas.wire.batches.records import build_batch
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.support.requests.raw_client import RawClient


@pytest.fixture
def open_transaction(call, broker, topic):
    """A producer with the transactional id `txn-of-<topic>` and an open transaction in two partitions."""
    call("topic", "create", topic, "-p", "2").ok()
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": f"txn-of-{topic}"})
    producer.init_transactions(30)
    producer.begin_transaction()
    for partition in (0, 1):
        producer.produce(topic, b"x", partition=partition)
    assert producer.flush(30) == 0
    return producer


def _listed(call, *options: str) -> dict[str, dict]:
    return {row["transactional_id"]: row for row in call("txn", "list", "-o", "json", *options).ok().json}


def test_a_transaction_is_listed_described_and_aborted(call, broker, topic, open_transaction) -> None:
    name = f"txn-of-{topic}"
    assert (_listed(call)[name]["state"], _listed(call)[name]["coordinator"]) == ("Ongoing", 1)
    assert list(_listed(call, f"{name[:-1]}*", "--state", "Ongoing")) == [name]
    assert name not in _listed(call, "--state", "CompleteAbort")
    assert name not in _listed(call, "--older-than", "7d")

    (described,) = call("txn", "describe", name, "-o", "json").ok().json
    assert (described["state"], described["coordinator"]) == ("Ongoing", 1)
    assert described["partitions"] == [f"{topic}-0", f"{topic}-1"]
    assert 0 <= described["open_ms"] < 600_000
    producers = call("producers", topic, "-o", "json").ok().json
    assert [(row["producer_id"], row["txn_start"]) for row in producers] == [(described["producer_id"], 0)] * 2

    known = call("txn", "abort", "--partition", f"{topic}:0", "--start-offset", "0")
    assert (known.code, f"'barnabas txn abort {name}' aborts it" in known.stderr) == (1, True)
    assert call("txn", "find-hanging", topic, "--max-timeout", "0s").ok().stdout == ""

    assert call("txn", "abort", name, "-y").ok().stdout == f"aborted the transaction of {name}\n"
    assert call("txn", "describe", name, "-o", "json").ok().json[0]["state"] in ("CompleteAbort", "Empty")
    with pytest.raises(KafkaException):  # fenced
        open_transaction.commit_transaction(30)
    assert "there was no open transaction" in call("txn", "abort", name, "-y").ok().stdout


def test_a_hanging_transaction_is_found_and_aborted(call, broker, topic) -> None:
    """Written without its coordinator, as clients before KIP-890 could."""
    call("topic", "create", topic).ok()
    batch = build_batch(
        [(1000, None, b"hangs")], producer_id=987_654_321, producer_epoch=0, base_sequence=0, transactional=True
    )
    call("config", "set", "broker", "default", "transaction.partition.verification.enable=false").ok()
    try:
        client = RawClient(broker.bootstrap)
        data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=batch)])
        response = client(ProduceRequest(transactional_id="gone", acks=-1, timeout_ms=10_000, topic_data=[data]), 9)
        assert response.responses[0].partition_responses[0].error_code == 0
        client.close()
    finally:
        call("config", "unset", "broker", "default", "transaction.partition.verification.enable").ok()

    ran = call("txn", "find-hanging", topic, "-o", "json")
    assert ran.code == 1
    (row,) = ran.json
    assert (row["partition"], row["producer_id"], row["start_offset"], row["transactional_id"]) == (
        0,
        987_654_321,
        0,
        None,
    )
    wrong = call("txn", "abort", "--partition", f"{topic}:0", "--start-offset", "5")
    assert (wrong.code, "there are open ones since 0" in wrong.stderr) == (3, True)
    aborted = call("txn", "abort", "--partition", f"{topic}:0", "--start-offset", "0", "-y").ok()
    assert aborted.stdout == f"aborted the transaction of producer 987654321 in {topic}-0\n"
    nothing = call("txn", "find-hanging", topic).ok()
    assert nothing.stderr == "no transaction hangs in 1 partition\n"

    call("produce", topic, stdin="after\n").ok()
    reader = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": topic, "auto.offset.reset": "earliest"})
    reader.subscribe([topic])
    message = reader.poll(30)
    reader.close()
    assert message is not None
    assert message.value() == b"after"  # read_committed, and no longer held back


def test_mistakes_of_txn(call, topic) -> None:
    missing = call("txn", "describe", topic)
    assert missing.code == 3
    assert missing.stderr.startswith(f"barnabas: there is no transactional id '{topic}'")
    assert call("txn", "abort", topic).code == 3
    assert call("txn", "abort").code == 2
    assert call("txn", "abort", topic, "--partition", "a:0", "--start-offset", "1").code == 2
    assert call("txn", "abort", "--partition", "a:0").code == 2
    assert call("txn", "abort", "--partition", "a", "--start-offset", "1").code == 2
    assert call("txn", "list", "--state", "Dead-or-alive").code == 2
    assert "is not a duration" in call("txn", "list", "--older-than", "soon").stderr
    assert call("txn", "find-hanging", topic).code == 3
