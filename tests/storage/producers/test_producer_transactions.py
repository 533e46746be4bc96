"""Transactions in the producer state: expiration, markers, the last stable offset (I3, I6, T6)."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.wire.errors import ErrorCode, KafkaError
from tests.storage.producers.producer_driver import BIG, refused, send
from tests.support.logs.log_driver import (
    append,
    append_marker,
    batch_of,
    kill,
    open_log,
    restart,
)


def test_inactive_producer_expires_but_never_inside_a_transaction(tmp_path: Path) -> None:
    """I6."""
    log = open_log(tmp_path, BIG)
    send(log, 0, producer_id=1)
    append(log, batch_of([b"t"], producer=(2, 0, 0), transactional=True))
    log.producers.remove_expired(now_ms=1_000 + 99, expiration_ms=100)
    assert set(log.producers.producers) == {1, 2}
    log.producers.remove_expired(now_ms=1_000 + 100, expiration_ms=100)
    assert set(log.producers.producers) == {2}


def test_plain_write_inside_a_transaction_is_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path, BIG)
    append(log, batch_of([b"t"], producer=(1, 0, 0), transactional=True))
    assert refused(log, 1) == ErrorCode.INVALID_TXN_STATE


def test_marker_of_an_old_epoch_or_coordinator_is_fenced(tmp_path: Path) -> None:
    log = open_log(tmp_path, BIG)
    append(log, batch_of([b"t"], producer=(1, 3, 0), transactional=True))
    append_marker(log, commit=True, producer_id=1, producer_epoch=3, coordinator_epoch=5)
    for epoch, coordinator_epoch, code in (
        (2, 5, ErrorCode.INVALID_PRODUCER_EPOCH),
        (3, 4, ErrorCode.TRANSACTION_COORDINATOR_FENCED),
    ):
        with pytest.raises(KafkaError) as caught:
            append_marker(log, commit=True, producer_id=1, producer_epoch=epoch, coordinator_epoch=coordinator_epoch)
        assert caught.value.code == code


def test_replicated_batches_are_not_checked_again(tmp_path: Path) -> None:
    """I3: the leader has checked them."""
    log = open_log(tmp_path, BIG)
    send(log, 0, epoch=3)
    append(log, batch_of([b"v"], producer=(1, 2, 7)), origin="replication")
    assert log.log_end_offset == 2


def test_open_transaction_holds_readers_back_after_a_restart(tmp_path: Path) -> None:
    """I5, T6: the snapshot contains the transaction's first offset."""
    log = open_log(tmp_path, BIG)
    send(log, 0)
    append(log, batch_of([b"t"], producer=(2, 0, 0), transactional=True))
    for stop in (restart, kill):
        log = stop(log)
        log.high_watermark = log.log_end_offset
        assert log.last_stable_offset == 1


def test_last_stable_offset_is_the_first_undecided_one(tmp_path: Path) -> None:
    """T6: the earliest transaction that is open or whose marker is above the high watermark."""
    log = open_log(tmp_path, BIG)
    send(log, 0, producer_id=9)
    append(log, batch_of([b"t"], producer=(1, 0, 0), transactional=True))
    append(log, batch_of([b"t"], producer=(2, 0, 0), transactional=True))
    log.high_watermark = 3
    assert log.last_stable_offset == 1
    append_marker(log, commit=False, producer_id=1)
    assert log.last_stable_offset == 1
    log.high_watermark = 3
    assert log.last_stable_offset == 1, "the marker itself is not replicated yet"
    log.high_watermark = log.log_end_offset
    assert log.last_stable_offset == 2
    append_marker(log, commit=True, producer_id=2)
    log.high_watermark = log.log_end_offset
    assert log.last_stable_offset == log.log_end_offset == 5
    assert [tuple(entry) for entry in log.aborted_transactions(0, 5)] == [(1, 1, 3, 2)]
