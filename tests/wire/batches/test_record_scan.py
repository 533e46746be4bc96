"""Scanning records: the same results as reading them, and CorruptRecord for invalid records."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.wire.batches.batch_format import HEADER_SIZE
from barnabas.wire.batches.record_scan import rebase_timestamps, record_starts, scan_keys, timestamp_deltas
from barnabas.wire.batches.records import BatchBuilder, BatchView, iter_records
from barnabas.wire.errors import CorruptRecord
from tests.support.cases import for_each

bodies = st.none() | st.binary(max_size=300)
headers = st.lists(st.tuples(st.text(st.characters(codec="utf-8"), max_size=12), bodies), max_size=3)
records = st.lists(st.tuples(st.integers(-1, 2**62), bodies, bodies, headers), min_size=1, max_size=30)


def batch_of(items: list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]]) -> bytes:
    builder = BatchBuilder(base_offset=5)
    for item in items:
        builder.append(*item)
    return builder.build()


@given(records)
def test_scan_returns_keys_null_values_and_positions(items: list[tuple]) -> None:  # type: ignore[type-arg]
    batch = batch_of(items)
    records_read = list(iter_records(BatchView(batch)))
    scanned = scan_keys(batch, HEADER_SIZE, len(batch), len(items))
    assert scanned.keys == [record.key for record in records_read]
    assert scanned.null_values == [at for at, record in enumerate(records_read) if record.value is None]
    starts = record_starts(batch, HEADER_SIZE, len(batch), len(items))
    assert (starts[0], starts[-1], len(starts)) == (HEADER_SIZE, len(batch), len(items) + 1)
    assert [items[0][0] + delta for delta in timestamp_deltas(batch, starts[:-1])] == [item[0] for item in items]


@given(records, st.integers(-(2**62), 2**62))
def test_rebasing_changes_only_timestamp_deltas(items: list[tuple], shift: int) -> None:  # type: ignore[type-arg]
    """L8: a delete horizon replaces the base timestamp, for any values of the two."""
    batch = batch_of(items)
    starts = record_starts(batch, HEADER_SIZE, len(batch), len(items))
    moved = rebase_timestamps(batch, pairwise(starts), shift)
    again = bytearray(batch[:HEADER_SIZE] + moved)
    again[8:12] = (len(again) - 12).to_bytes(4, "big")
    before, after = list(iter_records(BatchView(batch))), list(iter_records(BatchView(again)))
    assert [record.timestamp + shift for record in before] == [record.timestamp for record in after]
    for record in after:
        record.timestamp -= shift
    assert before == after
    assert rebase_timestamps(batch, pairwise(starts), 0) == batch[HEADER_SIZE:]


@for_each("seed", range(20))
def test_invalid_records_are_corrupt(seed: int) -> None:
    """Every truncation is CorruptRecord; random changes give a result or CorruptRecord and no other exception."""
    rng = random.Random(seed)
    items = [(1, rng.randbytes(rng.randint(0, 90)), rng.randbytes(rng.randint(0, 90)), []) for _ in range(5)]
    batch = batch_of(items)
    for end in range(HEADER_SIZE, len(batch)):
        with pytest.raises(CorruptRecord):
            scan_keys(batch[:end], HEADER_SIZE, end, 5)
        with pytest.raises(CorruptRecord):
            record_starts(batch[:end], HEADER_SIZE, end, 5)
    for _ in range(300):
        damaged = bytearray(batch)
        for _ in range(rng.randint(1, 4)):
            damaged[rng.randrange(HEADER_SIZE, len(batch))] = rng.randrange(256)
        data = bytes(damaged)
        for scan in (scan_keys, record_starts):
            try:
                scan(data, HEADER_SIZE, len(data), 5)
            except CorruptRecord:
                pass
        try:
            starts = record_starts(data, HEADER_SIZE, len(data), 5)
            timestamp_deltas(data, starts[:-1])
            rebase_timestamps(data, pairwise(starts), 7)
        except CorruptRecord:
            pass


@pytest.mark.parametrize("count", [0, 4, 6])
def test_wrong_count_is_corrupt(count: int) -> None:
    batch = batch_of([(1, b"k", b"v", [])] * 5)
    with pytest.raises(CorruptRecord):
        scan_keys(batch, HEADER_SIZE, len(batch), count)
    with pytest.raises(CorruptRecord):
        record_starts(batch, HEADER_SIZE, len(batch), count)


def test_long_record_has_a_length_of_three_bytes() -> None:
    batch = batch_of([(1, b"k" * 200, b"v" * 20_000, []), (2, b"x", None, [])])
    assert scan_keys(batch, HEADER_SIZE, len(batch), 2) == ([b"k" * 200, b"x"], [1])
    assert len(record_starts(batch, HEADER_SIZE, len(batch), 2)) == 3
