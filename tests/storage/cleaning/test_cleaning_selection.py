"""The part of a log that may be cleaned, and when it is cleaned (L7, KIP-354)."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.storage.cleaning.selection import cleanable
from barnabas.storage.log import Log
from tests.support.logs.cleaning_driver import (
    NOW_MS,
    clean,
    close_segment,
    compacted,
    keys_and_values,
    put,
)
from tests.support.logs.log_driver import append_marker, open_log


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return open_log(tmp_path, compacted())


def test_active_segment_is_untouched(log: Log) -> None:
    """L7: its keys are neither counted nor removed."""
    put(log, (b"a", b"1"))
    close_segment(log)
    put(log, (b"a", b"2"))
    clean(log)
    assert [offset for offset, _, _ in keys_and_values(log)] == [0, 1]
    close_segment(log)
    clean(log)
    assert [offset for offset, _, _ in keys_and_values(log)] == [1]


def test_nothing_at_or_past_the_last_stable_offset_is_cleaned(log: Log) -> None:
    """L7: an open transaction, or records not yet replicated, end the cleanable part."""
    put(log, (b"a", b"1"))
    close_segment(log)
    put(log, (b"a", b"2"), producer=(7, 0, 0), transactional=True)
    close_segment(log)
    put(log, (b"a", b"3"))
    close_segment(log)
    assert cleanable(log, None, NOW_MS).end_offset == 1
    clean(log)
    assert len(keys_and_values(log)) == 3
    append_marker(log, commit=True, producer_id=7)
    log.high_watermark = 2
    assert cleanable(log, None, NOW_MS).end_offset == 1


def test_nothing_that_is_not_synced_is_cleaned(log: Log) -> None:
    """L7: a record that a power failure may lose must not supersede one that survives."""
    put(log, (b"k", b"old"))
    close_segment(log)
    put(log, (b"k", b"new"))
    log.roll(0.0)
    assert cleanable(log, None, NOW_MS).end_offset == 1
    log.flush(data_only=True)
    assert cleanable(log, None, NOW_MS).end_offset == 2


@pytest.mark.parametrize("commit", [True, False])
def test_transaction_is_open_to_the_cleaner_until_its_marker_is_synced(log: Log, commit: bool) -> None:
    """L7, L9: if a power failure loses the marker, the transaction is open and must be complete."""
    put(log, (b"k", b"1"), producer=(7, 0, 0), transactional=True)
    close_segment(log)
    append_marker(log, commit=commit, producer_id=7)
    log.high_watermark = log.log_end_offset
    assert cleanable(log, None, NOW_MS).end_offset == 0
    log.flush()
    assert cleanable(log, None, NOW_MS).end_offset == 1


def test_records_younger_than_min_compaction_lag_are_left(log: Log) -> None:
    """L7: the first segment with a young record ends the cleanable part."""
    log.config.min_compaction_lag_ms = 1_000
    put(log, (b"a", b"1"), timestamp=NOW_MS - 3_000)
    close_segment(log)
    put(log, (b"a", b"2"), timestamp=NOW_MS - 999)
    close_segment(log)
    put(log, (b"a", b"3"), timestamp=NOW_MS - 5_000)
    close_segment(log)
    assert cleanable(log, None, NOW_MS).end_offset == 1
    assert cleanable(log, None, NOW_MS + 1).end_offset == 3


def test_log_is_due_when_more_than_the_dirty_ratio_is_dirty(log: Log) -> None:
    """L7: dirty bytes divided by cleanable bytes, strictly more than the ratio."""
    put(log, (b"a", b"1" * 80))
    close_segment(log)
    put(log, (b"b", b"1" * 80))
    close_segment(log)
    part = cleanable(log, 1, NOW_MS)
    assert (part.clean_bytes, part.dirty_bytes) == (log.segments[0].size, log.segments[1].size)
    assert not part.is_due
    log.config.min_cleanable_dirty_ratio = 0.49
    assert cleanable(log, 1, NOW_MS).is_due
    log.config.min_cleanable_dirty_ratio = 0.99
    assert cleanable(log, None, NOW_MS).is_due
    log.config.min_cleanable_dirty_ratio = 0.0
    assert not cleanable(log, 2, NOW_MS).is_due


def test_max_compaction_lag_makes_a_log_due_and_closes_its_segment(log: Log) -> None:
    """L7, KIP-354: by the first timestamp of a dirty segment, and by rolling earlier than segment.ms."""
    log.config.max_compaction_lag_ms = 1_000
    log.config.min_cleanable_dirty_ratio = 1.0
    put(log, (b"a", b"1"), timestamp=NOW_MS - 1_001)
    put(log, (b"b", b"1"), timestamp=NOW_MS)
    assert [segment.base_offset for segment in log.segments] == [0, 1]
    close_segment(log)
    assert cleanable(log, None, NOW_MS).is_due
    assert not cleanable(log, None, NOW_MS - 1).is_due
    assert not cleanable(log, 2, NOW_MS).is_due


@pytest.mark.parametrize("checkpoint", [99, 0])
def test_checkpoint_outside_the_log_means_all_is_dirty(log: Log, checkpoint: int) -> None:
    for value in (b"1", b"2", b"3"):
        put(log, (b"a", value))
        close_segment(log)
    log.advance_log_start_offset(1)
    part = cleanable(log, checkpoint, NOW_MS)
    assert (part.first_dirty_offset, part.reset_from) == (1, checkpoint)
