"""Reads keys, positions and timestamps of records without decoding whole records, for the log cleaner.

The cleaner builds a batch from the byte ranges of the records that it retains: their offsets and timestamps are deltas
to the base offset and base timestamp of the batch, which do not change. Only if the base timestamp changes are records
encoded again (`rebase_timestamps`). Invalid records raise CorruptRecord and no other exception.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from barnabas.wire.errors import CorruptRecord
from barnabas.wire.varint import encode_varint, record_varlong

_NULL = 1  # the zig-zag varint of -1


class ScannedKeys(NamedTuple):
    """The keys of a batch's records (None for a null key), and the indexes of the records whose value is null."""

    keys: list[bytes | None]
    null_values: list[int]


def scan_keys(data: bytes, pos: int, end: int, count: int) -> ScannedKeys:  # noqa: C901 (the hot loop, inlined)
    """The keys of the `count` uncompressed records in data[pos:end]. `data` is bytes: their indexing is the fastest."""
    keys: list[bytes | None] = []
    append = keys.append
    null_values: list[int] = []
    try:
        for index in range(count):
            length = data[pos]
            if length > 0x7F:
                byte = data[pos + 1]
                if byte > 0x7F:
                    length, pos = record_varlong(data, pos)
                    pos -= 1
                else:
                    length = length & 0x7F | byte << 7
                    pos += 1
            stop = pos + 1 + (length >> 1)
            pos += 2  # the record's attributes: none are defined
            while data[pos] > 0x7F:  # the timestamp delta
                pos += 1
            pos += 1
            while data[pos] > 0x7F:  # the offset delta
                pos += 1
            pos += 1
            length = data[pos]
            if length > 0x7F:
                length, pos = record_varlong(data, pos)
            else:
                pos += 1
            if length & 1:
                append(None)
                value = pos
            else:
                value = pos + (length >> 1)
                append(data[pos:value])
            if data[value] == _NULL:
                null_values.append(index)
            if value >= stop or stop > end:
                raise CorruptRecord(f"A record whose key ends {value - stop} bytes after the end given by its length")
            pos = stop
    except IndexError:
        raise CorruptRecord("The records are truncated") from None
    if pos != end:
        raise CorruptRecord(f"{end - pos} bytes after the last of {count} records")
    return ScannedKeys(keys, null_values)


def record_starts(data: bytes, pos: int, end: int, count: int) -> list[int]:
    """The start positions of the `count` uncompressed records in data[pos:end], followed by `end`."""
    starts: list[int] = []
    append = starts.append
    try:
        for _ in range(count):
            append(pos)
            length = data[pos]
            if length > 0x7F:
                byte = data[pos + 1]
                if byte > 0x7F:
                    length, pos = record_varlong(data, pos)
                    pos += length >> 1
                    continue
                length = length & 0x7F | byte << 7
                pos += 1
            pos += 1 + (length >> 1)
    except IndexError:
        raise CorruptRecord("The records are truncated") from None
    if pos != end:
        raise CorruptRecord(f"{end - pos} bytes after the last of {count} records")
    starts.append(end)
    return starts


def timestamp_deltas(data: bytes, starts: Iterable[int]) -> list[int]:
    """The timestamp deltas of the records at the given start positions."""
    deltas = []
    try:
        for pos in starts:
            while data[pos] > 0x7F:
                pos += 1
            delta, _ = record_varlong(data, pos + 2)
            deltas.append(delta >> 1 ^ -(delta & 1))
    except IndexError:
        raise CorruptRecord("The records are truncated") from None
    return deltas


def rebase_timestamps(data: bytes, ranges: Iterable[tuple[int, int]], shift: int) -> bytes:
    """The records in these ranges with `shift` added to each timestamp delta, for a base timestamp lower by `shift`."""
    out: list[bytes] = []
    try:
        for start, end in ranges:
            _, pos = record_varlong(data, start)
            attributes = data[pos : pos + 1]
            delta, pos = record_varlong(data, pos + 1)
            delta = (delta >> 1 ^ -(delta & 1)) + shift
            body = b"".join((attributes, encode_varint(delta), data[pos:end]))
            out += (encode_varint(len(body)), body)
    except IndexError:
        raise CorruptRecord("The records are truncated") from None
    return b"".join(out)
