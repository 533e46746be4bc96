"""Whether all records of a batch are valid, at a glance: nearly every produced batch needs no closer look.

The accelerator `valid_records`, in C, reads every field of every record. An installation without a compiler does not
have it: then two quick ways in Python recognise what producers usually send. Records of one size are compared as
columns with an earlier batch of that shape, and small batches are read in a short loop. What none of them accepts is
decided by `record_check`, so the verdict is the same without them (`tests/wire/batches/test_valid_records.py`).

CPU time of `check_records` in µs, C / Python (least of eight runs on a busy machine): a batch of one record 1.8 / 3.1,
150 records of one size 5.1 / 5.3, of various sizes 6.8 / 190, 1 MB of records of 100 bytes 170 / 140, of various sizes
150 / 10,500. The accelerator takes 2.7 ms for the worst MB: empty headers.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Final, NamedTuple

from barnabas.wire.batches.record_runs import DELTAS_OF_A_BYTE, FIRST_BYTES, ONE_BYTE_DELTAS, PERIOD, SECOND_BYTES_LAST
from barnabas.wire.errors import CorruptRecord
from barnabas.wire.varint import record_varint

try:
    from barnabas.wire.batches import _valid_records
except ImportError:  # there was no C compiler
    _valid_records = None  # type: ignore[assignment]

UNLIMITED: Final = 2**63
PLAIN_RECORDS: Final = 64
"""`is_plain` is False for more records."""
SHORT_DELTA: Final = 8192
"""Timestamp deltas of one or two bytes are from -8192 to 8191 ms."""
ACCELERATED_RECORDS_PER_UNIT: Final = 16
"""How many records the accelerator reads in the time in which Python reads one."""
REGULAR_RECORDS_PER_UNIT: Final = 8

valid_records: Callable[[bytes | memoryview, int, int, int, int, int, int, bool, int], tuple[int, int]] | None
"""The accelerator, if there is one: `_valid_records.pyi`."""
valid_records = None if _valid_records is None else _valid_records.valid_records

_TWO_BYTE_DELTAS = PERIOD - DELTAS_OF_A_BYTE
_MOST_SHAPES = 256
_MOST_RECORDS_OF_A_SHAPE = 1024  # its columns take nine bytes for each record


class _Shape:
    """How the bytes of a batch of records of one size must be: what is equal in all batches of that size and count.

    From the offset delta 64 on, which has two bytes, each record has one byte more than those before. A column is
    one byte of all shorter or all longer records: those of lengths, offset deltas and header counts are `expected`.
    """

    __slots__ = ("columns", "expected", "has_keys", "longer_timestamps", "shorter_timestamps")

    def __init__(self, data: bytes | memoryview, count: int, record: _Record) -> None:
        shorter = min(count, DELTAS_OF_A_BYTE)
        longer = count - shorter
        size, start, timestamp = record.size, record.size * shorter, record.timestamp
        slices = [slice(at, start, size) for at in record.fixed]
        expected = [bytes((data[at],)) * shorter for at in record.fixed]
        slices.append(slice(timestamp + 1, start, size))
        expected.append(ONE_BYTE_DELTAS[:shorter])
        self.shorter_timestamps = slice(timestamp, start, size)
        self.longer_timestamps: slice | None = None
        if longer:
            slices += [slice(start + at + (at > timestamp), None, size + 1) for at in record.fixed]
            expected += [bytes((data[at] if at else data[0] + 2,)) * longer for at in record.fixed]
            for at, deltas in ((1, FIRST_BYTES), (2, SECOND_BYTES_LAST)):
                slices.append(slice(start + timestamp + at, None, size + 1))
                expected.append(deltas[DELTAS_OF_A_BYTE:][:longer])
            self.longer_timestamps = slice(start + timestamp, None, size + 1)
        self.columns = itemgetter(*slices)
        self.expected = tuple(expected)
        self.has_keys = record.has_key

    def matches(self, data: bytes | memoryview) -> bool:
        """Whether all records are valid. `data` has the length of the batch that the shape is made from."""
        return (
            self.columns(data) == self.expected
            and bytes(data[self.shorter_timestamps]).isascii()
            and (self.longer_timestamps is None or bytes(data[self.longer_timestamps]).isascii())
        )


class _Record(NamedTuple):
    """Where the fields of the first record of a batch are."""

    fixed: list[int]
    """The bytes of its lengths, and the header count."""
    timestamp: int
    """The timestamp delta, of one byte; the offset delta follows, of one byte too."""
    size: int
    has_key: bool


_shapes: dict[tuple[int, int], _Shape | None] = {}
"""By record count and bytes; None if there was one such batch only. Producers send many batches of the same shape."""


def are_plain(data: bytes | memoryview, count: int, *, needs_keys: bool) -> bool:
    """Whether `data` is `count` valid records, if short timestamp deltas are valid; False if not sure."""
    shape = _shapes.get((count, len(data)))
    if shape is not None and shape.matches(data) and (shape.has_keys or not needs_keys):
        return True  # nearly always
    if _has_new_shape(data, count, needs_keys):
        return True
    return count <= PLAIN_RECORDS and is_plain(data, count, needs_keys=needs_keys)


def are_regular(data: bytes | memoryview, count: int, *, needs_keys: bool) -> bool:
    """Whether `data` is `count` valid records of one size with timestamp deltas of one byte; False if not sure."""
    shape = _shapes.get((count, len(data)))
    if shape is not None and shape.matches(data) and (shape.has_keys or not needs_keys):
        return True
    return _has_new_shape(data, count, needs_keys)


def _has_new_shape(data: bytes | memoryview, count: int, needs_keys: bool) -> bool:
    """`are_regular` for a batch that is not like one before; the next one is compared with it.

    A single record is not compared with itself, so a shape is made for the second one of its size only.
    """
    try:
        record = _first_record(data)
    except (IndexError, ValueError, CorruptRecord):
        return False
    if record is None or (needs_keys and not record.has_key):
        return False
    longer = max(0, count - DELTAS_OF_A_BYTE)
    if record.size * count + longer != len(data) or longer > _TWO_BYTE_DELTAS:
        return False
    if longer and data[0] & 0x7F == 0x7E:
        return False  # the length of the longer ones has other bytes
    key = count, len(data)
    if count == 1 and key not in _shapes:
        _remember(key, None)
        return True
    shape = _Shape(data, count, record)
    if not shape.matches(data):
        return False
    _remember(key, shape)
    return True


def _remember(key: tuple[int, int], shape: _Shape | None) -> None:
    if key[0] <= _MOST_RECORDS_OF_A_SHAPE:
        if len(_shapes) >= _MOST_SHAPES:
            _shapes.clear()
        _shapes[key] = shape


def _first_record(data: bytes | memoryview) -> _Record | None:
    """The first record, if it is valid, and has deltas of one byte."""
    length, second = data[:2]
    if length < 0x80:
        start = 1
    elif second < 0x80:
        length, start = length & 0x7F | second << 7, 2
    else:
        length, start = record_varint(data, 0)
    if length & 1:
        return None
    _, timestamp, delta, number = data[start : start + 4]  # attributes, and the key's length
    if timestamp > 0x7F or delta:
        return None
    key = start + 3
    pos = key + 1
    if number > 0x7F:
        number, pos = record_varint(data, key)
    value = pos if number & 1 else pos + (number >> 1)
    has_key = not number & 1
    fixed = [*range(start), *range(key, pos)]
    number, second = data[value : value + 2]
    pos = value + 1
    if number > 0x7F:
        number, pos = record_varint(data, value)
    headers = pos if number & 1 else pos + (number >> 1)
    if headers + 1 != start + (length >> 1) or data[headers]:
        return None
    fixed += [*range(value, pos), headers]
    return _Record(fixed, start + 1, headers + 1, has_key)


def is_plain(data: bytes | memoryview, count: int, *, needs_keys: bool) -> bool:  # noqa: C901 (the hot loop, inlined)
    """Whether `data` is `count` valid records; False if that takes a closer look. Timestamps are not checked.

    This is what nearly all small batches need: half of the time of a `RecordCheck` would be spent on making it.
    """
    pos = 0
    try:
        for index in range(count):
            stop = data[pos]
            pos += 1
            if stop > 0x7F:
                byte = data[pos]
                stop = stop & 0x7F | byte << 7
                pos += 1
                if byte > 0x7F:
                    return False
            if stop & 1:
                return False
            stop = pos + (stop >> 1)
            pos += 1 if data[pos + 1] < 0x80 else 2
            if data[pos] > 0x7F or data[pos + 1] != index << 1 or index > 0x3F:
                return False
            pos += 2
            number = data[pos]
            pos += 1
            if number & 1:
                if needs_keys or number != 1:
                    return False
            elif number > 0x7F:
                return False
            else:
                pos += number >> 1
            number = data[pos]
            pos += 1
            if number > 0x7F:
                byte = data[pos]
                number = number & 0x7F | byte << 7
                pos += 1
                if byte > 0x7F:
                    return False
            if not number & 1:
                pos += number >> 1
            pos += 1
            if pos != stop or data[stop - 1]:
                return False
    except IndexError:
        return False
    return pos == len(data)
