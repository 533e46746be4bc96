"""Compaction: its speed, alone and under load, and the latency of that load.

The topic is filled with `cleanup.policy=delete`, ten records per key on average, and then set to `compact`. Compaction
is complete when `cleaner-offset-checkpoint` has reached the active segment; the remaining bytes are checked. MB/s are
relative to the size of the closed segments before.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path

from bench.cases.case import Case, Figures, Goal, Scale
from bench.target import LOAD_TIMEOUT_S, Outcome, Target
from tests.support.requests import frames

CHECKPOINT = "cleaner-offset-checkpoint"
CONFIG = {"segment.bytes": str(8 << 20), "min.cleanable.dirty.ratio": "0.01"}
BATCH_BYTES = 16 << 10  # producers' default
VERSIONS = 10  # records per key, on average
TIMEOUT_S = 150.0
POLL_S = 0.01
CONNECTIONS = 10


@cache
def _batches(record_bytes: int, megabytes: int) -> list[bytes]:
    """Batches of `megabytes` in total with random keys, the same for both brokers."""
    each = BATCH_BYTES // (record_bytes + 20)
    batches = (megabytes << 20) // BATCH_BYTES
    keys = max(1, each * batches // VERSIONS)
    draw = random.Random(record_bytes).randrange
    values = [os.urandom(record_bytes) for _ in range(64)]
    return [frames.keyed_batch([b"key-%08d" % draw(keys) for _ in range(each)], values) for _ in range(batches)]


class Compaction:
    """A filled topic that can be compacted once."""

    def __init__(self, target: Target, record_bytes: int, megabytes: int) -> None:
        self.target = target
        self.topic = target.create(1, CONFIG)
        target.send(frames.produce(self.topic, 0, batch) for batch in _batches(record_bytes, megabytes))
        self.input_bytes = self._closed_bytes()
        self.seconds = 0.0

    def _segments(self) -> list[Path]:
        return sorted((self.target.server.log_dir / f"{self.topic}-0").glob("*.log"))

    def _closed_bytes(self) -> int:
        return sum(path.stat().st_size for path in self._segments()[:-1])

    def run(self) -> None:
        """Compact the topic and wait until that is complete."""
        end_offset = int(self._segments()[-1].stem)
        started = time.monotonic()
        self.target.alter(self.topic, "cleanup.policy", "compact")
        while _cleaned_to(self.target.server.log_dir, self.topic) < end_offset:
            if time.monotonic() - started > TIMEOUT_S:
                raise RuntimeError(f"{self.topic} was not compacted in {TIMEOUT_S:.0f} s")
            time.sleep(POLL_S)
        self.seconds = time.monotonic() - started
        ratio = self._closed_bytes() / self.input_bytes
        if not 0 < ratio < 2 / VERSIONS:
            raise RuntimeError(f"{ratio:.0%} of the bytes are left after compaction")

    @property
    def mb_per_s(self) -> float:
        """The speed of `run`, input bytes."""
        return self.input_bytes / self.seconds / 1e6


def _cleaned_to(log_dir: Path, topic: str) -> int:
    """The first dirty offset of partition 0 in Kafka's checkpoint file, which has lines `topic partition offset`."""
    try:
        lines = (log_dir / CHECKPOINT).read_text().splitlines()
    except FileNotFoundError:
        return 0
    offsets = [int(line.split()[2]) for line in lines[2:] if line.startswith(f"{topic} 0 ")]
    return offsets[0] if offsets else 0


def alone(target: Target, scale: Scale, *, record_bytes: int) -> Figures:
    """Compact without other load."""
    compaction = Compaction(target, record_bytes, _megabytes(scale, record_bytes))
    cpu_s = target.server.cpu_s()
    compaction.run()
    cpu_s = target.server.cpu_s() - cpu_s
    target.delete(compaction.topic)
    return {"MB/s": compaction.mb_per_s, "CPU s/GB": cpu_s / (compaction.input_bytes / 1e9)}


def under_load(target: Target, scale: Scale, *, record_bytes: int) -> Figures:
    """Compact while single records are produced to another topic in a closed loop."""
    compaction = Compaction(target, record_bytes, _megabytes(scale, record_bytes))
    outcome = _load(target, scale, compaction)
    target.delete(compaction.topic)
    return {
        "MB/s": compaction.mb_per_s,
        "req/s": outcome.requests / outcome.seconds,
        "p50 ms": outcome.p50_us / 1000,
        "p99 ms": outcome.p99_us / 1000,
    }


def _load(target: Target, scale: Scale, compaction: Compaction) -> Outcome:
    topic = target.create(1)
    batch, _ = frames.batch(1, 100)
    request = frames.produce(topic, 0, batch)
    arguments = (CONNECTIONS, 1, scale.warmup_s, LOAD_TIMEOUT_S)
    outcome = target.raw("produce", [request], *arguments, during=compaction.run)
    target.delete(topic)
    return outcome


def _megabytes(scale: Scale, record_bytes: int) -> int:
    return scale.compact_mb if record_bytes >= 1000 else scale.compact_mb // 4


def cases() -> Iterator[Case]:
    """The cases of the group, in order."""
    yield Case("compaction, 100 B records", partial(alone, record_bytes=100))
    yield Case("compaction, 1 KB records", partial(alone, record_bytes=1000), {"MB/s": Goal(limit=50)})
    name = f"compaction, 1 KB records, beside {CONNECTIONS} conn."
    goals = {"MB/s": Goal(limit=50), "p99 ms": Goal(limit=10)}
    yield Case(name, partial(under_load, record_bytes=1000), goals)


def warm_up(target: Target, scale: Scale) -> None:
    """Warm up."""
    for _ in range(scale.warmup_rounds):
        under_load(target, Scale(warmup_s=0.5, compact_mb=100), record_bytes=1000)
