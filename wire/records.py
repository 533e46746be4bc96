"""Record batches of magic 2: a zero-copy view of the header, the records inside, a builder, control records.

A batch is 61 bytes of header and then the records, compressed as one block when a codec is set (KIP-98, KIP-32):

    base offset 8 | batch length 4 | partition leader epoch 4 | magic 1 | crc 4 | attributes 2 | last offset delta 4
    | base timestamp 8 | max timestamp 8 | producer id 8 | producer epoch 2 | base sequence 4 | record count 4

    attributes: bits 0-2 codec, 3 timestamp type, 4 transactional, 5 control, 6 base timestamp is a delete horizon

The CRC-32C covers everything from the attributes on, so a broker may write the base offset and the leader epoch into
a batch that it otherwise leaves as it came. A record's timestamp and offset are deltas to the batch's, zig-zag varints.

Bytes that are no batch, or no records, raise CorruptRecord (CORRUPT_MESSAGE) and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from struct import Struct

from wire.compression import MAX_DECOMPRESSED_SIZE, Buffer, Codec, CorruptRecord, compress, decompress
from wire.crc import crc32c

__all__ = [
    "HEADER",
    "HEADER_SIZE",
    "LOG_OVERHEAD",
    "BatchBuilder",
    "BatchView",
    "Codec",
    "ControlRecordType",
    "CorruptRecord",
    "Record",
    "build_batch",
    "control_batch",
    "control_record_type",
    "end_txn_marker",
    "increment_sequence",
    "iter_batches",
    "iter_records",
    "set_base_offset_and_epoch",
    "set_log_append_time",
]

HEADER = Struct(">qiibIhiqqqhii")
HEADER_SIZE = 61
LOG_OVERHEAD = 12
"""Base offset and batch length: the bytes before the part that batch_length counts."""
CRC_START = 21
"""Where the attributes begin: the CRC covers from here to the end of the batch."""
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
_MIN_BATCH_LENGTH = HEADER_SIZE - LOG_OVERHEAD
_INT64 = Struct(">q")
_INT32 = Struct(">i")
_INT16 = Struct(">h")
_UINT32 = Struct(">I")
_CONTROL_KEY = Struct(">hh")
_END_TXN_VALUE = Struct(">hi")

Header = tuple[str, bytes | None]


class ControlRecordType(IntEnum):
    """The type in a control record's key."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class Record:
    """One record, with the batch's base offset, base timestamp and base sequence already added.

    `timestamp` is milliseconds since the epoch (-1 for none); `sequence` is -1 when the producer is not idempotent.
    """

    __slots__ = ("headers", "key", "offset", "sequence", "timestamp", "value")

    def __init__(
        self,
        offset: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: list[Header],
        sequence: int = NO_SEQUENCE,
    ) -> None:
        self.offset = offset
        self.timestamp = timestamp
        self.key = key
        self.value = value
        self.headers = headers
        self.sequence = sequence

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (
            f"Record(offset={self.offset}, timestamp={self.timestamp}, key={self.key!r}, value={self.value!r}, "
            f"headers={self.headers!r}, sequence={self.sequence})"
        )


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
            self.batch_length >= _MIN_BATCH_LENGTH and self.end <= len(self.buffer) and self.crc == self.computed_crc()
        )

    def __repr__(self) -> str:
        return (
            f"BatchView(offsets={self.base_offset}..{self.last_offset}, size={self.size}, count={self.record_count}, "
            f"codec={self.codec}, attributes={self.attributes:#x}, epoch={self.partition_leader_epoch}, "
            f"producer={self.producer_id}/{self.producer_epoch}/{self.base_sequence})"
        )


def increment_sequence(sequence: int, by: int) -> int:
    """A sequence `by` further on: after 2^31-1 comes 0 (rule I2)."""
    return sequence + by & MAX_INT32


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
        if batch.batch_length < _MIN_BATCH_LENGTH:
            raise CorruptRecord(f"A record batch of length {batch.batch_length} is shorter than its header")
        if batch.magic != MAGIC:
            raise CorruptRecord(f"A record batch of magic {batch.magic}; only {MAGIC} is supported")
        if batch.end > end:
            raise CorruptRecord(f"A record batch of {batch.size} bytes where {end - pos} are left")
        yield batch
        pos = batch.end


def _is_cut_off(buffer: Buffer, pos: int) -> bool:
    left = len(buffer) - pos
    return left < LOG_OVERHEAD or left < LOG_OVERHEAD + _INT32.unpack_from(buffer, pos + 8)[0]


def _batch_records(batch: BatchView, max_size: int) -> bytes:
    """The record section, decompressed."""
    if batch.end > len(batch.buffer) or batch.batch_length < _MIN_BATCH_LENGTH:
        raise CorruptRecord(f"A record batch of {batch.size} bytes where {len(batch.buffer) - batch.start} are left")
    if batch.record_count < 0:
        raise CorruptRecord(f"A record batch that counts {batch.record_count} records")
    return decompress(batch.codec, memoryview(batch.buffer)[batch.start + HEADER_SIZE : batch.end], max_size)


def iter_records(batch: BatchView, max_size: int = MAX_DECOMPRESSED_SIZE) -> Iterator[Record]:
    """The records of a batch, decompressed to at most `max_size` bytes. The CRC is not checked.

    Raises CorruptRecord, perhaps after some records: whoever needs all or nothing makes a list.
    """
    return _parse_records(batch, _batch_records(batch, max_size))


def _parse_records(batch: BatchView, data: bytes) -> Iterator[Record]:  # noqa: C901 (the hot loop, inlined)
    """Every bound is checked once a record, by the position at its end; a read past the data raises IndexError."""
    base_offset = batch.base_offset
    base_timestamp = batch.base_timestamp
    append_time = batch.max_timestamp if batch.attributes & TIMESTAMP_TYPE_BIT else None
    base_sequence = batch.base_sequence
    total = len(data)
    pos = 0
    try:
        for _ in range(batch.record_count):
            length = data[pos]
            pos += 1
            if length > 0x7F:
                length, pos = _unsigned(data, pos - 1)
            end = pos + (length >> 1)
            if length & 1 or end > total:
                raise CorruptRecord(f"A record of {_signed(length)} bytes where {total - pos} are left")
            pos += 1  # the record's own attributes: none are defined
            delta = data[pos]
            pos += 1
            if delta > 0x7F:
                delta, pos = _unsigned_long(data, pos - 1)
            timestamp = base_timestamp + (delta >> 1 ^ -(delta & 1)) if append_time is None else append_time
            delta = data[pos]
            pos += 1
            if delta > 0x7F:
                delta, pos = _unsigned(data, pos - 1)
            delta = delta >> 1 ^ -(delta & 1)
            length = data[pos]
            pos += 1
            if length > 0x7F:
                length, pos = _unsigned(data, pos - 1)
            key = None
            if not length & 1:
                start, pos = pos, pos + (length >> 1)
                key = data[start:pos]
            length = data[pos]
            pos += 1
            if length > 0x7F:
                length, pos = _unsigned(data, pos - 1)
            value = None
            if not length & 1:
                start, pos = pos, pos + (length >> 1)
                value = data[start:pos]
            count = data[pos]
            pos += 1
            headers: list[Header] = []
            if count:
                headers, pos = _parse_headers(data, pos - 1, end)
            if pos != end:
                raise CorruptRecord(f"A record whose fields end {pos - end} bytes after its length says")
            sequence = NO_SEQUENCE if base_sequence == NO_SEQUENCE else base_sequence + delta & MAX_INT32
            yield Record(base_offset + delta, timestamp, key, value, headers, sequence)
    except IndexError:
        raise CorruptRecord("The records end early") from None
    if pos != total:
        raise CorruptRecord(f"{total - pos} bytes after the last of {batch.record_count} records")


def _parse_headers(data: bytes, pos: int, end: int) -> tuple[list[Header], int]:
    count, pos = _unsigned(data, pos)
    count = _signed(count)
    if not 0 <= count <= end - pos:
        raise CorruptRecord(f"A record that counts {count} headers in {end - pos} bytes")
    headers: list[Header] = []
    for _ in range(count):
        length, pos = _unsigned(data, pos)
        if length & 1 or pos + (length >> 1) > end:
            raise CorruptRecord(f"A header key of {_signed(length)} bytes where {end - pos} are left")
        start, pos = pos, pos + (length >> 1)
        key = data[start:pos].decode("utf-8", "replace")  # as Java's String does
        length, pos = _unsigned(data, pos)
        if length & 1:
            headers.append((key, None))
            continue
        start, pos = pos, pos + (length >> 1)
        headers.append((key, data[start:pos]))
        if pos > end:
            raise CorruptRecord("A header value that reaches past its record")
    return headers, pos


def _signed(unsigned: int) -> int:
    return unsigned >> 1 ^ -(unsigned & 1)


def _unsigned(data: bytes, pos: int) -> tuple[int, int]:
    """An unsigned varint of at most 32 bits, and the position after it."""
    byte = data[pos]
    if byte < 0x80:
        return byte, pos + 1
    second = data[pos + 1]
    if second < 0x80:
        return byte & 0x7F | second << 7, pos + 2
    value, pos = _long_varint(data, pos, 5)
    return value & 0xFFFFFFFF, pos


def _unsigned_long(data: bytes, pos: int) -> tuple[int, int]:
    """An unsigned varint of at most 64 bits, and the position after it."""
    value, pos = _long_varint(data, pos, 10)
    return value & 0xFFFFFFFFFFFFFFFF, pos


def _long_varint(data: bytes, pos: int, max_bytes: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 7 * max_bytes, 7):
        byte = data[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, pos
    raise CorruptRecord(f"A varint of more than {max_bytes} bytes")


# --- building -----------------------------------------------------------------------------------------------------


def _encode_unsigned(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _varint(value: int) -> bytes:
    """Zig-zag varint of a signed number of at most 64 bits."""
    return _encode_unsigned(value << 1 if value >= 0 else (-value << 1) - 1)


_VARINTS = [_varint(number) for number in range(1024)]
_KNOWN = len(_VARINTS)
_NULL = _varint(-1)
_NO_HEADERS = _varint(0)


class BatchBuilder:
    """Collects records into one batch. The base timestamp is the first record's, as Kafka's MemoryRecordsBuilder does.

    With `timestamp_type` LOG_APPEND_TIME the batch's max timestamp is `log_append_time_ms` (or the greatest given).
    `delete_horizon_ms` becomes the base timestamp and sets its attribute bit (rule L8). `level` is the codec's.
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
        """Bytes of the batch so far, before compression."""
        return HEADER_SIZE + self._size

    def append(
        self,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Iterable[Header] = (),
        offset: int | None = None,
    ) -> None:
        """Add a record at the next offset, or at `offset` (the cleaner keeps offsets, rule L7).

        Raises ValueError for a negative timestamp other than -1, or an offset that does not increase.
        """
        if offset is None:
            offset = self._next_offset
        elif offset < self._next_offset:
            raise ValueError(f"Offset {offset} after {self._next_offset - 1}")
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
                _VARINTS[delta] if 0 <= delta < _KNOWN else _varint(delta),
                _VARINTS[offset] if offset < _KNOWN else _varint(offset),
                _NULL if key is None else _VARINTS[len(key)] + key if len(key) < _KNOWN else _varint(len(key)) + key,
                _NULL if value is None else _VARINTS[len(value)] if len(value) < _KNOWN else _varint(len(value)),
                value or b"",
                _build_headers(headers) if headers else _NO_HEADERS,
            )
        )
        size = len(fields)
        length = _VARINTS[size] if size < _KNOWN else _varint(size)
        self._parts += (length, fields)
        self._size += size + len(length)
        self.count += 1

    def build(self, last_offset: int | None = None) -> bytes:
        """The batch. `last_offset` keeps a last offset whose record is gone (rule L9: sequence memory)."""
        records = b"".join(self._parts)
        codec = self.attributes & CODEC_MASK
        if codec and records:
            records = compress(codec, records, self._level)
        max_timestamp = self._max_timestamp
        if self.attributes & TIMESTAMP_TYPE_BIT and self._log_append_time_ms is not None:
            max_timestamp = self._log_append_time_ms
        header = bytearray(HEADER_SIZE)
        HEADER.pack_into(
            header,
            0,
            self.base_offset,
            _MIN_BATCH_LENGTH + len(records),
            self.partition_leader_epoch,
            MAGIC,
            0,
            self.attributes,
            (self._next_offset - 1 if last_offset is None else last_offset) - self.base_offset,
            NO_TIMESTAMP if self._base_timestamp is None else self._base_timestamp,
            max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.count,
        )
        _UINT32.pack_into(header, 17, crc32c(records, crc32c(memoryview(header)[CRC_START:])))
        return b"".join((header, records))


def _build_headers(headers: Iterable[Header]) -> bytes:
    pairs = list(headers)
    out = [_varint(len(pairs))]
    for key, value in pairs:
        encoded = key.encode()
        out += (_varint(len(encoded)), encoded)
        out += (_NULL,) if value is None else (_varint(len(value)), value)
    return b"".join(out)


def build_batch(
    records: Iterable[
        tuple[int, bytes | None, bytes | None] | tuple[int, bytes | None, bytes | None, Iterable[Header]]
    ],
    base_offset: int = 0,
    codec: int = Codec.NONE,
    **batch: int | bool | None,
) -> bytes:
    """One batch of (timestamp, key, value[, headers]) tuples; `batch` takes what BatchBuilder does."""
    builder = BatchBuilder(base_offset, codec, **batch)  # type: ignore[arg-type]
    for record in records:
        builder.append(*record)
    return builder.build()


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
    """A batch of one control record: key (version 0, type), `value` as given (version included)."""
    builder = BatchBuilder(
        base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=transactional,
        control=True,
        partition_leader_epoch=partition_leader_epoch,
    )
    builder.append(timestamp_ms, _CONTROL_KEY.pack(0, kind), value)
    return builder.build()


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
    """The batch that ends a transaction in one partition (rule T5)."""
    return control_batch(
        ControlRecordType.COMMIT if commit else ControlRecordType.ABORT,
        _END_TXN_VALUE.pack(0, coordinator_epoch),
        timestamp_ms=timestamp_ms,
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        partition_leader_epoch=partition_leader_epoch,
    )


def control_record_type(record: Record) -> int:
    """The type in a control record's key (a ControlRecordType, or a number yet unknown). Raises CorruptRecord."""
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


# --- patching in place --------------------------------------------------------------------------------------------


def set_base_offset_and_epoch(batch: memoryview | bytearray, base_offset: int, leader_epoch: int) -> None:
    """Write the offset and the leader epoch that an append gives to a batch: both are outside the CRC."""
    _INT64.pack_into(batch, 0, base_offset)
    _INT32.pack_into(batch, 12, leader_epoch)


def set_log_append_time(batch: memoryview | bytearray, now_ms: int) -> None:
    """Give every record of a batch the broker's time (message.timestamp.type=LogAppendTime), and a new CRC."""
    view = memoryview(batch)
    size = LOG_OVERHEAD + _INT32.unpack_from(view, 8)[0]
    if not HEADER_SIZE <= size <= len(view):
        raise CorruptRecord(f"A record batch of {size} bytes where {len(view)} are left")
    _INT16.pack_into(view, CRC_START, _INT16.unpack_from(view, CRC_START)[0] | TIMESTAMP_TYPE_BIT)
    _INT64.pack_into(view, 35, now_ms)
    _UINT32.pack_into(view, 17, crc32c(view[CRC_START:size]))
