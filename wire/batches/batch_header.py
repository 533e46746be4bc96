"""The headers of record batches: one header, a batch in memory, and the walk from batch to batch of all readers.

A header is unpacked once, then used by checks, producer state and segment. It keeps no buffer, so a scan of a large
file frees what it has read. Nothing here checks CRCs; a batch of other bytes than magic 2 is the caller's to refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from struct import Struct
from typing import TypeAlias, TypeVar

from barnabas.wire.batches.batch_format import (
    CODEC_MASK,
    CONTROL_BIT,
    CRC_OFFSET,
    CRC_START,
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_SIZE,
    LENGTH_OFFSET,
    LOG_OVERHEAD,
    MAGIC,
    MAX_INT32,
    MAX_TIMESTAMP_OFFSET,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
)
from barnabas.wire.batches.crc import crc32c
from barnabas.wire.batches.decompression import Buffer
from barnabas.wire.errors import CorruptRecord

_INT64 = Struct(">q")
_INT32 = Struct(">i")
_INT16 = Struct(">h")
_UINT32 = Struct(">I")


class BatchHeader:
    """One batch's header and the position where the batch starts in its buffer or file.

    An append updates it when it assigns offsets.
    """

    __slots__ = (
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "crc",
        "last_offset",
        "magic",
        "max_timestamp",
        "partition_leader_epoch",
        "position",
        "producer_epoch",
        "producer_id",
        "record_count",
        "size",
    )

    base_offset: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int
    size: int
    """The size of the batch in bytes, header included."""
    last_offset: int

    def __init__(self, buffer: Buffer, at: int, position: int) -> None:
        """The header at `at` in `buffer`, which must have 61 bytes from there on."""
        (
            self.base_offset,
            length,
            self.partition_leader_epoch,
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
        self.size = length + LOG_OVERHEAD
        self.last_offset = self.base_offset + last_offset_delta

    @property
    def next_offset(self) -> int:
        """The offset after the batch."""
        return self.last_offset + 1

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record; sequences wrap from 2^31-1 to 0 (I2)."""
        if self.base_sequence < 0:
            return self.base_sequence
        return (self.base_sequence + self.last_offset - self.base_offset) & MAX_INT32

    @property
    def codec(self) -> int:
        """The number of the compression codec, 0 for none."""
        return self.attributes & CODEC_MASK

    @property
    def timestamp_type(self) -> int:
        """0 CreateTime, 1 LogAppendTime."""
        return self.attributes >> 3 & 1

    @property
    def is_transactional(self) -> bool:
        """Whether the batch belongs to a transaction."""
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        """Whether the batch holds a control record."""
        return self.attributes & CONTROL_BIT != 0

    @property
    def delete_horizon_ms(self) -> int | None:
        """When the cleaner may remove tombstones and markers (L8, KIP-534): the base timestamp, if its bit is set."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_BIT else None


class BatchView(BatchHeader):
    """The batch that starts at `start` in `buffer`: its header and its bytes, neither copied nor validated.

    Raises CorruptRecord when there are fewer than 61 bytes. Later changes of the buffer do not change the fields.
    `buffer` may be longer than the batch, or may end before its last record.
    """

    __slots__ = ("buffer", "start")

    def __init__(self, buffer: Buffer, start: int = 0, position: int | None = None) -> None:
        """`position` is where the batch starts in its file; by default `start`."""
        if start + HEADER_SIZE > len(buffer):
            raise CorruptRecord(f"A record batch of {len(buffer) - start} bytes is shorter than its header")
        super().__init__(buffer, start, start if position is None else position)
        self.buffer = buffer
        self.start = start

    @property
    def end(self) -> int:
        """The position in `buffer` of the end of the batch."""
        return self.start + self.size

    @property
    def view(self) -> memoryview:
        """The bytes of the batch, not copied."""
        return memoryview(self.buffer)[self.start : self.start + self.size]

    def computed_crc(self) -> int:
        """The CRC-32C of the bytes that it covers."""
        return crc32c(memoryview(self.buffer)[self.start + CRC_START : self.end])

    def crc_is_valid(self) -> bool:
        """Whether the whole batch is in the buffer and its CRC matches its bytes."""
        return self.size >= HEADER_SIZE and self.end <= len(self.buffer) and self.crc == self.computed_crc()

    def __repr__(self) -> str:
        return (
            f"BatchView(offsets={self.base_offset}..{self.last_offset}, size={self.size}, count={self.record_count}, "
            f"codec={self.codec}, attributes={self.attributes:#x}, epoch={self.partition_leader_epoch}, "
            f"producer={self.producer_id}/{self.producer_epoch}/{self.base_sequence})"
        )


H = TypeVar("H", bound=BatchHeader)
Make: TypeAlias = Callable[[Buffer, int, int], H]
"""(buffer, where the batch starts in it, its position): BatchHeader, BatchView or a subclass."""
Read: TypeAlias = Callable[[int, int], Buffer]
"""(how many bytes at least, position): the bytes from a position of a file on; it may read ahead."""


def walk_batches(
    make: Make[H],
    buffer: Buffer,
    end: int,
    position: int = 0,
    read: Read | None = None,
    needs_bytes: Callable[[H], object] | None = None,
) -> Iterator[H]:
    """The batches from `position` up to `end`, each as what `make` makes of it.

    `buffer` has the bytes from `position` on; where it ends `read` reads more. A batch is read wholly if `needs_bytes`
    says so; of others only the header is sure to be in the buffer. The walk stops before bytes that cannot be a whole
    batch: a length smaller than a header, or a batch that ends after `end`. The caller compares where the last batch
    ended with `end`.
    """
    start = position
    while position + HEADER_SIZE <= end:
        at = position - start
        if at + HEADER_SIZE > len(buffer):
            if read is None:
                return
            start, at = position, 0
            buffer = read(HEADER_SIZE, position)
            if len(buffer) < HEADER_SIZE:
                return
        header = make(buffer, at, position)
        size = header.size
        if size < HEADER_SIZE or position + size > end:
            return
        if needs_bytes is not None and at + size > len(buffer) and needs_bytes(header):
            assert read is not None
            start = position
            buffer = read(size, position)
            header = make(buffer, 0, position)
        yield header
        position += size


def iter_batches(buffer: Buffer, *, partial_ok: bool = False) -> Iterator[BatchView]:
    """The batches of `buffer`. CRCs are not checked.

    With `partial_ok` an incomplete last batch is ignored, as consumers do at the end of a fetch response. Raises
    CorruptRecord for an incomplete batch, a batch length smaller than a header, or a magic other than 2.
    """
    position, end = 0, len(buffer)
    for batch in walk_batches(BatchView, buffer, end):
        if batch.magic != MAGIC:
            break
        yield batch
        position = batch.end
    size = size_at(buffer, position)
    if position == end or (partial_ok and (size is None or size > end - position)):
        return
    batch = BatchView(buffer, position)
    if batch.size < HEADER_SIZE:
        raise CorruptRecord(f"A record batch of length {batch.size - LOG_OVERHEAD} is shorter than its header")
    if batch.magic != MAGIC:
        raise CorruptRecord(f"A record batch of magic {batch.magic}; only {MAGIC} is supported")
    raise CorruptRecord(f"A record batch of {batch.size} bytes with {end - position} bytes remaining")


def size_at(buffer: Buffer, position: int) -> int | None:
    """The size of the batch at a position, by its length; None if the buffer ends before that."""
    if len(buffer) - position < LOG_OVERHEAD:
        return None
    length: int = _INT32.unpack_from(buffer, position + LENGTH_OFFSET)[0]
    return length + LOG_OVERHEAD


def set_log_append_time(batch: memoryview | bytearray, now_ms: int) -> None:
    """Set the timestamp of all records to the broker's time (message.timestamp.type=LogAppendTime); update the CRC."""
    view = memoryview(batch)
    size = LOG_OVERHEAD + _INT32.unpack_from(view, LENGTH_OFFSET)[0]
    if not HEADER_SIZE <= size <= len(view):
        raise CorruptRecord(f"A record batch of {size} bytes in a buffer of {len(view)}")
    _INT16.pack_into(view, CRC_START, _INT16.unpack_from(view, CRC_START)[0] | TIMESTAMP_TYPE_BIT)
    _INT64.pack_into(view, MAX_TIMESTAMP_OFFSET, now_ms)
    _UINT32.pack_into(view, CRC_OFFSET, crc32c(view[CRC_START:size]))


def set_create_time(batch: memoryview) -> None:
    """Let the records of a batch have their own timestamps (message.timestamp.type=CreateTime); update the CRC."""
    _INT16.pack_into(batch, CRC_START, _INT16.unpack_from(batch, CRC_START)[0] & ~TIMESTAMP_TYPE_BIT)
    _UINT32.pack_into(batch, CRC_OFFSET, crc32c(batch[CRC_START:]))
