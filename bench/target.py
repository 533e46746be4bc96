"""Operations on a measured broker: create and fill topics, run load generators and measure its CPU time."""

from __future__ import annotations

import itertools
import os
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

from tests.support.processes.server import ROOT, Server
from tests.support.requests import frames

TOPIC_CONFIG = {"file.delete.delay.ms": "100"}  # frees the disk before the next run
TIMEOUT_S = 60.0
LOAD_TIMEOUT_S = 300.0
EXACT_BATCH_BYTES = 50_000
MAX_IN_FLIGHT = 8  # requests in flight
_topics = itertools.count(1)


@dataclass(frozen=True)
class Outcome:
    """The counts of a load, and the broker's CPU seconds during it."""

    requests: int
    bytes: int
    seconds: float
    p50_us: float
    p99_us: float
    cpu_s: float

    @property
    def cpu_us_per_request(self) -> float:
        """The broker's CPU microseconds per request."""
        return self.cpu_s / max(1, self.requests) * 1e6

    @property
    def cpu_s_per_gb(self) -> float:
        """The broker's CPU seconds per 10^9 bytes."""
        return self.cpu_s / max(self.bytes / 1e9, 1e-9)


@cache
def generator() -> list[str]:
    """The command of the raw load generator: C if there is a compiler, else Python."""
    compiler = _compiler()
    if compiler is None:
        return [sys.executable, "-m", "bench.loads.load"]
    return [_compiled(compiler, "load.c", "bench-load")]


@cache
def tls_generator() -> list[str]:
    """The same generator with TLS. RuntimeError without a compiler and OpenSSL's headers."""
    return [_compiled_with_openssl("load.c", "bench-load-tls", "-DWITH_TLS")]


@cache
def login_generator() -> list[str]:
    """The command of the generator of short connections. RuntimeError without a compiler and OpenSSL's headers."""
    return [_compiled_with_openssl("login_load.c", "bench-login-load")]


def _compiler() -> str | None:
    return shutil.which("cc") or shutil.which("gcc")


def _compiled_with_openssl(source: str, name: str, *options: str) -> str:
    compiler = _compiler()
    if compiler is None:
        raise RuntimeError("this load needs a C compiler")
    try:
        return _compiled(compiler, source, name, *options, "-lssl", "-lcrypto")
    except subprocess.CalledProcessError:
        raise RuntimeError("this load needs the headers of OpenSSL (Debian: libssl-dev)") from None


def _compiled(compiler: str, source: str, name: str, *options: str) -> str:
    """Compile a program of `bench/loads`; returns its path. Libraries are named after the sources that use them."""
    program = ROOT / ".cache" / name
    program.parent.mkdir(exist_ok=True)
    temporary = program.with_name(f"{name}.{os.getpid()}")  # others may compile, or run, the same program meanwhile
    path = ROOT / "bench" / "loads" / source
    subprocess.run([compiler, "-O2", "-o", str(temporary), str(path), *options], check=True)
    temporary.replace(program)
    return str(program)


@dataclass
class Target:
    """A running broker, with the topics that the cases have filled."""

    server: Server
    filled: dict[tuple[int, int, int], tuple[str, int]] = field(default_factory=dict)
    exact: dict[tuple[int, int, int], str] = field(default_factory=dict)
    by_time: tuple[str, int] | None = None  # topic of `bench.cases.by_time` and its first timestamp

    def __post_init__(self) -> None:
        self.connect()

    def connect(self) -> None:
        """Create a new admin client: librdkafka may cache for a minute that a new topic has no leader."""
        self.admin = AdminClient({"bootstrap.servers": self.server.bootstrap, "log_level": 0})

    def create(self, partitions: int, config: Mapping[str, str] | None = None) -> str:
        """Create a topic and wait until it is served."""
        topic = f"bench-{next(_topics)}"
        new = NewTopic(topic, partitions, 1, config={**TOPIC_CONFIG, **(config or {})})
        self.admin.create_topics([new])[topic].result(TIMEOUT_S)
        self.wait_served(topic, partitions)
        return topic

    def wait_served(self, topic: str, partitions: int) -> None:
        """Wait until every partition of a new topic has a leader that serves."""
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            try:
                self.end_offsets(topic, partitions)
                return
            except KafkaException:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
                self.connect()

    def delete(self, topic: str) -> None:
        """Delete a topic."""
        self.admin.delete_topics([topic])[topic].result(TIMEOUT_S)

    def alter(self, topic: str, key: str, value: str) -> None:
        """Set one config of a topic."""
        entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        for future in self.admin.incremental_alter_configs([resource]).values():
            future.result(TIMEOUT_S)

    def end_offsets(self, topic: str, partitions: int) -> list[int]:
        """The log end offset of every partition."""
        specs = {TopicPartition(topic, n): OffsetSpec.latest() for n in range(partitions)}
        return [int(future.result(TIMEOUT_S).offset) for future in self.admin.list_offsets(specs).values()]

    def fill(self, partitions: int, record_bytes: int, megabytes: int) -> tuple[str, int]:
        """A topic with `megabytes` of data in batches of about 64 KB, and its number of records; created once."""
        key = (partitions, record_bytes, megabytes)
        if key not in self.filled:
            topic = self.create(partitions)
            batch, _ = frames.batch(64 << 10, record_bytes)
            requests = [frames.produce(topic, n, batch) for n in range(partitions)]
            self.raw("produce", requests, partitions, 2, 0, LOAD_TIMEOUT_S / 2, megabytes)
            self.filled[key] = (topic, sum(self.end_offsets(topic, partitions)))
        return self.filled[key]

    def fill_exactly(self, partitions: int, record_bytes: int, records: int) -> str:
        """A topic with `records` records, evenly distributed in batches of about 50 KB; created once."""
        key = (partitions, record_bytes, records)
        if key not in self.exact:
            each = EXACT_BATCH_BYTES // record_bytes
            batches, remainder = divmod(records, each)
            if remainder:
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
        """Send each Produce frame once, in order on one connection; RuntimeError for an error code."""
        address = (self.server.host, self.server.port)
        with socket.create_connection(address, TIMEOUT_S) as connection, connection.makefile("rb") as stream:
            in_flight = 0
            for request in requests:
                connection.sendall(request)
                in_flight += 1
                if in_flight == MAX_IN_FLIGHT:
                    _check_response(stream)
                    in_flight -= 1
            for _ in range(in_flight):
                _check_response(stream)

    def raw(
        self,
        mode: str,
        requests: Iterable[bytes],
        *arguments: float,
        during: Callable[[], None] | None = None,
        uses_tls: bool = False,
    ) -> Outcome:
        """Run the raw load generator; `arguments` are `load.c`'s arguments after the frames.

        `uses_tls`: through the further listener of the protocol SSL. With `during`, the load ends when this call
        returns, or at the time given by the arguments.
        """
        with tempfile.NamedTemporaryFile(suffix=".frames") as file:
            file.write(b"".join(requests))
            file.flush()
            port = self.server.ports["SSL"] if uses_tls else self.server.port
            program = tls_generator() if uses_tls else generator()
            command = [*program, mode, self.server.host, str(port), file.name]
            return self.run([*command, *map(str, arguments)], during)

    def logins(self, mode: str, protocol: str, *arguments: object) -> Outcome:
        """Run the generator of short connections; `arguments` are `login_load.c`'s arguments after the port."""
        address = (self.server.host, self.server.ports[protocol])
        return self.run([*login_generator(), mode, *map(str, address), *map(str, arguments)])

    def confluent(self, mode: str, topic: str, *arguments: object, client: Mapping[str, str] | None = None) -> Outcome:
        """Run a load of `bench.loads.confluent_load`; `client` are further settings of the client."""
        settings = {"bootstrap.servers": self.server.bootstrap, **(client or {})}
        command = [sys.executable, "-m", "bench.loads.confluent_load", mode, settings.pop("bootstrap.servers"), topic]
        return self.run([*command, *map(str, arguments), *(f"{key}={value}" for key, value in settings.items())])

    def run(self, command: list[str], during: Callable[[], None] | None = None) -> Outcome:
        """Run a load generator; CPU time is measured from its `start` line to its `end` line."""
        cpu: dict[str, float] = {}
        values: dict[str, str] = {}
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
                        values = dict(pair.split("=", 1) for pair in rest)
                    if word == "start" and during is not None:
                        _call_and_terminate(during, process)
            watchdog.cancel()
            errors.seek(0)
            if process.returncode or not values:
                raise RuntimeError(f"{Path(command[0]).name} {' '.join(command[1:4])}: {errors.read()[-600:].strip()}")
        figures = {name: float(text) for name, text in values.items()}
        return Outcome(
            requests=int(figures["requests"]),
            bytes=int(figures["bytes"]),
            seconds=figures["seconds"],
            p50_us=figures["p50_us"],
            p99_us=figures["p99_us"],
            cpu_s=cpu["end"] - cpu["start"],
        )


def _call_and_terminate(during: Callable[[], None], load: subprocess.Popen[str]) -> None:
    try:
        during()
    finally:
        load.terminate()


def _check_response(stream: BufferedIOBase) -> None:
    size = stream.read(4)
    response = stream.read(int.from_bytes(size, "big"))
    if len(response) < 12:
        raise RuntimeError("the broker closed the connection")
    position = 10 + struct.unpack_from(">h", response, 8)[0] + 8
    code = struct.unpack_from(">h", response, position)[0]
    if code:
        raise RuntimeError(f"the broker answered error code {code}")
