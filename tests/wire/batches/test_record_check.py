"""The check of a batch's records: the same verdicts as reading them, in steps of bounded work and memory."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.wire.batches import record_check
from barnabas.wire.batches.compression import compress
from barnabas.wire.batches.decompression import STEP_BYTES, Source, decompressed_steps
from barnabas.wire.batches.long_record import PieceReader
from barnabas.wire.batches.plain_records import PLAIN_RECORDS, are_plain, is_plain
from barnabas.wire.batches.record_check import MAX_RECORD_ERRORS, STEP_UNITS, RecordCheck
from barnabas.wire.batches.record_lengths import hop, lengths_fit, plain_record_end
from barnabas.wire.batches.record_scan import record_starts
from barnabas.wire.batches.records import HEADER_SIZE, BatchBuilder, BatchView, iter_records, records_in_range
from barnabas.wire.errors import CorruptRecord, ErrorCode, KafkaError
from tests.support.accelerator import WAYS, checked_in
from tests.support.cases import for_each
from tests.support.logs.raw_batches import BASE_MS, raw_batch, record
from tests.support.steps import counted

bodies = st.none() | st.binary(max_size=300)
headers = st.lists(st.tuples(st.text(st.characters(codec="utf-8"), max_size=12), bodies), max_size=3)
items = st.tuples(st.integers(0, 2**50), bodies, bodies, headers)
mixed = st.lists(items, min_size=1, max_size=30)
runs = st.lists(st.tuples(items, st.integers(1, 90)), min_size=1, max_size=3).map(
    lambda groups: [item for item, times in groups for _ in range(times)]
)


@pytest.fixture(scope="module", params=WAYS)
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    """The test runs with each implementation."""
    with checked_in(request.param):
        yield request.param


def built(records: list[tuple]) -> bytes:  # type: ignore[type-arg]
    builder = BatchBuilder()
    for item in records:
        builder.append(*item)
    return builder.build()


def check(batch: bytes, codec: int = 0, **limits: object) -> RecordCheck:
    """Check an uncompressed batch, compressed for this with `codec`."""
    view = BatchView(batch)
    checked = RecordCheck(view.record_count, view.base_timestamp, **limits)  # type: ignore[arg-type]
    pieces = decompressed_steps(codec, Source(compress(codec, batch[HEADER_SIZE:])), 1 << 30)
    for _ in checked.steps(pieces):
        pass
    return checked


def verdict(batch: bytes, pieces: Iterator[bytes]) -> bool:
    view = BatchView(batch)
    checked = RecordCheck(view.record_count, view.base_timestamp)
    try:
        for _ in checked.steps(pieces):
            pass
    except KafkaError as error:
        return error.code != ErrorCode.INVALID_RECORD
    return checked.index == view.record_count


def reading(batch: bytes) -> bool:
    """Whether reading every record of an uncompressed batch finds nothing wrong."""
    try:
        records_read = list(iter_records(BatchView(batch)))
    except CorruptRecord:
        return False
    return [item.offset for item in records_read] == list(range(BatchView(batch).record_count))


@pytest.mark.usefixtures("way")
@given(mixed | runs, st.integers(0, 4))
def test_what_is_built_is_accepted(records: list[tuple], codec: int) -> None:  # type: ignore[type-arg]
    checked = check(built(records), codec)
    assert (checked.index, checked.errors) == (len(records), [])


@pytest.mark.usefixtures("way")
@given(mixed | runs, st.data())
def test_a_changed_batch_has_the_verdict_of_reading_it(records: list[tuple], data: st.DataObject) -> None:  # type: ignore[type-arg]
    batch = bytearray(built(records))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(HEADER_SIZE, len(batch) - 1))
        batch[at] = data.draw(st.integers(0, 255) | st.sampled_from([batch[at] ^ 1, batch[at] ^ 0x80, batch[at] ^ 2]))
    body, size = bytes(batch[HEADER_SIZE:]), data.draw(st.integers(1, 200))
    expected = reading(bytes(batch))
    assert verdict(bytes(batch), iter([body])) == expected
    assert verdict(bytes(batch), (body[at : at + size] for at in range(0, len(body), size))) == expected
    if are_plain(body, len(records), needs_keys=False):
        assert expected


@for_each("seed", range(12))
def test_a_change_in_a_long_run_is_noticed(seed: int) -> None:
    """Runs of records of one size are compared as columns: every byte of them counts."""
    rng = random.Random(seed)
    count = rng.choice([70, 700, 9_000])
    batch = bytearray(built([(BASE_MS, rng.choice([None, b"k"]), b"value", [])] * count))
    with checked_in("Python"):
        assert verdict(bytes(batch), iter([bytes(batch[HEADER_SIZE:])]))
        for _ in range(12):
            at = rng.randrange(HEADER_SIZE, len(batch))
            old, batch[at] = batch[at], rng.choice([0, 1, 2, 0x7F, 0x80, 0xFF, batch[at] ^ 1])
            assert verdict(bytes(batch), iter([bytes(batch[HEADER_SIZE:])])) == reading(bytes(batch)), at
            batch[at] = old


def test_records_of_one_size_cost_a_fraction(way: str) -> None:
    """Counted in units: a record that is read in Python is one."""
    varied = check(built([(BASE_MS, None, bytes(50 + index % 7), []) for index in range(5_000)]))
    equal = check(built([(BASE_MS, None, bytes(50), [])] * 5_000))
    by_bytes = 5_000 * 58 // 512
    if way == "C":
        assert varied.units - by_bytes < 400
    else:
        assert varied.units - by_bytes >= 5_000
    assert equal.units - by_bytes < 1_000


class Reads(PieceReader):
    """Records how much was held at once."""

    largest = 0

    def more(self) -> bool:
        chunk = super().more()
        Reads.largest = max(Reads.largest, len(self.data))
        return chunk


@pytest.mark.usefixtures("way")
@for_each("codec", [1, 2, 3, 4])
@for_each("shape", ["many records", "a large record", "many headers"])
def test_steps_and_memory_are_bounded(codec: int, shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However much a batch expands to, a step is about the work for 1,000 records and holds some 100 KB."""
    if shape == "many records":
        count, body = 100_000, b"".join([record(index, None) for index in range(100_000)])
    elif shape == "a large record":
        count, body = 2, record(0, bytes(8 << 20)) + record(1, bytes(3 << 20), key=bytes(2 << 20))
    else:
        count, body = 1, record(0, header_count=50_000, rest=b"\x00\x01" * 50_000)
    packed = compress(codec, body)
    monkeypatch.setattr(record_check, "PieceReader", Reads)
    Reads.largest = 0
    checked = RecordCheck(count, BASE_MS)
    before, steps = 0, 0
    for _ in checked.steps(decompressed_steps(codec, Source(packed), 1 << 30)):
        assert checked.units - before <= STEP_UNITS + 700  # records, and the bytes of one step
        before, steps = checked.units, steps + 1
    assert checked.index == count
    assert steps > len(body) // (256 * 1024)
    assert Reads.largest < 6 * STEP_BYTES


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("size", [10, 100_000, 1_000_000])
def test_the_size_of_a_record_is_limited(size: int) -> None:
    """max.decompressed.message.bytes: refused by its length, before its content is read."""
    batch = built([(BASE_MS, None, b"small", []), (BASE_MS, None, bytes(size), [])])
    exact = next(limit for limit in range(size, size + 20) if not _is_over(batch, limit))
    assert exact in range(size + 6, size + 10)
    assert _is_over(batch, exact - 1)


def _is_over(batch: bytes, limit: int) -> bool:
    try:
        check(batch, 4, max_record_size=limit)
    except KafkaError as error:
        return f"more than max.decompressed.message.bytes of {limit}" in str(error.message)
    return False


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("codec", [0, 4])
def test_keys_and_timestamps_are_checked_in_every_record(codec: int) -> None:
    records = [
        (BASE_MS + age, key, b"v", []) for age, key in ((0, b"k"), (0, None), (-51, b"k"), (51, None), (50, b""))
    ]
    checked = check(built(records), codec, needs_keys=True, earliest=BASE_MS - 50, latest=BASE_MS + 50)
    assert [index for index, _ in checked.errors] == [1, 2, 3]
    assert (checked.error_count, checked.timestamp_errors) == (3, 1)
    assert "without key" in checked.errors[2][1]


@pytest.mark.usefixtures("way")
@given(st.integers(-(2**45), 2**45), st.integers(0, 2**45), st.integers(0, 2**45), st.integers(1, 40))
def test_no_timestamp_is_overlooked(delta: int, before: int, after: int, times: int) -> None:
    """Short deltas are not decoded where the limits are far away."""
    base = 2**46
    records = [(base, None, b"v", [])] + [(base + delta, None, b"v", [])] * times
    checked = check(built(records), earliest=base - before, latest=base + after)
    assert checked.error_count == (0 if -before <= delta <= after else times)


@pytest.mark.usefixtures("way")
def test_no_timestamp_is_always_allowed() -> None:
    checked = check(built([(-1, None, b"v", [])] * 30), earliest=5, latest=10)
    assert checked.errors == []


@pytest.mark.usefixtures("way")
def test_a_thousand_errors_are_listed() -> None:
    checked = check(built([(BASE_MS, None, b"v", [])] * 3_000), 4, needs_keys=True)
    assert len(checked.errors) == MAX_RECORD_ERRORS
    assert checked.error_count == 3_000


@given(mixed)
def test_small_batches_take_the_short_way(records: list[tuple]) -> None:  # type: ignore[type-arg]
    """Records without headers and without long keys are plain; plain records are valid."""
    plain = [(BASE_MS, key and key[:60], value, []) for _, key, value, _ in records]
    batch = built(plain)
    assert is_plain(batch[HEADER_SIZE:], len(plain), needs_keys=False)
    has_keys = all(key is not None for _, key, _, _ in plain)
    assert is_plain(batch[HEADER_SIZE:], len(plain), needs_keys=True) == has_keys
    for cut in range(1, len(batch) - HEADER_SIZE):
        assert not is_plain(batch[HEADER_SIZE:-cut], len(plain), needs_keys=False)


def test_many_records_are_not_plain() -> None:
    body = built([(BASE_MS, None, b"v", [])] * (PLAIN_RECORDS + 1))[HEADER_SIZE:]
    assert not is_plain(body, PLAIN_RECORDS + 1, needs_keys=False)


def test_raw_batches_are_what_the_builder_makes() -> None:
    assert raw_batch(record(0, b"a") + record(1, b"b"), 2) == built(
        [(BASE_MS, None, b"a", []), (BASE_MS, None, b"b", [])]
    )


@given(mixed | runs, st.integers(0, 4))
def test_lengths_of_what_is_built_fit(records: list[tuple], codec: int) -> None:  # type: ignore[type-arg]
    batch = built(records)
    assert check(batch, codec, lengths_only=True).index == len(records)
    body = batch[HEADER_SIZE:]
    if not (records[0][3] or records[-1][3]):
        assert lengths_fit(body, len(records))
    for cut in (1, len(body) // 2, len(body) - 1):
        assert not lengths_fit(body[:-cut], len(records))
    assert not lengths_fit(body + b"\x00", len(records))
    assert not lengths_fit(body, len(records) + 1)
    assert not lengths_fit(body, len(records) - 1)


@given(mixed | runs, st.data())
def test_lengths_are_those_of_every_record(records: list[tuple], data: st.DataObject) -> None:  # type: ignore[type-arg]
    """Whatever reading every field accepts is accepted, and the same records are found by their lengths."""
    batch = bytearray(built(records))
    at = data.draw(st.integers(HEADER_SIZE, len(batch) - 1))
    batch[at] ^= data.draw(st.sampled_from([1, 2, 0x80]))
    body = bytes(batch[HEADER_SIZE:])
    is_valid = reading(bytes(batch))
    fits = lengths_fit(body, len(records)) or _lengths_verdict(bytes(batch))
    assert fits or not is_valid
    if fits:
        assert record_starts(body, 0, len(body), len(records))[-1] == len(body)


@for_each("count", [2, 63, 64, 65, 66, 200, 8192, 8193, 8194])
@for_each("size", [1, 50, 54, 55, 56, 57, 58, 100, 8180, 8185])
def test_lengths_of_records_of_one_size_fit(count: int, size: int) -> None:
    """They are compared at once: from the offset delta 64 on each has one byte more, from 8192 on two."""
    if count * size > 2_000_000:
        return
    starts, body = [], bytearray()
    for index in range(count):
        starts.append(len(body))
        body += record(index, b"v" * size)
    assert lengths_fit(bytes(body), count)
    assert lengths_fit(memoryview(body), count)
    chance = random.Random(count * size)
    for start in {starts[1], starts[-1], *chance.sample(starts, min(20, count))}:
        for at in range(start, start + (2 if body[start] > 0x7F else 1)):
            changed = bytearray(body)
            changed[at] ^= 1 << chance.randrange(8)
            assert lengths_fit(bytes(changed), count) == _hops_fit(bytes(changed), count), (start, at)
    for wrong in (count - 1, count + 1):
        assert not lengths_fit(bytes(body), wrong)


def _hops_fit(body: bytes, count: int) -> bool:
    """`lengths_fit` with one record after the other."""
    pos, hops = hop(body, plain_record_end(body, 0, 0), count - 2)
    return hops == count - 2 and plain_record_end(body, pos, count - 1) == len(body)


def _lengths_verdict(batch: bytes) -> bool:
    try:
        return check(batch, lengths_only=True).index == BatchView(batch).record_count
    except KafkaError:
        return False


def test_skipping_records_costs_a_fraction() -> None:
    """Counted in units: a record that is read is one."""
    batch = built([(BASE_MS, None, bytes(50 + index % 7), []) for index in range(5_000)])
    assert check(batch, lengths_only=True).units - len(batch) // 512 < 1_300


def test_records_of_a_range_are_read_in_steps() -> None:
    batch = built([(BASE_MS, None, bytes(100), [])] * 20_000)
    packed = raw_batch(compress(4, batch[HEADER_SIZE:]), 20_000, codec=4)
    records, steps = counted(records_in_range(BatchView(packed), 15_000, 15_009))
    assert [item.offset for item in records] == list(range(15_000, 15_010))
    assert 30 <= steps <= 40, "not behind the range"
    with pytest.raises(CorruptRecord):
        counted(records_in_range(BatchView(packed), 0, 1, 1_000_000))


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("lengths_only", [False, True])
def test_kafkas_batches_are_accepted(lengths_only: bool) -> None:
    """Batches that Kafka's own classes wrote, in every codec."""
    codecs = set()
    for line in Path("tests/data/kafka-4.4.0-record-batches.jsonl").read_text().splitlines():
        vector = json.loads(line)
        if "hex" not in vector:
            continue  # a partitioner's
        batch = BatchView(bytes.fromhex(vector["hex"]))
        checked = RecordCheck(batch.record_count, batch.base_timestamp, lengths_only=lengths_only)
        for _ in checked.steps(decompressed_steps(batch.codec, Source(batch.view[HEADER_SIZE:]), 1 << 30)):
            pass
        assert checked.index == batch.record_count
        codecs.add(batch.codec)
    assert codecs == {0, 1, 2, 3, 4}
