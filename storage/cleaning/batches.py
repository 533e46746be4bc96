"""Reads a segment's batches in large pieces, and rewrites a batch without some of its records.

Records that are kept keep their bytes: their offsets and timestamps are relative to the batch's base offset and
timestamp, which do not change, and neither do its last offset and sequences (L7, L9). Only a delete horizon replaces
the base timestamp, and then the timestamp deltas change with it (L8, KIP-534). A batch without records that must be
kept consists of its header.
Source: Kafka's `MemoryRecords.filterTo`.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.storage.batch_content import MOST_RECORDS_TO_COMPACT
from barnabas.storage.cleaning.key_map import DEAD
from barnabas.storage.damage import DamagedLog
from barnabas.storage.files import Files
from barnabas.storage.segments.segment import Segment
from barnabas.wire.batches.batch_header import BatchView, walk_batches
from barnabas.wire.batches.compression import compress, decompress
from barnabas.wire.batches.record_scan import ScannedKeys, rebase_timestamps, record_starts, scan_keys, timestamp_deltas
from barnabas.wire.batches.records import (
    CODEC_MASK,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    HEADER_SIZE,
    MAGIC,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    encode_batch,
)
from barnabas.wire.errors import ErrorCode, KafkaError


class Batch(BatchView):
    """A whole batch in a buffer."""

    __slots__ = ()

    buffer: bytes

    def records(self) -> tuple[bytes, int, int]:
        """(data, start, end) of the records, decompressed. DamagedLog when the CRC does not match, KafkaError for
        more than `MOST_RECORDS_TO_COMPACT`."""
        start = self.start + HEADER_SIZE
        if self.crc != self.computed_crc():
            raise DamagedLog(f"The CRC of the batch at offset {self.base_offset} does not match its bytes")
        if self.record_count > MOST_RECORDS_TO_COMPACT:  # of a time when the topic was not compacted
            raise KafkaError(
                ErrorCode.INVALID_RECORD,
                f"The batch at offset {self.base_offset} has {self.record_count} records; the cleaner holds at most "
                f"{MOST_RECORDS_TO_COMPACT} in memory",
            )
        if not self.codec:
            return self.buffer, start, self.end
        packed = memoryview(self.buffer)[start : self.end]
        data = decompress(self.codec, packed) if self.record_count else b""
        return data, 0, len(data)

    def keys(self) -> ScannedKeys:
        """The keys of its records."""
        data, start, end = self.records()
        return scan_keys(data, start, end, self.record_count)


def read_batches(files: Files, segment: Segment, chunk: int, position: int = 0) -> Iterator[Batch]:
    """The batches from a batch's position to the end of the segment, read `chunk` bytes at a time.

    Raises DamagedLog for bytes that are not a batch; CRCs and records are not checked.
    """

    def read(least: int, position: int) -> bytes:
        length = min(max(chunk, least), segment.size - position)
        data = files.read_at(segment.file, length, position)
        if len(data) != length:
            raise DamagedLog(f"{segment.stem}.log ends inside a record batch at position {position}")
        return data

    for batch in walk_batches(Batch, b"", segment.size, position, read, lambda _: True):
        if batch.magic != MAGIC:
            break
        yield batch
        position = batch.position + batch.size
    if position != segment.size:
        raise DamagedLog(f"No record batch at position {position} of {segment.stem}.log")


def remove_records(batch: Batch, marks: bytes | bytearray, horizon_ms: int | None) -> tuple[bytes, int]:
    """Remove the records marked DEAD, but not all: (the new batch, its greatest timestamp).

    `horizon_ms` is the delete horizon to set, None to keep the base timestamp.
    """
    data, start, end = batch.records()
    starts = record_starts(data, start, end, batch.record_count)
    remaining = [at for at, mark in enumerate(marks) if mark != DEAD]
    ranges = [(starts[at], starts[at + 1]) for at in remaining]
    base_timestamp, attributes = batch.base_timestamp, batch.attributes
    max_timestamp = batch.max_timestamp
    if not attributes & TIMESTAMP_TYPE_BIT:
        max_timestamp = base_timestamp + max(timestamp_deltas(data, [first for first, _ in ranges]))
    if horizon_ms is None:
        records = b"".join([data[first:last] for first, last in ranges])
    else:
        records = rebase_timestamps(data, ranges, base_timestamp - horizon_ms)
        base_timestamp, attributes = horizon_ms, attributes | DELETE_HORIZON_BIT
    codec = attributes & CODEC_MASK
    if codec:
        records = compress(codec, records)
    return _build(batch, attributes, base_timestamp, max_timestamp, len(remaining), records), max_timestamp


def header_only(batch: Batch) -> bytes:
    """The batch without records: its header with the same offsets, producer and sequences."""
    attributes = batch.attributes & (TIMESTAMP_TYPE_BIT | TRANSACTIONAL_BIT | CONTROL_BIT)
    return _build(batch, attributes, NO_TIMESTAMP, batch.max_timestamp, 0, b"")


def _build(batch: Batch, attributes: int, base_timestamp: int, max_timestamp: int, count: int, records: bytes) -> bytes:
    return encode_batch(
        records,
        count,
        attributes,
        batch.base_offset,
        batch.last_offset,
        batch.partition_leader_epoch,
        base_timestamp,
        max_timestamp,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
    )
