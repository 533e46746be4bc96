"""Encodes the requests of the raw load without the codecs that are measured; only batches are made with `wire`.

Old, simple versions that both brokers support: Metadata 1, Produce 3, Fetch 4, ListOffsets 1.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Iterable, Mapping, Sequence

import crc32c

from barnabas.wire.batches.records import BatchBuilder

CLIENT_ID = b"bench"
FETCH_MAX_BYTES = 50 << 20


def _frame(api_key: int, version: int, body: bytes) -> bytes:
    header = struct.pack(">hhih", api_key, version, 1, len(CLIENT_ID)) + CLIENT_ID
    return struct.pack(">i", len(header) + len(body)) + header + body


def _string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack(">h", len(raw)) + raw


def metadata() -> bytes:
    """Metadata v1 without topics."""
    return _frame(3, 1, struct.pack(">i", 0))


def produce(topic: str, partition: int, batch: bytes, acks: int = 1) -> bytes:
    """Produce v3 with one batch for one partition."""
    body = struct.pack(">hhii", -1, acks, 30_000, 1) + _string(topic)
    return _frame(0, 3, body + struct.pack(">iii", 1, partition, len(batch)) + batch)


def fetch(topic: str, partition: int, partition_max_bytes: int = 1 << 20) -> bytes:
    """Fetch v4 of one partition from offset 0; the last 12 bytes are fetch offset and partition_max_bytes."""
    body = struct.pack(">iiiibi", -1, 500, 1, FETCH_MAX_BYTES, 0, 1) + _string(topic)
    return _frame(1, 4, body + struct.pack(">iiqi", 1, partition, 0, partition_max_bytes))


def list_offsets(topics: Mapping[str, Iterable[int]], timestamp: int) -> bytes:
    """ListOffsets v1 for partitions by topic, all with the same timestamp (-1: log end offset)."""
    body = struct.pack(">ii", -1, len(topics))
    for topic, partitions in topics.items():
        encoded = [struct.pack(">iq", partition, timestamp) for partition in partitions]
        body += _string(topic) + struct.pack(">i", len(encoded)) + b"".join(encoded)
    return _frame(2, 1, body)


def listed_offsets(response: bytes) -> dict[tuple[str, int], tuple[int, int]]:
    """(error code, offset) by topic and partition, from a ListOffsets v1 response without its size."""
    offsets = {}
    (topics,) = struct.unpack_from(">i", response, 4)
    at = 8
    for _ in range(topics):
        (length,) = struct.unpack_from(">h", response, at)
        topic = response[at + 2 : at + 2 + length].decode()
        (partitions,) = struct.unpack_from(">i", response, at + 2 + length)
        at += 6 + length
        for _ in range(partitions):
            partition, error, _, offset = struct.unpack_from(">ihqq", response, at)
            offsets[topic, partition] = (error, offset)
            at += 22
    return offsets


def batch(total_bytes: int, record_bytes: int) -> tuple[bytes, int]:
    """A batch of about `total_bytes` of records with values of `record_bytes`, and its number of records."""
    per_record = record_bytes + 8
    count = max(1, (total_bytes - 61) // per_record)
    builder = BatchBuilder()
    now_ms = int(time.time() * 1000)  # Kafka's retention would delete a batch with an old timestamp
    for _ in range(count):
        builder.append(now_ms, None, os.urandom(record_bytes))
    return bytes(builder.build()), count


def keyed_batch(keys: Sequence[bytes], values: Sequence[bytes]) -> bytes:
    """A batch with a record for each key, with `values` in turn and the current time."""
    builder = BatchBuilder()
    now_ms = int(time.time() * 1000)
    for n, key in enumerate(keys):
        builder.append(now_ms, key, values[n % len(values)])
    return bytes(builder.build())


def spread_batch(count: int, record_bytes: int, first_ms: int) -> bytes:
    """A batch of `count` records with timestamps `first_ms`, `first_ms + 1` and so on."""
    builder = BatchBuilder()
    for n in range(count):
        builder.append(first_ms + n, None, os.urandom(record_bytes))
    return bytes(builder.build())


def moved_batch(batch: bytes, by_ms: int) -> bytes:
    """The batch with later timestamps: changes base and max timestamp (at 27 and 35) and the CRC (at 17)."""
    first_ms, last_ms = struct.unpack_from(">qq", batch, 27)
    moved = bytearray(batch)
    struct.pack_into(">qq", moved, 27, first_ms + by_ms, last_ms + by_ms)
    struct.pack_into(">I", moved, 17, crc32c.crc32c(memoryview(moved)[21:]))
    return bytes(moved)


def find_coordinator(group: str) -> bytes:
    """FindCoordinator v0 for a group."""
    return _frame(10, 0, _string(group))


def offset_commit(group: str, topic: str, offset: int = 5, member: tuple[int, str] = (-1, "")) -> bytes:
    """OffsetCommit v2 for partition 0 of a topic, as a member (generation, id); by default without a member."""
    generation, member_id = member
    body = _string(group) + struct.pack(">i", generation) + _string(member_id) + struct.pack(">qi", -1, 1)
    return _frame(8, 2, body + _string(topic) + struct.pack(">iiq", 1, 0, offset) + _string(""))
