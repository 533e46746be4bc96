"""Which batches a leader rejects, with which error, and what it writes into a batch that it accepts."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.storage.log import Log
from barnabas.wire.batches.records import HEADER, BatchView, end_txn_marker, iter_batches
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.steps import result_of
from tests.support.accelerator import WAYS, checked_in
from tests.support.cases import for_each
from tests.support.logs.log_driver import append, batch_of, open_log, records_from, small_config, values_from

HEADER_FIELDS = [
    "base_offset",
    "length",
    "leader_epoch",
    "magic",
    "crc",
    "attributes",
    "last_offset_delta",
    "base_timestamp",
    "max_timestamp",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "count",
]


def patched(batch: bytearray, *, crc: bool = True, **fields: int) -> bytearray:
    """The batch with changed header fields, and with a correct CRC unless stated otherwise."""
    values = dict(zip(HEADER_FIELDS, HEADER.unpack_from(batch), strict=True)) | fields
    HEADER.pack_into(batch, 0, *values.values())
    if crc:
        values["crc"] = BatchView(batch).computed_crc()
        HEADER.pack_into(batch, 0, *values.values())
    return batch


def refusal(log: Log, batch: bytearray, **options: object) -> ErrorCode:
    """The error code with which a batch is rejected; the log must be unchanged."""
    before = (
        log.log_end_offset,
        log.size_bytes,
        len(log.segments),
        Path(log.segments.active.stem + ".log").stat().st_size,
    )
    with pytest.raises(KafkaError) as caught:
        append(log, batch, **options)  # type: ignore[arg-type]
    after = (
        log.log_end_offset,
        log.size_bytes,
        len(log.segments),
        Path(log.segments.active.stem + ".log").stat().st_size,
    )
    assert after == before
    return caught.value.code


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return open_log(tmp_path, small_config(segment_bytes=1 << 20))


@for_each(
    ("batch", "code"),
    [
        (bytearray(), ErrorCode.INVALID_RECORD),
        (batch_of([b"a"])[:40], ErrorCode.INVALID_RECORD),
        (batch_of([b"a"])[:-1], ErrorCode.INVALID_RECORD),
        (batch_of([b"a"]) + b"\x00", ErrorCode.INVALID_RECORD),
        (batch_of([b"a"]) + batch_of([b"b"]), ErrorCode.INVALID_RECORD),
        (patched(batch_of([b"a"]), crc=False, max_timestamp=7), ErrorCode.CORRUPT_MESSAGE),
        (patched(batch_of([b"a"]), magic=1), ErrorCode.INVALID_RECORD),
        (patched(batch_of([b"a"]), magic=3), ErrorCode.CORRUPT_MESSAGE),
        (patched(batch_of([b"a"]), length=-1, crc=False), ErrorCode.CORRUPT_MESSAGE),
        (patched(batch_of([b"a"]), length=48, crc=False), ErrorCode.INVALID_RECORD),
        (patched(batch_of([b"a"]), length=2**31 - 1, crc=False), ErrorCode.INVALID_RECORD),
        (patched(batch_of([b"a"]), base_offset=1), ErrorCode.INVALID_RECORD),
        (patched(batch_of([b"a"]), count=2), ErrorCode.INVALID_RECORD),
        (patched(batch_of([b"a"]), count=0, last_offset_delta=-1), ErrorCode.INVALID_RECORD),
        (patched(batch_of([b"a"]), last_offset_delta=-2), ErrorCode.INVALID_RECORD),
        (patched(batch_of([b"a"]), attributes=5), ErrorCode.UNKNOWN_SERVER_ERROR),
        (patched(batch_of([b"a"]), attributes=0x20), ErrorCode.INVALID_RECORD),
        (patched(batch_of([b"a"]), producer_id=5, base_sequence=-1), ErrorCode.INVALID_RECORD),
        (batch_of([b"a"], timestamps=[10_000 + 3_600_001]), ErrorCode.INVALID_TIMESTAMP),
    ],
)
def test_bad_batch_is_refused_and_leaves_no_trace(log: Log, batch: bytearray, code: ErrorCode) -> None:
    append(log, batch_of([b"before"]))
    assert refusal(log, batch) == code
    assert values_from(log, 0) == [(0, b"before")]


def test_batch_over_max_message_bytes_is_too_large(log: Log) -> None:
    """L11: the limit is for the batch as it was sent, overhead included."""
    batch = batch_of([b"a" * 100])
    log.update_config(small_config(segment_bytes=1 << 20, max_message_bytes=len(batch)))
    append(log, bytearray(batch))
    log.update_config(small_config(segment_bytes=1 << 20, max_message_bytes=len(batch) - 1))
    assert refusal(log, batch) == ErrorCode.MESSAGE_TOO_LARGE


def test_batch_over_segment_bytes_is_too_large_for_the_log(log: Log) -> None:
    log.update_config(small_config(segment_bytes=100))
    assert refusal(log, batch_of([b"a" * 100])) == ErrorCode.RECORD_LIST_TOO_LARGE


@for_each("codec", [0, 1, 2, 3, 4])
@for_each("way", WAYS)
def test_compacted_topic_requires_keys(log: Log, codec: int, way: str) -> None:
    """L10: also inside compressed batches."""
    log.update_config(small_config(segment_bytes=1 << 20, cleanup_policy=frozenset({"compact", "delete"})))
    with checked_in(way):
        append(log, batch_of([b"a"], codec=codec, key=b""))
        assert refusal(log, batch_of([b"a"], codec=codec, key=None)) == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", [0, 1])
def test_timestamp_limits_hold_for_every_record(log: Log, codec: int) -> None:
    """L11: a timestamp at the limit is accepted; -1 means no timestamp and is always accepted."""
    log.update_config(
        small_config(segment_bytes=1 << 20, message_timestamp_before_max_ms=500, message_timestamp_after_max_ms=100)
    )
    append(log, batch_of([b"a", b"b"], codec=codec, timestamps=[9_500, 10_100]))
    append(log, batch_of([b"a"], codec=codec, timestamps=[-1]))
    assert refusal(log, batch_of([b"a", b"b"], codec=codec, timestamps=[9_500, 10_101])) == ErrorCode.INVALID_TIMESTAMP
    assert refusal(log, batch_of([b"a", b"b"], codec=codec, timestamps=[9_800, 9_499])) == ErrorCode.INVALID_TIMESTAMP


def test_offsets_and_epoch_are_written_and_nothing_else(log: Log) -> None:
    """R1: all other bytes stay as the producer sent them, CRC included."""
    append(log, batch_of([b"a", b"b", b"c"]))
    sent = batch_of([b"d", b"e"], codec=1)
    info = append(log, bytearray(sent), leader_epoch=4)
    assert (info.first_offset, info.last_offset, info.log_append_time_ms, info.duplicate) == (3, 4, -1, False)
    read = log.read(3, 1 << 20, limit_offset=5, min_one_batch=True)
    assert read.slice is not None
    stored = read.slice.read()
    batch = next(iter_batches(stored))
    assert (batch.base_offset, batch.last_offset, batch.partition_leader_epoch) == (3, 4, 4)
    assert batch.crc_is_valid()
    assert stored[8:12] + stored[16:] == sent[8:12] + sent[16:]


def test_log_append_time_replaces_every_timestamp(log: Log) -> None:
    """L11: timestamp type, greatest timestamp and CRC are set; the limits for producers' timestamps do not apply."""
    log.update_config(small_config(segment_bytes=1 << 20, message_timestamp_type="LogAppendTime"))
    info = append(log, batch_of([b"a", b"b"], timestamps=[5, 99_999_999]), now_ms=20_000)
    assert info.log_append_time_ms == 20_000
    assert [record.timestamp for record in records_from(log, 0)] == [20_000, 20_000]
    read = log.read(0, 1 << 20, limit_offset=2, min_one_batch=True)
    assert read.slice is not None
    batch = next(iter_batches(read.slice.read()))
    assert (batch.timestamp_type, batch.max_timestamp, batch.crc_is_valid()) == (1, 20_000, True)
    assert result_of(log.max_timestamp_offset()) == (0, 20_000, 0)


def test_coordinator_may_write_several_batches_and_markers(log: Log) -> None:
    marker = end_txn_marker(commit=True, producer_id=1, producer_epoch=0, coordinator_epoch=0, timestamp_ms=1)
    info = append(log, batch_of([b"a", b"b"]) + bytearray(marker) + batch_of([b"c"]), origin="coordinator")
    assert (info.first_offset, info.last_offset) == (0, 3)
    assert [record.offset for record in records_from(log, 0)] == [0, 1, 2, 3]
