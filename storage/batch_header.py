"""The header of a record batch in the log: unpacked once, then used by checks, producer state and segment.

Unlike `BatchView` of `wire.batches`, where the format is described, it keeps no buffer and has a position in a file; an
append updates it when it assigns offsets.
"""

from __future__ import annotations

from barnabas.wire.batches.records import HEADER, LOG_OVERHEAD, MAX_INT32


class BatchHeader:
    """One batch's header and the position where the batch starts in its buffer or file."""

    __slots__ = (
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "crc",
        "last_offset",
        "leader_epoch",
        "magic",
        "max_timestamp",
        "position",
        "producer_epoch",
        "producer_id",
        "record_count",
        "size",
    )

    base_offset: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

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
            self.record_count,
        ) = HEADER.unpack_from(buffer, at)
        self.position = position
        self.size: int = length + LOG_OVERHEAD
        self.last_offset: int = self.base_offset + last_offset_delta

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record; sequences wrap from 2^31-1 to 0 (I2)."""
        if self.base_sequence < 0:
            return self.base_sequence
        return (self.base_sequence + self.last_offset - self.base_offset) & MAX_INT32
