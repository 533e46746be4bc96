"""Truncated, mutated and random batches give records or CORRUPT_MESSAGE and no other exception."""

from __future__ import annotations

import json
import random
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.wire.batches.compression import compress
from barnabas.wire.batches.records import (
    HEADER_SIZE,
    BatchBuilder,
    BatchView,
    Codec,
    CorruptRecord,
    Record,
    build_batch,
    iter_batches,
    iter_records,
    set_log_append_time,
)
from tests.support.cases import for_each
from tests.support.volume import first_seed, how_many

LINES = (Path(__file__).parents[2] / "data" / "kafka-4.4.0-record-batches.jsonl").read_text().splitlines()
SEEDS = [bytes.fromhex(json.loads(line)["hex"]) for line in LINES[:-1]]
MAX_SIZE = 1 << 20


def read(raw: bytes) -> list[Record] | None:
    """The records of all batches, or None for CORRUPT_MESSAGE. Other exceptions fail the test."""
    try:
        return [record for batch in iter_batches(raw) for record in iter_records(batch, MAX_SIZE)]
    except CorruptRecord:
        return None


def check_fields(records: list[Record]) -> None:
    for record in records:
        assert isinstance(record.offset, int)
        assert isinstance(record.timestamp, int)
        assert record.key is None or type(record.key) is bytes
        assert record.value is None or type(record.value) is bytes
        for key, value in record.headers:
            assert type(key) is str
            assert value is None or type(value) is bytes


@for_each("seed", SEEDS, ids=range(len(SEEDS)))
def test_batch_truncated_at_any_byte_is_corrupt(seed: bytes) -> None:
    for cut in range(1, len(seed)):
        assert read(seed[:cut]) is None


@for_each("seed", SEEDS, ids=range(len(SEEDS)))
def test_truncated_records_with_a_matching_header_are_corrupt(seed: bytes) -> None:
    for cut in range(HEADER_SIZE, len(seed)):
        shorter = bytearray(seed[:cut])
        shorter[8:12] = (cut - 12).to_bytes(4, "big")
        assert read(bytes(shorter)) is None


@pytest.mark.parametrize("seed", SEEDS[:8:3], ids=range(3))
def test_any_flipped_bit_gives_records_or_corrupt(seed: bytes) -> None:
    bits = range(8 * len(seed))
    for bit in random.Random(first_seed()).sample(bits, min(len(bits), 5 * how_many("BARNABAS_EXAMPLES", 300))):
        changed = bytearray(seed)
        changed[bit >> 3] ^= 1 << (bit & 7)
        if (records := read(bytes(changed))) is not None:
            check_fields(records)


@given(
    seed=st.sampled_from(SEEDS),
    changes=st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), min_size=1, max_size=8),
)
def test_mutated_batch_gives_records_or_corrupt(seed: bytes, changes: list[tuple[int, int]]) -> None:
    changed = bytearray(seed)
    for at, byte in changes:
        changed[at % len(changed)] = byte
    if (records := read(bytes(changed))) is not None:
        check_fields(records)


@given(seed=st.sampled_from(SEEDS), at=st.integers(0, 2000), insert=st.binary(max_size=20), drop=st.integers(0, 20))
def test_spliced_records_give_records_or_corrupt(seed: bytes, at: int, insert: bytes, drop: int) -> None:
    at = HEADER_SIZE + at % (len(seed) - HEADER_SIZE)
    changed = bytearray(seed[:at] + insert + seed[at + drop :])
    changed[8:12] = (len(changed) - 12).to_bytes(4, "big")
    if (records := read(bytes(changed))) is not None:
        check_fields(records)


@given(
    section=st.binary(max_size=120),
    count=st.integers(-(2**31), 2**31 - 1) | st.integers(0, 5),
    codec=st.sampled_from(Codec),
    times=st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1)),
)
def test_random_records_give_records_or_corrupt(
    section: bytes, count: int, codec: Codec, times: tuple[int, int]
) -> None:
    """The bytes are compressed correctly, so that they reach the record parser."""
    raw = bytearray(with_section(section, codec))
    raw[27:35], raw[35:43] = (time.to_bytes(8, "big", signed=True) for time in times)
    raw[57:61] = count.to_bytes(4, "big", signed=True)
    if (records := read(bytes(raw))) is not None:
        check_fields(records)
        assert len(records) == count


def with_section(section: bytes, codec: Codec = Codec.NONE) -> bytes:
    """A batch with a record count of one and `section` in place of its records."""
    packed = compress(codec, section)
    raw = bytearray(BatchBuilder(codec=codec).build() + packed)
    raw[8:12] = (len(raw) - 12).to_bytes(4, "big")
    raw[57:61] = (1).to_bytes(4, "big")
    return bytes(raw)


@given(raw=st.binary(max_size=400))
def test_random_bytes_are_corrupt(raw: bytes) -> None:
    read(raw)


@given(seed=st.sampled_from(SEEDS), length=st.integers(-(2**31), 2**31 - 1))
def test_wrong_batch_length_is_corrupt(seed: bytes, length: int) -> None:
    changed = bytearray(seed)
    changed[8:12] = length.to_bytes(4, "big", signed=True)
    if length != len(seed) - 12:
        assert read(bytes(changed)) is None
        assert not BatchView(changed).crc_is_valid()
        if not HEADER_SIZE - 12 <= length < len(seed) - 12:
            with pytest.raises(CorruptRecord):
                set_log_append_time(changed, 1)


@for_each(
    ("section", "error"),
    [
        ("", "truncated"),
        ("01", "record of -1 bytes"),
        ("80808080808000", "varint of more than 5"),
        ("0e000000010100", "record of 7 bytes with 6 bytes remaining"),
        ("0c000000010100ff", "1 bytes after the last"),
        ("0c000000017e00", "truncated"),
        ("0c0000000401000100", "fields end 2 bytes after"),
        ("0e00000001010000", "fields end -1 bytes after"),
        ("2800" + "ff" * 11 + "00" * 8, "varint of more than 10"),
        ("0c000000010101", "header count of -1"),
        ("0c00000001017e", "header count of 63"),
        ("12000000010102010000", "header key of -1 bytes"),
        ("12000000010102080000", "header key of 4 bytes with 2 bytes remaining"),
        ("120000000101020008000000", "header value that ends after"),
    ],
)
def test_error_names_the_invalid_part_of_a_record(section: str, error: str) -> None:
    with pytest.raises(CorruptRecord, match=error):
        list(iter_records(BatchView(with_section(bytes.fromhex(section)))))


@for_each("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_oversized_records_are_rejected_with_bounded_memory(codec: Codec) -> None:
    bomb = build_batch([(1, None, bytes(64 << 20))], codec=codec)
    tracemalloc.start()
    try:
        with pytest.raises(CorruptRecord, match="larger than"):
            list(iter_records(BatchView(bomb), MAX_SIZE))
        assert tracemalloc.get_traced_memory()[1] < 8 * MAX_SIZE
    finally:
        tracemalloc.stop()


def test_wrong_record_count_does_not_allocate_memory() -> None:
    raw = bytearray(build_batch([(1, b"k", b"v")]))
    raw[57:61] = (2**31 - 1).to_bytes(4, "big")
    tracemalloc.start()
    try:
        assert read(bytes(raw)) is None
        assert tracemalloc.get_traced_memory()[1] < MAX_SIZE
    finally:
        tracemalloc.stop()


def test_many_mutations_of_every_seed() -> None:
    rng = random.Random(first_seed())
    outcomes = {True: 0, False: 0}
    for _ in range(max(500, how_many("BARNABAS_EXAMPLES", 1500))):
        changed = bytearray(rng.choice(SEEDS))
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(changed))
            changed[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        outcomes[read(bytes(changed)) is None] += 1
    assert outcomes[True] > outcomes[False] / 10 > 0
    assert outcomes[False] > outcomes[True] / 10
