"""The cases of the group `Synced`: produce with a sync before every acknowledgement.

The disk's sync time is measured directly before each load. A request that arrives during a sync waits for that sync and
the next one, so two sync times are the lower bound of the latency with group commit.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bench.cases.case import Case, Figures, Goal, Scale
from bench.cases.page_cache import produce_counted
from bench.target import Target
from tests.support.requests import frames

ACKS_ALL = -1
RECORD_BYTES = 100
PROBE_S = 0.5


def sync_times_ms(folder: Path, seconds: float) -> list[float]:
    """The durations of fdatasync in `folder` after appending a batch of one record, milliseconds."""
    batch, _ = frames.batch(1, RECORD_BYTES)
    path = folder / "sync-probe"
    file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    times: list[float] = []
    try:
        end = time.perf_counter() + seconds
        while len(times) < 2 or time.perf_counter() < end:
            os.write(file, batch)
            before = time.perf_counter()
            os.fdatasync(file)
            times.append((time.perf_counter() - before) * 1000)
    finally:
        os.close(file)
        path.unlink()
    return times


def _p50_p99(times: list[float]) -> tuple[float, float]:
    return statistics.median(times), sorted(times)[int(0.99 * (len(times) - 1))]


def disk(target: Target, scale: Scale) -> Figures:
    """The disk's sync time while both brokers are idle."""
    p50, p99 = _p50_p99(sync_times_ms(target.server.data_dir.parent, scale.seconds / 2))
    return {"p50 ms": p50, "p99 ms": p99}


def closed_loop(target: Target, scale: Scale, *, connections: int) -> Figures:
    """Produce one record per request to one partition; each connection waits for the response before the next."""
    topic = target.create(1)
    batch, _ = frames.batch(1, RECORD_BYTES)
    request = frames.produce(topic, 0, batch, ACKS_ALL)
    _, sync_p99 = _p50_p99(sync_times_ms(target.server.data_dir.parent, PROBE_S))
    outcome = target.raw("produce", [request], connections, 1, scale.warmup_s, scale.seconds)
    target.delete(topic)
    return {
        "req/s": outcome.requests / outcome.seconds,
        "p50 ms": outcome.p50_us / 1000,
        "p99 ms": outcome.p99_us / 1000,
        "p99/sync": outcome.p99_us / 1000 / sync_p99,
    }


def confluent_produce(target: Target, scale: Scale, *, size: int) -> Figures:
    """Produce with confluent-kafka to 6 partitions at full speed, acks=all."""
    count = scale.synced_records if size < 1000 else scale.synced_records // 3
    return produce_counted(target, count, size, 6, "all")


def cases() -> Iterator[Case]:
    """The cases of the group, in order."""
    yield Case("disk: append and fdatasync, no broker", disk)
    for connections in (1, 50, 200):
        goals = {"p99/sync": Goal(limit=2)}
        if connections == 50:
            goals["req/s"] = Goal(3.0)
        yield Case(f"synced closed loop, {connections} conn.", partial(closed_loop, connections=connections), goals)
    for size, label in ((100, "100 B"), (1000, "1 KB")):
        yield Case(f"synced confluent produce {label}, 6 part.", partial(confluent_produce, size=size))


def warm_up(target: Target, scale: Scale) -> None:
    """Warm up."""
    for _ in range(scale.warmup_rounds):
        closed_loop(target, Scale(seconds=1.0, warmup_s=1.0), connections=50)
        confluent_produce(target, Scale(synced_records=20_000), size=100)
