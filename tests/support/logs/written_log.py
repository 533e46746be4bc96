"""A partition as Barnabas writes it: many segments, every codec, idempotent producers, transactions."""

from __future__ import annotations

import random
from pathlib import Path

from barnabas.storage.files import Files
from barnabas.storage.log import Log
from barnabas.storage.log_config import LogConfig
from barnabas.wire.batches.records import BatchBuilder, Codec, end_txn_marker

NOW_MS = 1_700_000_000_000
TOPIC_ID = bytes(range(16))


def write_log(
    log_dir: Path, *, batches: int = 300, segment_bytes: int = 20_000, index_interval_bytes: int = 1000
) -> Path:
    """Write the log and close it cleanly; its directory."""
    config = LogConfig()
    config.segment_bytes = segment_bytes
    config.index_interval_bytes = index_interval_bytes
    directory = log_dir / "orders-0"
    log = open_log(directory, config)
    rng = random.Random(4)
    sequences = {7: 0, 8: 0}
    for turn in range(batches):
        producer_id = (-1, 7, 8)[turn % 3]
        records = _batch(rng, turn, producer_id, sequences)
        _append(log, records, turn)
        if producer_id == 8 and turn % 4 == 2:
            _append(log, _marker(turn), turn, origin="coordinator")
    log.high_watermark = log.log_end_offset
    log.close()
    return directory


def open_log(directory: Path, config: LogConfig, *, clean_shutdown: bool = True) -> Log:
    """Open the log in a directory."""
    return Log.open(
        Files(), str(directory), "orders", 0, config, topic_id=TOPIC_ID, now_ms=NOW_MS, clean_shutdown=clean_shutdown
    )


def _append(log: Log, records: bytes, turn: int, origin: str = "client") -> None:
    log.append_as_leader(
        memoryview(bytearray(records)),
        leader_epoch=turn // 100,
        now_ms=NOW_MS + turn * 10,
        now=float(turn),
        origin=origin,  # type: ignore[arg-type]
    )


def _batch(rng: random.Random, turn: int, producer_id: int, sequences: dict[int, int]) -> bytes:
    """A batch: plain, idempotent (producer 7) or transactional (producer 8), each codec in turn."""
    builder = BatchBuilder(
        codec=list(Codec)[turn % 5],
        producer_id=producer_id,
        producer_epoch=1 if producer_id >= 0 else -1,
        base_sequence=sequences.get(producer_id, -1),
        transactional=producer_id == 8,
    )
    count = rng.randint(1, 12)
    for number in range(count):
        builder.append(
            NOW_MS + turn * 10 + rng.randint(-50, 50),
            f"key{number}".encode() if number % 2 else None,
            rng.randbytes(40).hex().encode() if number else "h\u00e9llo".encode(),
            [("trace", b"1"), ("empty", None)] if number % 3 == 0 else (),
        )
    if producer_id >= 0:
        sequences[producer_id] += count
    return builder.build()


def _marker(turn: int) -> bytes:
    return end_txn_marker(
        commit=turn % 8 == 2, producer_id=8, producer_epoch=1, coordinator_epoch=3, timestamp_ms=NOW_MS + turn * 10
    )
