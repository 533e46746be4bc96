"""Reads: limits in bytes and offsets, incomplete batches, empty results, slices of deleted segments."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.storage.log import Log
from barnabas.wire.batches.records import HEADER, iter_batches
from barnabas.wire.errors import ErrorCode, KafkaError
from tests.support.logs.log_driver import append, batch_of, open_log, restart, small_config, truncate, values_from

SIZE = len(batch_of([b"v" * 20]))


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Twenty batches of one record, four in a segment."""
    log = open_log(tmp_path, small_config(segment_bytes=4 * SIZE))
    for _ in range(20):
        append(log, batch_of([b"v" * 20]))
    return log


def length(log: Log, offset: int, max_bytes: int, limit: int = 20, *, min_one_batch: bool = True) -> int:
    """The number of bytes that a read returns."""
    read = log.read(offset, max_bytes, limit_offset=limit, min_one_batch=min_one_batch)
    return 0 if read.slice is None else len(read.slice)


def test_offsets_outside_the_log_are_out_of_range(log: Log) -> None:
    log.high_watermark = 20
    log.advance_log_start_offset(5)
    for offset in (-1, 4, 21):
        with pytest.raises(KafkaError) as caught:
            log.read(offset, 100, limit_offset=20, min_one_batch=True)
        assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_end_of_the_log_gives_nothing(log: Log) -> None:
    assert length(log, 20, 1000) == 0


def test_read_ends_at_its_segment(log: Log) -> None:
    assert length(log, 1, 1 << 20) == 3 * SIZE


def test_limit_in_bytes_may_cut_the_last_batch_but_not_the_first(log: Log) -> None:
    assert length(log, 4, SIZE + 10) == SIZE + 10
    assert length(log, 4, 10) == SIZE
    assert length(log, 4, 10, min_one_batch=False) == 0
    assert length(log, 4, SIZE, min_one_batch=False) == SIZE


def test_limit_in_offsets_is_exact(log: Log) -> None:
    """Consumers never see a batch at or above the high watermark or last stable offset."""
    for limit in range(21):
        for offset in range(limit):
            read = log.read(offset, 1 << 20, limit_offset=limit, min_one_batch=True)
            assert read.slice is not None
            offsets = [batch.base_offset for batch in iter_batches(read.slice.read())]
            assert offsets == list(range(offset, min(limit, offset // 4 * 4 + 4)))
            assert read.end_offset == min(limit, offset // 4 * 4 + 4)
        assert length(log, limit, 1 << 20, limit) == 0


def test_read_inside_a_batch_gives_the_whole_batch(tmp_path: Path) -> None:
    log = open_log(tmp_path, small_config(segment_bytes=1 << 20))
    append(log, batch_of([b"a", b"b", b"c"]))
    read = log.read(2, 1 << 20, limit_offset=3, min_one_batch=True)
    assert read.slice is not None
    assert next(iter_batches(read.slice.read())).base_offset == 0


def test_reader_that_follows_the_end_sees_each_append(tmp_path: Path) -> None:
    log = open_log(tmp_path, small_config(segment_bytes=4 * SIZE))
    for at in range(30):
        append(log, batch_of([b"%d" % at]))
        assert values_from(log, at) == [(at, b"%d" % at)]


def test_reader_at_the_end_is_not_misled_by_a_truncation(log: Log) -> None:
    assert values_from(log, 19) == [(19, b"v" * 20)]
    truncate(log, 17)
    for value in (b"new17", b"new18", b"longer than it was before 19", b"new20"):
        append(log, batch_of([value]))
    assert values_from(log, 20) == [(20, b"new20")]


def test_reader_at_the_end_does_not_take_records_for_a_batch(tmp_path: Path) -> None:
    """After a truncation the old end position may be inside a record; here that record looks like a batch."""
    log = open_log(tmp_path, small_config(segment_bytes=1 << 20))
    for _ in range(4):
        append(log, batch_of([b"v" * 20]))
    assert len(values_from(log, 3)) == 1
    truncate(log, 1)
    fake = HEADER.pack(4, 49, 0, 2, 0, 0, 0, 0, 0, -1, -1, -1, 1)
    append(log, batch_of([b"x" * (3 * SIZE - len(batch_of([b"y" * 100])) + 100) + fake]))
    stored = Path(log.segments.active.stem + ".log").read_bytes()
    value = stored.index(fake) - 4 * SIZE
    truncate(log, 1)
    append(log, batch_of([b"x" * (3 * SIZE - len(batch_of([b"y" * 100])) + 100 - value) + fake]))
    assert Path(log.segments.active.stem + ".log").read_bytes().index(fake) == 4 * SIZE
    for _ in range(3):
        append(log, batch_of([b"true"]))
    assert values_from(log, 4) == [(4, b"true")]


def test_slice_outlives_the_deletion_of_its_segment(log: Log) -> None:
    read = log.read(0, 1 << 20, limit_offset=20, min_one_batch=True)
    assert read.slice is not None
    expected = read.slice.read()
    truncate(log, 100, fully=True)
    append(log, batch_of([b"after"]))
    assert read.slice.read() == expected
    assert values_from(log, 100) == [(100, b"after")]


def test_old_segments_hold_at_most_one_descriptor(log: Log) -> None:
    log = restart(log)
    assert sum(segment.is_open for segment in log.segments) == 0
    values_from(log, 0)
    assert sum(segment.is_open for segment in log.segments) <= 2


def test_file_shorter_than_the_log_is_a_storage_error(log: Log) -> None:
    with Path(log.segments.active.stem + ".log").open("r+b") as file:
        file.truncate(SIZE * 2)
    with pytest.raises(KafkaError) as caught:
        log.read(19, 1 << 20, limit_offset=20, min_one_batch=True)
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
