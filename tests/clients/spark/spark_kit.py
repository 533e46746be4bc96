"""Helpers of the Spark suites: records written and read by confluent-kafka, sources, sinks, and streams that record
the contents of their batches.

What Spark writes is read by another client, and what Spark reads is written by another client, so that two errors of
Spark cannot cancel out. Number n is the record with that value, a key, a header and a timestamp n seconds after EPOCH.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tests.support.lazy import skip_without
from tests.support.processes.server import Server

skip_without("pyspark", "confluent_kafka")
from confluent_kafka import Consumer, Producer, TopicPartition  # noqa: E402
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic  # noqa: E402

from tests.support.waiting import wait_for  # noqa: E402

EPOCH = int(time.time()) // 1000 * 1_000_000 - 86_400_000  # newer than Kafka's default retention
PATIENCE_S = 90.0
Create = Callable[..., str]
Name = Callable[..., str]


def admin_of(broker: Server) -> AdminClient:
    """An admin client of confluent-kafka; the caller keeps a reference until the results have arrived."""
    return AdminClient(broker.clients.librdkafka())


def create_topic(broker: Server, topic: str, partitions: int = 1, **config: str) -> str:
    """Create a topic; `__` in a key of its configuration is a dot. Returns its name."""
    settings = {key.replace("__", "."): value for key, value in config.items()}
    admin = admin_of(broker)
    admin.create_topics([NewTopic(topic, partitions, config=settings)])[topic].result(30)
    return topic


def produce(broker: Server, topic: str, numbers: Iterable[int], partitions: int = 1, codec: str = "lz4") -> None:
    """Produce number n to partition n % partitions, with key, header and a timestamp n seconds after EPOCH."""
    producer = Producer(broker.clients.librdkafka() | {"compression.type": codec})
    for n in numbers:
        produce_number(producer, topic, n, n % partitions)
    assert producer.flush(30) == 0


def produce_number(producer: Producer, topic: str, n: int, partition: int = 0) -> None:
    """Produce number n."""
    producer.produce(
        topic, b"%d" % n, key=b"key-%d" % n, partition=partition, timestamp=EPOCH + 1000 * n,
        headers=[("n", b"%d" % n)],
    )  # fmt: skip


def transactional(broker: Server, transactional_id: str) -> Producer:
    """A transactional producer, after init_transactions."""
    producer = Producer(broker.clients.librdkafka() | {"transactional.id": transactional_id, "linger.ms": 0})
    producer.init_transactions(30)
    return producer


def write(writer: Producer, topic: str, numbers: Iterable[int], partitions: int = 1) -> None:
    """Write records in the open transaction, and flush."""
    for n in numbers:
        produce_number(writer, topic, n, n % partitions)
    assert writer.flush(30) == 0


def transaction(writer: Producer, topic: str, numbers: Iterable[int], partitions: int = 1, commit: bool = True) -> None:
    """One complete transaction."""
    writer.begin_transaction()
    write(writer, topic, numbers, partitions)
    if commit:
        writer.commit_transaction(30)
    else:
        writer.abort_transaction(30)


def consume(broker: Server, topic: str, count: int) -> list[Any]:
    """`count` committed records of all partitions, by confluent-kafka."""
    consumer = Consumer(
        broker.clients.librdkafka()
        | {"group.id": "check", "auto.offset.reset": "earliest", "enable.auto.commit": False}
    )
    try:
        partitions = consumer.list_topics(topic, timeout=20).topics[topic].partitions
        consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        messages: list[Any] = []
        deadline = time.monotonic() + 30
        while len(messages) < count and time.monotonic() < deadline:
            messages += [m for m in consumer.consume(500, 0.3) if m.error() is None]
        return messages
    finally:
        consumer.close()


def delete_records(broker: Server, topic: str, before: int, partition: int = 0) -> None:
    """Delete the records of a partition before an offset."""
    admin = admin_of(broker)
    (deleted,) = admin.delete_records([TopicPartition(topic, partition, before)]).values()
    assert deleted.result(20).low_watermark == before


def delete_topic(broker: Server, topic: str) -> None:
    """Delete a topic and wait until Metadata no longer contains it."""
    admin = admin_of(broker)
    admin.delete_topics([topic])[topic].result(20)
    wait_for(lambda: topic not in admin.list_topics(timeout=20).topics, f"{topic} is gone", PATIENCE_S)


def add_partitions(broker: Server, topic: str, total: int) -> None:
    """Add partitions to a topic and wait until Metadata contains them."""
    admin = admin_of(broker)
    admin.create_partitions([NewPartitions(topic, total)])[topic].result(20)
    wait_for(
        lambda: len(admin.list_topics(topic, timeout=20).topics[topic].partitions) == total,
        "the new partitions",
        PATIENCE_S,
    )


def source(reader: Any, broker: Server, **options: object) -> Any:
    """A Kafka source of a DataFrameReader or DataStreamReader; `__` in the name of an option is a dot."""
    reader = reader.format("kafka").options(**broker.clients.spark())
    return reader.options(**{key.replace("__", "."): value for key, value in options.items()}).load()


def by_partition(topic: str, *values: int) -> str:
    """The JSON of an option that maps the partitions of one topic, from 0 on, to offsets or timestamps."""
    return json.dumps({topic: {str(partition): value for partition, value in enumerate(values)}})


def at(n: int) -> int:
    """The timestamp of number n."""
    return EPOCH + 1000 * n


def numbers(frame: Any) -> list[int]:
    """The values of a frame as sorted numbers."""
    return sorted(int(row[0]) for row in frame.selectExpr("CAST(value AS STRING)").collect())


def sink(writer: Any, broker: Server, **options: object) -> Any:
    """A DataFrameWriter or DataStreamWriter to Kafka; `__` in the name of an option is a dot."""
    writer = writer.format("kafka").options(**broker.clients.spark())
    return writer.options(**{key.replace("__", "."): value for key, value in options.items()})


class Batches:
    """A function for foreachBatch that keeps the numbers of each batch by its id; a repetition replaces the first."""

    def __init__(self) -> None:
        self.of: dict[int, list[int]] = {}

    def __call__(self, frame: Any, batch_id: int) -> None:
        self.of[batch_id] = numbers(frame)

    def sizes(self) -> list[int]:
        """How many records each batch had, in order."""
        return [len(self.of[batch_id]) for batch_id in sorted(self.of)]

    def all(self) -> list[int]:
        """The numbers of all batches, sorted."""
        return sorted(n for batch in self.of.values() for n in batch)


def start(frame: Any, keep: Callable[[Any, int], None], checkpoint: Path, **trigger: object) -> Any:
    """Start a stream with foreachBatch, without a trigger interval unless one is given."""
    writer = frame.writeStream.foreachBatch(keep).option("checkpointLocation", str(checkpoint))
    return (writer.trigger(**trigger) if trigger else writer).start()


def take_available(frame: Any, keep: Callable[[Any, int], None], checkpoint: Path) -> None:
    """Process all available records and stop."""
    ended(start(frame, keep, checkpoint, availableNow=True))


def ended(query: Any) -> None:
    """Wait until a query terminates; raises its exception."""
    assert query.awaitTermination(PATIENCE_S), "the stream did not end in time"
