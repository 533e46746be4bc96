"""The accelerator in C, and the quick ways in Python: they accept only what `RecordCheck` accepts, which reads all.

Without a compiler there is no accelerator, and these tests run for the ways in Python.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.wire.batches.long_record import MAX_HEADERS_OF_A_STEP
from barnabas.wire.batches.plain_records import SHORT_DELTA, UNLIMITED, are_plain
from barnabas.wire.batches.record_check import RecordCheck
from barnabas.wire.errors import KafkaError
from barnabas.wire.varint import encode_varint
from tests.support.accelerator import ACCELERATOR, WAYS, checked_in
from tests.support.cases import for_each
from tests.support.logs.raw_batches import BASE_MS, record

SEED = 29
CASES = 20_000
HEADER = b"\x02h\x02v"
NUMBERS = bytes((0, 1, 2, 3, 4, 8, 0x3F, 0x7E, 0x7F, 0x80, 0x81, 0xFE, 0xFF))


def is_accepted(
    body: bytes, count: int, *, needs_keys: bool = False, before: int = 10_000, after: int = 10_000
) -> bool:
    """The verdict of `RecordCheck` without the quick ways: it does not compare batches of more than this size."""
    most = max(0, len(body) - 1)
    earliest, latest = BASE_MS - before, BASE_MS + after
    record_check = RecordCheck(
        count, BASE_MS, needs_keys=needs_keys, earliest=earliest, latest=latest, max_record_size=most
    )
    try:
        with checked_in("Python"):
            for _ in record_check.steps(iter([body])):
                pass
    except KafkaError:
        return False
    return not record_check.errors


def quick(
    way: str, body: bytes, count: int, *, needs_keys: bool = False, before: int = 10_000, after: int = 10_000
) -> bool:
    """The verdict of a quick way."""
    if way == "Python":
        assert min(before, after) >= SHORT_DELTA, "its caller checks that"
        return are_plain(body, count, needs_keys=needs_keys)
    assert ACCELERATOR is not None
    limits = (BASE_MS, BASE_MS - before, BASE_MS + after, needs_keys, 1 << 20)
    return ACCELERATOR(body, 0, 0, count, *limits) == (len(body), count)


def _records(rng: random.Random) -> list[bytes]:
    """Valid records, half of the time of one size, with fields of all widths."""
    count = rng.choice([1, 2, 3, 5, 63, 64, 65, 70, 130] if rng.random() < 0.3 else [1, 2, 3, 4])
    key = rng.choice([None, b"", b"k", bytes(70)])
    size = rng.choice([0, 1, 20, 50, 57, 58, 63, 64, 120])
    are_equal = rng.random() < 0.5
    records = []
    for index in range(count):
        value = bytes(size) if are_equal else rng.choice([None, bytes(rng.randrange(140))])
        headers = 0 if are_equal or rng.random() < 0.8 else rng.randrange(4)
        delta = rng.choice([0, 1, -1, 63]) if are_equal else rng.choice([0, 5, 64, -65, 8191, 9_000])
        records.append(
            record(index, value, key=key, timestamp_delta=delta, header_count=headers, rest=HEADER * headers)
        )
    return records


def _mutated(body: bytes, rng: random.Random) -> bytes:
    changed = bytearray(body)
    for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
        at = rng.randrange(len(changed))
        what = rng.randrange(5)
        if what == 0:
            changed[at] ^= 1 << rng.randrange(8)
        elif what == 1:
            changed[at] = rng.choice(NUMBERS)
        elif what == 2:
            changed.insert(at, rng.choice(NUMBERS))
        elif what == 3 and len(changed) > 1:
            del changed[at]
        else:  # a number of the same value with one byte more
            changed[at : at + 1] = bytes((changed[at] | 0x80, 0))
    return bytes(changed)


def _random_case(rng: random.Random) -> tuple[bytes, int]:
    if rng.random() < 0.1:
        return bytes(rng.choices(NUMBERS, k=rng.randrange(1, 40))), rng.randrange(1, 4)
    records = _records(rng)
    body = b"".join(records)
    if rng.random() < 0.1:
        body = body[: rng.randrange(1, len(body) + 1)] + rng.randbytes(rng.randrange(3))
    return _mutated(body, rng) or b"\0", len(records) + rng.choice([0] * 20 + [1, -1])


def test_what_is_accepted_quickly_is_valid() -> None:
    """Differential: changed batches and noise, with a seed; the accelerator also accepts all that is valid."""
    rng = random.Random(SEED)
    valid = 0
    for number in range(CASES):
        body, count = _random_case(rng)
        needs_keys = rng.random() < 0.2
        expected = is_accepted(body, count, needs_keys=needs_keys)
        valid += expected
        for way in WAYS:
            accepted = quick(way, body, count, needs_keys=needs_keys)
            assert not accepted or expected, (number, way, body.hex(), count)
            assert way == "Python" or accepted or not expected, (number, body.hex(), count)
    assert CASES // 5 < valid < CASES * 4 // 5, "cases of one kind prove nothing"


def _number(value: int, width: int) -> bytes:
    """A zig-zag number in so many bytes, more than it needs."""
    raw = value << 1
    return bytes(raw >> 7 * at & 0x7F | (0x80 if at < width - 1 else 0) for at in range(width))


def _raw(*, length: bytes = b"", fields: bytes) -> bytes:
    return (length or encode_varint(len(fields))) + fields


FIELDS = b"\0\0\0\x01\x02v\0"
LIMITS: dict[str, tuple[bytes, bool]] = {
    "plain": (_raw(fields=FIELDS), True),
    "any attributes": (_raw(fields=b"\xff" + FIELDS[1:]), True),
    "a length in five bytes": (_raw(length=_number(7, 5), fields=FIELDS), True),
    "a length in six bytes": (_raw(length=_number(7, 6), fields=FIELDS), False),
    "a length with bits above 32": (_raw(length=b"\x8e\x80\x80\x80\x70", fields=FIELDS), True),
    "a negative length": (_raw(length=b"\x0d", fields=FIELDS), False),
    "a length of the most": (_raw(length=b"\xfe\xff\xff\xff\x0f", fields=FIELDS), False),
    "a length of zero": (b"\0" + FIELDS, False),
    "a length too small": (_raw(length=b"\x0c", fields=FIELDS), False),
    "a length too large": (_raw(length=b"\x10", fields=FIELDS), False),
    "a byte too many": (_raw(fields=FIELDS) + b"\0", False),
    "a byte too many in the record": (_raw(fields=FIELDS + b"\0"), False),
    "a timestamp in ten bytes": (_raw(fields=b"\0" + _number(0, 10) + FIELDS[2:]), True),
    "a timestamp in eleven bytes": (_raw(fields=b"\0" + _number(0, 11) + FIELDS[2:]), False),
    "the latest timestamp": (_raw(fields=b"\0" + encode_varint(10_000) + FIELDS[2:]), True),
    "a timestamp too late": (_raw(fields=b"\0" + encode_varint(10_001) + FIELDS[2:]), False),
    "the earliest timestamp": (_raw(fields=b"\0" + encode_varint(-10_000) + FIELDS[2:]), True),
    "a timestamp too early": (_raw(fields=b"\0" + encode_varint(-10_001) + FIELDS[2:]), False),
    "no timestamp": (_raw(fields=b"\0" + encode_varint(-1 - BASE_MS) + FIELDS[2:]), True),
    "a timestamp over 64 bits": (_raw(fields=b"\0" + encode_varint(2**63 - 1) + FIELDS[2:]), False),
    "a timestamp of the least": (_raw(fields=b"\0" + encode_varint(-(2**63)) + FIELDS[2:]), False),
    "a wrong offset delta": (_raw(fields=b"\0\0\x02" + FIELDS[3:]), False),
    "an offset delta below": (_raw(fields=b"\0\0\x01" + FIELDS[3:]), False),
    "an offset delta in five bytes": (_raw(fields=b"\0\0" + _number(0, 5) + FIELDS[3:]), True),
    "an offset delta in six bytes": (_raw(fields=b"\0\0" + _number(0, 6) + FIELDS[3:]), False),
    "a key of -3 bytes": (_raw(fields=b"\0\0\0\x05" + FIELDS[4:]), True),
    "a key past the end": (_raw(fields=b"\0\0\0\x10" + FIELDS[4:]), False),
    "a key of the most": (_raw(fields=b"\0\0\0\xfe\xff\xff\xff\x0f" + FIELDS[4:]), False),
    "a null value": (_raw(fields=b"\0\0\0\x01\x01\0"), True),
    "a value past the end": (_raw(fields=b"\0\0\0\x01\x06v\0"), False),
    "a negative header count": (_raw(fields=FIELDS[:-1] + b"\x01"), False),
    "headers without bytes": (_raw(fields=FIELDS[:-1] + b"\x02"), False),
    "a header": (_raw(fields=FIELDS[:-1] + b"\x02" + HEADER), True),
    "a header with an empty key": (_raw(fields=FIELDS[:-1] + b"\x02\0\x01"), True),
    "a header with a null key": (_raw(fields=FIELDS[:-1] + b"\x02\x01\x01"), False),
    "a header too many": (_raw(fields=FIELDS[:-1] + b"\x02" + HEADER * 2), False),
    "a header too few": (_raw(fields=FIELDS[:-1] + b"\x04" + HEADER), False),
    "nothing": (b"", False),
    "half a number": (b"\x80", False),
}


@for_each("name", LIMITS)
def test_every_limit_is_that_of_the_check(name: str) -> None:
    body, expected = LIMITS[name]
    assert is_accepted(body, 1) == expected
    if expected:
        for cut in range(len(body)):
            assert not any(quick(way, body[:cut], 1) for way in WAYS)
    for way in WAYS:
        for _ in range(3):  # the second and third time of a shape
            accepted = quick(way, body, 1)
            assert accepted == expected if way == "C" else expected or not accepted


@for_each("way", WAYS)
def test_keys_that_a_topic_needs(way: str) -> None:
    with_key = record(0, key=b"k") + record(1, key=b"")
    for body, expected in ((with_key, True), (record(0, key=b"k") + record(1), False), (record(0) + record(1), False)):
        for _ in range(2):
            assert quick(way, body, 2)
            assert quick(way, body, 2, needs_keys=True) == expected


@for_each("way", WAYS)
@for_each("count", [1, 2, 63, 64, 65, 200, 1024, 1025, 8192])
@for_each("size", [0, 50, 57, 58, 100, 8180])
def test_every_byte_of_a_column_counts(way: str, count: int, size: int) -> None:
    """Records of one size, also as the second batch of the shape: a change of any field is noticed."""
    if count * size > 300_000:
        return
    starts, body = [], bytearray()
    for index in range(count):
        starts.append(len(body))
        body += record(index, b"v" * size)
    is_quick = way == "C" or size != 57 or count <= 64
    rng = random.Random(count * size)
    for start in {starts[0], starts[-1], *rng.sample(starts, min(5, count))}:
        assert quick(way, bytes(body), count) == is_quick
        end = start + (11 if size else 7)
        for at in [*range(start, min(end, len(body))), next((s for s in starts if s > start), len(body)) - 1]:
            changed = bytearray(body)
            changed[at] ^= 1 << rng.randrange(8)
            accepted = quick(way, bytes(changed), count)
            assert not accepted or is_accepted(bytes(changed), count), (start, at)


@pytest.mark.skipif(ACCELERATOR is None, reason="no accelerator: there was no C compiler")
class TestAccelerator:
    """What only the function in C has."""

    @staticmethod
    def call(data: bytes | memoryview, *arguments: int, size: int = 1 << 20) -> tuple[int, int]:
        pos, index, last = arguments
        assert ACCELERATOR is not None
        return ACCELERATOR(data, pos, index, last, BASE_MS, -UNLIMITED, UNLIMITED, False, size)

    def test_it_goes_on_where_it_stopped(self) -> None:
        records = [record(index, bytes(index)) for index in range(20)]
        body = b"".join(records)
        assert self.call(body, 0, 0, 7) == (len(b"".join(records[:7])), 7)
        assert self.call(memoryview(body), len(b"".join(records[:7])), 7, 20) == (len(body), 20)
        assert self.call(body[:-1], 0, 0, 20) == (len(body) - len(records[-1]), 19)
        assert self.call(body, 0, 1, 20) == (0, 1)
        assert self.call(body, len(body), 20, 20) == (len(body), 20)

    def test_a_record_with_many_headers_is_left_to_the_steps(self) -> None:
        most = MAX_HEADERS_OF_A_STEP
        assert self.call(record(0, header_count=most, rest=b"\0\1" * most), 0, 0, 1)[1] == 1
        assert self.call(record(0, header_count=most + 1, rest=b"\0\1" * (most + 1)), 0, 0, 1)[1] == 0

    def test_the_size_of_a_record_is_limited(self) -> None:
        body = record(0, bytes(100))
        assert self.call(body, 0, 0, 1, size=len(body) - 2) == (len(body), 1)
        assert self.call(body, 0, 0, 1, size=len(body) - 3) == (0, 0)

    @pytest.mark.parametrize("arguments", [(-1, 0, 1), (2, 0, 1), (0, -1, 1), (0, 0, 2**31), (2**70, 0, 1)])
    def test_nothing_is_read_outside_the_data(self, arguments: tuple[int, int, int]) -> None:
        with pytest.raises(ValueError):
            self.call(b"\0", *arguments)

    def test_arguments_of_other_types_are_refused(self) -> None:
        call: Callable[..., object] | None = ACCELERATOR
        assert call is not None
        for arguments in ((), (b"",) * 9, ("", 0, 0, 0, 0, 0, 0, False, 0), (b"", 0, 0, 0, 0, 0, 0, False)):
            with pytest.raises(TypeError):
                call(*arguments)

    def test_its_constant_is_that_of_python(self) -> None:
        source = Path("wire/batches/_valid_records.c").read_text()
        match = re.search(r"#define MOST_HEADERS (\d+)", source)
        assert match
        assert int(match.group(1)) == MAX_HEADERS_OF_A_STEP
