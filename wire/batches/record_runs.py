"""Compares runs of records of one size as columns, which costs a fraction of reading each record.

If the bytes that hold the lengths are the same in all records of a run, and offset deltas rise by one in varints of the
same size, then the fields of all of them end where the first record's do. A column is a slice of the data with the
record size as its stride, so comparing it is one operation in C.
"""

from __future__ import annotations

from typing import NamedTuple

_LONGEST_RUN = 1024  # so that the data of all columns stays in the processor's cache
_HIGH_BYTES = bytes(range(0x80, 0x100))
_ASCII_BYTES = bytes(range(0x80))

# The bytes of consecutive offset deltas. A delta is written as twice its value, 7 bits a byte, lowest first: the first
# byte repeats after 64 deltas, the second one changes every 64 and repeats after 8192.
DELTAS_OF_A_BYTE = 64
PERIOD = 8192
_LAST_OF_WIDTH = (0, 63, 8191, 1_048_575)  # the last delta that is written in 1, 2 or 3 bytes
ONE_BYTE_DELTAS = bytes(range(0, 0x80, 2))
FIRST_BYTES = bytes(range(0x80, 0x100, 2)) * (PERIOD // DELTAS_OF_A_BYTE)
SECOND_BYTES_LAST = b"".join(bytes([value]) * DELTAS_OF_A_BYTE for value in range(0x80))
SECOND_BYTES = b"".join(bytes([value]) * DELTAS_OF_A_BYTE for value in range(0x80, 0x100))


class _Layout(NamedTuple):
    """Where the fields of a record are, relative to its start."""

    fixed: list[int]
    """The bytes that must be the same in all records: the lengths and the header count."""
    timestamp: int
    offset: int
    key: int


def equal_records(
    data: bytes, start: int, size: int, index: int, limit: int, *, timestamp_bytes: int, needs_key: bool
) -> int:
    """How many records after the one in data[start:start + size] have its lengths and the offset deltas that follow.

    That record is valid and has the offset delta `index`; at most `limit` records are compared. The answer is 0 if its
    timestamp delta has more than `timestamp_bytes` bytes, if it has headers, or if it has no key and `needs_key`.
    """
    layout = _layout(data, start)
    if layout is None or layout.offset - layout.timestamp > timestamp_bytes:
        return 0
    if needs_key and data[start + layout.key] & 1:
        return 0
    width = layout.key - layout.offset
    limit = min(limit, (len(data) - start) // size - 1)
    if width < len(_LAST_OF_WIDTH):
        limit = min(limit, _LAST_OF_WIDTH[width] - index)
    equal = 0
    while equal < limit:
        index += 1
        block_end = DELTAS_OF_A_BYTE if index < DELTAS_OF_A_BYTE else index - index % PERIOD + PERIOD
        length = min(_LONGEST_RUN, limit - equal, block_end - index)
        at = start + size * (equal + 1)
        run = _equal(data, start, at, size, length, layout)
        if not run or not _are_next(data, at + layout.offset, size, run, index, width):
            return equal
        equal += run
        index += run - 1
        if run < length:
            return equal
    return equal


def equal_prefix(column: bytes, byte: bytes) -> int:
    """How many bytes at the start of `column` are `byte`."""
    length = len(column)
    return length if column == byte * length else length - len(column.lstrip(byte))


def _layout(data: bytes, start: int) -> _Layout | None:
    """The layout of a valid record; None if it has headers."""
    pos = _after_varint(data, start)
    fixed = list(range(pos - start))
    timestamp = pos + 1
    offset = _after_varint(data, timestamp)
    key = _after_varint(data, offset)
    value, length = _field(data, key)
    fixed += range(key - start, key + length - start)
    headers, length = _field(data, value)
    fixed += range(value - start, value + length - start)
    if data[headers]:
        return None
    fixed.append(headers - start)
    return _Layout(fixed, timestamp - start, offset - start, key - start)


def _after_varint(data: bytes, pos: int) -> int:
    while data[pos] > 0x7F:
        pos += 1
    return pos + 1


def _field(data: bytes, pos: int) -> tuple[int, int]:
    """(where the field with its length at `pos` ends, how many bytes the length has)."""
    after = _after_varint(data, pos)
    length = 0
    for at in range(after - 1, pos - 1, -1):
        length = length << 7 | data[at] & 0x7F
    return after if length & 1 else after + (length >> 1), after - pos


def _equal(data: bytes, first: int, at: int, size: int, most: int, layout: _Layout) -> int:
    """How many of `most` records from `at` on have the lengths of the record at `first`."""
    run = most
    for column in layout.fixed:
        run = equal_prefix(data[at + column : at + run * size : size], data[first + column : first + column + 1])
    last = layout.offset - 1
    for column in range(layout.timestamp, last):
        high = data[at + column : at + run * size : size]
        run -= len(high.lstrip(_HIGH_BYTES))
    low = data[at + last : at + run * size : size]
    return run if low.isascii() else run - len(low.lstrip(_ASCII_BYTES))


def _are_next(data: bytes, at: int, size: int, count: int, index: int, width: int) -> bool:
    """Whether the varints of `width` bytes from `at` on are the deltas `index`, `index` + 1 and so on."""
    end = at + (count - 1) * size + 1
    phase = index % PERIOD
    if width == 1:
        return index < DELTAS_OF_A_BYTE and data[at:end:size] == ONE_BYTE_DELTAS[index : index + count]
    if index < DELTAS_OF_A_BYTE or data[at:end:size] != FIRST_BYTES[phase : phase + count]:
        return False
    second = SECOND_BYTES_LAST if width == 2 else SECOND_BYTES
    if data[at + 1 : end + 1 : size] != second[phase : phase + count]:
        return False
    rest = index // PERIOD  # the bits above, the same for all records up to the next multiple of the period
    for column in range(2, width):
        is_last = column == width - 1
        if data[at + column : end + column : size] != bytes([rest & 0x7F | (0 if is_last else 0x80)]) * count:
            return False
        rest >>= 7
    return rest == 0
