"""Finds the first record of a batch with a timestamp, without making objects of records, in steps.

A step decompresses and reads a bounded amount. Records are skipped by their lengths: only length, timestamp delta and
offset delta are read. Source: Kafka's `FileLogInputStream.FileChannelRecordBatch` iterators in `searchForTimestamp`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Final

from barnabas.wire.batches.batch_format import HEADER_SIZE, TIMESTAMP_TYPE_BIT
from barnabas.wire.batches.batch_header import BatchHeader, BatchView
from barnabas.wire.batches.long_record import PieceReader
from barnabas.wire.errors import CorruptRecord, ErrorCode, KafkaError
from barnabas.wire.varint import record_varint, record_varlong

RECORDS_OF_A_STEP: Final = 1_000

_LONGEST_START = 26  # length, attributes, timestamp delta, offset delta


class SearchedRecords:
    """The search in one batch: `units` counts the work done, about one for each record and each 512 bytes."""

    __slots__ = ("_batch", "_max_record_size", "units")

    def __init__(self, batch: BatchView, max_record_size: int) -> None:
        """`max_record_size` limits the bytes of a record after its length (max.decompressed.message.bytes)."""
        self._batch = batch
        self._max_record_size = max_record_size
        self.units = 0

    def first_from(
        self, timestamp: int, offset: int, pieces: Iterator[bytes]
    ) -> Generator[None, None, tuple[int, int] | None]:
        """(offset, timestamp in ms) of the first record with at least this timestamp and offset; None without one.

        `pieces` are the decompressed records. Raises CorruptRecord, and KafkaError for a record over the limit.
        """
        batch = self._batch
        reader = PieceReader(pieces, self)
        append_time = batch.max_timestamp if batch.attributes & TIMESTAMP_TYPE_BIT else None
        data, pos, end = b"", 0, 0
        try:
            for index in range(batch.record_count):
                if index % RECORDS_OF_A_STEP == 0:
                    self.units += RECORDS_OF_A_STEP if index else 1
                    yield
                if end - pos < _LONGEST_START:
                    reader.pos = pos
                    yield from reader.fill(_LONGEST_START)
                    data, pos, end = reader.data, reader.pos, len(reader.data)
                length, pos = record_varint(data, pos)
                stop = pos + (length >> 1)
                if length & 1 or length >> 1 > self._max_record_size:
                    raise _invalid_length(index, length)
                delta, pos = record_varlong(data, pos + 1)
                record_timestamp = (
                    batch.base_timestamp + (delta >> 1 ^ -(delta & 1)) if append_time is None else append_time
                )
                delta, pos = record_varint(data, pos)
                found_offset = batch.base_offset + (delta >> 1 ^ -(delta & 1))
                if record_timestamp >= timestamp and found_offset >= offset:
                    return found_offset, record_timestamp
                if pos > stop:
                    raise CorruptRecord(f"Record {index} of a batch is longer than its length")
                pos = stop
                if stop > end:
                    reader.pos = end
                    yield from reader.skip(stop - end)
                    data, pos, end = reader.data, reader.pos, len(reader.data)
        except IndexError:
            raise CorruptRecord("The records are truncated") from None
        return None


def first_record(data: bytes, header: BatchHeader) -> tuple[int, int] | None:
    """(offset, timestamp in ms) of the first record in the bytes of an uncompressed batch, as `first_from` reads it.

    None if that takes a closer look. It is what most searches find, and a tenth of the work of a `SearchedRecords`.
    """
    try:
        length, pos = record_varint(data, HEADER_SIZE)
        delta, pos = record_varlong(data, pos + 1)
        offset_delta, _ = record_varint(data, pos)
    except (IndexError, CorruptRecord):
        return None
    if length & 1 or header.record_count <= 0:
        return None
    offset = header.base_offset + (offset_delta >> 1 ^ -(offset_delta & 1))
    if header.attributes & TIMESTAMP_TYPE_BIT:
        return offset, header.max_timestamp
    return offset, header.base_timestamp + (delta >> 1 ^ -(delta & 1))


def _invalid_length(index: int, length: int) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_RECORD,
        f"Record {index} of a batch has {length >> 1 ^ -(length & 1)} bytes, more than max.decompressed.message.bytes",
    )
