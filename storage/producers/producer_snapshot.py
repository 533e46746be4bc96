"""The format of producer snapshots, `<offset>.snapshot`: the producer state at an offset (I5).

Kafka's `ProducerSnapshot`, big endian: int16 version 1, uint32 CRC-32C of all that follows, int32 count, then entries:
producer id int64, epoch int16, last sequence int32, last offset int64, offset delta int32, timestamp int64, coordinator
epoch int32, first offset of the open transaction int64 (-1 for none). Of a producer's batches only the last is stored.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from struct import error as struct_error

from barnabas.storage.producers.producer_entry import NO_OFFSET, NO_SEQUENCE, BatchMetadata, ProducerEntry
from barnabas.wire.batches.crc import crc32c
from barnabas.wire.batches.records import MAX_INT32

_HEADER = Struct(">hIi")
_COUNT = Struct(">i")
_CRC_START = 6
_VERSION = 1
_ENTRY = Struct(">qhiqiqiq")


class CorruptSnapshot(Exception):  # noqa: N818 - named after the condition
    """A producer snapshot is damaged."""


def encode_snapshot(entries: Iterable[ProducerEntry]) -> bytes:
    """The bytes of a snapshot file."""
    packed = [_encode_entry(entry) for entry in entries]
    content = b"".join([_COUNT.pack(len(packed)), *packed])
    return _HEADER.pack(_VERSION, crc32c(content), len(packed)) + content[_COUNT.size :]


def _encode_entry(entry: ProducerEntry) -> bytes:
    last = entry.batches[-1] if entry.batches else None
    return _ENTRY.pack(
        entry.producer_id,
        entry.producer_epoch,
        last.last_sequence if last else NO_SEQUENCE,
        last.last_offset if last else NO_OFFSET,
        last.last_offset - last.first_offset if last else 0,
        entry.last_timestamp,
        entry.coordinator_epoch,
        entry.current_txn_first_offset,
    )


def decode_snapshot(data: bytes) -> list[ProducerEntry]:
    """The entries of a snapshot file; CorruptSnapshot when it is damaged."""
    try:
        version, crc, count = _HEADER.unpack_from(data, 0)
    except struct_error as error:
        raise CorruptSnapshot("the snapshot is too short") from error
    if version != _VERSION:
        raise CorruptSnapshot(f"snapshot version {version} is unknown")
    if crc32c(memoryview(data)[_CRC_START:]) != crc:
        raise CorruptSnapshot("the CRC of the snapshot does not match its bytes")
    if len(data) != _HEADER.size + count * _ENTRY.size:
        raise CorruptSnapshot("the snapshot's length does not match its count")
    return [_decode_entry(*fields) for fields in _ENTRY.iter_unpack(data[_HEADER.size :])]


def _decode_entry(
    producer_id: int,
    epoch: int,
    last_sequence: int,
    last_offset: int,
    offset_delta: int,
    timestamp: int,
    coordinator_epoch: int,
    first_txn_offset: int,
) -> ProducerEntry:
    entry = ProducerEntry(producer_id, epoch)
    entry.last_timestamp = timestamp
    entry.coordinator_epoch = coordinator_epoch
    entry.current_txn_first_offset = first_txn_offset
    if last_offset >= 0:
        first_sequence = (last_sequence - offset_delta) & MAX_INT32 if last_sequence >= 0 else last_sequence
        entry.batches.append(
            BatchMetadata(first_sequence, last_sequence, last_offset - offset_delta, last_offset, timestamp)
        )
    return entry
