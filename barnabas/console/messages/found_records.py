"""Records as they are stored, with what their batch says about them.

The value of a long record is cut here, so that a page of large records needs little memory (`MAX_KEPT_BYTES`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from barnabas.wire.batches.records import (
    BatchHeader,
    ControlRecordType,
    Header,
    Record,
    control_record_type,
    end_txn_coordinator_epoch,
)
from barnabas.wire.errors import CorruptRecord

MAX_KEPT_BYTES = 1024 * 1024
"""Of a key or value; a longer one is cut to `CUT_BYTES`."""
CUT_BYTES = 64 * 1024
MAX_HEADERS = 1000

NOT_TRANSACTIONAL, COMMITTED, ABORTED, UNDECIDED, CONTROL = "", "committed", "aborted", "undecided", "control"
"""States of a record. UNDECIDED: of a transaction whose end lies after the last stable offset, or is open."""

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@dataclass(frozen=True, slots=True)
class BatchInfo:
    """A batch's header. `size` is in bytes as stored; times are in ms; -1 stands for none."""

    base_offset: int
    last_offset: int
    record_count: int
    size: int
    codec: str
    timestamp_type: str
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    leader_epoch: int
    crc: int
    is_transactional: bool
    is_control: bool

    @classmethod
    def of(cls, batch: BatchHeader) -> BatchInfo:
        """The fields of a header."""
        return cls(
            base_offset=batch.base_offset,
            last_offset=batch.last_offset,
            record_count=batch.record_count,
            size=batch.size,
            codec=CODECS[batch.codec] if batch.codec < len(CODECS) else f"unknown ({batch.codec})",
            timestamp_type="LogAppendTime" if batch.timestamp_type else "CreateTime",
            max_timestamp=batch.max_timestamp,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence,
            leader_epoch=batch.partition_leader_epoch,
            crc=batch.crc,
            is_transactional=batch.is_transactional,
            is_control=batch.is_control,
        )


@dataclass(frozen=True, slots=True)
class FoundRecord:
    """A record of a partition. `key` and `value` may be cut: `key_size` and `value_size` are their full sizes.

    `problem` says why a batch cannot be read; the record then stands for the whole batch.
    """

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[Header]
    state: str
    batch: BatchInfo
    key_size: int = 0
    value_size: int = 0
    sequence: int = -1
    control: str = ""
    problem: str = field(default="", kw_only=True)

    @property
    def is_cut(self) -> bool:
        """Whether the value is not all there."""
        return self.value is not None and len(self.value) < self.value_size


def found_record(
    partition: int,
    record: Record,
    batch: BatchHeader,
    state: str,
    kept_bytes: int = MAX_KEPT_BYTES,
) -> FoundRecord:
    """A record with its batch; key and value are cut if they are longer than `kept_bytes`."""
    key, value = record.key, record.value
    return FoundRecord(
        partition=partition,
        offset=record.offset,
        timestamp=record.timestamp,
        key=_cut(key, kept_bytes),
        value=_cut(value, kept_bytes),
        headers=[(name, _cut(content, CUT_BYTES)) for name, content in record.headers[:MAX_HEADERS]],
        state=state,
        batch=BatchInfo.of(batch),
        key_size=0 if key is None else len(key),
        value_size=0 if value is None else len(value),
        sequence=record.sequence,
        control=control_text(record, batch) if batch.is_control else "",
    )


def unreadable_batch(partition: int, offset: int, batch: BatchHeader, state: str, error: CorruptRecord) -> FoundRecord:
    """What stands for a batch that cannot be read, at the first of its offsets that was asked for."""
    info = BatchInfo.of(batch)
    return FoundRecord(partition, offset, batch.max_timestamp, None, None, [], state, info, problem=str(error))


def _cut(value: bytes | None, kept_bytes: int) -> bytes | None:
    return value if value is None or len(value) <= kept_bytes else value[: min(CUT_BYTES, kept_bytes)]


def control_text(record: Record, batch: BatchHeader) -> str:
    """What a control record says, such as `COMMIT of producer 5, epoch 0, coordinator epoch 3`."""
    try:
        kind = control_record_type(record)
        if kind not in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
            known = kind in ControlRecordType._value2member_map_
            return ControlRecordType(kind).name if known else f"control record of type {kind}"
        epoch = end_txn_coordinator_epoch(record)
    except CorruptRecord as error:
        return f"a control record that cannot be read: {error}"
    name = ControlRecordType(kind).name
    return f"{name} of producer {batch.producer_id}, epoch {batch.producer_epoch}, coordinator epoch {epoch}"
