"""Lookups by timestamp: ListOffsets in a log of many segments, one request at a time."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

from confluent_kafka import TopicPartition
from confluent_kafka.admin import OffsetSpec

from bench.cases.case import Figures, Scale
from bench.target import TIMEOUT_S, Target
from tests.support.requests import frames

SEGMENT_BYTES = 1 << 20  # Kafka's minimum
BATCH_BYTES = 16 << 10
RECORDS = 16  # per batch, at intervals of a millisecond
BATCHES_IN_SEGMENT = SEGMENT_BYTES // BATCH_BYTES
LOOKUPS = 1000
DAY_MS = 86_400_000


def read_by_time(target: Target, scale: Scale, *, segments: int) -> Figures:
    """Look up random timestamps of existing records over one connection."""
    topic, first_ms, records = _filled(target, segments)
    offsets = [random.randrange(records) for _ in range(LOOKUPS)]
    _check(target, topic, first_ms, offsets[0])
    requests = [frames.list_offsets({topic: [0]}, first_ms + n) for n in offsets]
    outcome = target.raw("walk", requests, 1, 1, scale.warmup_s, scale.seconds)
    return {
        "req/s": outcome.requests / outcome.seconds,
        "p50 ms": outcome.p50_us / 1000,
        "p99 ms": outcome.p99_us / 1000,
    }


def _filled(target: Target, segments: int) -> tuple[str, int, int]:
    """The topic, the timestamp of its first record, and its number of records, which are a millisecond apart."""
    batches = segments * BATCHES_IN_SEGMENT
    if target.by_time is None:
        topic = target.create(1, {"segment.bytes": str(SEGMENT_BYTES)})
        first_ms = int(time.time() * 1000) - DAY_MS
        target.send(_requests(topic, first_ms, batches))
        closed = len(list((target.server.log_dir / f"{topic}-0").glob("*.log"))) - 1
        if not segments <= closed <= segments * 1.1:
            raise RuntimeError(f"{topic} has {closed} closed segments")
        target.by_time = (topic, first_ms)
    return *target.by_time, batches * RECORDS


def _requests(topic: str, first_ms: int, batches: int) -> Iterator[bytes]:
    batch = frames.spread_batch(RECORDS, BATCH_BYTES // RECORDS, first_ms)
    for n in range(batches):
        yield frames.produce(topic, 0, frames.moved_batch(batch, n * RECORDS))


def _check(target: Target, topic: str, first_ms: int, offset: int) -> None:
    request = {TopicPartition(topic, 0): OffsetSpec.for_timestamp(first_ms + offset)}
    (future,) = target.admin.list_offsets(request).values()
    actual = future.result(TIMEOUT_S).offset
    if actual != offset:
        raise RuntimeError(f"{topic}: the timestamp of offset {offset} was found at offset {actual}")
