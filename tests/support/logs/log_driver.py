"""Helpers for the storage tests: a small configuration, a log that can be stopped in several ways, and reading it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hypothesis import settings

from barnabas.storage.append.offset_assignment import AppendInfo
from barnabas.storage.files import Files, UnsyncedFiles
from barnabas.storage.log import Log
from barnabas.storage.log_config import LogConfig
from barnabas.storage.recover.truncation import Truncation
from barnabas.wire.batches.records import BatchBuilder, Record, end_txn_marker, iter_batches, iter_records
from tests.support.volume import how_many

TOPIC_ID = bytes(range(16))
EXAMPLES = how_many("BARNABAS_EXAMPLES", 20)
PROPERTY = settings(max_examples=EXAMPLES)


def small_config(**changes: object) -> LogConfig:
    """A configuration under which a few hundred bytes make segments and index entries."""
    config = LogConfig()
    config.segment_bytes = 1500
    config.index_interval_bytes = 150
    for name, value in changes.items():
        assert hasattr(config, name), name
        setattr(config, name, value)
    return config


def batch_of(
    values: list[bytes],
    *,
    timestamps: list[int] | None = None,
    codec: int = 0,
    producer: tuple[int, int, int] = (-1, -1, -1),
    transactional: bool = False,
    key: bytes | None = b"k",
) -> bytearray:
    """A produced batch; `producer` is (id, epoch, base sequence)."""
    builder = BatchBuilder(
        0,
        codec,
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=producer[2],
        transactional=transactional,
    )
    for at, value in enumerate(values):
        builder.append(timestamps[at] if timestamps else 1_000, key, value)
    return bytearray(builder.build())


def append(
    log: Log, batch: bytearray, *, leader_epoch: int = 0, now_ms: int = 10_000, origin: str = "client"
) -> AppendInfo:
    """Append as the broker does."""
    return log.append_as_leader(
        memoryview(batch),
        leader_epoch=leader_epoch,
        now_ms=now_ms,
        now=now_ms / 1000,
        origin=origin,  # type: ignore[arg-type]
    )


def append_marker(
    log: Log, *, commit: bool, producer_id: int, producer_epoch: int = 0, coordinator_epoch: int = 0
) -> AppendInfo:
    """End a producer's transaction."""
    marker = end_txn_marker(
        commit=commit,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        coordinator_epoch=coordinator_epoch,
        timestamp_ms=1_000,
    )
    return append(log, bytearray(marker), origin="coordinator")


def open_log(
    directory: Path | str, config: LogConfig | None = None, files: Files | None = None, **options: object
) -> Log:
    """Open `t-0` below a directory."""
    return Log.open(
        files or UnsyncedFiles(),
        f"{directory}/t-0",
        "t",
        0,
        config or small_config(),
        now_ms=10_000,
        **{"topic_id": TOPIC_ID} | options,  # type: ignore[arg-type]
    )


def kill(log: Log, **options: object) -> Log:
    """Open the log again as after a kill -9: nothing was closed, everything written is there."""
    return _open_again(log, clean_shutdown=False, **options)


def restart(log: Log) -> Log:
    """Stop cleanly and open again."""
    log.close()
    return _open_again(log, clean_shutdown=True)


def _open_again(log: Log, *, clean_shutdown: bool, **options: object) -> Log:
    return Log.open(
        log.files,
        log.directory,
        log.topic,
        log.partition,
        log.config,
        topic_id=log.topic_id,
        now_ms=10_000,
        clean_shutdown=clean_shutdown,
        recovery_point=log.recovery_point,
        log_start_offset=log.log_start_offset,
        **options,  # type: ignore[arg-type]
    )


def truncate(
    log: Log, offset: int, *, fully: bool = False, write_checkpoint: Callable[[], object] = lambda: None
) -> list[str]:
    """The steps of a truncation in their order, as a fetcher does them; the renamed files, which stay."""
    if offset >= log.log_end_offset and not fully:
        return []
    truncation = Truncation(log, offset, fully=fully)
    for wait in truncation.prepare():
        if wait is not None:
            wait()
    truncation.announce()
    assert log.recovery_point_to_write <= max(0, offset - 1) or log.recovery_point_to_write <= log.log_start_offset
    write_checkpoint()
    renamed = truncation.cut()
    truncation.sync()
    truncation.finish()
    return renamed


def records_from(log: Log, offset: int, *, max_bytes: int = 1 << 20, limit: int | None = None) -> list[Record]:
    """All records from `offset` on, read in as many reads as a consumer would need."""
    limit = log.log_end_offset if limit is None else limit
    records: list[Record] = []
    while offset < limit:
        read = log.read(offset, max_bytes, limit_offset=limit, min_one_batch=True)
        if read.slice is None:
            break
        next_offset = offset
        for batch in iter_batches(read.slice.read(), partial_ok=True):
            records += [record for record in iter_records(batch) if record.offset >= offset]
            next_offset = batch.next_offset
        assert next_offset > offset, "a read makes progress"
        offset = next_offset
    return records


def values_from(log: Log, offset: int, **options: int) -> list[tuple[int, bytes | None]]:
    """(offset, value) of all records from `offset` on."""
    return [(record.offset, record.value) for record in records_from(log, offset, **options)]
