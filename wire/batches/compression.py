"""The five codecs of record batches, as Kafka's Java classes write and read them.

- gzip: writes one member, reads any number.
- snappy: writes snappy-java's ("xerial") format with blocks of 32 KiB; reads this format and a single raw block, which
  librdkafka sends and snappy-java's SnappyInputStream also accepts.
- lz4: a frame of independent 64 KiB blocks without a content checksum, the only kind that Kafka reads.
- zstd: writes a frame without content size, as a streaming writer does; reads any number of frames.

`decompression` reads them in steps. The libraries are imported on first use: most brokers never decompress.
"""

from __future__ import annotations

import struct
from enum import IntEnum

from barnabas.wire.batches.decompression import Buffer, Source, decompressed_steps, too_large

MAX_DECOMPRESSED_SIZE = 100 * 1024 * 1024
"""The default limit, larger than any batch before compression: the default of socket.request.max.bytes."""

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK = 32 * 1024
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
    """Decompress the records of a batch. CorruptRecord for invalid data, an unknown codec, or over `max_size` bytes.

    `decompressed_steps` does the same in steps.
    """
    if codec == Codec.NONE:
        if len(data) > max_size:
            raise too_large(max_size)
        return bytes(data)
    return b"".join(decompressed_steps(codec, Source(data), max_size))


def _gzip(data: Buffer, level: int | None) -> bytes:
    import zlib

    deflate = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, 31)
    return deflate.compress(data) + deflate.flush()


def _snappy(data: Buffer) -> bytes:
    import snappy

    view = memoryview(data)
    out = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_BLOCK):
        block = snappy.compress(bytes(view[start : start + _XERIAL_BLOCK]))
        out.append(_INT32.pack(len(block)))
        out.append(block)
    return b"".join(out)


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


def _zstd(data: Buffer, level: int | None) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor(level=3 if level is None else level, write_content_size=False).compress(data)
