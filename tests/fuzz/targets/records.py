"""Record batches: headers, records, control records, and the checks that a broker makes of what clients send.

Only KafkaError (CorruptRecord is one). A batch that the full check accepts is one whose records can be read; records
that were read are written and read again. The checks in Python and in C have the same verdict and message.
"""

from __future__ import annotations

import contextlib
import json
import struct
from collections.abc import Iterator
from pathlib import Path

from barnabas.storage.append.batch_check import check_batches
from barnabas.storage.log_config import LogConfig
from barnabas.wire.batches.batch_builder import BatchBuilder
from barnabas.wire.batches.control_records import control_record_type, end_txn_coordinator_epoch, end_txn_marker
from barnabas.wire.batches.crc import crc32c
from barnabas.wire.batches.records import HEADER_SIZE, BatchView, Record, build_batch, iter_batches, iter_records
from barnabas.wire.errors import CorruptRecord, KafkaError
from tests.fuzz.targets import Input
from tests.support.accelerator import WAYS, checked_in
from tests.support.requests.random_batches import plain

MAX_BYTES = 2048
MOST = 1 << 20
SEALED, VALIDATION = 1, 2
LINES = (Path(__file__).parents[2] / "data" / "kafka-4.4.0-record-batches.jsonl").read_text().splitlines()


def _limits(level: str) -> LogConfig:
    limits = LogConfig()
    limits.max_decompressed_message_bytes = limits.max_message_bytes = MOST
    limits.record_validation = level
    return limits


LIMITS = {level: _limits(level) for level in ("full", "lengths", "header")}
NOW_MS = 1_700_000_000_000


def check(data: bytes) -> None:
    """The first byte says whether lengths and CRC are made right."""
    source = Input(data)
    options = source.number(256)
    raw = _sealed(source.rest) if options & SEALED else source.rest
    read = _read(raw)
    for level, limits in LIMITS.items():
        verdicts = [_verdict(raw, limits, way) for way in WAYS]
        assert verdicts.count(verdicts[0]) == len(verdicts), f"{WAYS} do not agree: {verdicts}"
        if verdicts[0] is None and level == "full":
            assert read is not None, "a batch is accepted whose records cannot be read"


def _verdict(raw: bytes, limits: LogConfig, way: str) -> tuple[int, str | None] | None:
    """Error code and message; None if the batch is accepted."""
    with checked_in(way):
        try:
            check_batches(memoryview(bytearray(raw)), limits, "client", NOW_MS)
        except KafkaError as error:
            return error.code, error.message
    return None


def _sealed(data: bytes) -> bytes:
    if len(data) < HEADER_SIZE:
        return data
    batch = bytearray(data)
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    batch[16] = 2
    struct.pack_into(">I", batch, 17, crc32c(memoryview(batch)[21:]))
    return bytes(batch)


def _read(raw: bytes) -> list[Record] | None:
    try:
        batches = list(iter_batches(raw))
        records = [record for batch in batches for record in _records(batch)]
    except KafkaError:
        return None
    if len(batches) == 1 and records:
        _check_round_trip(batches[0], records)
    return records


def _records(batch: BatchView) -> list[Record]:
    repr(batch)
    records = list(iter_records(batch, MOST))
    if batch.is_control:
        for record in records:
            with contextlib.suppress(CorruptRecord):
                control_record_type(record)
                end_txn_coordinator_epoch(record)
    return records


def _check_round_trip(batch: BatchView, records: list[Record]) -> None:
    builder = BatchBuilder(batch.base_offset)
    try:
        for record in records:
            builder.append(record.timestamp, record.key, record.value, record.headers)
    except (KafkaError, ValueError, OverflowError):
        return  # timestamps too far apart for a batch of ours
    (again,) = iter_batches(builder.build())
    for before, other in zip(records, iter_records(again), strict=True):
        same = (before.timestamp, before.key, before.value, before.headers) == (
            other.timestamp,
            other.key,
            other.value,
            other.headers,
        )
        assert same, f"{before} is read again as {other}"


def seeds() -> Iterator[bytes]:
    """Kafka's batches, batches in every codec, a transaction's marker."""
    kafka = [bytes.fromhex(json.loads(line)["hex"]) for line in LINES[:-1]]
    marker = end_txn_marker(commit=True, producer_id=1, producer_epoch=0, coordinator_epoch=2, timestamp_ms=NOW_MS)
    for batch in (*kafka, *plain(), marker, build_batch([(NOW_MS, b"k", b"v")] * 3)):
        if len(batch) <= MAX_BYTES:
            yield bytes((SEALED,)) + batch
            yield b"\0" + batch
