"""Checks that records fill their batch: as many as counted, by their lengths; the first and the last one completely.

Garbage, a wrong count or bytes left over do not pass this; a wrong field inside a record in the middle does. It costs a
fifth of reading every field, because a record is skipped by its length, and a run of records of one size by comparing
the length bytes of all of them at once.
"""

from __future__ import annotations

from typing import Final

from barnabas.wire.batches.record_runs import equal_prefix
from barnabas.wire.errors import CorruptRecord
from barnabas.wire.varint import record_varint, record_varlong

HOPS_PER_UNIT: Final = 4
"""How many records can be skipped in the time in which one is read."""

_SMALLEST_LENGTH = 12  # zig-zag: attributes, two deltas, two lengths and the header count are six bytes
_LONGEST_RUN = 1024
_RETRY_AFTER = 16


def hop(data: bytes | memoryview, pos: int, most: int) -> tuple[int, int]:
    """Skip whole records from `pos` on, `most` at most: (where the next record starts, how many were skipped).

    Stops before a record that is not whole, or whose length is too small for a record.
    """
    end = len(data)
    remaining = retry = most
    previous = -1
    try:
        while remaining:
            start = pos
            length = data[pos]
            if length < 0x80:
                stop = pos + 1 + (length >> 1)
            elif (byte := data[pos + 1]) < 0x80:
                length = length & 0x7F | byte << 7
                stop = pos + 2 + (length >> 1)
            else:
                length, stop = record_varint(data, pos)
                stop += length >> 1
            if stop > end or length & 1 or length < _SMALLEST_LENGTH:
                break
            pos = stop
            remaining -= 1
            if length == previous and remaining <= retry:
                size = stop - start
                run = _run(data, start, size, min(remaining, (end - pos) // size, _LONGEST_RUN), length)
                pos += run * size
                remaining -= run
                retry = remaining if run > _RETRY_AFTER else remaining - _RETRY_AFTER
            previous = length
    except IndexError:
        pass  # the data ends inside a length
    return pos, most - remaining


def _run(data: bytes | memoryview, start: int, size: int, most: int, length: int) -> int:
    """How many records after the one at `start` have its length, if that is one or two bytes long."""
    first = start + size
    if length > 0x3FFF:
        return 0
    run = equal_prefix(bytes(data[first : first + most * size : size]), bytes(data[start : start + 1]))
    if length < 0x80:
        return run
    return equal_prefix(bytes(data[first + 1 : first + run * size : size]), bytes(data[start + 1 : start + 2]))


def lengths_fit(data: bytes | memoryview, count: int) -> bool:
    """Whether `data` is `count` records by their lengths, the first and last valid; False if that is not sure."""
    pos = plain_record_end(data, 0, 0)
    if count == 1 or not pos:
        return pos == len(data)
    if pos * count == len(data) and _have_same_length(data, pos, count):
        return plain_record_end(data, pos * (count - 1), count - 1) == len(data)
    pos, hops = hop(data, pos, count - 2)
    return hops == count - 2 and plain_record_end(data, pos, count - 1) == len(data)


def _have_same_length(data: bytes | memoryview, size: int, count: int) -> bool:
    """Whether `data` is `count` records of `size` bytes by their lengths, of one or two bytes; False if not sure."""
    first, second = data[0], data[1]
    if bytes(data[::size]) != bytes((first,)) * count:
        return False
    return first < 0x80 or (second < 0x80 and bytes(data[1::size]) == bytes((second,)) * count)


def plain_record_end(data: bytes | memoryview, start: int, index: int) -> int:
    """Where the record with offset delta `index` at `start` ends; 0 if it is not valid, or has headers."""
    try:
        length, pos = record_varint(data, start)
        stop = pos + (length >> 1)
        pos = pos + 2 if data[pos + 1] < 0x80 else record_varlong(data, pos + 1)[1]
        delta, pos = record_varint(data, pos)
        if length & 1 or delta != index << 1:
            return 0
        for _ in range(2):
            size, pos = record_varint(data, pos)
            if not size & 1:
                pos += size >> 1
        return stop if pos + 1 == stop and not data[pos] else 0
    except (IndexError, CorruptRecord):  # the caller looks closer
        return 0
