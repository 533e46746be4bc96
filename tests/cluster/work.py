"""Clients that write and read while a cluster is broken, and the check of what they saw.

A writer is a process (`compat.exactly_once`), so that it works beside the test: idempotent, acks=all, librdkafka or
Java. At the end every partition is read completely, and the checker compares: nothing lost, doubled or out of order.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat.checker.__main__ import check
from compat.checker.finding import Finding
from compat.checker.history import Writer, read
from compat.exactly_once.processes import Progress, Slot
from tests.cluster.clusters import Cluster, wait_for

PARTITIONS = 3
READ_TIMEOUT_S = 120.0


def create_topic(bootstrap: str, name: str, partitions: int = PARTITIONS, replicas: int = 3, **config: str) -> None:
    """Create a topic; returns when a broker has confirmed it."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    keys = {key.replace("_", "."): value for key, value in config.items()}
    for future in admin.create_topics([NewTopic(name, partitions, replicas, config=keys)]).values():
        future.result(60)


class Work:
    """Writers of one topic with their histories."""

    def __init__(
        self,
        cluster: Cluster,
        folder: Path,
        topic: str,
        *,
        client: str = "confluent",
        writers: int = 1,
        rate: int = 500,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.cluster, self.folder, self.topic = cluster, folder, topic
        settings = {
            "bootstrap": cluster.bootstrap,
            "source": topic,
            "target": topic,
            "group": "none",
            "partitions": str(PARTITIONS),
            "rate": str(rate),
            "session_ms": "3000",
            "seed": "1",
        }
        self.slots = [Slot(f"write-{number}", client, folder, settings) for number in range(writers)]
        self.driver = Writer(folder / "driver.jsonl", "driver")
        self._progress = Progress(folder, "sent")

    def __enter__(self) -> Work:
        for slot in self.slots:
            slot.start()
        return self

    def __exit__(self, *exception: object) -> None:
        for slot in self.slots:
            if slot.process is not None and slot.process.poll() is None:
                slot.kill9()
        self.driver.close()

    def acknowledged(self) -> int:
        """Records acknowledged so far."""
        return self._progress.update()

    def go_on(self, records: int = 200, patience_s: float = 60.0) -> float:
        """Wait until so many further records are acknowledged; the seconds until the first of them."""
        began = time.monotonic()
        target = self.acknowledged() + 1
        wait_for(lambda: self.acknowledged() >= target, "a further acknowledgement", patience_s)
        first = time.monotonic() - began
        wait_for(lambda: self.acknowledged() >= target + records - 1, f"{records} acknowledgements", patience_s)
        return first

    def finish(self) -> list[Finding]:
        """Stop the writers, read everything, and check it. The writers must have failed no record."""
        for slot in self.slots:
            slot.stop()
        self._read_all()
        return [*check(read([self.folder])), *self._failed()]

    def _failed(self) -> list[Finding]:
        found = []
        for path in self.folder.glob("write-*.jsonl"):
            for line in path.read_text().splitlines():
                event = json.loads(line)
                if event["type"] in ("failed", "note"):
                    found.append(Finding("failed-write", str(event.get("text", event.get("value")))))
        return found

    def _read_all(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self.cluster.bootstrap,
                "group.id": "reader",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "log_level": 0,
            }
        )
        for index in range(PARTITIONS):
            self._read(consumer, TopicPartition(self.topic, index, 0))
        consumer.close()

    def _read(self, consumer: Consumer, partition: TopicPartition) -> None:
        consumer.assign([partition])
        deadline = time.monotonic() + READ_TIMEOUT_S
        while time.monotonic() < deadline:
            messages = consumer.consume(1000, 1.0)
            rows = [[m.topic(), m.partition(), m.offset(), m.value().decode()] for m in messages if m.error() is None]
            self.driver.write("poll", records=rows, isolation="read_uncommitted")
            for message in messages:
                if message.error() is not None and message.error().code() == KafkaError._PARTITION_EOF:
                    at = {"topic": partition.topic, "partition": partition.partition, "offset": message.offset()}
                    self.driver.write("end", isolation="read_uncommitted", **at)
                    return
        raise AssertionError(f"the end of {partition.topic}-{partition.partition} was not reached")
