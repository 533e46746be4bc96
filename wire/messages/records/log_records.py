"""Internal records of a log: aborted transactions, control records, producer snapshots. KIP-98."""

from __future__ import annotations

from barnabas.wire.schema import (
    Message,
    Struct,
    array,
    int16,
    int32,
    int64,
    message,
    struct,
    uint32,
)


@message("data", versions="0")
class AbortedTxn(Message):
    producer_id: int = int64("0+")
    first_offset: int = int64("0+")
    last_offset: int = int64("0+")
    last_stable_offset: int = int64("0+")


@message("data", versions="0")
class ControlRecordTypeSchema(Message):
    type: int = int16("0+")


@message("data", versions="0")
class EndTxnMarker(Message):
    coordinator_epoch: int = int32("0+")


@struct
class ProducerEntry(Struct):
    producer_id: int = int64("1")
    epoch: int = int16("1")
    last_sequence: int = int32("1")
    last_offset: int = int64("1")
    offset_delta: int = int32("1")
    timestamp: int = int64("1")
    coordinator_epoch: int = int32("1")
    current_txn_first_offset: int = int64("1")


@message("data", versions="1")
class ProducerSnapshot(Message):
    crc: int = uint32("1")
    producer_entries: list[ProducerEntry] = array(ProducerEntry, "1")
