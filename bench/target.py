"""A broker under load: its topics, and loads with the broker's CPU time."""

from __future__ import annotations

import itertools
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from io import BufferedIOBase
from pathlib import Path

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from bench import frames
from bench.servers import ROOT, Server

TOPIC_CONFIG = {"file.delete.delay.ms": "100"}  # to free the disk before the next run
PATIENCE_S = 60.0
LOAD_TIMEOUT_S = 300.0
EXACT_BATCH_BYTES = 50_000
SENT_AHEAD = 8  # requests in flight
_topics = itertools.count(1)


@dataclass(frozen=True)
class Outcome:
    """The result of a load, and the broker's CPU seconds."""

    requests: int
    bytes: int
    seconds: float
    p50_us: float
    p99_us: float
    cpu_s: float

    @property
    def cpu_s_per_gb(self) -> float:
        """The broker's CPU seconds per 10^9 bytes."""
        return self.cpu_s / max(self.bytes / 1e9, 1e-9)


@cache
def generator() -> list[str]:
    """The command of the raw load generator: C if there is a compiler, else Python."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return [sys.executable, "-m", "bench.load"]
    program = ROOT / ".cache" / "bench-load"
    program.parent.mkdir(exist_ok=True)
    subprocess.run([compiler, "-O2", "-o", str(program), str(ROOT / "bench" / "load.c")], check=True)
    return [str(program)]


@dataclass
class Target:
    """A running broker and the topics of the cases."""

    server: Server
    filled: dict[tuple[int, int, int], tuple[str, int]] = field(default_factory=dict)
    exact: dict[tuple[int, int, int], str] = field(default_factory=dict)
    by_time: tuple[str, int] | None = None  # the topic of `bench.by_time`, made once, and its first timestamp

    def __post_init__(self) -> None:
        self.connect()

    def connect(self) -> None:
        """Create a new admin client: librdkafka may cache for a minute that a new topic has no leader."""
        self.admin = AdminClient({"bootstrap.servers": self.server.bootstrap, "log_level": 0})

    def create(self, partitions: int, config: Mapping[str, str] | None = None) -> str:
        """A new topic whose every partition has a leader that serves (Kafka needs a moment)."""
        topic = f"bench-{next(_topics)}"
        new = NewTopic(topic, partitions, 1, config={**TOPIC_CONFIG, **(config or {})})
        self.admin.create_topics([new])[topic].result(PATIENCE_S)
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                self.end_offsets(topic, partitions)
                return topic
            except KafkaException:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
                self.connect()

    def delete(self, topic: str) -> None:
        """Delete a topic, and wait until its files are removed."""
        self.admin.delete_topics([topic])[topic].result(PATIENCE_S)

    def alter(self, topic: str, key: str, value: str) -> None:
        """Set one key of a topic's configuration."""
        entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        for future in self.admin.incremental_alter_configs([resource]).values():
            future.result(PATIENCE_S)

    def end_offsets(self, topic: str, partitions: int) -> list[int]:
        """The log end offset of every partition."""
        wanted = {TopicPartition(topic, n): OffsetSpec.latest() for n in range(partitions)}
        return [int(future.result(PATIENCE_S).offset) for future in self.admin.list_offsets(wanted).values()]

    def fill(self, partitions: int, record_bytes: int, megabytes: int) -> tuple[str, int]:
        """A topic with an amount of data in batches of about 64 KB, and the number of its records; created once."""
        key = (partitions, record_bytes, megabytes)
        if key not in self.filled:
            topic = self.create(partitions)
            batch, _ = frames.batch(64 << 10, record_bytes)
            requests = [frames.produce(topic, n, batch) for n in range(partitions)]
            self.raw("produce", requests, partitions, 2, 0, LOAD_TIMEOUT_S / 2, megabytes)
            self.filled[key] = (topic, sum(self.end_offsets(topic, partitions)))
        return self.filled[key]

    def fill_exactly(self, partitions: int, record_bytes: int, records: int) -> str:
        """A topic with a number of records, evenly distributed, in batches of about 50 KB; created once."""
        key = (partitions, record_bytes, records)
        if key not in self.exact:
            each = EXACT_BATCH_BYTES // record_bytes
            batches, left = divmod(records, each)
            if left:
                raise ValueError(f"{records} is not a multiple of {each}")
            topic = self.create(partitions)
            batch = frames.spread_batch(each, record_bytes, int(time.time() * 1000) - each)
            requests = [frames.produce(topic, n, batch) for n in range(partitions)]
            self.send(requests[n % partitions] for n in range(batches))
            stored = sum(self.end_offsets(topic, partitions))
            if stored != records:
                raise RuntimeError(f"{stored} of {records} records are stored")
            self.exact[key] = topic
        return self.exact[key]

    def send(self, requests: Iterable[bytes]) -> None:
        """Send each Produce frame once, in order on one connection; raises RuntimeError at an error code."""
        address = (self.server.host, self.server.port)
        with socket.create_connection(address, PATIENCE_S) as connection, connection.makefile("rb") as answers:
            unanswered = 0
            for request in requests:
                connection.sendall(request)
                unanswered += 1
                if unanswered == SENT_AHEAD:
                    _check_answer(answers)
                    unanswered -= 1
            for _ in range(unanswered):
                _check_answer(answers)

    def raw(
        self,
        mode: str,
        requests: Iterable[bytes],
        *arguments: float,
        meanwhile: Callable[[], None] | None = None,
    ) -> Outcome:
        """Run the raw generator; `load.c` describes the arguments after the frames.

        With `meanwhile` the load lasts as long as this call, at most as long as in the arguments.
        """
        with tempfile.NamedTemporaryFile(suffix=".frames") as file:
            file.write(b"".join(requests))
            file.flush()
            command = [*generator(), mode, self.server.host, str(self.server.port), file.name]
            return self.run([*command, *map(str, arguments)], meanwhile)

    def confluent(self, mode: str, topic: str, *arguments: object) -> Outcome:
        """Run a load of `bench.confluent_load`."""
        command = [sys.executable, "-m", "bench.confluent_load", mode, self.server.bootstrap, topic]
        return self.run([*command, *map(str, arguments)])

    def run(self, command: list[str], meanwhile: Callable[[], None] | None = None) -> Outcome:
        """Run a load generator; measure the CPU time between its `start` and `end` lines."""
        cpu: dict[str, float] = {}
        found: dict[str, str] = {}
        with tempfile.TemporaryFile("w+") as errors:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=ROOT)
            assert process.stdout is not None
            watchdog = threading.Timer(LOAD_TIMEOUT_S, process.kill)
            watchdog.daemon = True
            watchdog.start()
            with process, process.stdout:
                for line in process.stdout:
                    word, *rest = line.split()
                    if word in {"start", "end"}:
                        cpu[word] = self.server.cpu_s()
                    elif word == "result":
                        found = dict(pair.split("=", 1) for pair in rest)
                    if word == "start" and meanwhile is not None:
                        _call_and_end(meanwhile, process)
            watchdog.cancel()
            errors.seek(0)
            if process.returncode or not found:
                raise RuntimeError(f"{Path(command[0]).name} {' '.join(command[1:4])}: {errors.read()[-600:].strip()}")
        figures = {name: float(text) for name, text in found.items()}
        return Outcome(
            requests=int(figures["requests"]),
            bytes=int(figures["bytes"]),
            seconds=figures["seconds"],
            p50_us=figures["p50_us"],
            p99_us=figures["p99_us"],
            cpu_s=cpu["end"] - cpu["start"],
        )


def _call_and_end(meanwhile: Callable[[], None], load: subprocess.Popen[str]) -> None:
    try:
        meanwhile()
    finally:
        load.terminate()


def _check_answer(answers: BufferedIOBase) -> None:
    size = answers.read(4)
    answer = answers.read(int.from_bytes(size, "big"))
    if len(answer) < 12:
        raise RuntimeError("the broker closed the connection")
    place = 10 + struct.unpack_from(">h", answer, 8)[0] + 8
    code = struct.unpack_from(">h", answer, place)[0]
    if code:
        raise RuntimeError(f"the broker answered error code {code}")
