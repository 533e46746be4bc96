"""What the suites of Spark share: records written and read by confluent-kafka, sources, sinks, and streams that keep
what each of their batches held.

What Spark writes is read by another client and the other way round, so that no fault of one direction can hide one of
the other. Number n is the record with that value, a key, a header and a timestamp n seconds after EPOCH.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from bench.servers import Server

pytest.importorskip("pyspark")
pytest.importorskip("confluent_kafka")
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

MARKS = [
    pytest.mark.spark,
    pytest.mark.java,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(not shutil.which("java") or not shutil.which("mvn"), reason="needs Java and Maven"),
]
EPOCH = int(time.time()) // 1000 * 1_000_000 - 86_400_000  # younger than Kafka's retention
PATIENCE_S = 90.0
Create = Callable[..., str]
Name = Callable[..., str]


def wait_until(condition: Callable[[], object], what: str) -> None:
    """Ask until the condition holds; fails when it takes longer than anyone has patience for."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"waited too long until {what}"
        time.sleep(0.02)


def admin_of(broker: Server) -> AdminClient:
    """An admin client of confluent-kafka; keep it until its answers are there."""
    return AdminClient({"bootstrap.servers": broker.bootstrap})


def create_topic(broker: Server, topic: str, partitions: int = 1, **config: str) -> str:
    """Create a topic; `__` in a key of its configuration is a dot. Returns its name."""
    settings = {key.replace("__", "."): value for key, value in config.items()}
    admin = admin_of(broker)
    admin.create_topics([NewTopic(topic, partitions, 1, config=settings)])[topic].result(30)
    return topic


def produce(broker: Server, topic: str, numbers: Iterable[int], partitions: int = 1, codec: str = "lz4") -> None:
    """Number n goes to partition n % partitions, with key, header and a timestamp n seconds after EPOCH."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "compression.type": codec})
    for n in numbers:
        produce_number(producer, topic, n, n % partitions)
    assert producer.flush(30) == 0


def produce_number(producer: Producer, topic: str, n: int, partition: int = 0) -> None:
    """Hand number n to a producer."""
    producer.produce(
        topic, b"%d" % n, key=b"key-%d" % n, partition=partition, timestamp=EPOCH + 1000 * n,
        headers=[("n", b"%d" % n)],
    )  # fmt: skip


def transactional(broker: Server, transactional_id: str) -> Producer:
    """A transactional producer, ready to begin."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": transactional_id, "linger.ms": 0})
    producer.init_transactions(30)
    return producer


def write(writer: Producer, topic: str, numbers: Iterable[int], partitions: int = 1) -> None:
    """Records of the transaction that is open, on the disk when this returns."""
    for n in numbers:
        produce_number(writer, topic, n, n % partitions)
    assert writer.flush(30) == 0


def transaction(writer: Producer, topic: str, numbers: Iterable[int], partitions: int = 1, commit: bool = True) -> None:
    """One transaction from its begin to its end."""
    writer.begin_transaction()
    write(writer, topic, numbers, partitions)
    if commit:
        writer.commit_transaction(30)
    else:
        writer.abort_transaction(30)


def consume(broker: Server, topic: str, count: int) -> list[Any]:
    """`count` committed records of all partitions, by confluent-kafka."""
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "check", "auto.offset.reset": "earliest",
         "enable.auto.commit": False}
    )  # fmt: skip
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
    """Have a partition begin at an offset."""
    admin = admin_of(broker)
    (deleted,) = admin.delete_records([TopicPartition(topic, partition, before)]).values()
    assert deleted.result(20).low_watermark == before


def delete_topic(broker: Server, topic: str) -> None:
    """Delete a topic; Kafka answers a little before it is gone from Metadata."""
    admin = admin_of(broker)
    admin.delete_topics([topic])[topic].result(20)
    wait_until(lambda: topic not in admin.list_topics(timeout=20).topics, f"{topic} is gone")


def add_partitions(broker: Server, topic: str, total: int) -> None:
    """Let a topic have more partitions; returns when Metadata shows them."""
    admin = admin_of(broker)
    admin.create_partitions([NewPartitions(topic, total)])[topic].result(20)
    wait_until(lambda: len(admin.list_topics(topic, timeout=20).topics[topic].partitions) == total, "there are more")


def source(reader: Any, broker: Server, **options: object) -> Any:
    """A Kafka source of a DataFrameReader or DataStreamReader; `__` in the name of an option is a dot."""
    reader = reader.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap)
    return reader.options(**{key.replace("__", "."): value for key, value in options.items()}).load()


def by_partition(topic: str, *values: int) -> str:
    """The option's JSON that gives the partitions of one topic, from 0 on, an offset or a timestamp each."""
    return json.dumps({topic: {str(partition): value for partition, value in enumerate(values)}})


def at(n: int) -> int:
    """The timestamp of number n."""
    return EPOCH + 1000 * n


def numbers(frame: Any) -> list[int]:
    """The values of a frame as sorted numbers."""
    return sorted(int(row[0]) for row in frame.selectExpr("CAST(value AS STRING)").collect())


def sink(writer: Any, broker: Server, **options: object) -> Any:
    """A DataFrameWriter or DataStreamWriter to Kafka; `__` in the name of an option is a dot."""
    writer = writer.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap)
    return writer.options(**{key.replace("__", "."): value for key, value in options.items()})


class Batches:
    """What foreachBatch was given: the numbers of every batch by its id, a repeated batch in place of the first."""

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
    """Run a stream into a function that takes batches; as fast as it can, unless a trigger is given."""
    writer = frame.writeStream.foreachBatch(keep).option("checkpointLocation", str(checkpoint))
    return (writer.trigger(**trigger) if trigger else writer).start()


def take_available(frame: Any, keep: Callable[[Any, int], None], checkpoint: Path) -> None:
    """Process all that is there, and end."""
    ended(start(frame, keep, checkpoint, availableNow=True))


def ended(query: Any) -> None:
    """Wait until a query is through; raises what it failed with."""
    assert query.awaitTermination(PATIENCE_S), "the stream did not end in time"
