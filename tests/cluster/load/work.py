"""Clients that write and read while a cluster is broken, and the check of their histories.

A writer is a process (`compat.exactly_once`), or does the same in a thread: idempotent, acks=all, librdkafka or Java.
At the end every partition is read completely, and the checker compares: nothing lost, doubled or out of order.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat.checker.__main__ import check
from compat.checker.finding import Finding
from compat.checker.history import Writer, read
from compat.exactly_once import confluent_client
from compat.exactly_once.processes import Progress, Slot
from tests.support.cluster.clusters import Cluster
from tests.support.waiting import ANY_ERROR, Advance, wait_for, wait_for_all

PARTITIONS = 3
READ_TIMEOUT_S = 120.0


def create_topic(bootstrap: str, name: str, partitions: int = PARTITIONS, replicas: int = 3, **config: str) -> None:
    """Create a topic; returns when a broker has confirmed it.

    It is asked again when librdkafka has removed the broker that it had asked: one that is not in new metadata.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    keys = {key.replace("_", "."): value for key, value in config.items()}
    removed = False
    while True:
        (future,) = admin.create_topics([NewTopic(name, partitions, replicas, config=keys)]).values()
        try:
            future.result(60)
        except KafkaException as error:
            code = error.args[0].code()
            if removed and code == KafkaError.TOPIC_ALREADY_EXISTS:
                return
            if code != KafkaError._DESTROY_BROKER:
                raise
            removed = True
        else:
            return


class Writing(Protocol):
    """One writer."""

    def start(self) -> None:
        """Begin."""

    def stop(self) -> None:
        """End when what was sent is acknowledged; raises what it has failed with."""

    def end(self) -> None:
        """End it, after a test that has failed."""


class ProcessWriter:
    """A writer in a process."""

    def __init__(self, name: str, client: str, folder: Path, settings: Mapping[str, str]) -> None:
        self._slot = Slot(name, client, folder, settings)
        self.start, self.stop = self._slot.start, self._slot.stop

    def end(self) -> None:
        """Kill it, unless it has ended."""
        if self._slot.process is not None and self._slot.process.poll() is None:
            self._slot.kill9()


class ThreadWriter:
    """A writer of librdkafka in a thread."""

    def __init__(self, name: str, folder: Path, settings: Mapping[str, str]) -> None:
        process = f"{name}#1"
        files = {"process": process, "history": str(folder / f"{process}.jsonl")}
        self._client = confluent_client.Client({**settings, **files})
        self._thread = threading.Thread(target=self._run, name=name)
        self._failure: BaseException | None = None
        self.start = self._thread.start

    def _run(self) -> None:
        try:
            confluent_client.write(self._client)
            self._client.history.write("closed")
        except BaseException as error:
            self._failure = error

    def stop(self) -> None:
        """End when what was sent is acknowledged; raises what it has failed with."""
        self.end()
        if self._failure is not None:
            raise self._failure

    def end(self) -> None:
        """End; it waits at most a minute for acknowledgements."""
        self._client.stop()
        self._thread.join()
        self._client.history.close()


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
        in_threads: bool = False,
    ) -> None:
        """`rate` is in records a second, of each writer; `in_threads`: writers of librdkafka take no processes."""
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
        names = [f"write-{number}" for number in range(writers)]
        self.writers: list[Writing] = [
            ThreadWriter(name, folder, settings) if in_threads else ProcessWriter(name, client, folder, settings)
            for name in names
        ]
        self.driver = Writer(folder / "driver.jsonl", "driver")
        self._progress = Progress(folder, "sent")

    def __enter__(self) -> Work:
        for writer in self.writers:
            writer.start()
        return self

    def __exit__(self, *exception: object) -> None:
        for writer in self.writers:
            writer.end()
        self.driver.close()

    def acknowledged(self) -> int:
        """Records acknowledged so far."""
        return self._progress.update()

    def go_on(self, records: int = 200, patience_s: float = 60.0) -> float:
        """Wait until so many further records are acknowledged; the seconds until the first of them.

        AssertionError if none is in `patience_s`.
        """
        began = time.monotonic()
        target = self.acknowledged() + 1
        wait_for(lambda: self.acknowledged() >= target, "a further acknowledgement", patience_s, errors=ANY_ERROR)
        first = time.monotonic() - began
        wait_for_all([Advance(self.acknowledged, records - 1, "acknowledgements", patience_s)])
        return first

    def finish(self) -> list[Finding]:
        """Stop the writers, read everything, and check it. The writers must have failed no record."""
        for writer in self.writers:
            writer.stop()
        self._read_all()
        return [*check(read([self.folder])), *self._failed()]

    def _failed(self) -> list[Finding]:
        findings = []
        for path in self.folder.glob("write-*.jsonl"):
            for line in path.read_text().splitlines():
                event = json.loads(line)
                if event["type"] in ("failed", "note"):
                    findings.append(Finding("failed-write", str(event.get("text", event.get("value")))))
        return findings

    def _read_all(self) -> None:
        settings = {
            "bootstrap.servers": self.cluster.bootstrap,
            "group.id": "reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "log_level": 0,
        }
        with closing(Consumer(settings)) as consumer:
            for index in range(PARTITIONS):
                self._read(consumer, TopicPartition(self.topic, index, 0))

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
