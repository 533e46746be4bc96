"""Reads the records of a batch. Invalid records raise CorruptRecord; sizes are checked before allocating."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from itertools import starmap
from typing import TypeAlias

from barnabas.wire.batches.batch_format import (
    HEADER_SIZE,
    MAX_INT32,
    NO_SEQUENCE,
    TIMESTAMP_TYPE_BIT,
    Header,
    Record,
)
from barnabas.wire.batches.batch_header import BatchView
from barnabas.wire.batches.compression import MAX_DECOMPRESSED_SIZE, decompress
from barnabas.wire.batches.decompression import Source, decompressed_steps
from barnabas.wire.errors import CorruptRecord
from barnabas.wire.varint import record_varint, record_varlong

RecordFields: TypeAlias = "tuple[int, int, bytes | None, bytes | None, list[Header], int]"
"""The fields of a `Record`, in the order of its parameters."""

_RECORDS_OF_A_STEP = 500
_PIECES_OF_A_STEP = 8


def _batch_records(batch: BatchView, max_size: int) -> bytes:
    """The encoded records of a batch, decompressed."""
    if batch.end > len(batch.buffer) or batch.size < HEADER_SIZE:
        remaining = len(batch.buffer) - batch.start
        raise CorruptRecord(f"A record batch of {batch.size} bytes with {remaining} bytes remaining")
    if batch.record_count < 0:
        raise CorruptRecord(f"A record batch with a record count of {batch.record_count}")
    return decompress(batch.codec, memoryview(batch.buffer)[batch.start + HEADER_SIZE : batch.end], max_size)


def iter_records(batch: BatchView, max_size: int = MAX_DECOMPRESSED_SIZE) -> Iterator[Record]:
    """The records of a batch, decompressed to at most `max_size` bytes. The CRC is not checked.

    Raises CorruptRecord, possibly after some records: make a list to get all or none.
    """
    return starmap(Record, iter_record_fields(batch, max_size))


def iter_record_fields(batch: BatchView, max_size: int = MAX_DECOMPRESSED_SIZE) -> Iterator[RecordFields]:
    """As `iter_records`, without an object for each record: for logs of a million records that are read at once."""
    return _parse_records(batch, _batch_records(batch, max_size))


def records_in_range(
    batch: BatchView, first: int, last: int, max_size: int = MAX_DECOMPRESSED_SIZE
) -> Generator[None, None, list[Record]]:
    """The records with offsets from `first` to `last`, in steps of about a millisecond. Raises as `iter_records`."""
    pieces = []
    for piece in decompressed_steps(batch.codec, Source(batch.view[HEADER_SIZE:]), max_size):
        pieces.append(piece)
        if len(pieces) % _PIECES_OF_A_STEP == 0:
            yield
    records = []
    for number, record in enumerate(starmap(Record, _parse_records(batch, b"".join(pieces))), 1):
        if record.offset > last:
            break
        if record.offset >= first:
            records.append(record)
        if number % _RECORDS_OF_A_STEP == 0:
            yield
    return records


def _parse_records(batch: BatchView, data: bytes) -> Iterator[RecordFields]:  # noqa: C901 (the hot loop, inlined)
    """Bounds are checked once per record, by its end position; a read past the end raises IndexError."""
    base_offset = batch.base_offset
    base_timestamp = batch.base_timestamp
    append_time = batch.max_timestamp if batch.attributes & TIMESTAMP_TYPE_BIT else None
    base_sequence = batch.base_sequence
    total = len(data)
    pos = 0
    try:
        for _ in range(batch.record_count):
            length = data[pos]
            pos += 1
            if length > 0x7F:
                second = data[pos]
                if second > 0x7F:
                    length, pos = record_varint(data, pos - 1)
                else:  # most records have 64 to 8,191 bytes
                    length += (second << 7) - 0x80
                    pos += 1
            end = pos + (length >> 1)
            if length & 1 or end > total:
                raise CorruptRecord(f"A record of {_signed(length)} bytes with {total - pos} bytes remaining")
            pos += 1  # the record's own attributes: none are defined
            delta = data[pos]
            pos += 1
            if delta > 0x7F:
                delta, pos = record_varlong(data, pos - 1)
            timestamp = base_timestamp + (delta >> 1 ^ -(delta & 1)) if append_time is None else append_time
            delta = data[pos]
            pos += 1
            if delta > 0x7F:
                delta, pos = record_varint(data, pos - 1)
            delta = delta >> 1 ^ -(delta & 1)
            length = data[pos]
            pos += 1
            if length > 0x7F:
                length, pos = record_varint(data, pos - 1)
            key = None
            if not length & 1:
                start, pos = pos, pos + (length >> 1)
                key = data[start:pos]
            length = data[pos]
            pos += 1
            if length > 0x7F:
                length, pos = record_varint(data, pos - 1)
            value = None
            if not length & 1:
                start, pos = pos, pos + (length >> 1)
                value = data[start:pos]
            count = data[pos]
            pos += 1
            headers: list[Header] = []
            if count:
                headers, pos = _parse_headers(data, pos - 1, end)
            if pos != end:
                raise CorruptRecord(f"A record whose fields end {pos - end} bytes after the end given by its length")
            sequence = NO_SEQUENCE if base_sequence == NO_SEQUENCE else base_sequence + delta & MAX_INT32
            yield base_offset + delta, timestamp, key, value, headers, sequence
    except IndexError:
        raise CorruptRecord("The records are truncated") from None
    if pos != total:
        raise CorruptRecord(f"{total - pos} bytes after the last of {batch.record_count} records")


def _parse_headers(data: bytes, pos: int, end: int) -> tuple[list[Header], int]:
    count, pos = record_varint(data, pos)
    count = _signed(count)
    if not 0 <= count <= end - pos:
        raise CorruptRecord(f"A record with a header count of {count} and {end - pos} bytes remaining")
    headers: list[Header] = []
    for _ in range(count):
        length = data[pos]
        pos += 1
        if length > 0x7F:
            length, pos = record_varint(data, pos - 1)
        if length & 1 or pos + (length >> 1) > end:
            raise CorruptRecord(f"A header key of {_signed(length)} bytes with {end - pos} bytes remaining")
        start, pos = pos, pos + (length >> 1)
        key = data[start:pos].decode("utf-8", "replace")  # as Java's String does
        length = data[pos]
        pos += 1
        if length > 0x7F:
            length, pos = record_varint(data, pos - 1)
        if length & 1:
            headers.append((key, None))
            continue
        start, pos = pos, pos + (length >> 1)
        headers.append((key, data[start:pos]))
        if pos > end:
            raise CorruptRecord("A header value that ends after its record")
    return headers, pos


def _signed(unsigned: int) -> int:
    return unsigned >> 1 ^ -(unsigned & 1)
