"""Kafka Streams and Spark at work while nodes of a cluster are replaced.

Streams counts words under `exactly_once_v2` and writes every single count, so that a lost or repeated one is visible.
Spark copies a topic to another with its own source and sink: at least once, in the order of each partition.
"""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat.checker.finding import Finding
from compat.exactly_once.confluent_client import settings_of
from tests.cluster.load.loads import Load
from tests.support.processes.server import ROOT

PARTITIONS = 3
CAUGHT_UP_S = 240.0


class Ticker:
    """Calls something at intervals in a thread, until it is stopped; an exception is raised by `check`."""

    def __init__(self, work: object, interval_s: float) -> None:
        self._work, self._interval_s = work, interval_s
        self._is_over = threading.Event()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_over.wait(self._interval_s):
            try:
                self._work()
            except Exception as error:
                self._error = error
                return

    def check(self) -> None:
        """Raise what the work has raised."""
        if self._error is not None:
            raise RuntimeError(f"a load has failed: {self._error!r}") from self._error

    def stop(self) -> None:
        """Stop, and wait for the work that is under way."""
        self._is_over.set()
        self._thread.join(330)
        self.check()


class Streams(Load):
    """The word count of `compat.kafka_streams`, with lines written all the time."""

    LINES = 20

    def __init__(self, name: str, bootstrap: str, folder: Path, seed: int, *, settings: tuple[str, ...] = ()) -> None:
        from compat.kafka_streams.application import Application
        from tests.support.processes.security import ClientSettings

        super().__init__(name)
        self._chance = random.Random(seed)
        state = folder / name
        settings = ("processing.guarantee=exactly_once_v2", "replication.factor=3", *settings)
        self._words = Application(ClientSettings(bootstrap), f"words-{seed}", state, *settings, partitions=2)
        self._written = 0
        self._ticker: Ticker | None = None

    def start(self) -> None:
        """Start one instance, and write."""
        self._words.start().running()
        self._ticker = Ticker(self._write, 0.3)

    def _write(self) -> None:
        self._words.write(self.LINES, self._chance)
        self._written += 1

    def progress(self) -> int:
        """Groups of lines that were written; how far the application is, is seen at the end."""
        return self._written

    def check(self) -> None:
        """RuntimeError when the application has ended, or the writer cannot write."""
        if self._ticker is not None:
            self._ticker.check()
        for instance in self._words.instances:
            if instance.process.poll() is not None:
                raise RuntimeError(f"the Streams application has ended: {instance.lines[-20:]}")

    def stop_writing(self) -> None:
        """Write no more lines."""
        assert self._ticker is not None
        self._ticker.stop()

    def finish(self) -> list[Finding]:
        """Every word was counted once for each time that it was written."""
        self.stop_writing()
        self.records = sum(self._words.written.values())
        for instance in self._words.instances:
            for line in instance.lines:
                if line.startswith("ERROR"):
                    self.notes[line.split(" caused by ")[0][:150]] += 1
        counted = self._words.wait_counted()
        wrong = [word for word, count in self._words.written.items() if counted[word] != list(range(1, count + 1))]
        wrong += sorted(counted.keys() - self._words.written.keys())
        return [
            Finding("streams-count", f"{word!r} is not counted exactly once: {_around(counted[word])}")
            for word in wrong
        ]

    def kill(self) -> None:
        """End the application."""
        if self._ticker is not None:
            with contextlib.suppress(RuntimeError):
                self._ticker.stop()
        self._words.close()


def _around(counts: list[int]) -> str:
    """The first place where counts are not 1, 2, 3 ..."""
    at = next((at for at, count in enumerate(counts) if count != at + 1), len(counts))
    return f"{len(counts)} counts, around the first error: {counts[max(0, at - 3) : at + 4]}"


class Spark(Load):
    """A stream of Spark from one topic to another, and a writer of numbered values."""

    def __init__(self, name: str, bootstrap: str, folder: Path, seed: int) -> None:
        super().__init__(name)
        self._bootstrap, self._folder = bootstrap, folder / name
        self._folder.mkdir(parents=True)
        self._source, self._target = f"spark-in-{seed}", f"spark-out-{seed}"
        self._chance = random.Random(seed)
        self._producer = Producer({**settings_of(bootstrap), "enable.idempotence": True})
        self._sent: list[set[str]] = [set() for _ in range(PARTITIONS)]
        self._unknown: set[str] = set()
        self._number = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._ticker: Ticker | None = None

    def start(self) -> None:
        """Make the topics, start Spark and write; returns when Spark has made a batch."""
        admin = AdminClient({"bootstrap.servers": self._bootstrap, "log_level": 0})
        for future in admin.create_topics(
            [NewTopic(topic, PARTITIONS) for topic in (self._source, self._target)]
        ).values():
            future.result(60)
        command = [sys.executable, "-m", "compat.spark.copy_stream", self._bootstrap, self._source, self._target]
        with (self._folder / "spark.log").open("wb") as log:
            self._process = subprocess.Popen([*command, str(self._folder)], stdout=log, stderr=log, cwd=ROOT)
        self._ticker = Ticker(self._write, 0.2)
        deadline = time.monotonic() + CAUGHT_UP_S
        while self.progress() == 0:
            self.check()
            if time.monotonic() > deadline:
                raise RuntimeError(f"Spark has made no batch: {self._log()}")
            time.sleep(0.2)

    def _write(self) -> None:
        for _ in range(20):
            value, partition = f"s/{self._number}", self._chance.randrange(PARTITIONS)
            self._number += 1
            self._producer.produce(self._source, value, partition=partition, on_delivery=self._delivered)
        self._producer.flush(300)

    def _delivered(self, error: KafkaError | None, message: object) -> None:
        value = message.value().decode()
        if error is None:
            self._sent[message.partition()].add(value)
        else:
            self._unknown.add(value)

    def progress(self) -> int:
        """Batches that Spark has completed."""
        path = self._folder / "batches"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def check(self) -> None:
        """RuntimeError when Spark has ended, or the writer cannot write."""
        if self._ticker is not None:
            self._ticker.check()
        if self._process is not None and self._process.poll() is not None:
            raise RuntimeError(f"Spark has ended with {self._process.returncode}: {self._log()}")

    def _log(self) -> str:
        return (self._folder / "spark.log").read_text(errors="replace")[-3000:]

    def stop_writing(self) -> None:
        """Write no more records."""
        assert self._ticker is not None
        self._ticker.stop()

    def finish(self) -> list[Finding]:
        """Everything that was written is in the target, and nothing else."""
        self.stop_writing()
        sent = set().union(*self._sent)
        self.records = len(sent)
        deadline, copied = time.monotonic() + CAUGHT_UP_S, self._copied()
        while not sent <= copied.keys() and time.monotonic() < deadline:
            self.check()
            time.sleep(1.0)
            copied = self._copied()
        lost, invented = sent - copied.keys(), copied.keys() - sent - self._unknown
        if repeated := sum(count - 1 for count in copied.values()):
            self.notes["records written again by Spark, whose sink is at least once"] = repeated
        return [
            *(Finding("spark-lost", f"{value} is not in the target") for value in sorted(lost)),
            *(Finding("spark-invented", f"{value} was never written") for value in sorted(invented)),
        ]

    def _copied(self) -> dict[str, int]:
        """How often each value is in the target."""
        counts: dict[str, int] = {}
        settings = {"group.id": "spark-check", "enable.partition.eof": True, "enable.auto.commit": False}
        with contextlib.closing(Consumer({**settings_of(self._bootstrap), **settings})) as consumer:
            consumer.assign([TopicPartition(self._target, index, 0) for index in range(PARTITIONS)])
            ended: set[int] = set()
            deadline = time.monotonic() + 60.0
            while len(ended) < PARTITIONS and time.monotonic() < deadline:
                for message in consumer.consume(10_000, 1.0):
                    if message.error() is None:
                        value = message.value().decode()
                        counts[value] = counts.get(value, 0) + 1
                    elif message.error().code() == KafkaError._PARTITION_EOF:
                        ended.add(message.partition())
        return counts

    def kill(self) -> None:
        """End Spark."""
        if self._ticker is not None:
            with contextlib.suppress(RuntimeError):
                self._ticker.stop()
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        (self._folder / "figures.json").write_text(json.dumps({"records": self.records}))
