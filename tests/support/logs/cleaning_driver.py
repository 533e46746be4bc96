"""Helpers for the tests of compaction: one pass from the selection to the swap, and the content of the log after it."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.storage.cleaning.cleaner import Cleaner
from barnabas.storage.cleaning.replacement import Replacement
from barnabas.storage.cleaning.selection import CleanerLimits, cleanable, cleaning_task
from barnabas.storage.cleaning.task import CleanedGroup, CleaningDone, CleaningTask
from barnabas.storage.log import Log
from barnabas.storage.log_config import LogConfig
from barnabas.storage.producers.producer_entry import ProducerEntry
from barnabas.wire.batches.records import BatchBuilder, BatchView, Record, iter_batches, iter_records
from tests.support.logs.log_driver import append, small_config

COMPACT = frozenset({"compact"})
AMPLE = CleanerLimits(key_memory=1 << 20, io_buffer=500, io_per_second=0.0)
NOW_MS = 1_000_000
DELETE_RETENTION_MS = 5_000

Pair = tuple[bytes | None, bytes | None]


def compacted(**changes: object) -> LogConfig:
    """A configuration of a compacted topic with segments of a few batches."""
    settings = {"cleanup_policy": COMPACT, "delete_retention_ms": DELETE_RETENTION_MS, **changes}
    return small_config(**settings)


def put(
    log: Log,
    *pairs: Pair,
    codec: int = 0,
    producer: tuple[int, int, int] = (-1, -1, -1),
    transactional: bool = False,
    timestamp: int = 1_000,
) -> int:
    """Append one batch of (key, value); its base offset."""
    builder = BatchBuilder(
        codec=codec,
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=producer[2],
        transactional=transactional,
    )
    for key, value in pairs:
        builder.append(timestamp, key, value, [("h", b"x")])
    info = append(log, bytearray(builder.build()), now_ms=NOW_MS)
    log.high_watermark = log.log_end_offset
    return info.first_offset


def close_segment(log: Log) -> None:
    """Make everything appended so far cleanable."""
    log.roll(0.0)
    log.flush()


def producers(log: Log) -> dict[int, tuple[int, int]]:
    """(epoch, last sequence) of each producer."""
    entries: list[ProducerEntry] = log.active_producers()
    return {entry.producer_id: (entry.producer_epoch, entry.last_sequence) for entry in entries}


class Pass(NamedTuple):
    """The result of a pass."""

    groups: list[CleanedGroup]
    done: CleaningDone


def task_for(
    log: Log, *, checkpoint: int | None = None, now_ms: int = NOW_MS, limits: CleanerLimits = AMPLE
) -> CleaningTask:
    """The task of a cleaner at this moment, passed through JSON."""
    log.flush()
    task = cleaning_task(log, cleanable(log, checkpoint, now_ms), limits, now_ms)
    assert CleaningTask.from_json(task.to_json()) == task
    return task


def clean(log: Log, *, checkpoint: int | None = None, now_ms: int = NOW_MS, limits: CleanerLimits = AMPLE) -> Pass:
    """One complete pass, with the swap; old files are removed immediately."""
    task = task_for(log, checkpoint=checkpoint, now_ms=now_ms, limits=limits)
    cleaner = Cleaner(task, log.files)
    groups = []
    for group in cleaner.run():
        groups.append(group)
        for path in Replacement(log, group).run():
            log.files.unlink(path)
    return Pass(groups, cleaner.done)


def stored(log: Log) -> bytes:
    """The bytes of all segments."""
    return b"".join(log.files.read_at(segment.file, segment.size, 0) for segment in log.segments if segment.size)


def batches_of(log: Log) -> list[BatchView]:
    """Every batch, including empty ones; CRCs, order and the bounds of segments are checked."""
    batches = list(iter_batches(stored(log)))
    end = 0
    for batch in batches:
        assert batch.crc_is_valid()
        assert end <= batch.base_offset <= batch.last_offset < log.log_end_offset
        end = batch.next_offset
    for segment, following in zip(log.segments, list(log.segments)[1:], strict=False):
        for header, _ in segment.batches():
            assert segment.base_offset <= header.base_offset <= header.last_offset < following.base_offset
    return batches


def data_of(log: Log) -> list[Record]:
    """The records that are not markers."""
    return [record for batch in batches_of(log) if not batch.is_control for record in iter_records(batch)]


def keys_and_values(log: Log) -> list[tuple[int, bytes | None, bytes | None]]:
    """(offset, key, value) of `data_of`."""
    return [(record.offset, record.key, record.value) for record in data_of(log)]
