"""Compaction of transactions and of the batches that hold producers' state (L9)."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.storage.cleaning.selection import cleanable, cleaning_task
from barnabas.storage.log import Log
from tests.support.logs.cleaning_driver import (
    AMPLE,
    DELETE_RETENTION_MS,
    NOW_MS,
    batches_of,
    clean,
    close_segment,
    compacted,
    keys_and_values,
    producers,
    put,
)
from tests.support.logs.log_driver import append_marker, kill, open_log


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return open_log(tmp_path, compacted())


def test_aborted_data_is_removed_and_committed_data_is_kept(log: Log) -> None:
    """L9: an aborted record does not even supersede an earlier one with its key."""
    put(log, (b"a", b"0"), (b"b", b"0"))
    put(log, (b"a", b"1"), producer=(7, 0, 0), transactional=True)
    put(log, (b"b", b"2"), producer=(8, 0, 0), transactional=True)
    append_marker(log, commit=False, producer_id=7)
    append_marker(log, commit=True, producer_id=8)
    close_segment(log)
    log.high_watermark = log.log_end_offset
    clean(log)
    assert keys_and_values(log) == [(0, b"a", b"0"), (3, b"b", b"2")]


def test_marker_is_removed_only_after_its_data_and_its_horizon(log: Log) -> None:
    """L9: a pass that reads data of the transaction keeps the marker, the next sets the horizon, a later removes it."""
    put(log, (b"a", b"1"), producer=(7, 0, 0), transactional=True)
    append_marker(log, commit=False, producer_id=7)
    put(log, (b"a", b"2"), producer=(7, 0, 1), transactional=True)
    append_marker(log, commit=True, producer_id=7)
    put(log, (b"a", b"3"), producer=(7, 0, 2))
    put(log, (b"b", b"3"), producer=(7, 0, 3))
    close_segment(log)
    log.high_watermark = log.log_end_offset

    def markers() -> list[tuple[int, int | None]]:
        return [(batch.base_offset, batch.delete_horizon_ms) for batch in batches_of(log) if batch.is_control]

    clean(log, now_ms=NOW_MS)
    assert markers() == [(1, None), (3, None)]
    assert [entry.last_offset for entry in log.aborted_transactions(0, 10)] == [1]
    clean(log, now_ms=NOW_MS)
    horizon = NOW_MS + DELETE_RETENTION_MS
    assert markers() == [(1, horizon), (3, horizon)]
    assert log.aborted_transactions(0, 10) == []
    clean(log, now_ms=horizon - 1)
    assert markers() == [(1, horizon), (3, horizon)]
    clean(log, now_ms=horizon)
    assert markers() == []
    assert keys_and_values(log) == [(4, b"a", b"3"), (5, b"b", b"3")]


def test_aborted_transaction_does_not_affect_a_later_one(log: Log) -> None:
    """L9: also when the pass starts between the two."""
    put(log, (b"a", b"1"), producer=(7, 0, 0), transactional=True)
    append_marker(log, commit=False, producer_id=7)
    close_segment(log)
    put(log, (b"a", b"2"), producer=(7, 0, 1), transactional=True)
    append_marker(log, commit=True, producer_id=7)
    put(log, (b"a", b"3"))
    close_segment(log)
    log.high_watermark = log.log_end_offset
    clean(log, checkpoint=2)
    assert [(offset, value) for offset, _, value in keys_and_values(log)] == [(4, b"3")]


def test_transaction_that_reaches_past_the_part_keeps_its_entry(log: Log) -> None:
    """L9: the marker is in a segment that is not cleaned yet, and the data is removed all the same."""
    put(log, (b"a", b"0"))
    put(log, (b"a", b"1"), producer=(7, 0, 0), transactional=True)
    close_segment(log)
    append_marker(log, commit=False, producer_id=7)
    log.high_watermark = log.log_end_offset
    clean(log)
    assert keys_and_values(log) == [(0, b"a", b"0")]
    assert [(entry.first_offset, entry.last_offset) for entry in log.aborted_transactions(0, 10)] == [(1, 2)]


def test_last_batch_of_an_active_producer_is_kept_as_a_header(log: Log) -> None:
    """L9: its sequence would be lost with it; recovery without a snapshot restores it from the header."""
    put(log, (b"a", b"1"), (b"b", b"1"), producer=(7, 3, 10))
    put(log, (b"a", b"2"), (b"b", b"2"), producer=(7, 3, 12))
    put(log, (b"a", b"3"), (b"b", b"3"))
    close_segment(log)
    clean(log)
    empty, last = batches_of(log)
    assert (empty.base_offset, empty.last_offset, empty.record_count, empty.size) == (2, 3, 0, 61)
    assert (empty.producer_id, empty.producer_epoch, empty.base_sequence, empty.last_sequence) == (7, 3, 12, 13)
    assert last.base_offset == 4
    known = producers(log)
    for path in Path(log.directory).glob("*.snapshot"):
        path.unlink()
    assert producers(kill(log)) == known == {7: (3, 13)}


def test_last_synced_batch_of_a_producer_stays_while_its_later_ones_are_not_synced(log: Log) -> None:
    """L9: the producer's state is restored from it when a power failure loses the later ones."""
    put(log, (b"k", b"1"), producer=(7, 0, 0))
    put(log, (b"k", b"2"))
    close_segment(log)
    put(log, (b"k", b"3"), producer=(7, 0, 1))
    part = cleanable(log, None, NOW_MS)
    assert cleaning_task(log, part, AMPLE, NOW_MS).producers == {7: (0, 0)}
    log.flush()
    assert cleaning_task(log, part, AMPLE, NOW_MS).producers == {}


def test_last_marker_of_a_producer_without_data_stays(log: Log) -> None:
    """L9: an aborted transaction of a new epoch leaves only the epoch, which fences the old one."""
    put(log, (b"a", b"1"), producer=(7, 0, 0), transactional=True)
    append_marker(log, commit=False, producer_id=7, producer_epoch=1)
    put(log, (b"a", b"2"))
    close_segment(log)
    log.high_watermark = log.log_end_offset
    for now_ms in (NOW_MS, NOW_MS, NOW_MS + 2 * DELETE_RETENTION_MS):
        clean(log, now_ms=now_ms)
    marker, _ = batches_of(log)
    assert (marker.is_control, marker.record_count, marker.producer_epoch) == (True, 1, 1)
    for path in Path(log.directory).glob("*.snapshot"):
        path.unlink()
    assert producers(kill(log)) == {7: (1, -1)}


def test_last_batch_of_an_expired_producer_is_removed(log: Log) -> None:
    """L9: when the producer's entry has expired, the header is not needed."""
    put(log, (b"a", b"1"), producer=(7, 0, 0))
    put(log, (b"a", b"2"))
    close_segment(log)
    clean(log)
    assert len(batches_of(log)) == 2
    log.producers.remove_expired(2**60, 1)
    clean(log)
    assert len(batches_of(log)) == 1
