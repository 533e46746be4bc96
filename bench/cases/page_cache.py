"""The cases of the group `Page cache`: start-up, clients, raw load, latency; without syncs before acknowledging."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from bench.cases.by_time import read_by_time
from bench.cases.case import Case, Figures, Goal, Group, Mode, Scale
from bench.start import first_metadata
from bench.target import Outcome, Target
from tests.support.requests import frames

SETTLE_S = 3.0
IN_FLIGHT = 5  # requests per connection, the clients' default


def start_and_idle(group: Group, kind: str, _: Scale) -> Figures:
    """Seconds from the start of the process to its first Metadata response, and its memory after `SETTLE_S`."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        server = group.server(kind, Path(folder))
        started = time.monotonic()
        server.spawn()
        try:
            took = first_metadata(server, started)
            time.sleep(SETTLE_S)
            return {"start s": took, "idle MB": server.rss_bytes() / 1e6}
        finally:
            server.stop()


def confluent_produce(target: Target, scale: Scale, *, size: int, partitions: int, acks: str) -> Figures:
    """Produce with confluent-kafka at full speed."""
    return produce_counted(target, scale.records if size < 1000 else scale.records // 3, size, partitions, acks)


def produce_counted(
    target: Target, count: int, size: int, partitions: int, acks: str, client: Mapping[str, str] | None = None
) -> Figures:
    """Produce `count` records with confluent-kafka; RuntimeError if not all are stored."""
    topic = target.create(partitions)
    outcome = target.confluent("produce", topic, count, size, acks, client=client)
    stored = sum(target.end_offsets(topic, partitions))
    target.delete(topic)
    if stored != count + 1:
        raise RuntimeError(f"{stored} of {count + 1} records are stored")
    return _messages(outcome)


def confluent_consume(
    target: Target, scale: Scale, *, size: int, partitions: int, client: Mapping[str, str] | None = None
) -> Figures:
    """Read a whole topic with confluent-kafka."""
    megabytes = scale.fill_mb if size < 1000 else scale.fill_mb * 3
    topic, count = target.fill(partitions, size, megabytes)
    return _messages(target.confluent("consume", topic, count, client=client))


def _messages(outcome: Outcome) -> Figures:
    return {"msg/s": outcome.requests / outcome.seconds, "CPU s/GB": outcome.cpu_s_per_gb}


def raw_produce(target: Target, scale: Scale, *, size: int, connections: int, uses_tls: bool = False) -> Figures:
    """Produce encoded batches; each connection writes to its own partition."""
    topic = target.create(connections)
    batch, _ = frames.batch(size, 1000)
    requests = [frames.produce(topic, n, batch) for n in range(connections)]
    limits = (scale.warmup_s, scale.seconds, scale.max_mb)
    outcome = target.raw("produce", requests, connections, IN_FLIGHT, *limits, uses_tls=uses_tls)
    target.delete(topic)
    return {"MB/s": outcome.bytes / outcome.seconds / 1e6, "CPU s/GB": outcome.cpu_s_per_gb}


def raw_fetch(target: Target, scale: Scale, *, consumers: int, uses_tls: bool = False) -> Figures:
    """Fetch one partition repeatedly with several consumers, 1 MiB per request."""
    topic, count = target.fill(1, 1000, scale.fill_mb * 3)
    requests = [frames.fetch(topic, 0)]
    outcome = target.raw("fetch", requests, consumers, count, scale.warmup_s, scale.seconds, uses_tls=uses_tls)
    return {"MB/s": outcome.bytes / outcome.seconds / 1e6, "CPU s/GB": outcome.cpu_s_per_gb}


def closed_loop(target: Target, scale: Scale, *, connections: int) -> Figures:
    """Produce one record per request; each connection waits for the response before the next request."""
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
    """Latency from produce in one process to poll in another at a constant rate, both with confluent-kafka."""
    topic = target.create(1)
    outcome = target.confluent("latency", topic, rate, 2 * scale.warmup_s, 2 * scale.seconds, 0)
    target.delete(topic)
    return {"p50 ms": outcome.p50_us / 1000, "p99 ms": outcome.p99_us / 1000}


CLIENT_GOALS = {"msg/s": Goal(1.0), "CPU s/GB": Goal(0.5)}


def cases() -> Iterator[Case]:
    """The cases of the group, in order."""
    yield Case("start", start_and_idle, {"start s": Goal(0.1, 0.3), "idle MB": Goal(0.2, 60)}, Mode.OWN_SERVER)
    for size, label in ((100, "100 B"), (1000, "1 KB")):
        for partitions in (1, 6):
            for acks in ("1", "all"):
                name = f"confluent produce {label}, {partitions} part., acks {acks}"
                measure = partial(confluent_produce, size=size, partitions=partitions, acks=acks)
                yield Case(name, measure, CLIENT_GOALS, quick=partitions == 6 and acks == "all")
    for size, label in ((100, "100 B"), (1000, "1 KB")):
        for partitions in (1, 6):
            measure = partial(confluent_consume, size=size, partitions=partitions)
            name = f"confluent consume {label}, {partitions} part."
            yield Case(name, measure, CLIENT_GOALS, quick=partitions == 6)
    for size, label in ((16 << 10, "16 KB"), (100 << 10, "100 KB"), (1000 << 10, "1 MB")):
        goals = {} if size < 100_000 else {"MB/s": Goal(2.0), "CPU s/GB": Goal(0.5)}
        for connections in (1, 4):
            measure = partial(raw_produce, size=size, connections=connections)
            yield Case(f"raw produce {label}, {connections} conn.", measure, goals, quick=connections == 4)
    for consumers in (1, 3, 5):
        measure = partial(raw_fetch, consumers=consumers)
        yield Case(f"raw fetch, {consumers} cons.", measure, {"MB/s": Goal(1.0)}, quick=consumers == 3)
    yield Case("closed loop, 1 conn.", partial(closed_loop, connections=1), {"p50 ms": Goal(0.5)})
    yield Case("closed loop, 50 conn.", partial(closed_loop, connections=50), {"p50 ms": Goal(0.5)})
    yield Case("end to end, 1,000 msg/s", partial(end_to_end, rate=1000), {})
    yield Case("end to end, 10,000 msg/s", partial(end_to_end, rate=10_000), {"p99 ms": Goal(1.0, 10)}, quick=False)
    yield Case("read by timestamp, 1,000 segments", partial(read_by_time, segments=1000))


def warm_up(target: Target, scale: Scale) -> None:
    """Warm up: with small batches a cold JVM is several times slower."""
    for _ in range(scale.warmup_rounds):
        closed_loop(target, Scale(seconds=2.0, warmup_s=1.0), connections=4)
        raw_produce(target, Scale(seconds=2.0, warmup_s=0.5, max_mb=400), size=100 << 10, connections=2)
        topic, count = target.fill(6, 100, 30)
        target.confluent("consume", topic, count)
        produce_counted(target, 200_000, 100, 6, "all")
        raw_fetch(target, Scale(seconds=1.0, warmup_s=0.5, fill_mb=20), consumers=2)
