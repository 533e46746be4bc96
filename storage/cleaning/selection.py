"""Selects the part of a compacted log to clean, and decides whether to clean it (rule L7, KIP-58, KIP-354).

The log is clean below the first dirty offset (stored in `cleaner-offset-checkpoint`) and dirty above it, up to the
first segment that may not be cleaned: the active segment, a segment that reaches above the last stable offset, or one
with records younger than `min.compaction.lag.ms`. Only synced data is considered, including transaction markers: a
record that a power failure may lose must not supersede a record that survives. A log is cleaned when more than
`min.cleanable.dirty.ratio` of its bytes are dirty, or when a dirty record is older than `max.compaction.lag.ms`.
Source: Kafka's `LogCleanerManager` and `LogToClean`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from barnabas.storage.cleaning.task import NO_DATA, CleaningTask

if TYPE_CHECKING:
    from barnabas.storage.log import Log
    from barnabas.storage.segments.segment import Segment

_FOR_EVER_MS = 2**63 - 1


class Cleanable(NamedTuple):
    """The part of a log that may be cleaned: offsets, bytes, and whether max.compaction.lag.ms requires it.

    `reset_from` is the checkpointed offset if it is outside the log; then everything counts as dirty.
    """

    first_dirty_offset: int
    end_offset: int
    clean_bytes: int
    dirty_bytes: int
    is_overdue: bool
    min_dirty_ratio: float
    reset_from: int | None = None

    @property
    def dirty_ratio(self) -> float:
        """The dirty bytes divided by all bytes."""
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0

    @property
    def is_due(self) -> bool:
        """Whether the log should be cleaned now."""
        return self.dirty_bytes > 0 and (self.is_overdue or self.dirty_ratio > self.min_dirty_ratio)


class CleanerLimits(NamedTuple):
    """A cleaner's limits: bytes of memory for keys, bytes per read, bytes read and written per second."""

    key_memory: int
    io_buffer: int
    io_per_second: float


def cleanable(log: Log, checkpoint: int | None, now_ms: int) -> Cleanable:
    """The part of `log` that may be cleaned; `checkpoint` is the offset up to which it was cleaned before."""
    start = log.log_start_offset
    first_dirty = start if checkpoint is None else checkpoint
    reset_from = None
    if not start <= first_dirty <= log.log_end_offset:
        reset_from, first_dirty = first_dirty, start
    closed = list(log.segments)[:-1]
    dirty_from = max(0, log.segments.floor_index(first_dirty))
    end_offset = _first_uncleanable(log, closed, dirty_from, now_ms)
    dirty = [segment for segment in closed[dirty_from:] if segment.base_offset < end_offset]
    return Cleanable(
        first_dirty,
        end_offset,
        sum(segment.size for segment in closed if segment.base_offset < first_dirty),
        sum(segment.size for segment in dirty) if first_dirty < end_offset else 0,
        _is_overdue(log, dirty, now_ms),
        log.config.min_cleanable_dirty_ratio,
        reset_from,
    )


def _first_uncleanable(log: Log, closed: list[Segment], dirty_from: int, now_ms: int) -> int:
    """The base offset of the first segment that may not be cleaned."""
    stable = log.durable_stable_offset
    lag_ms = log.config.min_compaction_lag_ms
    for at in range(dirty_from, len(closed)):
        segment = closed[at]
        if log.segments[at + 1].base_offset > stable:
            return segment.base_offset
        if lag_ms > 0 and segment.largest_timestamp() > now_ms - lag_ms:
            return segment.base_offset
    return log.segments.active.base_offset


def _is_overdue(log: Log, dirty: list[Segment], now_ms: int) -> bool:
    """Whether a dirty segment began longer than max.compaction.lag.ms ago, by its first batch's timestamp."""
    lag_ms = log.config.max_compaction_lag_ms
    if lag_ms == _FOR_EVER_MS:
        return False
    return any(0 < segment.first_batch_timestamp() < now_ms - lag_ms for segment in dirty)


def cleaning_task(log: Log, part: Cleanable, limits: CleanerLimits, now_ms: int) -> CleaningTask:
    """The task to clean this part."""
    config = log.config
    segments = [
        (segment.base_offset, segment.size) for segment in log.segments if segment.base_offset < part.end_offset
    ]
    return CleaningTask(
        directory=log.directory,
        segments=segments,
        first_dirty_offset=part.first_dirty_offset,
        end_offset=part.end_offset,
        producers=_active_producers(log, part.end_offset),
        aborted=log.aborted_transactions(segments[0][0], part.end_offset),
        now_ms=now_ms,
        delete_retention_ms=config.delete_retention_ms,
        segment_bytes=config.segment_bytes,
        segment_index_bytes=config.segment_index_bytes,
        index_interval_bytes=config.index_interval_bytes,
        key_memory=limits.key_memory,
        io_buffer=limits.io_buffer,
        io_per_second=limits.io_per_second,
    )


def _active_producers(log: Log, end_offset: int) -> dict[int, tuple[int, int]]:
    """The active producers whose last batch is in the part to be cleaned; that batch must be kept (L9).

    It is the last synced batch: a producer's state is restored from it after a crash that loses later batches.
    """
    live = {}
    for entry in log.active_producers():
        synced = [batch.last_offset for batch in entry.batches if batch.last_offset < log.synced_offset]
        last_offset = synced[-1] if synced else entry.last_offset if entry.batches else NO_DATA
        if last_offset < end_offset:
            live[entry.producer_id] = (last_offset, entry.producer_epoch)
    return live
