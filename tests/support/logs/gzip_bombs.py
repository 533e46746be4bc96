"""Record batches that cost more to open than to send, and batches with invalid content and a correct CRC."""

from __future__ import annotations

import gzip
import struct

import zstandard

from barnabas.wire.batches.batch_builder import encode_batch
from barnabas.wire.batches.batch_format import CREATE_TIME
from barnabas.wire.batches.compression import Codec
from barnabas.wire.batches.records import build_batch
from barnabas.wire.varint import encode_varint
from tests.support.requests.random_batches import sealed

TINY = b"\x0c\x00\x00\x00\x00\x01\x00"
"""A record of 7 bytes: no delta, an empty key, a null value, no headers."""
MAX_TIMESTAMP_AT = 35


def batch_of(records: bytes, count: int, codec: int = Codec.NONE, timestamp: int = 1000) -> bytes:
    """A batch with a right CRC, whatever its content and count are."""
    return encode_batch(records, count, codec | CREATE_TIME, 0, count - 1, -1, timestamp, timestamp)


def zstd_bomb(count: int) -> bytes:
    """A batch of equal tiny records: 10 million of them are 70 MB, which zstd compresses to a few kilobytes."""
    compressor = zstandard.ZstdCompressor(level=3)
    return batch_of(compressor.compress(TINY * count), count, Codec.ZSTD)


def honest_batch(count: int, codec: int = Codec.ZSTD) -> bytes:
    """A valid batch of small records with keys, each a millisecond after the one before it."""
    rows = []
    for n in range(count):
        body = b"\x00" + encode_varint(n) + encode_varint(n) + b"\x08" + struct.pack(">I", n) + b"\x01\x00"
        rows.append(encode_varint(len(body)) + body)
    data = b"".join(rows)
    compressed = zstandard.ZstdCompressor(level=1).compress(data) if codec == Codec.ZSTD else data
    return encode_batch(compressed, count, codec, 0, count - 1, -1, 1000, 1000 + count - 1)


def with_max_timestamp(batch: bytes, timestamp: int) -> bytes:
    """The batch with another max timestamp in its header."""
    changed = bytearray(batch)
    struct.pack_into(">q", changed, MAX_TIMESTAMP_AT, timestamp)
    return sealed(changed)


def gzip_of_empty_members(count: int) -> bytes:
    """A batch whose records are many gzip members without content."""
    return batch_of(gzip.compress(b"", mtime=0) * count, 1, Codec.GZIP)


def nonsense() -> dict[str, bytes]:
    """Batches with a correct CRC that Kafka rejects, by the error in them."""
    record = build_batch([(1000, None, b"value")])[61:]
    return {
        "records-are-garbage": batch_of(b"\x99garbage" * 20, 1),
        "zstd-is-garbage": batch_of(b"garbage" * 20, 1, Codec.ZSTD),
        "lz4-is-garbage": batch_of(b"garbage" * 20, 1, Codec.LZ4),
        "gzip-is-garbage": batch_of(b"garbage" * 20, 1, Codec.GZIP),
        "count-is-3-with-one-record": batch_of(record, 3),
        "no-body": batch_of(b"", 1),
        "no-body-and-count-5": batch_of(b"", 5),
        "count-is-2147483647-with-one-byte": batch_of(b"\x00", 2**31 - 1),
        "record-is-cut": batch_of(record[:-2], 1),
        "bytes-after-the-last-record": batch_of(record + b"\x00\x00\x00", 1),
    }
