"""Helpers for the tests of the producer state."""

from __future__ import annotations

import pytest

from barnabas.storage.log import Log
from barnabas.storage.producers.producer_state import ProducerState
from barnabas.wire.errors import ErrorCode, KafkaError
from tests.support.logs.log_driver import (
    append,
    batch_of,
    small_config,
)

MAX = 2**31 - 1
BIG = small_config(segment_bytes=1 << 20)


def send(log: Log, sequence: int, count: int = 1, *, producer_id: int = 1, epoch: int = 0) -> tuple[int, bool]:
    """Append a batch of an idempotent producer; (first offset, whether it was a repeat)."""
    info = append(log, batch_of([b"v"] * count, producer=(producer_id, epoch, sequence)))
    return info.first_offset, info.duplicate


def refused(log: Log, sequence: int, count: int = 1, **options: int) -> ErrorCode:
    """The error code with which a batch is rejected; the log must be unchanged."""
    before = log.log_end_offset, log.size_bytes
    with pytest.raises(KafkaError) as caught:
        send(log, sequence, count, **options)
    assert (log.log_end_offset, log.size_bytes) == before
    return caught.value.code


def snapshot_fields(state: ProducerState) -> dict[int, tuple[int, ...]]:
    """The fields of each producer that a snapshot keeps."""
    return {
        producer_id: (
            entry.producer_epoch,
            entry.last_sequence,
            entry.last_offset,
            entry.last_timestamp,
            entry.coordinator_epoch,
            entry.current_txn_first_offset,
        )
        for producer_id, entry in state.producers.items()
    }


def full_replay(log: Log) -> dict[int, tuple[int, ...]]:
    """The state after reading the whole log."""
    state = ProducerState()
    for segment in log.segments:
        for header, batch in segment.batches():
            state.replay(header, batch)
    return snapshot_fields(state)
