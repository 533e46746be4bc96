"""Builds record batches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from barnabas.wire.batches.batch_format import (
    CODEC_MASK,
    CONTROL_BIT,
    CREATE_TIME,
    DELETE_HORIZON_BIT,
    HEADER_BEFORE_CRC_START,
    HEADER_FROM_CRC_START,
    HEADER_SIZE,
    MAGIC,
    MIN_BATCH_LENGTH,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    Header,
)
from barnabas.wire.batches.compression import Codec, compress
from barnabas.wire.batches.crc import crc32c
from barnabas.wire.varint import encode_varint

_VARINTS = [encode_varint(number) for number in range(1024)]
_KNOWN = len(_VARINTS)
_NULL = encode_varint(-1)
_NO_HEADERS = encode_varint(0)


class BatchBuilder:
    """Collects records into one batch. The base timestamp is the first record's, as in MemoryRecordsBuilder.

    With `timestamp_type` LOG_APPEND_TIME the max timestamp is `log_append_time_ms`, if given. `delete_horizon_ms`
    becomes the base timestamp and sets the attribute bit (L8, KIP-534). `level` is the compression level.
    """

    __slots__ = (
        "_base_timestamp",
        "_delete_horizon_ms",
        "_first_offset",
        "_level",
        "_log_append_time_ms",
        "_max_timestamp",
        "_next_offset",
        "_parts",
        "_size",
        "attributes",
        "base_offset",
        "base_sequence",
        "count",
        "partition_leader_epoch",
        "producer_epoch",
        "producer_id",
    )

    def __init__(
        self,
        base_offset: int = 0,
        codec: int = Codec.NONE,
        timestamp_type: int = CREATE_TIME,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        base_sequence: int = NO_SEQUENCE,
        transactional: bool = False,
        control: bool = False,
        partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
        level: int | None = None,
        log_append_time_ms: int | None = None,
        delete_horizon_ms: int | None = None,
    ) -> None:
        self.base_offset = base_offset
        self.attributes = (
            Codec(codec)
            | (TIMESTAMP_TYPE_BIT if timestamp_type else 0)
            | (TRANSACTIONAL_BIT if transactional else 0)
            | (CONTROL_BIT if control else 0)
            | (DELETE_HORIZON_BIT if delete_horizon_ms is not None else 0)
        )
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.partition_leader_epoch = partition_leader_epoch
        self.count = 0
        self._level = level
        self._log_append_time_ms = log_append_time_ms
        self._delete_horizon_ms = delete_horizon_ms
        self._base_timestamp = delete_horizon_ms
        self._max_timestamp = NO_TIMESTAMP
        self._next_offset = base_offset
        self._parts: list[bytes] = []
        self._size = 0

    @property
    def size_estimate(self) -> int:
        """The size of the batch so far in bytes, before compression."""
        return HEADER_SIZE + self._size

    def append(
        self,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Iterable[Header] = (),
        offset: int | None = None,
    ) -> None:
        """Add a record with the next offset, or with `offset` (the cleaner retains offsets, L7).

        Raises ValueError for a negative timestamp other than -1, or an offset below the next one.
        """
        if offset is None:
            offset = self._next_offset
        elif offset < self._next_offset:
            raise ValueError(f"Offset {offset} is not greater than the last offset {self._next_offset - 1}")
        self._next_offset = offset + 1
        if self._base_timestamp is None:
            self._base_timestamp = timestamp
        if timestamp > self._max_timestamp:
            self._max_timestamp = timestamp
        elif timestamp < NO_TIMESTAMP:
            raise ValueError(f"Invalid negative timestamp {timestamp}")
        delta = timestamp - self._base_timestamp
        offset -= self.base_offset
        fields = b"".join(
            (
                b"\x00",
                _VARINTS[delta] if 0 <= delta < _KNOWN else encode_varint(delta),
                _VARINTS[offset] if offset < _KNOWN else encode_varint(offset),
                _NULL
                if key is None
                else _VARINTS[len(key)] + key
                if len(key) < _KNOWN
                else encode_varint(len(key)) + key,
                _NULL if value is None else _VARINTS[len(value)] if len(value) < _KNOWN else encode_varint(len(value)),
                value or b"",
                _build_headers(headers) if headers else _NO_HEADERS,
            )
        )
        size = len(fields)
        length = _VARINTS[size] if size < _KNOWN else encode_varint(size)
        self._parts += (length, fields)
        self._size += size + len(length)
        self.count += 1

    def build(self, last_offset: int | None = None) -> bytes:
        """The encoded batch. `last_offset`: retain a last offset whose record was removed, and so its sequence (L9)."""
        records = b"".join(self._parts)
        codec = self.attributes & CODEC_MASK
        if codec and records:
            records = compress(codec, records, self._level)
        max_timestamp = self._max_timestamp
        if self.attributes & TIMESTAMP_TYPE_BIT and self._log_append_time_ms is not None:
            max_timestamp = self._log_append_time_ms
        return encode_batch(
            records,
            self.count,
            self.attributes,
            self.base_offset,
            self._next_offset - 1 if last_offset is None else last_offset,
            self.partition_leader_epoch,
            NO_TIMESTAMP if self._base_timestamp is None else self._base_timestamp,
            max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
        )


def batch_of_one(timestamp: int, key: bytes, value: bytes | None) -> bytes:
    """A batch of one record without headers, not compressed, of no producer: what `BatchBuilder` builds of it.

    A coordinator writes one such batch for a commit or a heartbeat: the builder takes four times as long.
    """
    size = len(key)
    key_size = _VARINTS[size] if size < _KNOWN else encode_varint(size)
    if value is None:
        fields = b"".join((b"\0\0\0", key_size, key, _NULL, _NO_HEADERS))
    else:
        size = len(value)
        value_size = _VARINTS[size] if size < _KNOWN else encode_varint(size)
        fields = b"".join((b"\0\0\0", key_size, key, value_size, value, _NO_HEADERS))
    size = len(fields)
    records = (_VARINTS[size] if size < _KNOWN else encode_varint(size)) + fields
    return encode_batch(records, 1, 0, 0, 0, NO_PARTITION_LEADER_EPOCH, timestamp, timestamp)


def record_head(key: bytes, value_size: int) -> bytes:
    """What a record without headers has between its offset delta and its value."""
    return encode_varint(len(key)) + key + encode_varint(value_size)


def batch_of_bodies(timestamp: int, bodies: Sequence[bytes]) -> bytes:
    """A batch of records without headers and with one timestamp, not compressed, of no producer.

    A body is a `record_head` and the value.
    """
    parts: list[bytes] = []
    for offset, body in enumerate(bodies):
        delta = _VARINTS[offset] if offset < _KNOWN else encode_varint(offset)
        size = len(body) + len(delta) + 3  # attributes, timestamp delta, header count
        parts += (_VARINTS[size] if size < _KNOWN else encode_varint(size), b"\0\0", delta, body, _NO_HEADERS)
    count = len(bodies)
    return encode_batch(b"".join(parts), count, 0, 0, count - 1, NO_PARTITION_LEADER_EPOCH, timestamp, timestamp)


def encode_batch(
    records: bytes,
    count: int,
    attributes: int,
    base_offset: int,
    last_offset: int,
    partition_leader_epoch: int,
    base_timestamp: int,
    max_timestamp: int,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
) -> bytes:
    """A batch from its header fields and `records`, which are encoded and, if `attributes` set a codec, compressed."""
    checked = HEADER_FROM_CRC_START.pack(
        attributes,
        last_offset - base_offset,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    )
    crc = crc32c(records, crc32c(checked))
    length = MIN_BATCH_LENGTH + len(records)
    return b"".join(
        (HEADER_BEFORE_CRC_START.pack(base_offset, length, partition_leader_epoch, MAGIC, crc), checked, records)
    )


def _build_headers(headers: Iterable[Header]) -> bytes:
    pairs = list(headers)
    out = [encode_varint(len(pairs))]
    for key, value in pairs:
        encoded = key.encode()
        out += (encode_varint(len(encoded)), encoded)
        out += (_NULL,) if value is None else (encode_varint(len(value)), value)
    return b"".join(out)


def build_batch(
    records: Iterable[
        tuple[int, bytes | None, bytes | None] | tuple[int, bytes | None, bytes | None, Iterable[Header]]
    ],
    base_offset: int = 0,
    codec: int = Codec.NONE,
    **batch: int | bool | None,
) -> bytes:
    """One batch of (timestamp, key, value[, headers]) tuples; `batch`: further arguments of BatchBuilder."""
    builder = BatchBuilder(base_offset, codec, **batch)  # type: ignore[arg-type]
    for record in records:
        builder.append(*record)
    return builder.build()
