"""Checks that records fill their batch: as many as counted, by their lengths; the first and the last one completely.

Garbage, a wrong count or bytes left over do not pass this; a wrong field inside a record in the middle does. It costs a
fifth of reading every field, because a record is skipped by its length, and a run of records of one size by comparing
the length bytes of all of them at once. With the accelerator only batches that it refuses are checked in this way.
"""

from __future__ import annotations

from typing import Final

from barnabas.wire.batches.plain_records import are_regular
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
    if are_regular(data, count, needs_keys=False):
        return True
    try:
        last, hops = hop(data, pos, count - 2)
    except CorruptRecord:  # a length of more than five bytes: the caller looks closer
        return False
    return hops == count - 2 and plain_record_end(data, last, count - 1) == len(data)


def plain_record_end(data: bytes | memoryview, start: int, index: int) -> int:
    """Where the record with offset delta `index` at `start` ends; 0 if it is not valid, or has headers.

    Numbers of one byte, and lengths of two, are decoded here: a call for each costs more than all of it.
    """
    try:
        length, second = data[start : start + 2]
        if length < 0x80:
            pos = start + 1
        elif second < 0x80:
            length, pos = length & 0x7F | second << 7, start + 2
        else:
            length, pos = record_varint(data, start)
        stop = pos + (length >> 1)
        _, timestamp, delta, size = data[pos : pos + 4]  # attributes, and the key's size
        if timestamp | delta | size < 0x80:
            pos += 4
        elif timestamp | size | data[pos + 4] < 0x80:  # the delta has two bytes
            delta, size, pos = delta & 0x7F | size << 7, data[pos + 4], pos + 5
        else:
            delta, size, pos = _delta_and_key_size(data, pos + 1)
        if not size & 1:
            pos += size >> 1
        size, second = data[pos : pos + 2]  # of the value
        if size < 0x80:
            pos += 1
        elif second < 0x80:
            size, pos = size & 0x7F | second << 7, pos + 2
        else:
            size, pos = record_varint(data, pos)
        if not size & 1:
            pos += size >> 1
        is_valid = pos + 1 == stop and not length & 1 and delta == index << 1 and not data[pos]
        return stop if is_valid else 0
    except (IndexError, ValueError, CorruptRecord):  # the caller looks closer
        return 0


def _delta_and_key_size(data: bytes | memoryview, pos: int) -> tuple[int, int, int]:
    """Offset delta and size of the key, from the timestamp delta at `pos` on, and where the key starts."""
    _, pos = record_varlong(data, pos)
    delta, pos = record_varint(data, pos)
    size, pos = record_varint(data, pos)
    return delta, size, pos
