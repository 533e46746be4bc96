"""Runs of jobs for tests: in processes that can be killed, or in this process with an existing session."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from barnabas.spark.jobs import find_job
from barnabas.spark.main import execute
from barnabas.spark.run import Run, run_job
from barnabas.spark.settings.config import read_config
from tests.support.processes.server import Server

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 240.0


class Process:
    """`barnabas pipeline run` as a process with its own process group, which includes its Java."""

    def __init__(self, job: str, bootstrap: str, config: Path, *arguments: str) -> None:
        command = [sys.executable, "-m", "barnabas", "pipeline", "run", job, "-b", bootstrap, "--config", str(config)]
        self._process = subprocess.Popen(
            [*command, "--progress", "json", *arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=ROOT,
            start_new_session=True,
        )  # fmt: skip
        self.lines: list[str] = []

    def wait_for(self, event: str, count: int = 1) -> dict[str, Any]:
        """Read its output up to the `count`th of these events; AssertionError if it ends before."""
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self.lines.append(line)
            if line.startswith("{") and (report := json.loads(line))["event"] == event:
                count -= 1
                if not count:
                    return dict(report)
        raise AssertionError(f"it ended with {self._process.wait()} before {event}:\n{''.join(self.lines[-30:])}")

    def kill(self) -> None:
        """kill -9 of Python and Java, by their process group."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._close()

    def end(self, code: int = 0) -> dict[str, Any]:
        """Wait until it ends with this exit code; returns the summary."""
        summary: dict[str, Any] = {}
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self.lines.append(line)
            if line.startswith(('{"event": "done"', '{"event": "failed"')):
                summary = json.loads(line)
        assert self._process.wait(PATIENCE_S) == code, "".join(self.lines[-30:])
        self._close()
        return summary

    def _close(self) -> None:
        assert self._process.stderr is not None
        self._process.stderr.close()

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self.kill()


def run_here(spark: Any, job: str, bootstrap: str, config: Path) -> Run:
    """Run a job with `--once` in the session of the tests. Raises the errors of `run_job`."""
    definition = find_job(job)
    run = Run(definition, read_config(config, definition.config), bootstrap)
    run_job(run, once=True, every=None, watch=lambda *_: None, spark=spark)
    return run


def execute_here(spark: Any, job: str, bootstrap: str, config: Path) -> int:
    """`barnabas pipeline run JOB --once --progress json` in the session of the tests; its exit code."""
    return execute(job, bootstrap, config, once=True, progress="json", spark=spark)


def produce(
    broker: Server, topic: str, values: Iterable[tuple[bytes | None, bytes | None]], partitions: int = 1
) -> None:
    """Produce record n, a key and a value, to partition n % partitions."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
    for n, (key, value) in enumerate(values):
        producer.produce(topic, value, key, partition=n % partitions)
        if n % 1000 == 0:
            producer.poll(0)
    assert producer.flush(60) == 0


def create(broker: Server, topic: str, partitions: int = 1) -> str:
    """Create a topic."""
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(30)
    return topic


def consume(
    broker: Server, topic: str, isolation: str = "read_committed", more: Mapping[str, str] | None = None
) -> list[Any]:
    """All records of a topic up to its current end. `more`: further configs of the consumer.

    For read_committed it waits for the markers of ended transactions, which a coordinator writes after its answer.
    """
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "check", "enable.auto.commit": False,
         "isolation.level": isolation, "enable.partition.eof": True, **(more or {})}
    )  # fmt: skip
    try:
        partitions = list(consumer.list_topics(topic, timeout=30).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in partitions])
        messages, ended = [], set()
        deadline = time.monotonic() + PATIENCE_S
        while len(ended) < len(partitions):
            assert time.monotonic() < deadline, f"{topic} does not end"
            message = consumer.poll(1.0)
            if message is None:
                continue
            if message.error() is None:
                messages.append(message)
            else:
                assert message.error().name() == "_PARTITION_EOF", message.error()
                _, end = consumer.get_watermark_offsets(TopicPartition(topic, message.partition()), cached=True)
                if message.offset() >= end:  # else the last stable offset, before a marker
                    ended.add(message.partition())
        return messages
    finally:
        consumer.close()


def header(message: Any, name: str) -> str | None:
    """The value of a header."""
    return next((value.decode() for key, value in message.headers() or [] if key == name), None)


def toml(path: Path, lines: Sequence[str]) -> Path:
    """A job's file."""
    path.write_text("\n".join(lines) + "\n")
    return path
