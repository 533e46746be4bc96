"""What is measured: each case is one measurement of one broker that gives one or more figures.

A figure's unit says which direction is good (`LOWER_IS_BETTER`); goals are the ratios to Kafka that are wanted.
"""

from __future__ import annotations

import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench import frames
from bench.real_kafka import KafkaServer
from bench.servers import BarnabasServer, Server, free_port
from bench.target import Outcome, Target

Figures = dict[str, float]
LOWER_IS_BETTER = frozenset({"start s", "idle MB", "p50 ms", "p99 ms", "CPU s/GB"})
SETTLE_S = 3.0
START_TIMEOUT_S = 60.0
AS_KAFKA = {"barnabas.log.sync": "os"}
"""Records are acknowledged from the page cache, as Kafka does unless it is told otherwise."""
IN_FLIGHT = 5  # requests on a connection, as clients have them


@dataclass(frozen=True)
class Scale:
    """How much a case does: `full` for the table, `quick` for a look."""

    seconds: float
    warmup_s: float
    records: int  # of 100 bytes; a tenth of it of 1 KB and more
    max_mb: int  # written by a raw produce case
    fill_mb: int


FULL = Scale(seconds=3.0, warmup_s=1.0, records=1_500_000, max_mb=1200, fill_mb=150)
QUICK = Scale(seconds=1.5, warmup_s=0.5, records=400_000, max_mb=400, fill_mb=60)


@dataclass(frozen=True)
class Goal:
    """`ratio`: at most (or at least) this many times Kafka's figure; `limit`: and at most this value."""

    ratio: float
    limit: float | None = None


@dataclass(frozen=True)
class Case:
    """`measure` of a fresh process (`name of a server class`) when `fresh`, else of the running broker."""

    name: str
    measure: Callable[..., Figures]
    goals: dict[str, Goal]
    fresh: bool = False


def fresh_server(kind: str, folder: str) -> Server:
    """A server of its own that is ready to be spawned: Kafka's data directory is formatted beforehand."""
    data_dir = Path(folder) / kind
    server = (
        BarnabasServer(data_dir, port=free_port(), config=AS_KAFKA)
        if kind == "barnabas"
        else KafkaServer(data_dir, port=free_port())
    )
    server.prepare()
    return server


def start_and_idle(kind: str, _: Scale) -> Figures:
    """Seconds from the start of the process to its first Metadata answer, and its memory a while later."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        server = fresh_server(kind, folder)
        started = time.monotonic()
        server.spawn()
        try:
            took = _first_metadata(server, started)
            time.sleep(SETTLE_S)
            return {"start s": took, "idle MB": server.rss_bytes() / 1e6}
        finally:
            server.stop()


def _first_metadata(server: Server, started: float) -> float:
    request = frames.metadata()
    while time.monotonic() - started < START_TIMEOUT_S:
        try:
            with socket.create_connection((server.host, server.port), timeout=5) as probe:
                probe.sendall(request)
                answer = probe.recv(4096)
                if len(answer) > 12 and int.from_bytes(answer[8:12], "big") > 0:
                    return time.monotonic() - started
        except OSError:
            time.sleep(0.002)
    raise RuntimeError(f"{server.name} answered no Metadata:\n{server.log()[-2000:]}")


def confluent_produce(target: Target, scale: Scale, *, size: int, partitions: int, acks: str) -> Figures:
    """confluent-kafka producing as fast as it can."""
    topic = target.create(partitions)
    count = scale.records if size < 1000 else scale.records // 3
    outcome = target.confluent("produce", topic, count, size, acks)
    stored = sum(target.end_offsets(topic, partitions))
    target.delete(topic)
    if stored != count + 1:
        raise RuntimeError(f"{stored} records are stored of {count + 1}")
    return _messages(outcome)


def confluent_consume(target: Target, scale: Scale, *, size: int, partitions: int) -> Figures:
    """confluent-kafka reading a topic whole."""
    megabytes = scale.fill_mb if size < 1000 else scale.fill_mb * 3
    topic, count = target.fill(partitions, size, megabytes)
    return _messages(target.confluent("consume", topic, count))


def _messages(outcome: Outcome) -> Figures:
    return {"msg/s": outcome.requests / outcome.seconds, "CPU s/GB": outcome.cpu_s_per_gb}


def raw_produce(target: Target, scale: Scale, *, size: int, connections: int) -> Figures:
    """Batches encoded beforehand, on each connection to a partition of its own."""
    topic = target.create(connections)
    batch, _ = frames.batch(size, 1000)
    requests = [frames.produce(topic, n, batch) for n in range(connections)]
    outcome = target.raw("produce", requests, connections, IN_FLIGHT, scale.warmup_s, scale.seconds, scale.max_mb)
    target.delete(topic)
    return {"MB/s": outcome.bytes / outcome.seconds / 1e6, "CPU s/GB": outcome.cpu_s_per_gb}


def raw_fetch(target: Target, scale: Scale, *, consumers: int) -> Figures:
    """Consumers that read the same partition again and again, 1 MiB a request."""
    topic, count = target.fill(1, 1000, scale.fill_mb * 3)
    requests = [frames.fetch(topic, 0)]
    outcome = target.raw("fetch", requests, consumers, count, scale.warmup_s, scale.seconds)
    return {"MB/s": outcome.bytes / outcome.seconds / 1e6, "CPU s/GB": outcome.cpu_s_per_gb}


def closed_loop(target: Target, scale: Scale, *, connections: int) -> Figures:
    """One record a request, the next when the answer is there."""
    topic = target.create(1)
    batch, _ = frames.batch(1, 100)
    outcome = target.raw("produce", [frames.produce(topic, 0, batch)], connections, 1, scale.warmup_s, scale.seconds)
    target.delete(topic)
    return {
        "req/s": outcome.requests / outcome.seconds,
        "p50 ms": outcome.p50_us / 1000,
        "p99 ms": outcome.p99_us / 1000,
    }


def end_to_end(target: Target, scale: Scale, *, rate: int) -> Figures:
    """From produce in one process to poll in another, both confluent-kafka, at a steady rate."""
    topic = target.create(1)
    outcome = target.confluent("latency", topic, rate, 2 * scale.warmup_s, 2 * scale.seconds)
    target.delete(topic)
    return {"p50 ms": outcome.p50_us / 1000, "p99 ms": outcome.p99_us / 1000}


CLIENT_GOALS = {"msg/s": Goal(1.0), "CPU s/GB": Goal(0.5)}


def all_cases() -> Iterator[Case]:
    """Every row of the table, in its order."""
    yield Case("start", start_and_idle, {"start s": Goal(0.1, 0.3), "idle MB": Goal(0.2, 60)}, fresh=True)
    for size, label in ((100, "100 B"), (1000, "1 KB")):
        for partitions in (1, 6):
            for acks in ("1", "all"):
                name = f"confluent produce {label}, {partitions} part., acks {acks}"
                measure = partial(confluent_produce, size=size, partitions=partitions, acks=acks)
                yield Case(name, measure, CLIENT_GOALS)
    for size, label in ((100, "100 B"), (1000, "1 KB")):
        for partitions in (1, 6):
            measure = partial(confluent_consume, size=size, partitions=partitions)
            yield Case(f"confluent consume {label}, {partitions} part.", measure, CLIENT_GOALS)
    for size, label in ((16 << 10, "16 KB"), (100 << 10, "100 KB"), (1000 << 10, "1 MB")):
        goals = {} if size < 100_000 else {"MB/s": Goal(2.0), "CPU s/GB": Goal(0.5)}
        for connections in (1, 4):
            measure = partial(raw_produce, size=size, connections=connections)
            yield Case(f"raw produce {label}, {connections} conn.", measure, goals)
    for consumers in (1, 3, 5):
        yield Case(f"raw fetch, {consumers} cons.", partial(raw_fetch, consumers=consumers), {"MB/s": Goal(1.0)})
    yield Case("closed loop, 1 conn.", partial(closed_loop, connections=1), {"p50 ms": Goal(0.5)})
    yield Case("closed loop, 50 conn.", partial(closed_loop, connections=50), {"p50 ms": Goal(0.5)})
    yield Case("end to end, 1,000 msg/s", partial(end_to_end, rate=1000), {})
    yield Case("end to end, 10,000 msg/s", partial(end_to_end, rate=10_000), {"p99 ms": Goal(1.0, 10)})


def warm_up(target: Target, scale: Scale) -> None:
    """Let a JIT compile the paths: a cold JVM is several times slower on small batches."""
    rounds = 3 if scale is FULL else 1
    for _ in range(rounds):
        closed_loop(target, Scale(2.0, 1.0, 0, 0, 0), connections=4)
        raw_produce(target, Scale(2.0, 0.5, 0, 400, 0), size=100 << 10, connections=2)
        topic, count = target.fill(6, 100, 30)
        target.confluent("consume", topic, count)
        confluent_produce(target, Scale(0, 0, 200_000, 0, 0), size=100, partitions=6, acks="all")
        raw_fetch(target, Scale(1.0, 0.5, 0, 0, 20), consumers=2)
