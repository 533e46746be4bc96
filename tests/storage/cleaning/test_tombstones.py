"""Compaction of tombstones (L8)."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.storage.cleaning.selection import CleanerLimits
from barnabas.storage.log import Log
from barnabas.wire.batches.records import DELETE_HORIZON_BIT, BatchBuilder, iter_records
from tests.support.cases import for_each
from tests.support.logs.cleaning_driver import (
    DELETE_RETENTION_MS,
    NOW_MS,
    batches_of,
    clean,
    close_segment,
    compacted,
    data_of,
    keys_and_values,
    put,
)
from tests.support.logs.log_driver import append, open_log


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return open_log(tmp_path, compacted())


def test_tombstone_gets_a_horizon_and_is_removed_when_it_has_passed(log: Log) -> None:
    """L8: attribute bit 6 is set, the base timestamp is the horizon, and the record's own timestamp does not change."""
    put(log, (b"a", b"1"), (b"b", b"1"), timestamp=700)
    put(log, (b"a", None), (b"c", b"1"), timestamp=800)
    close_segment(log)
    clean(log, now_ms=NOW_MS)
    assert keys_and_values(log) == [(1, b"b", b"1"), (2, b"a", None), (3, b"c", b"1")]
    first, second = batches_of(log)
    assert (first.delete_horizon_ms, second.delete_horizon_ms) == (None, NOW_MS + DELETE_RETENTION_MS)
    assert [record.timestamp for record in iter_records(second)] == [800, 800]
    assert second.max_timestamp == 800
    for now_ms in (NOW_MS + 1, NOW_MS + DELETE_RETENTION_MS - 1):
        clean(log, now_ms=now_ms)
        assert len(keys_and_values(log)) == 3
        assert batches_of(log)[1].delete_horizon_ms == NOW_MS + DELETE_RETENTION_MS, "it is set once"
    clean(log, now_ms=NOW_MS + DELETE_RETENTION_MS)
    assert keys_and_values(log) == [(1, b"b", b"1"), (3, b"c", b"1")]


@for_each("codec", range(5))
def test_horizon_in_a_compressed_batch(log: Log, codec: int) -> None:
    """L8: the timestamp deltas inside are rewritten, whatever their size and sign."""
    builder = BatchBuilder(codec=codec)
    timestamps = [5, 4, 3_000_000_000_000, 7]
    log.config.message_timestamp_after_max_ms = 2**62
    for number, timestamp in enumerate(timestamps):
        builder.append(timestamp, b"%d" % number, None if number == 1 else b"v", [("h", None)])
    append(log, bytearray(builder.build()), now_ms=NOW_MS)
    log.high_watermark = log.log_end_offset
    before = data_of(log)
    close_segment(log)
    clean(log)
    assert data_of(log) == before
    (batch,) = batches_of(log)
    assert (batch.codec, batch.delete_horizon_ms) == (codec, NOW_MS + DELETE_RETENTION_MS)
    assert batch.max_timestamp == 3_000_000_000_000


def test_tombstone_past_the_map_gets_no_horizon(log: Log) -> None:
    """L8: its time starts with the pass that removes its older values, else a reader could miss both."""
    put(log, (b"a", b"1"), (b"b", b"1"))
    put(log, (b"a", None))
    close_segment(log)
    limits = CleanerLimits(key_memory=1, io_buffer=500, io_per_second=0.0)
    clean(log, limits=limits)
    assert [batch.attributes & DELETE_HORIZON_BIT for batch in batches_of(log)] == [0, 0]


def test_value_after_a_tombstone_supersedes_it_at_once(log: Log) -> None:
    put(log, (b"a", b"1"))
    put(log, (b"a", None))
    put(log, (b"a", b"2"))
    close_segment(log)
    clean(log)
    assert keys_and_values(log) == [(2, b"a", b"2")]
