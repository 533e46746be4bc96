"""Requests encoded before the clock starts, by hand: the load must not depend on the code that it measures.

Old and simple versions that both brokers serve: Metadata 1, Produce 3, Fetch 4. Only the batch is made by `wire`.
"""

from __future__ import annotations

import os
import struct
import time

from wire.records import BatchBuilder

CLIENT_ID = b"bench"
FETCH_MAX_BYTES = 50 << 20


def _frame(api_key: int, version: int, body: bytes) -> bytes:
    header = struct.pack(">hhih", api_key, version, 1, len(CLIENT_ID)) + CLIENT_ID
    return struct.pack(">i", len(header) + len(body)) + header + body


def _string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack(">h", len(raw)) + raw


def metadata() -> bytes:
    """Metadata v1 of no topic: the brokers alone."""
    return _frame(3, 1, struct.pack(">i", 0))


def produce(topic: str, partition: int, batch: bytes, acks: int = 1) -> bytes:
    """Produce v3 of one batch to one partition."""
    body = struct.pack(">hhii", -1, acks, 30_000, 1) + _string(topic)
    return _frame(0, 3, body + struct.pack(">iii", 1, partition, len(batch)) + batch)


def fetch(topic: str, partition: int, partition_max_bytes: int = 1 << 20) -> bytes:
    """Fetch v4 of one partition from offset 0; its last 12 bytes are the offset and the partition's limit."""
    body = struct.pack(">iiiibi", -1, 500, 1, FETCH_MAX_BYTES, 0, 1) + _string(topic)
    return _frame(1, 4, body + struct.pack(">iiqi", 1, partition, 0, partition_max_bytes))


def batch(total_bytes: int, record_bytes: int) -> tuple[bytes, int]:
    """A batch of about `total_bytes` made of records with values of `record_bytes`; and how many those are."""
    per_record = record_bytes + 8
    count = max(1, (total_bytes - 61) // per_record)
    builder = BatchBuilder()
    now_ms = int(time.time() * 1000)  # an old timestamp would have Kafka's retention delete the batch
    for _ in range(count):
        builder.append(now_ms, None, os.urandom(record_bytes))
    return bytes(builder.build()), count
