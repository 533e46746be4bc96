"""The layout of record batches of magic 2, and Kafka's names for its parts.

A batch is a header of 61 bytes and the records, which are compressed as one block if a codec is set (KIP-98, KIP-32):

    base offset 8 | batch length 4 | partition leader epoch 4 | magic 1 | crc 4 | attributes 2 | last offset delta 4
    | base timestamp 8 | max timestamp 8 | producer id 8 | producer epoch 2 | base sequence 4 | record count 4

    attributes: bits 0-2 codec, 3 timestamp type, 4 transactional, 5 control, 6 base timestamp is a delete horizon

The CRC-32C covers everything from the attributes to the end, so a broker can set the base offset and the leader epoch
of a batch without a new CRC (R1). A record's timestamp and offset are deltas to the batch's. Numbers in a record are
zig-zag varints:

    length | attributes 1 | timestamp delta | offset delta | key length, key | value length, value | header count,
    then of each header: key length, key (UTF-8) | value length, value; a length of -1 is null
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from struct import Struct

HEADER = Struct(">qiibIhiqqqhii")
HEADER_BEFORE_CRC_START = Struct(">qiibI")
HEADER_FROM_CRC_START = Struct(">hiqqqhii")
HEADER_SIZE = 61
LENGTH_OFFSET = 8
LOG_OVERHEAD = 12
"""The size of base offset and batch length, which the batch length does not include."""
PARTITION_LEADER_EPOCH_OFFSET = 12
MAGIC_OFFSET = 16
CRC_OFFSET = 17
MAX_TIMESTAMP_OFFSET = 35
CRC_START = 21
"""The offset of the attributes: the CRC covers from here to the end of the batch."""
MAGIC = 2
NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_PARTITION_LEADER_EPOCH = -1
CREATE_TIME = 0
LOG_APPEND_TIME = 1

CODEC_MASK = 0x07
TIMESTAMP_TYPE_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40

MAX_INT32 = 2**31 - 1
MIN_BATCH_LENGTH = HEADER_SIZE - LOG_OVERHEAD

Header = tuple[str, bytes | None]


class ControlRecordType(IntEnum):
    """The type in the key of a control record."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


@dataclass(slots=True)
class Record:
    """One record, with the batch's base offset, base timestamp and base sequence already added.

    `timestamp` is milliseconds since the epoch (-1 for none); `sequence` is -1 when the producer is not idempotent.
    """

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[Header]
    sequence: int = NO_SEQUENCE


def increment_sequence(sequence: int, by: int) -> int:
    """The sequence plus `by`, wrapping from 2^31-1 to 0 (I2)."""
    return sequence + by & MAX_INT32
