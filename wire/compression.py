"""The five codecs of record batches, as Kafka's Java classes write and read them.

- gzip: writes one member, reads any number.
- snappy: writes snappy-java's ("xerial") format with blocks of 32 KiB; reads this format and a single raw block, which
  librdkafka sends and snappy-java's SnappyInputStream also accepts.
- lz4: a frame of independent 64 KiB blocks without a content checksum, the only kind that Kafka reads.
- zstd: writes a frame without content size, as a streaming writer does; reads any number of frames.

Decompression stops with CorruptRecord as soon as the output exceeds `max_size` bytes. Every failure is CorruptRecord.
The libraries are imported on first use: most brokers never decompress.
"""

from __future__ import annotations

import struct
from enum import IntEnum

from barnabas.wire.errors import CorruptRecord
from barnabas.wire.varint import record_varint

Buffer = bytes | bytearray | memoryview

MAX_DECOMPRESSED_SIZE = 100 * 1024 * 1024
"""The default limit, larger than any batch before compression: the default of socket.request.max.bytes."""

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK = 32 * 1024
_LZ4_MAGIC = b"\x04\x22\x4d\x18"
_LZ4_INDEPENDENT_BLOCKS = 0x20
_ZSTD_RLE_BLOCK = 1
_STEP = 1 << 20
_INT32 = struct.Struct(">i")


class Codec(IntEnum):
    """The compression type in the low three bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def compress(codec: int, data: Buffer, level: int | None = None) -> bytes:
    """Compress the records of a batch. `level` is Kafka's compression.<codec>.level; None for the default."""
    if codec == Codec.NONE:
        return bytes(data)
    if codec == Codec.GZIP:
        return _gzip(data, level)
    if codec == Codec.SNAPPY:
        return _snappy(data)
    if codec == Codec.LZ4:
        return _lz4(data, level)
    if codec == Codec.ZSTD:
        return _zstd(data, level)
    raise ValueError(f"{codec} is not a compression codec")


def decompress(codec: int, data: Buffer, max_size: int = MAX_DECOMPRESSED_SIZE) -> bytes:
    """Decompress the records of a batch. CorruptRecord for invalid data, an unknown codec, or over `max_size` bytes."""
    if codec == Codec.NONE:
        return _checked(bytes(data), max_size)
    if codec == Codec.GZIP:
        return _gunzip(data, max_size)
    if codec == Codec.SNAPPY:
        return _unsnappy(memoryview(data), max_size)
    if codec == Codec.LZ4:
        return _unlz4(data, max_size)
    if codec == Codec.ZSTD:
        return _unzstd(data, max_size)
    raise CorruptRecord(f"Unknown compression codec {codec}")


def _checked(data: bytes, max_size: int) -> bytes:
    if len(data) > max_size:
        raise CorruptRecord(f"The uncompressed records are larger than the limit of {max_size} bytes")
    return data


def _gzip(data: Buffer, level: int | None) -> bytes:
    import zlib

    deflate = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, 31)
    return deflate.compress(data) + deflate.flush()


def _gunzip(data: Buffer, max_size: int) -> bytes:
    import zlib

    rest: Buffer = data
    out: list[bytes] = []
    size = 0
    try:
        while True:
            inflate = zlib.decompressobj(31)
            out.append(inflate.decompress(rest, max_size - size + 1))
            size += len(out[-1])
            if size > max_size:
                return _checked(b"".join(out), max_size)
            if not inflate.eof:
                raise CorruptRecord("The gzip stream is truncated")
            rest = inflate.unused_data
            if not rest:
                return b"".join(out)
    except zlib.error as error:
        raise CorruptRecord(f"Invalid gzip data: {error}") from None


def _snappy(data: Buffer) -> bytes:
    import snappy

    view = memoryview(data)
    out = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_BLOCK):
        block = snappy.compress(bytes(view[start : start + _XERIAL_BLOCK]))
        out.append(_INT32.pack(len(block)))
        out.append(block)
    return b"".join(out)


def _unsnappy(data: memoryview, max_size: int) -> bytes:
    if data[:8] != _XERIAL_MAGIC:
        return _unsnappy_block(data, max_size, max_size)
    out: list[bytes] = []
    left = max_size
    pos, end = len(_XERIAL_HEADER), len(data)
    if end < pos:
        raise CorruptRecord("The snappy stream is truncated in its header")
    while pos < end:
        if data[pos : pos + 8] == _XERIAL_MAGIC:  # snappy-java reads concatenated streams
            pos += len(_XERIAL_HEADER)
            continue
        if end - pos < 4:
            raise CorruptRecord("The snappy stream is truncated in the length of a block")
        (length,) = _INT32.unpack_from(data, pos)
        pos += 4
        if length <= 0 or length > end - pos:
            raise CorruptRecord(f"A snappy block of {length} bytes with {end - pos} bytes remaining")
        block = _unsnappy_block(data[pos : pos + length], left, max_size)
        out.append(block)
        left -= len(block)
        pos += length
    return b"".join(out)


def _unsnappy_block(data: memoryview, left: int, max_size: int) -> bytes:
    import snappy

    if _snappy_size(data) > left:
        raise CorruptRecord(f"The uncompressed records are larger than the limit of {max_size} bytes")
    try:
        return bytes(snappy.uncompress(bytes(data)))
    except Exception as error:  # the binding's own exception types differ between releases
        raise CorruptRecord(f"Invalid snappy data: {error}") from None


def _snappy_size(data: memoryview) -> int:
    """The uncompressed size that a raw snappy block starts with: a varint of 32 bits."""
    try:
        return record_varint(data, 0)[0]
    except IndexError:
        raise CorruptRecord("The snappy block is truncated in its size") from None


def _lz4(data: Buffer, level: int | None) -> bytes:
    import lz4.frame

    compressed: bytes = lz4.frame.compress(
        data,
        compression_level=0 if level is None else level,
        block_size=lz4.frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        content_checksum=False,
        store_size=False,
    )
    return compressed


def _unlz4(data: Buffer, max_size: int) -> bytes:
    import lz4.frame

    if len(data) < 7 or bytes(data[:4]) != _LZ4_MAGIC:
        raise CorruptRecord("Not an lz4 frame")
    if not data[4] & _LZ4_INDEPENDENT_BLOCKS:
        raise CorruptRecord("An lz4 frame of dependent blocks, which Kafka does not support")
    frame = lz4.frame.LZ4FrameDecompressor()
    out: list[bytes] = []
    size = 0
    rest: Buffer = data
    try:
        while not frame.eof:
            piece = frame.decompress(rest, max_length=min(_STEP, max_size - size + 1))
            rest = b""
            if not piece and not frame.eof:
                raise CorruptRecord("The lz4 frame is truncated")
            out.append(piece)
            size += len(piece)
            if size > max_size:
                break
    except (RuntimeError, EOFError, ValueError, MemoryError) as error:
        raise CorruptRecord(f"Invalid lz4 data: {error}") from None
    return _checked(b"".join(out), max_size)


def _zstd(data: Buffer, level: int | None) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor(level=3 if level is None else level, write_content_size=False).compress(data)


def _unzstd(data: Buffer, max_size: int) -> bytes:
    import zstandard

    packed = bytes(data)
    try:
        _check_zstd_frames(packed)
        with zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True) as frames:
            out = []
            left = max_size + 1
            while left > 0 and (piece := frames.read(min(_STEP, left))):
                out.append(piece)
                left -= len(piece)
    except zstandard.ZstdError as error:
        raise CorruptRecord(f"Invalid zstd data: {error}") from None
    return _checked(b"".join(out), max_size)


def _check_zstd_frames(data: bytes) -> None:
    """Check that every frame is complete, which the streaming reader does not detect at the end of its input."""
    import zstandard

    pos = 0
    while pos < len(data) or pos == 0:
        has_checksum = zstandard.get_frame_parameters(data[pos : pos + 18]).has_checksum
        pos += zstandard.frame_header_size(data[pos : pos + 18])
        last = 0
        while not last:
            header = int.from_bytes(data[pos : pos + 3], "little")
            last, kind, size = header & 1, header >> 1 & 3, header >> 3
            pos += 3 + (1 if kind == _ZSTD_RLE_BLOCK else size)
            if pos > len(data):
                raise CorruptRecord("The zstd frame is truncated")
        pos += 4 if has_checksum else 0
    if pos > len(data):
        raise CorruptRecord("The zstd frame is truncated")
