"""A batch's header without a copy, the batches of a buffer one by one, and what is patched in place."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

from barnabas.wire.batch_format import (
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
from barnabas.wire.compression import Buffer
from barnabas.wire.crc import crc32c
from barnabas.wire.errors import CorruptRecord

_INT64 = Struct(">q")
_INT32 = Struct(">i")
_INT16 = Struct(">h")
_UINT32 = Struct(">I")


class BatchView:
    """The header of the batch that starts at `start` in `buffer`; nothing is copied and nothing is checked.

    Raises CorruptRecord when fewer than 61 bytes are there. The fields are those at the time of the call:
    patching the buffer does not change them. `buffer` may hold more than the batch, or less of its records.
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
        """Bytes of the whole batch, header included."""
        return LOG_OVERHEAD + self.batch_length

    @property
    def end(self) -> int:
        """Where the batch ends in `buffer`."""
        return self.start + LOG_OVERHEAD + self.batch_length

    @property
    def view(self) -> memoryview:
        """The whole batch, not copied."""
        return memoryview(self.buffer)[self.start : self.end]

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """The sequence of the last offset, wrapped after 2^31-1 (rule I2); -1 without sequences."""
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
        """When the cleaner may drop this batch's tombstones and markers (rule L8); then the base timestamp is it."""
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
    """The batches that fill `buffer`. CRCs are not checked.

    With `partial_ok` a batch cut off at the end is left out, as a consumer does with the tail of a fetch.
    Raises CorruptRecord for a batch that is cut off, that claims less than a header, or that is not magic 2.
    """
    pos = 0
    end = len(buffer)
    while pos < end:
        if partial_ok and _is_cut_off(buffer, pos):
            return
        batch = BatchView(buffer, pos)
        if batch.batch_length < MIN_BATCH_LENGTH:
            raise CorruptRecord(f"A record batch of length {batch.batch_length} is shorter than its header")
        if batch.magic != MAGIC:
            raise CorruptRecord(f"A record batch of magic {batch.magic}; only {MAGIC} is supported")
        if batch.end > end:
            raise CorruptRecord(f"A record batch of {batch.size} bytes where {end - pos} are left")
        yield batch
        pos = batch.end


def _is_cut_off(buffer: Buffer, pos: int) -> bool:
    left = len(buffer) - pos
    return left < LOG_OVERHEAD or left < LOG_OVERHEAD + _INT32.unpack_from(buffer, pos + LENGTH_OFFSET)[0]


def set_log_append_time(batch: memoryview | bytearray, now_ms: int) -> None:
    """Give every record of a batch the broker's time (message.timestamp.type=LogAppendTime), and a new CRC."""
    view = memoryview(batch)
    size = LOG_OVERHEAD + _INT32.unpack_from(view, LENGTH_OFFSET)[0]
    if not HEADER_SIZE <= size <= len(view):
        raise CorruptRecord(f"A record batch of {size} bytes where {len(view)} are left")
    _INT16.pack_into(view, CRC_START, _INT16.unpack_from(view, CRC_START)[0] | TIMESTAMP_TYPE_BIT)
    _INT64.pack_into(view, MAX_TIMESTAMP_OFFSET, now_ms)
    _UINT32.pack_into(view, CRC_OFFSET, crc32c(view[CRC_START:size]))
