"""The header of a record batch (magic 2), unpacked once and carried through check, producer state and segment.

Offsets in bytes: base offset 0, length 8, leader epoch 12, magic 16, CRC 17, attributes 21 (the CRC covers from here),
last offset delta 23, base timestamp 27, max timestamp 35, producer id 43, producer epoch 51, base sequence 53, count 57.
Source: Kafka's `DefaultRecordBatch`.
"""

from __future__ import annotations

from struct import Struct

HEADER = Struct(">qiibIhiqqqhii")
HEADER_SIZE = HEADER.size
LOG_OVERHEAD = 12
CRC_START = 21
MIN_BATCH_LENGTH = HEADER_SIZE - LOG_OVERHEAD
MAGIC_POSITION = 16

CODEC_MASK = 0x07
TIMESTAMP_TYPE_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40

NO_PRODUCER_ID = -1
MAX_SEQUENCE = 2**31 - 1


class BatchHeader:
    """One batch's header and where the batch starts in its buffer or file."""

    __slots__ = (
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "count",
        "crc",
        "last_offset",
        "leader_epoch",
        "magic",
        "max_timestamp",
        "position",
        "producer_epoch",
        "producer_id",
        "size",
    )

    def __init__(self, buffer: bytes | memoryview, at: int, position: int) -> None:
        (
            self.base_offset,
            length,
            self.leader_epoch,
            self.magic,
            self.crc,
            self.attributes,
            last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.count,
        ) = HEADER.unpack_from(buffer, at)
        self.position = position
        self.size = length + LOG_OVERHEAD
        self.last_offset = self.base_offset + last_offset_delta

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record; sequences wrap from 2^31-1 to 0 (I2)."""
        if self.base_sequence < 0:
            return self.base_sequence
        return (self.base_sequence + self.last_offset - self.base_offset) & MAX_SEQUENCE

    @property
    def is_transactional(self) -> bool:
        """Whether the records belong to a transaction."""
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        """Whether the batch is a control record, as a transaction's marker."""
        return bool(self.attributes & CONTROL_BIT)
