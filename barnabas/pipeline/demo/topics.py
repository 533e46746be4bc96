"""Creates, fills, reads and removes the topics of the demonstration."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from itertools import cycle
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from barnabas.pipeline.cluster import Cluster
from barnabas.pipeline.demo.flights import Record
from barnabas.pipeline.errors import MistakeError, PipelineError

PARTITIONS = 4
FED = ("flights", "flight-log")
WRITTEN = (
    "flights-by-day", "log-by-day", "log-alerts", "aircraft", "flights-restored", "flights-late",
    "etl-dead-letters", "analytics-dead-letters", "log-dead-letters", "events-dead-letters",
)  # fmt: skip
PATIENCE_S = 60.0


def make(bootstrap: str) -> None:
    """Create the source topics. MistakeError if the broker has topics of the demonstration already.

    They have no retention by time, because records of 2013 would be deleted.
    """
    cluster = Cluster(bootstrap)
    there = sorted(set(cluster.topics()) & {*FED, *WRITTEN})
    if there:
        raise MistakeError(
            f"{bootstrap} has topics of another demonstration: 'barnabas topic delete {' '.join(there)}' removes them"
        )
    for topic in FED:
        cluster.create(topic, PARTITIONS, {"retention.ms": "-1"})


def remove(bootstrap: str) -> None:
    """Delete all topics of the demonstration."""
    there = sorted(set(Cluster(bootstrap).topics()) & {*FED, *WRITTEN})
    if there:
        admin = AdminClient({"bootstrap.servers": bootstrap})
        for deleted in admin.delete_topics(there).values():
            deleted.result(PATIENCE_S)


def feed(bootstrap: str, topic: str, records: Iterable[Record]) -> tuple[int, float]:
    """Produce the records; returns their number and the seconds. PipelineError if not all are accepted.

    The partition is chosen by key, or round-robin without a key.
    """
    ready = list(records)
    failures: list[str] = []

    def on_delivery(error: object, _: Message) -> None:
        if error is not None:
            failures.append(str(error))

    producer = Producer(
        {"bootstrap.servers": bootstrap, "enable.idempotence": True, "compression.type": "lz4", "linger.ms": 20,
         "partitioner": "murmur2_random", "queue.buffering.max.messages": 1_000_000, "on_delivery": on_delivery}
    )  # fmt: skip
    turns = cycle(range(PARTITIONS))
    began = time.monotonic()
    for number, record in enumerate(ready):
        more: dict[str, Any] = {} if record.key is not None else {"partition": next(turns)}
        producer.produce(topic, record.value, record.key, timestamp=record.at_ms, **more)
        if number % 1000 == 0:
            producer.poll(0)
    left = producer.flush(PATIENCE_S)
    if left or failures:
        raise PipelineError(f"{left + len(failures)} records of {topic} were not accepted: {(failures or ['late'])[0]}")
    return len(ready), time.monotonic() - began


def read(bootstrap: str, topic: str) -> Iterator[Message]:
    """Read all committed records of a topic with confluent-kafka, in order within each partition."""
    cluster = Cluster(bootstrap)
    partitions = cluster.topics()[topic]
    ends = cluster.ends({topic: partitions})[topic]
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "demo", "enable.auto.commit": False,
         "isolation.level": "read_committed", "enable.partition.eof": True, "auto.offset.reset": "earliest"}
    )  # fmt: skip
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in ends])
        waiting = set(ends)
        while waiting:
            message = consumer.poll(PATIENCE_S)
            if message is None:
                raise PipelineError(f"{bootstrap} returned no more records of {topic} within {PATIENCE_S:g} s")
            error = message.error()
            if error is None:
                yield message
            elif error.code() == KafkaError._PARTITION_EOF:
                waiting.discard(message.partition())
            else:
                raise PipelineError(f"{bootstrap} does not return the records of {topic}: {error.str()}")
    finally:
        consumer.close()
