"""Record batches: Kafka's bytes, round trips, patching in place, control records."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.wire.batches.batch_builder import batch_of_one
from barnabas.wire.batches.records import (
    PARTITION_LEADER_EPOCH_OFFSET,
    BatchBuilder,
    BatchView,
    Codec,
    ControlRecordType,
    CorruptRecord,
    Record,
    build_batch,
    control_record_type,
    end_txn_coordinator_epoch,
    end_txn_marker,
    increment_sequence,
    iter_batches,
    iter_records,
    set_log_append_time,
)
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.records.log_records import EndTxnMarker
from tests.support.cases import for_each

LINES = (Path(__file__).parents[2] / "data" / "kafka-4.4.0-record-batches.jsonl").read_text().splitlines()
BATCHES: list[dict[str, Any]] = [json.loads(line) for line in LINES[:-1]]
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
IDS = [f"{index}-{batch['codec']}" for index, batch in enumerate(BATCHES)]
NOW_MS = 1_700_000_000_000

bodies = st.none() | st.binary(max_size=200)
headers = st.lists(st.tuples(st.text(st.characters(codec="utf-8"), max_size=12), bodies), max_size=4)
timestamps = st.integers(-1, 2**62)
record_tuples = st.lists(st.tuples(timestamps, bodies, bodies, headers), min_size=1, max_size=30)


def unhex(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def expected_records(batch: dict[str, Any]) -> list[Record]:
    return [
        Record(
            record["offset"],
            record["timestamp"],
            unhex(record["key"]),
            unhex(record["value"]),
            [(key, unhex(value)) for key, value in record["headers"]],
            record["sequence"],
        )
        for record in batch["records"]
    ]


def only(raw: bytes | bytearray | memoryview) -> BatchView:
    (batch,) = iter_batches(raw)
    return batch


@for_each("vector", BATCHES, ids=IDS)
def test_header_of_kafkas_batch(vector: dict[str, Any]) -> None:
    batch = only(memoryview(bytes.fromhex(vector["hex"])))
    assert batch.crc_is_valid()
    assert batch.codec == CODECS[vector["codec"]]
    assert ("CreateTime", "LogAppendTime")[batch.timestamp_type] == vector["timestamp_type"]
    assert batch.is_transactional is vector["transactional"]
    assert batch.is_control is vector["control"]
    assert batch.record_count == vector["count"]
    for name in (
        "base_offset",
        "size",
        "partition_leader_epoch",
        "magic",
        "crc",
        "last_offset",
        "max_timestamp",
        "producer_id",
        "producer_epoch",
        "base_sequence",
        "last_sequence",
    ):
        assert getattr(batch, name) == vector[name], name


@for_each("vector", BATCHES, ids=IDS)
def test_records_of_kafkas_batch(vector: dict[str, Any]) -> None:
    assert list(iter_records(only(bytes.fromhex(vector["hex"])))) == expected_records(vector)


@for_each("vector", BATCHES, ids=IDS)
def test_batch_built_from_kafkas_records_equals_kafkas_batch(vector: dict[str, Any]) -> None:
    """Uncompressed: the same bytes. Compressed (the libraries' output differs): the same header and records."""
    original = only(bytes.fromhex(vector["hex"]))
    builder = BatchBuilder(
        original.base_offset,
        original.codec,
        original.timestamp_type,
        original.producer_id,
        original.producer_epoch,
        original.base_sequence,
        transactional=original.is_transactional,
        control=original.is_control,
        partition_leader_epoch=original.partition_leader_epoch,
        log_append_time_ms=original.max_timestamp if original.timestamp_type else None,
    )
    # Records of a LogAppendTime batch have the broker's timestamp; their deltas still contain the producer's.
    shown = BatchView(original.buffer)
    shown.attributes &= ~0x08
    for record in iter_records(shown):
        builder.append(record.timestamp, record.key, record.value, record.headers)
    built = builder.build()
    if original.codec == Codec.NONE:
        assert built.hex() == vector["hex"]
    again = only(built)
    assert again.crc_is_valid()
    assert list(iter_records(again)) == expected_records(vector)
    for name in ("attributes", "base_timestamp", "max_timestamp", "last_offset", "record_count"):
        assert getattr(again, name) == getattr(original, name), name


@given(records=record_tuples, codec=st.sampled_from(Codec), base_offset=st.integers(0, 2**62))
def test_batch_round_trip(records: list[Any], codec: Codec, base_offset: int) -> None:
    batch = only(build_batch(records, base_offset, codec))
    assert batch.crc_is_valid()
    assert batch.codec == codec
    assert (batch.base_offset, batch.record_count) == (base_offset, len(records))
    assert batch.last_offset == base_offset + len(records) - 1
    assert batch.max_timestamp == max(record[0] for record in records)
    assert list(iter_records(batch)) == [Record(base_offset + index, *record) for index, record in enumerate(records)]


@given(records=record_tuples, codec=st.sampled_from(Codec), base_sequence=st.integers(2**31 - 40, 2**31 - 1))
def test_sequences_wrap_within_a_batch(records: list[Any], codec: Codec, base_sequence: int) -> None:
    """I2: sequences wrap from 2^31-1 to 0, also within a batch."""
    batch = only(build_batch(records, codec=codec, producer_id=9, producer_epoch=2, base_sequence=base_sequence))
    sequences = [record.sequence for record in iter_records(batch)]
    assert sequences == [(base_sequence + index) % 2**31 for index in range(len(records))]
    assert batch.last_sequence == sequences[-1]


def test_increment_sequence_wraps() -> None:
    """I2."""
    assert increment_sequence(2**31 - 1, 1) == 0
    assert increment_sequence(2**31 - 2, 3) == 1
    assert increment_sequence(5, 0) == 5


@given(sizes=st.lists(st.integers(0, 40_000), min_size=1, max_size=3), codec=st.sampled_from(Codec))
def test_long_keys_and_values_round_trip(sizes: list[int], codec: Codec) -> None:
    records = [(NOW_MS, b"k" * size, bytes(size), [("h" * (size % 300), b"v" * size)]) for size in sizes]
    batch = only(build_batch(records, codec=codec))
    assert [(r.key, r.value, r.headers) for r in iter_records(batch)] == [r[1:] for r in records]


@given(
    st.integers(-1, 2**62),
    st.binary(max_size=70) | st.sampled_from([b"k" * size for size in (63, 64, 1023, 1024, 9000)]),
)
@pytest.mark.parametrize("value", [None, b"", b"v", b"v" * 63, b"v" * 64, b"v" * 1023, b"v" * 1024, b"v" * 9000])
def test_a_batch_of_one_record_is_the_builders(value: bytes | None, timestamp: int, key: bytes) -> None:
    assert batch_of_one(timestamp, key, value) == build_batch([(timestamp, key, value)])


def test_size_estimate_is_the_size_without_compression() -> None:
    builder = BatchBuilder()
    assert builder.size_estimate == 61
    builder.append(NOW_MS, b"key", b"v" * 5000, [("h", None)])
    builder.append(NOW_MS - 9, None, None)
    assert builder.size_estimate == len(builder.build())


def test_batch_retains_offsets_with_gaps() -> None:
    """L7: compaction retains offsets."""
    builder = BatchBuilder(100)
    builder.append(NOW_MS, b"a", b"1", offset=103)
    builder.append(NOW_MS, b"b", b"2", offset=5000)
    batch = only(builder.build(last_offset=6000))
    assert [record.offset for record in iter_records(batch)] == [103, 5000]
    assert (batch.base_offset, batch.last_offset) == (100, 6000)
    with pytest.raises(ValueError, match="4999"):
        builder.append(NOW_MS, None, None, offset=4999)


def test_empty_batch_retains_the_last_sequence() -> None:
    """L9: the last batch of an active producer is retained, without records."""
    batch = only(BatchBuilder(10, producer_id=7, producer_epoch=1, base_sequence=40).build(last_offset=12))
    assert batch.crc_is_valid()
    assert (batch.record_count, batch.last_offset, batch.last_sequence) == (0, 12, 42)
    assert list(iter_records(batch)) == []


def test_delete_horizon_replaces_the_base_timestamp() -> None:
    """L8: attribute bit 6; the records' timestamps do not change."""
    builder = BatchBuilder(delete_horizon_ms=NOW_MS + 86_400_000)
    builder.append(NOW_MS, b"k", None)
    batch = only(builder.build())
    assert batch.attributes == 0x40
    assert batch.delete_horizon_ms == batch.base_timestamp == NOW_MS + 86_400_000
    assert [record.timestamp for record in iter_records(batch)] == [NOW_MS]
    assert only(build_batch([(NOW_MS, None, b"x")])).delete_horizon_ms is None


@given(records=record_tuples, codec=st.sampled_from(Codec))
def test_log_append_time_replaces_every_timestamp(records: list[Any], codec: Codec) -> None:
    """L11: LogAppendTime; the header is changed in place, with a new CRC."""
    raw = bytearray(build_batch(records, codec=codec))
    following = b"the next batch's bytes"
    raw += following
    set_log_append_time(memoryview(raw), NOW_MS)
    assert raw.endswith(following)
    batch = only(raw[: -len(following)])
    assert batch.crc_is_valid()
    assert (batch.timestamp_type, batch.max_timestamp) == (1, NOW_MS)
    assert {record.timestamp for record in iter_records(batch)} == {NOW_MS}


@given(offset=st.integers(0, 2**63 - 1), epoch=st.integers(0, 2**31 - 1))
def test_offset_and_epoch_are_outside_the_crc(offset: int, epoch: int) -> None:
    """R1: an append sets base offset and leader epoch without a new CRC."""
    raw = bytearray(build_batch([(NOW_MS, b"k", b"v")]))
    struct.pack_into(">q", raw, 0, offset)
    struct.pack_into(">i", raw, PARTITION_LEADER_EPOCH_OFFSET, epoch)
    batch = only(raw)
    assert batch.crc_is_valid()
    assert (batch.base_offset, batch.partition_leader_epoch) == (offset, epoch)
    assert [record.offset for record in iter_records(batch)] == [offset]


@pytest.mark.parametrize("vector", BATCHES[-2:], ids=["commit", "abort"])
def test_end_transaction_marker_is_kafkas(vector: dict[str, Any]) -> None:
    """T5: transaction markers."""
    raw = bytes.fromhex(vector["hex"])
    batch = only(raw)
    (record,) = iter_records(batch)
    kind = control_record_type(record)
    assert kind == (ControlRecordType.COMMIT if vector is BATCHES[-2] else ControlRecordType.ABORT)
    epoch = end_txn_coordinator_epoch(record)
    assert raw == end_txn_marker(
        commit=kind == ControlRecordType.COMMIT,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        coordinator_epoch=epoch,
        timestamp_ms=batch.max_timestamp,
        base_offset=batch.base_offset,
        partition_leader_epoch=batch.partition_leader_epoch,
    )
    assert record.value is not None
    assert EndTxnMarker.decode(record.value[2:], 0) == EndTxnMarker(coordinator_epoch=epoch)


def test_incomplete_last_batch_is_ignored_only_with_partial_ok() -> None:
    raw = build_batch([(NOW_MS, None, b"a")], 5) + build_batch([(NOW_MS, None, b"b")], 6, Codec.ZSTD)
    second = BatchView(raw).size
    assert [(b.base_offset, b.start) for b in iter_batches(raw)] == [(5, 0), (6, second)]
    for cut in range(second + 1, len(raw)):
        assert [b.base_offset for b in iter_batches(raw[:cut], partial_ok=True)] == [5]
        with pytest.raises(CorruptRecord):
            list(iter_batches(raw[:cut]))


@for_each("at", [17, 21, 30, 61, -1])
def test_changed_byte_fails_the_crc(at: int) -> None:
    raw = bytearray(build_batch([(NOW_MS, b"key", b"value")]))
    raw[at] ^= 0x10
    assert not only(raw).crc_is_valid()


def test_corrupt_record_is_a_kafka_error() -> None:
    with pytest.raises(KafkaError) as caught:
        list(iter_batches(b"\x00" * 61))
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE


def test_negative_timestamp_is_rejected() -> None:
    builder = BatchBuilder()
    builder.append(5, None, None)
    with pytest.raises(ValueError, match="-2"):
        builder.append(-2, None, None)
