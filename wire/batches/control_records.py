"""Builds and reads control batches: transaction markers, and control records of the metadata log."""

from __future__ import annotations

from functools import lru_cache
from struct import Struct

from barnabas.wire.batches.batch_builder import BatchBuilder, encode_batch
from barnabas.wire.batches.batch_format import (
    CONTROL_BIT,
    HEADER_SIZE,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    TRANSACTIONAL_BIT,
    ControlRecordType,
    Record,
)
from barnabas.wire.errors import CorruptRecord

_CONTROL_KEY = Struct(">hh")
_END_TXN_VALUE = Struct(">hi")
_END_TXN_ATTRIBUTES = TRANSACTIONAL_BIT | CONTROL_BIT


def control_batch(
    kind: int,
    value: bytes,
    *,
    timestamp_ms: int,
    base_offset: int = 0,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    transactional: bool = False,
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
) -> bytes:
    """A batch of one control record: `kind` is its type, `value` its encoded value, version included."""
    builder = BatchBuilder(
        base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=transactional,
        control=True,
        partition_leader_epoch=partition_leader_epoch,
    )
    builder.append(timestamp_ms, control_key(kind), value)
    return builder.build()


def control_key(kind: int) -> bytes:
    """The key of a control record: version 0 and the type (a ControlRecordType)."""
    return _CONTROL_KEY.pack(0, kind)


def end_txn_marker(
    *,
    commit: bool,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    timestamp_ms: int,
    base_offset: int = 0,
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
) -> bytes:
    """The batch of a transaction marker, which ends a transaction in one partition (T5, KIP-98)."""
    return encode_batch(
        _end_txn_record(commit, coordinator_epoch),
        1,
        _END_TXN_ATTRIBUTES,
        base_offset,
        base_offset,
        partition_leader_epoch,
        timestamp_ms,
        timestamp_ms,
        producer_id,
        producer_epoch,
    )


@lru_cache(maxsize=256)
def _end_txn_record(commit: bool, coordinator_epoch: int) -> bytes:
    """The record in a transaction marker."""
    kind = ControlRecordType.COMMIT if commit else ControlRecordType.ABORT
    return control_batch(kind, _END_TXN_VALUE.pack(0, coordinator_epoch), timestamp_ms=0)[HEADER_SIZE:]


def control_record_type(record: Record) -> int:
    """The type of a control record: a ControlRecordType or an unknown number. Raises CorruptRecord."""
    if record.key is None or len(record.key) < 4:
        raise CorruptRecord("A control record without a type in its key")
    kind: int = _CONTROL_KEY.unpack_from(record.key)[1]
    return kind


def end_txn_coordinator_epoch(record: Record) -> int:
    """The coordinator epoch in the value of an ABORT or COMMIT record. Raises CorruptRecord."""
    if record.value is None or len(record.value) < _END_TXN_VALUE.size:
        raise CorruptRecord("An end transaction marker without a coordinator epoch")
    epoch: int = _END_TXN_VALUE.unpack_from(record.value)[1]
    return epoch
