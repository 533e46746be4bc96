"""Reads the headers of batches without copying, and patches timestamps in place."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

from barnabas.wire.batches.batch_format import (
    CODEC_MASK,
    CONTROL_BIT,
    CRC_OFFSET,
    CRC_START,
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_SIZE,
    LENGTH_OFFSET,
    LOG_OVERHEAD,
    MAGIC,
    MAX_TIMESTAMP_OFFSET,
    MIN_BATCH_LENGTH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    increment_sequence,
)
from barnabas.wire.batches.crc import crc32c
from barnabas.wire.batches.decompression import Buffer
from barnabas.wire.errors import CorruptRecord

_INT64 = Struct(">q")
_INT32 = Struct(">i")
_INT16 = Struct(">h")
_UINT32 = Struct(">I")


class BatchView:
    """The header of the batch that starts at `start` in `buffer`; neither copied nor validated.

    Raises CorruptRecord when there are fewer than 61 bytes. Later changes of the buffer do not change the fields.
    `buffer` may be longer than the batch, or may end before its last record.
    """

    __slots__ = (
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "batch_length",
        "buffer",
        "crc",
        "last_offset_delta",
        "magic",
        "max_timestamp",
        "partition_leader_epoch",
        "producer_epoch",
        "producer_id",
        "record_count",
        "start",
    )

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    def __init__(self, buffer: Buffer, start: int = 0) -> None:
        if start + HEADER_SIZE > len(buffer):
            raise CorruptRecord(f"A record batch of {len(buffer) - start} bytes is shorter than its header")
        self.buffer = buffer
        self.start = start
        (
            self.base_offset,
            self.batch_length,
            self.partition_leader_epoch,
            self.magic,
            self.crc,
            self.attributes,
            self.last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.record_count,
        ) = HEADER.unpack_from(buffer, start)

    @property
    def size(self) -> int:
        """The size of the batch in bytes, header included."""
        return LOG_OVERHEAD + self.batch_length

    @property
    def end(self) -> int:
        """The position in `buffer` of the end of the batch."""
        return self.start + LOG_OVERHEAD + self.batch_length

    @property
    def view(self) -> memoryview:
        """The bytes of the batch, not copied."""
        return memoryview(self.buffer)[self.start : self.end]

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """The sequence of the last offset, wrapped after 2^31-1 (I2); -1 without sequences."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return increment_sequence(self.base_sequence, self.last_offset_delta)

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def timestamp_type(self) -> int:
        """0 CreateTime, 1 LogAppendTime."""
        return self.attributes >> 3 & 1

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_BIT != 0

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id > NO_PRODUCER_ID

    @property
    def delete_horizon_ms(self) -> int | None:
        """When the cleaner may remove tombstones and markers (L8, KIP-534): the base timestamp, if its bit is set."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_BIT else None

    def computed_crc(self) -> int:
        return crc32c(memoryview(self.buffer)[self.start + CRC_START : self.end])

    def crc_is_valid(self) -> bool:
        return (
            self.batch_length >= MIN_BATCH_LENGTH and self.end <= len(self.buffer) and self.crc == self.computed_crc()
        )

    def __repr__(self) -> str:
        return (
            f"BatchView(offsets={self.base_offset}..{self.last_offset}, size={self.size}, count={self.record_count}, "
            f"codec={self.codec}, attributes={self.attributes:#x}, epoch={self.partition_leader_epoch}, "
            f"producer={self.producer_id}/{self.producer_epoch}/{self.base_sequence})"
        )


def iter_batches(buffer: Buffer, *, partial_ok: bool = False) -> Iterator[BatchView]:
    """The batches of `buffer`. CRCs are not checked.

    With `partial_ok` an incomplete last batch is ignored, as consumers do at the end of a fetch response. Raises
    CorruptRecord for an incomplete batch, a batch length smaller than a header, or a magic other than 2.
    """
    pos = 0
    end = len(buffer)
    while pos < end:
        if partial_ok and _is_incomplete(buffer, pos):
            return
        batch = BatchView(buffer, pos)
        if batch.batch_length < MIN_BATCH_LENGTH:
            raise CorruptRecord(f"A record batch of length {batch.batch_length} is shorter than its header")
        if batch.magic != MAGIC:
            raise CorruptRecord(f"A record batch of magic {batch.magic}; only {MAGIC} is supported")
        if batch.end > end:
            raise CorruptRecord(f"A record batch of {batch.size} bytes with {end - pos} bytes remaining")
        yield batch
        pos = batch.end


def _is_incomplete(buffer: Buffer, pos: int) -> bool:
    left = len(buffer) - pos
    return left < LOG_OVERHEAD or left < LOG_OVERHEAD + _INT32.unpack_from(buffer, pos + LENGTH_OFFSET)[0]


def set_log_append_time(batch: memoryview | bytearray, now_ms: int) -> None:
    """Set the timestamp of all records to the broker's time (message.timestamp.type=LogAppendTime); update the CRC."""
    view = memoryview(batch)
    size = LOG_OVERHEAD + _INT32.unpack_from(view, LENGTH_OFFSET)[0]
    if not HEADER_SIZE <= size <= len(view):
        raise CorruptRecord(f"A record batch of {size} bytes in a buffer of {len(view)}")
    _INT16.pack_into(view, CRC_START, _INT16.unpack_from(view, CRC_START)[0] | TIMESTAMP_TYPE_BIT)
    _INT64.pack_into(view, MAX_TIMESTAMP_OFFSET, now_ms)
    _UINT32.pack_into(view, CRC_OFFSET, crc32c(view[CRC_START:size]))
