"""Creates, fills, reads and deletes the topics of the demonstration."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from itertools import cycle
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from barnabas.spark.demo.flights import Record
from barnabas.spark.errors import MistakeError, PipelineError
from barnabas.spark.topics.cluster import Cluster

PARTITIONS = 4
INPUTS = ("flights", "flight-log")
OUTPUTS = (
    "flights-by-day", "log-by-day", "log-alerts", "aircraft", "flights-restored", "flights-late",
    "etl-dead-letters", "analytics-dead-letters", "log-dead-letters", "events-dead-letters",
)  # fmt: skip
RETENTION = {"retention.ms": "-1"}
TIMEOUT_S = 60.0


def create(bootstrap: str) -> None:
    """Create the input topics. MistakeError if the broker already has topics of the demonstration.

    Retention by time is off, because it would delete records of 2013.
    """
    cluster = Cluster(bootstrap)
    existing = sorted(set(cluster.topics()) & {*INPUTS, *OUTPUTS})
    if existing:
        raise MistakeError(
            f"{bootstrap} has topics of another demonstration: delete them with "
            f"'barnabas topic delete {' '.join(existing)}'"
        )
    for topic in INPUTS:
        cluster.create(topic, PARTITIONS, RETENTION)


def empty(bootstrap: str, topic: str) -> None:
    """Delete an input topic of which only a part was produced, and create it again."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    cluster = Cluster(bootstrap)
    if topic in cluster.topics():
        admin.delete_topics([topic])[topic].result(TIMEOUT_S)
    cluster.create(topic, PARTITIONS, RETENTION)


def delete(bootstrap: str) -> None:
    """Delete all existing topics of the demonstration."""
    existing = sorted(set(Cluster(bootstrap).topics()) & {*INPUTS, *OUTPUTS})
    if existing:
        admin = AdminClient({"bootstrap.servers": bootstrap})
        for deleted in admin.delete_topics(existing).values():
            deleted.result(TIMEOUT_S)


def produce(bootstrap: str, topic: str, records: Iterable[Record]) -> tuple[int, float]:
    """Produce the records; returns their number and the duration in seconds. PipelineError if any record fails.

    Records with a key are partitioned by key, others round-robin.
    """
    batch = list(records)
    failures: list[str] = []

    def on_delivery(error: object, _: Message) -> None:
        if error is not None:
            failures.append(str(error))

    producer = Producer(
        {"bootstrap.servers": bootstrap, "enable.idempotence": True, "compression.type": "lz4", "linger.ms": 20,
         "partitioner": "murmur2_random", "queue.buffering.max.messages": 1_000_000, "on_delivery": on_delivery}
    )  # fmt: skip
    partitions = cycle(range(PARTITIONS))
    began = time.monotonic()
    for number, record in enumerate(batch):
        more: dict[str, Any] = {} if record.key is not None else {"partition": next(partitions)}
        producer.produce(topic, record.value, record.key, timestamp=record.at_ms, **more)
        if number % 1000 == 0:
            producer.poll(0)
    unsent = producer.flush(TIMEOUT_S)
    if unsent or failures:
        raise PipelineError(
            f"{unsent + len(failures)} records were not written to {topic}: {(failures or ['timeout'])[0]}"
        )
    return len(batch), time.monotonic() - began


def read(bootstrap: str, topic: str) -> Iterator[Message]:
    """The committed records of a topic, in order within each partition, read with confluent-kafka."""
    cluster = Cluster(bootstrap)
    partitions = cluster.topics()[topic]
    ends = cluster.ends({topic: partitions})[topic]
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "demo", "enable.auto.commit": False,
         "isolation.level": "read_committed", "enable.partition.eof": True, "auto.offset.reset": "earliest"}
    )  # fmt: skip
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in ends])
        unfinished = set(ends)
        while unfinished:
            message = consumer.poll(TIMEOUT_S)
            if message is None:
                raise PipelineError(f"no record of {topic} was received from {bootstrap} within {TIMEOUT_S:g} s")
            error = message.error()
            if error is None:
                yield message
            elif error.code() == KafkaError._PARTITION_EOF:
                unfinished.discard(message.partition())
            else:
                raise PipelineError(f"{topic} cannot be read from {bootstrap}: {error.str()}")
    finally:
        consumer.close()
