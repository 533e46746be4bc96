"""Lookups by timestamp: the answers of reading every record, in steps of bounded work."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.storage.log import Log
from barnabas.storage.read.timestamps import IN_PLACE_UNITS, LookupBudget
from barnabas.wire.batches import long_record
from barnabas.wire.batches.compression import compress
from barnabas.wire.batches.decompression import Source, decompressed_steps
from barnabas.wire.batches.record_search import SearchedRecords
from barnabas.wire.batches.records import HEADER_SIZE, BatchBuilder, BatchView, iter_records
from barnabas.wire.errors import CorruptRecord, ErrorCode, KafkaError
from barnabas.wire.steps import result_of
from tests.support.cases import for_each
from tests.support.logs.log_driver import append, batch_of, open_log, small_config
from tests.support.logs.raw_batches import BASE_MS, bomb, raw_batch, record
from tests.support.steps import counted

MANY = 4 * IN_PLACE_UNITS
LATER = BASE_MS + 10


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return open_log(tmp_path, small_config(segment_bytes=1 << 20))


def lying(codec: int, count: int = MANY) -> bytearray:
    """A batch whose header has a later timestamp than any of its records."""
    honest = bomb(codec, count)
    return bytearray(raw_batch(honest[HEADER_SIZE:], count, codec=codec, max_ms=LATER))


@given(
    st.lists(st.tuples(st.integers(0, 200), st.none() | st.binary(max_size=200)), min_size=1, max_size=60),
    st.integers(0, 210),
    st.integers(0, 70),
    st.integers(0, 4),
)
def test_the_first_record_is_that_of_reading_all(
    items: list[tuple[int, bytes | None]], timestamp: int, offset: int, codec: int
) -> None:
    builder = BatchBuilder()
    for age, value in items:
        builder.append(age, value, value, [("h", value)])
    batch = builder.build()
    expected = next(
        (
            (candidate.offset, candidate.timestamp)
            for candidate in iter_records(BatchView(batch))
            if candidate.timestamp >= timestamp and candidate.offset >= offset
        ),
        None,
    )
    pieces = decompressed_steps(codec, Source(compress(codec, batch[HEADER_SIZE:])), 1 << 30)
    assert result_of(SearchedRecords(BatchView(batch), 1 << 30).first_from(timestamp, offset, pieces)) == expected


@for_each("codec", [0, 1, 2, 3, 4])
def test_a_header_that_lies_costs_many_steps(log: Log, codec: int) -> None:
    log.config.max_message_bytes = 1 << 20
    append(log, lying(codec))
    append(log, batch_of([b"a", b"b"], timestamps=[LATER - 1, LATER]))
    position, steps = counted(log.offset_for_timestamp(LATER))
    assert position == (MANY + 1, LATER, 0)
    assert steps >= (MANY - IN_PLACE_UNITS) // 2500


def test_an_ordinary_lookup_is_one_step(log: Log) -> None:
    for second in range(50):
        append(log, batch_of([b"a"] * 20, timestamps=[1_000 * second] * 20))
    assert counted(log.offset_for_timestamp(30_500)) == ((620, 31_000, 0), 0)
    assert counted(log.max_timestamp_offset()) == ((980, 49_000, 0), 0)


def test_many_segments_are_looked_at_in_steps(tmp_path: Path) -> None:
    """After a start, when their greatest timestamps have to be read; once these are in memory it is one step."""
    config = small_config(segment_bytes=100)
    log = open_log(tmp_path, config)
    for _ in range(300):
        append(log, batch_of([b"a"], timestamps=[5]))
    log.close()
    log = open_log(tmp_path, config)
    unknown = sum(segment.known_max_timestamp is None for segment in log.segments)
    position, steps = counted(log.offset_for_timestamp(6))
    assert position is None
    assert steps >= unknown * 50 // 2500 > 2
    assert counted(log.offset_for_timestamp(6)) == (None, 0)
    assert counted(log.max_timestamp_offset())[1] == 0


def test_a_lookup_starts_again_when_its_segment_is_gone(tmp_path: Path) -> None:
    """Retention and compaction replace segments between two steps; no file of these is read any more."""
    log = open_log(tmp_path, small_config(segment_bytes=1 << 20))
    for _ in range(3):
        append(log, lying(4))
        append(log, lying(4))
        log.roll(1.0)
    append(log, batch_of([b"a"], timestamps=[LATER]))
    log.high_watermark = log.log_end_offset
    job = log.start_flush()
    assert job is not None
    job.run()
    log.finish_flush(job)  # so that the segment's file is closed when it is released
    steps = log.offset_for_timestamp(LATER)
    next(steps)
    gone = log.segments[0]
    log.advance_log_start_offset(2 * MANY)
    log.segments.remove(gone)
    gone.release()
    Path(gone.stem + ".log").unlink()
    assert result_of(steps) == (6 * MANY, LATER, 0)


def test_the_budget_is_shared_by_the_lookups_of_a_request(log: Log) -> None:
    append(log, batch_of([b"a"] * 10, timestamps=[BASE_MS] * 10))
    budget = LookupBudget(500)
    steps = sum(counted(log.offset_for_timestamp(BASE_MS, budget))[1] for _ in range(1_000))
    assert 2 <= steps <= 20


def test_a_record_over_the_limit_is_an_error(log: Log) -> None:
    """max.decompressed.message.bytes."""
    append(log, batch_of([bytes(1000), b"b"], codec=4, timestamps=[1, 2]))
    log.config.max_decompressed_message_bytes = 100
    with pytest.raises(KafkaError) as caught:
        result_of(log.offset_for_timestamp(2))
    assert caught.value.code == ErrorCode.INVALID_RECORD


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    largest = 0
    more = long_record.PieceReader.more

    def counting(self: long_record.PieceReader) -> bool:
        nonlocal largest
        chunk = more(self)
        largest = max(largest, len(self.data))
        return chunk

    monkeypatch.setattr(long_record.PieceReader, "more", counting)
    body = record(0, bytes(10 << 20)) + b"".join([record(index, None) for index in range(1, 200_000)])
    batch = BatchView(raw_batch(b"", 200_000))
    pieces = decompressed_steps(4, Source(compress(4, body)), 1 << 30)
    assert result_of(SearchedRecords(batch, 1 << 30).first_from(BASE_MS + 1, 0, pieces)) is None
    assert largest < 400_000


@for_each("body", [b"", b"\x00", b"\xff" * 20, b"\x02\x00", record(0)[:-1]])
def test_records_that_are_none_are_corrupt(body: bytes) -> None:
    search = SearchedRecords(BatchView(raw_batch(b"", 2)), 1 << 30)
    with pytest.raises((CorruptRecord, KafkaError)):
        result_of(search.first_from(BASE_MS + 1, 0, iter([body])))
