"""Decompresses the records of a batch in steps of bounded output, for the five codecs.

A step reads a bounded part of the input and gives at most `STEP_BYTES` (zstd: one block of 128 KiB; snappy, which has
no steps inside a block: one block, at most 22 times its compressed size). So neither the time of a step nor its memory
depends on what the data expands to. The work is linear in input and output, also for many empty members or blocks.
Which streams are read: `wire.batches.compression`.

Every failure is CorruptRecord. The libraries are imported on first use: most brokers never decompress.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from barnabas.wire.errors import CorruptRecord, RecordsTooLarge
from barnabas.wire.varint import record_varint

Buffer = bytes | bytearray | memoryview

STEP_BYTES: Final = 64 * 1024
"""The output of a step, in bytes."""
MAX_EXPANSION: Final = (1, 1032, 22, 255, 32_768)
"""By codec: the most bytes that one byte of compressed data can become. Deflate has matches of 258 bytes in 2 bits,
snappy copies of 64 bytes in 3, lz4 length bytes of 255, zstd blocks of 128 KiB in 4."""

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER_SIZE = 16
_LZ4_MAGIC = b"\x04\x22\x4d\x18"
_LZ4_INDEPENDENT_BLOCKS = 0x20
_ZSTD_HEADER_BYTES = 18
_ZSTD_RLE_BLOCK = 1
_PLAIN_BYTES = 1 << 20
_INPUT_BYTES = 16 * 1024
_INPUT_BYTES_AFTER_A_MEMBER = 512  # gzip returns what it has not used: a short input keeps many empty members cheap
_INT32 = struct.Struct(">i")


class Source:
    """The compressed bytes of a batch, read from the front.

    `data` may be replaced by a copy between two steps, because no step keeps a view of it.
    """

    __slots__ = ("data", "pos")

    def __init__(self, data: Buffer) -> None:
        self.data = memoryview(data)
        self.pos = 0

    def read(self, size: int) -> bytes:
        """The next `size` bytes, fewer at the end."""
        piece = bytes(self.data[self.pos : self.pos + size])
        self.pos += len(piece)
        return piece

    @property
    def remaining(self) -> int:
        """The number of bytes that have not been read."""
        return len(self.data) - self.pos


def decompressed_steps(codec: int, source: Source, max_size: int) -> Iterator[bytes]:
    """The decompressed bytes, a piece for each step; a piece may be empty.

    CorruptRecord for invalid data, an unknown codec, or as soon as there are more than `max_size` bytes.
    """
    if codec == 0:
        steps = _plain(source)
    elif codec == 1:
        steps = _gunzip(source)
    elif codec == 2:
        steps = _unsnappy(source, max_size)
    elif codec == 3:
        steps = _unlz4(source)
    elif codec == 4:
        steps = _unzstd(source)
    else:
        raise CorruptRecord(f"Unknown compression codec {codec}")
    remaining = max_size
    for piece in steps:
        remaining -= len(piece)
        if remaining < 0:
            raise too_large(max_size)
        yield piece


def too_large(max_size: int) -> RecordsTooLarge:
    """The error for records of more than `max_size` bytes."""
    return RecordsTooLarge(f"The uncompressed records are larger than the limit of {max_size} bytes")


def _plain(source: Source) -> Iterator[bytes]:
    while piece := source.read(_PLAIN_BYTES):
        yield piece


def _gunzip(source: Source) -> Iterator[bytes]:
    import zlib

    inflate = zlib.decompressobj(31)
    input_bytes = _INPUT_BYTES
    try:
        while True:
            piece = source.read(input_bytes)
            if not piece:
                raise CorruptRecord("The gzip stream is truncated")
            input_bytes = min(2 * input_bytes, _INPUT_BYTES)
            yield inflate.decompress(piece, STEP_BYTES)
            while inflate.unconsumed_tail:
                yield inflate.decompress(inflate.unconsumed_tail, STEP_BYTES)
            if inflate.eof:
                source.pos -= len(inflate.unused_data)
                if not source.remaining:
                    return
                inflate = zlib.decompressobj(31)
                input_bytes = _INPUT_BYTES_AFTER_A_MEMBER
    except zlib.error as error:
        raise CorruptRecord(f"Invalid gzip data: {error}") from None


def _unsnappy(source: Source, max_size: int) -> Iterator[bytes]:
    remaining = max_size
    if source.data[:8] != _XERIAL_MAGIC:
        yield from _in_steps(_unsnappy_block(source.read(source.remaining), remaining, max_size))
        return
    if source.remaining < _XERIAL_HEADER_SIZE:
        raise CorruptRecord("The snappy stream is truncated in its header")
    source.pos = _XERIAL_HEADER_SIZE
    while source.remaining:
        if source.data[source.pos : source.pos + 8] == _XERIAL_MAGIC:  # snappy-java reads concatenated streams
            source.pos += _XERIAL_HEADER_SIZE
            yield b""
            continue
        if source.remaining < 4:
            raise CorruptRecord("The snappy stream is truncated in the length of a block")
        (length,) = _INT32.unpack_from(source.data, source.pos)
        source.pos += 4
        if length <= 0 or length > source.remaining:
            raise CorruptRecord(f"A snappy block of {length} bytes with {source.remaining} bytes remaining")
        block = _unsnappy_block(source.read(length), remaining, max_size)
        remaining -= len(block)
        yield from _in_steps(block)


def _in_steps(block: bytes) -> Iterator[bytes]:
    if len(block) <= STEP_BYTES:
        yield block
        return
    for start in range(0, len(block), STEP_BYTES):
        yield block[start : start + STEP_BYTES]


def _unsnappy_block(data: bytes, remaining: int, max_size: int) -> bytes:
    import snappy

    size = _snappy_size(data)
    if size > remaining:
        raise too_large(max_size)
    if size > len(data) * MAX_EXPANSION[2]:
        raise CorruptRecord(f"Invalid snappy data: {len(data)} bytes cannot become {size}")
    try:
        return bytes(snappy.uncompress(data))
    except Exception as error:  # the binding's own exception types differ between releases
        raise CorruptRecord(f"Invalid snappy data: {error}") from None


def _snappy_size(data: bytes) -> int:
    """The uncompressed size that a raw snappy block starts with: a varint of 32 bits."""
    try:
        return record_varint(data, 0)[0]
    except IndexError:
        raise CorruptRecord("The snappy block is truncated in its size") from None


def _unlz4(source: Source) -> Iterator[bytes]:
    import lz4.frame

    data = source.data
    if len(data) < 7 or data[:4] != _LZ4_MAGIC:
        raise CorruptRecord("Not an lz4 frame")
    if not data[4] & _LZ4_INDEPENDENT_BLOCKS:
        raise CorruptRecord("An lz4 frame of dependent blocks, which Kafka does not support")
    frame = lz4.frame.LZ4FrameDecompressor()
    try:
        while not frame.eof:
            piece = b""
            if frame.needs_input:
                piece = source.read(_INPUT_BYTES)
                if not piece:
                    raise CorruptRecord("The lz4 frame is truncated")
            yield frame.decompress(piece, max_length=STEP_BYTES)
    except (RuntimeError, EOFError, ValueError, MemoryError) as error:
        raise CorruptRecord(f"Invalid lz4 data: {error}") from None


def _unzstd(source: Source) -> Iterator[bytes]:
    """One block a step: a frame's header has no size that could be trusted, but a block's output is limited."""
    import zstandard

    try:
        while True:
            head = bytes(source.data[source.pos : source.pos + _ZSTD_HEADER_BYTES])
            has_checksum = zstandard.get_frame_parameters(head).has_checksum
            frame = zstandard.ZstdDecompressor().decompressobj()
            yield frame.decompress(_zstd_part(source, zstandard.frame_header_size(head)))
            last = 0
            while not last:
                header = int.from_bytes(source.data[source.pos : source.pos + 3], "little")
                last, kind, size = header & 1, header >> 1 & 3, header >> 3
                size = 3 + (1 if kind == _ZSTD_RLE_BLOCK else size)
                if last and has_checksum:
                    size += 4
                yield frame.decompress(_zstd_part(source, size))
            if not source.remaining:
                return
    except zstandard.ZstdError as error:
        raise CorruptRecord(f"Invalid zstd data: {error}") from None


def _zstd_part(source: Source, size: int) -> bytes:
    if size > source.remaining:
        raise CorruptRecord("The zstd frame is truncated")
    return source.read(size)
