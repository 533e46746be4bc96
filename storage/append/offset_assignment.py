"""Writes base offset and leader epoch into batches, and the append time if the topic has LogAppendTime.

Base offset and leader epoch are outside the batch's CRC, so the CRC of the producer stays valid (R1). Source: Kafka's
`LogValidator.assignOffsetsNonCompressed` and `DefaultRecordBatch`.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from barnabas.wire.batches.batch_header import BatchHeader
from barnabas.wire.batches.records import (
    LOG_OVERHEAD,
    NO_TIMESTAMP,
    PARTITION_LEADER_EPOCH_OFFSET,
    set_log_append_time,
)

_BASE_OFFSET = Struct(">q")
_LEADER_EPOCH = Struct(">i")
_HEAD = Struct(">qii")  # base offset, length, leader epoch


class AppendInfo(NamedTuple):
    """The result of an append; `log_append_time_ms` is -1 unless the topic has LogAppendTime or it is a duplicate."""

    first_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    duplicate: bool = False


def assign_offset(
    records: memoryview, header: BatchHeader, offset: int, leader_epoch: int, now_ms: int, timestamp_type: str
) -> int:
    """As `assign_offsets` for the only batch in `records`, whose base offset is 0; the append time in ms, or -1."""
    _HEAD.pack_into(records, 0, offset, header.size - LOG_OVERHEAD, leader_epoch)
    header.base_offset = offset
    header.last_offset += offset
    header.partition_leader_epoch = leader_epoch
    if timestamp_type != "LogAppendTime":
        return NO_TIMESTAMP
    set_log_append_time(records, now_ms)
    header.max_timestamp = now_ms
    return now_ms


def assign_offsets(
    records: memoryview, headers: list[BatchHeader], offset: int, leader_epoch: int, append_time_ms: int
) -> int:
    """Write offsets from `offset` on and the leader epoch into the batches, and update `headers`; the last offset.

    An append time other than -1 is set as the timestamp of all records, and the CRC is computed again.
    """
    for header in headers:
        at = header.position
        last_offset = offset + header.last_offset - header.base_offset
        _BASE_OFFSET.pack_into(records, at, offset)
        _LEADER_EPOCH.pack_into(records, at + PARTITION_LEADER_EPOCH_OFFSET, leader_epoch)
        header.base_offset = offset
        header.last_offset = last_offset
        header.partition_leader_epoch = leader_epoch
        if append_time_ms != NO_TIMESTAMP:
            set_log_append_time(records[at : at + header.size], append_time_ms)
            header.max_timestamp = append_time_ms
        offset = last_offset + 1
    return offset - 1
