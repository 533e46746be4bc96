"""Batches whose header and body do not have to fit together, with a right CRC."""

from __future__ import annotations

from barnabas.wire.batches.compression import compress
from barnabas.wire.batches.crc import crc32c
from barnabas.wire.batches.records import CRC_START, HEADER, HEADER_SIZE
from barnabas.wire.varint import encode_varint

BASE_MS = 1_000


def raw_batch(
    body: bytes,
    count: int,
    *,
    codec: int = 0,
    last_delta: int | None = None,
    base_ms: int = BASE_MS,
    max_ms: int | None = None,
) -> bytes:
    """A batch of `count` records with the bytes `body`, as they are; `codec` is only announced."""
    fields = [0, HEADER_SIZE - 12 + len(body), -1, 2, 0, codec, count - 1 if last_delta is None else last_delta]
    fields += [base_ms, base_ms if max_ms is None else max_ms, -1, -1, -1, count]
    batch = bytearray(HEADER.pack(*fields) + body)
    fields[4] = crc32c(memoryview(batch)[CRC_START:])
    HEADER.pack_into(batch, 0, *fields)
    return bytes(batch)


def record(
    index: int,
    value: bytes | None = b"v",
    *,
    key: bytes | None = None,
    size: int | None = None,
    timestamp_delta: int = 0,
    header_count: int = 0,
    rest: bytes = b"",
) -> bytes:
    """A record, with a length that may be wrong and bytes after the header count."""
    body = b"\x00" + encode_varint(timestamp_delta) + encode_varint(index) + _field(key) + _field(value)
    body += encode_varint(header_count) + rest
    return encode_varint(len(body) if size is None else size) + body


def _field(content: bytes | None) -> bytes:
    return encode_varint(-1) if content is None else encode_varint(len(content)) + content


def bomb(codec: int, count: int, *, key: bytes | None = b"", base_ms: int = BASE_MS, rest: bytes = b"") -> bytes:
    """A compressed batch of `count` records without content, and `rest`: a few bytes for thousands of records."""
    body = b"".join([record(index, None, key=key) for index in range(count)]) + rest
    return raw_batch(compress(codec, body), count, codec=codec, base_ms=base_ms)


def nonsense(base_ms: int = BASE_MS) -> dict[str, bytes]:
    """Batches with a correct CRC and invalid content, by the error in them."""
    single, three = record(0), b"".join(map(record, range(3)))
    cases: dict[str, tuple[bytes, int, int]] = {
        "records that are garbage": (b"\xff\x13garbage\x80\x80" * 5, 3, 0),
        "zstd that is garbage": (b"no zstd at all" * 5, 3, 4),
        "gzip that is garbage": (b"no gzip at all" * 5, 3, 1),
        "lz4 that is garbage": (b"no lz4 at all" * 5, 3, 3),
        "snappy that is garbage": (b"no snappy at all" * 5, 3, 2),
        "count 3 with one record": (record(0, bytes(50)), 3, 0),
        "count 1 with three records": (three, 1, 0),
        "compressed count 1 with three records": (compress(4, three), 1, 4),
        "no body": (b"", 1, 0),
        "no compressed body": (b"", 1, 4),
        "count 2^31-1 with one byte": (b"\x00", 2**31 - 1, 0),
        "count 2^31-1 with one zstd byte": (b"\x00", 2**31 - 1, 4),
        "count 2^31-1 in a zstd frame": (compress(4, single), 2**31 - 1, 4),
        "bytes after the last record": (three + b"\x00", 3, 0),
        "compressed bytes after the last record": (compress(1, three + b"\x00"), 3, 1),
        "a truncated frame": (compress(4, three)[:-1], 3, 4),
        "a record longer than the batch": (record(0, size=100), 1, 0),
        "a record of negative length": (record(0, size=-9), 1, 0),
        "fields longer than their record": (record(0, b"vvvv", size=5) + bytes(5), 1, 0),
        "a header count without headers": (record(0, header_count=2, rest=b"\x00\x00"), 1, 0),
        "a negative header count": (record(0, header_count=-1), 1, 0),
        "a header without a key": (record(0, header_count=1, rest=b"\x01\x01"), 1, 0),
        "an offset delta twice": (record(0) + record(0), 2, 0),
        "a compressed offset delta too high": (compress(3, record(0) + record(7)), 2, 3),
    }
    batches = {
        name: raw_batch(body, count, codec=codec, base_ms=base_ms) for name, (body, count, codec) in cases.items()
    }
    batches["a count that is not the last offset delta + 1"] = raw_batch(three, 3, last_delta=5, base_ms=base_ms)
    return batches
