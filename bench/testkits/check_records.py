"""Checks of records: what is written is read, and what must not be written is refused."""

from __future__ import annotations

import time

from confluent_kafka import (
    OFFSET_END,
    TIMESTAMP_LOG_APPEND_TIME,
    KafkaError,
    TopicPartition,
)

from barnabas.client.cluster import Cluster
from barnabas.client.errors import raise_for
from barnabas.wire.batches.records import BatchBuilder
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.produce import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from bench.testkits.behaviours import behaviour
from bench.testkits.clients import WAIT_S, Clients, error_of, until

PRODUCE_BY_NAME = 12
"""Later versions of Produce name topics by their ids."""


def _now_ms() -> int:
    return int(time.time() * 1000)


@behaviour("Records come back: key, value, headers, timestamp, offset; null is not empty")
def round_trip(clients: Clients) -> None:
    topic, now = clients.topic(), _now_ms()
    headers = [("trace", b"1"), ("trace", b"2"), ("none", None)]
    sent = [(b"key", b"value", headers), (None, b"", None), (b"", None, None)]
    for key, value, own in sent:
        clients.send(topic, value, key=key, headers=own, timestamp=now - 5)
    messages = clients.read(topic, 3)
    found = [(one.key(), one.value(), one.headers() or None) for one in messages]
    assert found == sent, f"{found[0]} came back for {sent[0]}" if found[0] != sent[0] else f"{found}"
    assert {one.timestamp()[1] for one in messages} == {now - 5}, "other timestamps came back"
    assert [one.offset() for one in messages] == [0, 1, 2], f"offsets {[one.offset() for one in messages]}"


@behaviour("Compression: gzip, snappy, lz4, zstd")
def compression(clients: Clients) -> None:
    topic = clients.topic()
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        producer = clients.producer(compression_type=codec, linger_ms=50)
        clients.send(topic, *[b"%d" % number * 50 for number in range(50)], producer=producer)
    values = [one.value() for one in clients.read(topic, 200, check_crcs=True)]
    assert values == [b"%d" % number * 50 for number in range(50)] * 4, "other records came back"


@behaviour("Offsets are found by timestamp")
def offsets_for_times(clients: Clients) -> None:
    topic, first = clients.topic(), _now_ms() - 100_000
    for number in range(10):
        clients.send(topic, b"x", timestamp=first + 1000 * number)
    consumer = clients.consumer()

    def offset(timestamp: int) -> int:
        (found,) = consumer.offsets_for_times([TopicPartition(topic, 0, timestamp)], timeout=WAIT_S)
        return int(found.offset)

    found = [offset(first + after) for after in (0, 4500, 5000, 50_000)]
    assert found == [0, 5, 5, OFFSET_END], f"offsets {found}"


@behaviour("LogAppendTime: the broker's clock")
def log_append_time(clients: Clients) -> None:
    topic, before = clients.topic(message_timestamp_type="LogAppendTime"), _now_ms()
    clients.send(topic, b"x", timestamp=before - 1_000_000)
    (message,) = clients.read(topic, 1)
    kind, timestamp = message.timestamp()
    assert kind == TIMESTAMP_LOG_APPEND_TIME, "it is the client's timestamp"
    assert before - 1000 <= timestamp <= _now_ms() + 1000, f"{timestamp - before} ms after"


@behaviour("A record above max.message.bytes is refused")
def max_message_bytes(clients: Clients) -> None:
    topic = clients.topic(max_message_bytes="20000")
    clients.send(topic, bytes(19_000))
    code = error_of(lambda: clients.send(topic, bytes(21_000)))
    assert code == KafkaError.MSG_SIZE_TOO_LARGE, f"error {code}"


@behaviour("A record without a key is refused by a compacted topic")
def unkeyed_record(clients: Clients) -> None:
    topic = clients.topic(cleanup_policy="compact")
    clients.send(topic, b"x", key=b"k")
    code = error_of(lambda: clients.send(topic, b"x"))
    assert code == KafkaError.INVALID_RECORD, f"error {code}"


@behaviour("Without an offset: earliest, latest, or an error")
def reset_policies(clients: Clients) -> None:
    topic = clients.topic()
    clients.send(topic, b"old")

    def first_event(policy: str) -> object:
        consumer = clients.consumer(auto_offset_reset=policy, enable_partition_eof=True)
        consumer.subscribe([topic])
        message = consumer.poll(WAIT_S)
        while message is not None and message.partition() != 0:  # where a topic has more of them
            message = consumer.poll(WAIT_S)
        assert message is not None, f"{policy}: nothing happened"
        return message.value() if message.error() is None else message.error().code()

    found = [first_event(policy) for policy in ("earliest", "latest", "error")]
    assert found == [b"old", KafkaError._PARTITION_EOF, KafkaError._AUTO_OFFSET_RESET], f"{found}"


@behaviour("An offset that does not exist is out of range")
def out_of_range(clients: Clients) -> None:
    topic = clients.topic()
    clients.send(topic, b"only")
    (message,) = clients.read(topic, 1, offset=1000)
    assert message.offset() == 0, f"offset {message.offset()}"
    code = error_of(lambda: clients.read(topic, 1, offset=1000, auto_offset_reset="error"))
    assert code == KafkaError._AUTO_OFFSET_RESET, f"error {code}"


class _RawProducer:
    """An idempotent producer that sends the batches that it is told to, as no client library would."""

    def __init__(self, clients: Clients, cluster: Cluster) -> None:
        self._cluster = cluster
        self.topic = clients.topic()
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)

        def attempt(deadline: float) -> InitProducerIdResponse:
            answer = cluster.any_node(deadline).call(request, InitProducerIdResponse, deadline)
            raise_for(answer.error_code, "no producer id")
            return answer

        identity = cluster.retry(attempt)
        self._id, self._epoch = identity.producer_id, identity.producer_epoch

    def send(self, sequence: int) -> str:
        """Send a batch of one record with this sequence number; the name of the error."""
        builder = BatchBuilder(producer_id=self._id, producer_epoch=self._epoch, base_sequence=sequence)
        builder.append(_now_ms(), None, b"%d" % sequence)
        data = PartitionProduceData(index=0, records=bytes(builder.build()))
        request = ProduceRequest(
            transactional_id=None,
            acks=-1,
            timeout_ms=10_000,
            topic_data=[TopicProduceData(name=self.topic, partition_data=[data])],
        )

        def attempt(deadline: float) -> str:
            leader = self._cluster.node(self._cluster.leader(self.topic, 0, deadline), deadline)
            answer = leader.call(request, ProduceResponse, deadline, PRODUCE_BY_NAME)
            return ErrorCode(answer.responses[0].partition_responses[0].error_code).name

        return self._cluster.retry(attempt)


@behaviour("A batch of an idempotent producer that comes twice is written once")
def duplicate_batch(clients: Clients) -> None:
    with Cluster(clients.place.bootstrap, timeout_s=WAIT_S) as cluster:
        producer = _RawProducer(clients, cluster)
        answers = [producer.send(sequence) for sequence in (0, 1, 1, 0, 2)]
    assert answers == ["NONE"] * 5, f"answers {answers}"
    values = [one.value() for one in clients.read(producer.topic, 3)]
    high = clients.consumer().get_watermark_offsets(TopicPartition(producer.topic, 0), timeout=WAIT_S)[1]
    assert (values, high) == ([b"0", b"1", b"2"], 3), f"{values}, end offset {high}"


@behaviour("A gap in the sequence of an idempotent producer is refused")
def sequence_gap(clients: Clients) -> None:
    with Cluster(clients.place.bootstrap, timeout_s=WAIT_S) as cluster:
        producer = _RawProducer(clients, cluster)
        answers = [producer.send(sequence) for sequence in (0, 5)]
    assert answers == ["NONE", "OUT_OF_ORDER_SEQUENCE_NUMBER"], f"answers {answers}"


@behaviour("Compaction: the last record of each key stays")
def compaction(clients: Clients) -> None:
    topic = clients.topic(cleanup_policy="compact", segment_bytes="1048576", min_cleanable_dirty_ratio="0.01")
    producer = clients.producer()
    for turn in range(4):
        for key in (b"a", b"b"):
            clients.send(topic, b"%d" % turn * 300_000, key=key, producer=producer)
    end = clients.consumer().get_watermark_offsets(TopicPartition(topic, 0), timeout=WAIT_S)[1]

    def left() -> int:
        consumer = clients.consumer(enable_partition_eof=True)
        consumer.assign([TopicPartition(topic, 0, 0)])
        count = 0
        while (message := consumer.poll(WAIT_S)) is not None and message.error() is None:
            count += 1
        consumer.close()
        assert message is not None, "no end of the partition"
        assert message.error().code() == KafkaError._PARTITION_EOF, str(message.error())
        return count

    until(lambda: left() < end, "fewer records", wait_s=30)
    (last,) = clients.read(topic, 1, offset=end - 1)
    assert last.key() == b"b", "the last record is gone"


@behaviour("Retention: old records are deleted")
def retention(clients: Clients) -> None:
    topic = clients.topic(retention_ms="1000")
    clients.send(topic, b"old", timestamp=_now_ms() - 3_600_000)
    consumer = clients.consumer()

    def low() -> int:
        return int(consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=WAIT_S)[0])

    until(lambda: low() == 1, "the old record to be deleted", wait_s=30)
    clients.send(topic, b"new")
    (message,) = clients.read(topic, 1)
    assert message.value() == b"new", "another record was read"
