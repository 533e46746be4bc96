"""Compaction: which records are kept (L7), the map of keys, and failures during a pass."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from barnabas.storage import layout
from barnabas.storage.cleaning import batches
from barnabas.storage.cleaning.cleaner import Cleaner
from barnabas.storage.cleaning.key_map import KEY_BYTES
from barnabas.storage.cleaning.selection import CleanerLimits
from barnabas.storage.damage import DamagedLog
from barnabas.storage.log import Log
from barnabas.wire.errors import KafkaError
from tests.support.cases import for_each
from tests.support.disks.failing_files import FailingFiles
from tests.support.logs.cleaning_driver import (
    AMPLE,
    batches_of,
    clean,
    close_segment,
    compacted,
    data_of,
    keys_and_values,
    put,
    stored,
    task_for,
)
from tests.support.logs.log_driver import open_log, records_from


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return open_log(tmp_path, compacted())


def test_last_record_of_each_key_stays_at_its_offset(log: Log) -> None:
    """L7: offsets, timestamps and headers do not change; a batch keeps its own range of offsets."""
    put(log, (b"a", b"1"), (b"b", b"1"), (b"a", b"2"))
    put(log, (b"c", b"1"), (b"b", b"2"))
    before = {record.offset: record for record in data_of(log)}
    close_segment(log)
    clean(log)
    assert keys_and_values(log) == [(2, b"a", b"2"), (3, b"c", b"1"), (4, b"b", b"2")]
    assert [before[record.offset] for record in data_of(log)] == data_of(log)
    assert [(batch.base_offset, batch.last_offset) for batch in batches_of(log)] == [(0, 2), (3, 4)]
    assert [record.offset for record in records_from(log, 1)] == [2, 3, 4]


def test_batch_that_loses_records_again_and_again_keeps_its_offsets(log: Log) -> None:
    """L7, L9: its last offset belongs to its last sequence, whatever remains between."""
    put(log, *[(b"k%d" % number, b"1") for number in range(5)], producer=(7, 0, 0))
    for number in (4, 2, 0):
        put(log, (b"k%d" % number, b"2"))
        close_segment(log)
        clean(log)
        first = batches_of(log)[0]
        assert (first.base_offset, first.last_offset, first.last_sequence) == (0, 4, 4)
    assert [offset for offset, _, _ in keys_and_values(log)] == [1, 3, 5, 6, 7]


@for_each("codec", range(5))
def test_compressed_batches_are_filtered_and_compressed_again(log: Log, codec: int) -> None:
    """L7: with their original codec; a batch that keeps all records is unchanged byte for byte."""
    put(log, (b"a", b"1" * 50), (b"b", b"1" * 50), codec=codec)
    put(log, (b"a", b"2" * 50), (b"c", b"2" * 50), codec=codec)
    untouched = stored(log)[batches_of(log)[1].start :]
    close_segment(log)
    clean(log)
    assert keys_and_values(log) == [(1, b"b", b"1" * 50), (2, b"a", b"2" * 50), (3, b"c", b"2" * 50)]
    assert [batch.codec for batch in batches_of(log)] == [codec, codec]
    assert stored(log).endswith(untouched)


def test_record_without_key_does_not_survive(log: Log) -> None:
    """It was written before the topic was compacted, and cannot be looked up."""
    log.config.cleanup_policy = frozenset({"delete"})
    put(log, (b"a", b"1"), (None, b"2"), (b"b", b"3"))
    log.config.cleanup_policy = frozenset({"compact"})
    close_segment(log)
    clean(log)
    assert keys_and_values(log) == [(0, b"a", b"1"), (2, b"b", b"3")]


def test_keys_that_do_not_fit_the_map_take_several_passes(log: Log) -> None:
    """A pass cleans up to where the map was full; the next continues there, and the result is the same."""
    keys = [b"k%d" % (number % 10) for number in range(40)]
    for number, key in enumerate(keys):
        put(log, (key, b"%d" % number))
        if number % 5 == 4:
            close_segment(log)
    limits = CleanerLimits(key_memory=4 * (KEY_BYTES + 1), io_buffer=500, io_per_second=0.0)
    ends = [0]
    while ends[-1] < 40:
        ends.append(clean(log, checkpoint=ends[-1], limits=limits).done.end_offset)
        assert ends[-1] > ends[-2]
        offsets = {offset for offset, _, _ in keys_and_values(log)}
        assert set(range(ends[-1], 40)) <= offsets, "records that are not in the map are unchanged"
    assert len(ends) > 5
    assert [offset for offset, _, _ in keys_and_values(log)] == list(range(30, 40))


def test_batch_larger_than_the_map_is_cleaned(log: Log) -> None:
    put(log, *[(b"k%d" % number, b"1") for number in range(20)])
    put(log, *[(b"k%d" % number, b"2") for number in range(20)])
    close_segment(log)
    limits = CleanerLimits(key_memory=1, io_buffer=500, io_per_second=0.0)
    assert clean(log, limits=limits).done.end_offset == 20
    assert clean(log, checkpoint=20, limits=limits).done.end_offset == 40
    assert [offset for offset, _, _ in keys_and_values(log)] == list(range(20, 40))


def test_second_pass_over_a_clean_log_changes_nothing(log: Log) -> None:
    for number in range(20):
        put(log, (b"k%d" % (number % 4), b"%d" % number), (b"x", b"y"), codec=number % 5)
    close_segment(log)
    clean(log)
    assert clean(log).done.bytes_read > log.segments[0].size, "the segments of the first pass were merged"
    before = stored(log)
    clean(log)
    assert stored(log) == before


def test_damaged_batch_ends_the_pass_and_leaves_the_log(log: Log) -> None:
    """A batch never gets a new CRC before the old one was verified."""
    put(log, (b"a", b"1" * 50))
    put(log, (b"a", b"2" * 50))
    close_segment(log)
    path = Path(log.segments[0].path(layout.LOG_SUFFIX))
    damaged = bytearray(path.read_bytes())
    damaged[80] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(DamagedLog, match="CRC of the batch at offset 0"):
        clean(log)
    assert path.read_bytes() == damaged
    assert not list(Path(log.directory).glob("*.cleaned"))


def test_full_disk_leaves_the_log_and_no_file_behind(tmp_path: Path) -> None:

    log = open_log(
        tmp_path, compacted(), FailingFiles(is_synced=False, errors={"write": errno.ENOSPC}, errors_in=".cleaned")
    )
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"))
    close_segment(log)
    before = stored(log)
    with pytest.raises(OSError, match="No space left"):
        clean(log)
    assert stored(log) == before
    assert not list(Path(log.directory).glob("*.cleaned"))


def test_files_of_a_killed_cleaner_are_not_used_by_the_next(log: Log) -> None:
    """A `.txnindex.cleaned` of another pass would contain transactions that do not exist."""
    put(log, (b"a", b"1"))
    close_segment(log)
    stale = Path(log.directory) / f"{0:020d}.txnindex.cleaned"
    stale.write_bytes(bytes(34))
    clean(log)
    assert not stale.exists()
    assert not Path(log.segments[0].path(layout.TXN_INDEX_SUFFIX)).exists()


def test_every_byte_read_and_written_is_passed_to_the_throttle(log: Log) -> None:
    for number in range(30):
        put(log, (b"k%d" % number, b"v" * 50))
    close_segment(log)
    throttled: list[int] = []
    cleaner = Cleaner(task_for(log), log.files, throttled.append)
    assert len(list(cleaner.run())) >= 1
    closed = sum(segment.size for segment in list(log.segments)[:-1])
    assert sum(throttled) >= 3 * closed, "once for the keys, once to clean, once to write"
    assert sum(throttled) < 3 * closed + 61 * AMPLE.io_buffer


def test_readers_keep_what_they_hold_while_segments_are_replaced(log: Log) -> None:
    """A slice that is being sent is of the old file, up to its end."""
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"))
    close_segment(log)
    before = stored(log)
    read = log.read(0, 1 << 20, limit_offset=2, min_one_batch=True)
    clean(log)
    assert read.slice is not None
    assert read.slice.read() == before
    assert [record.offset for record in records_from(log, 0)] == [1]


def test_a_batch_of_too_many_records_is_not_opened(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was written before the topic was compacted: a few KB may have millions of keys."""
    monkeypatch.setattr(batches, "MOST_RECORDS_TO_COMPACT", 3)
    put(log, *[(b"k%d" % number, b"1") for number in range(4)])
    close_segment(log)
    opened: list[int] = []
    monkeypatch.setattr(batches, "decompress", lambda *_: opened.append(1))
    with pytest.raises(KafkaError, match="has 4 records; the cleaner holds at most 3 in memory"):
        clean(log)
    assert opened == []
