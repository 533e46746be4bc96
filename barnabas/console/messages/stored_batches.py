"""Reads ranges of offsets of a topic's partitions, each batch with the state of its transaction.

A fetch with read_committed lists the aborted transactions, and ends at the last stable offset. What lies behind it is
read without: its transactions are undecided there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from time import monotonic

from barnabas.client.cluster import Cluster
from barnabas.client.offsets import TopicPartition
from barnabas.client.reader import Fetched, Reader, with_outcomes
from barnabas.console.messages.found_records import ABORTED, COMMITTED, CONTROL, NOT_TRANSACTIONAL, UNDECIDED
from barnabas.wire.batches.records import BatchView, iter_batches

WAIT_S = 0.1
Ranges = Mapping[int, tuple[int, int]]
"""The first offset of each partition, and the offset after the last."""


@dataclass(frozen=True, slots=True)
class StoredBatches:
    """What a fetch gave of one partition. `reached` is the offset up to which the partition is read then."""

    partition: int
    first: int
    end: int
    batches: list[tuple[BatchView, str]]
    reached: int
    size: int


def read_ranges(
    cluster: Cluster,
    topic: str,
    ranges: Ranges,
    stable: Mapping[int, int],
    deadline: float,
    partition_max_bytes: int = 1024 * 1024,
) -> Iterator[StoredBatches]:
    """The batches of the ranges, in the order of each partition, until `deadline` (monotonic seconds).

    `stable` has the last stable offset of each partition. Records that were deleted meanwhile are left out. Errors:
    KafkaError, NotFound, TimedOut, Unreachable.
    """
    decided: dict[TopicPartition, tuple[int, int]] = {}
    undecided: dict[TopicPartition, tuple[int, int]] = {}
    for partition, (first, end) in ranges.items():
        boundary = min(max(stable.get(partition, end), first), end)
        if first < boundary:
            decided[topic, partition] = first, boundary
        if boundary < end:
            undecided[topic, partition] = boundary, end
    for part, committed_only in ((decided, True), (undecided, False)):
        if not part:
            continue
        reader = Reader(
            cluster,
            {partition: first for partition, (first, _) in part.items()},
            {partition: end for partition, (_, end) in part.items()},
            committed_only=committed_only,
            on_note=lambda _: None,
            partition_max_bytes=partition_max_bytes,
        )
        while not reader.is_done and monotonic() < deadline:
            for fetched in reader.poll(WAIT_S):
                yield _stored(fetched, decided=committed_only)


def _stored(fetched: Fetched, *, decided: bool) -> StoredBatches:
    assert fetched.end is not None
    batches: list[tuple[BatchView, str]] = []
    size = 0
    for batch, is_aborted in with_outcomes(iter_batches(fetched.batches, partial_ok=True), fetched.aborted):
        if batch.next_offset <= fetched.first or batch.base_offset >= fetched.end:
            continue
        size += batch.size
        batches.append((batch, _state(batch, is_aborted=is_aborted, decided=decided)))
    reached = min(fetched.next_offset, fetched.end)
    return StoredBatches(fetched.partition[1], fetched.first, fetched.end, batches, reached, size)


def _state(batch: BatchView, *, is_aborted: bool, decided: bool) -> str:
    if batch.is_control:
        return CONTROL
    if not batch.is_transactional:
        return NOT_TRANSACTIONAL
    if not decided:
        return UNDECIDED
    return ABORTED if is_aborted else COMMITTED
