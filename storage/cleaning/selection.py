"""Which part of a compacted log may be cleaned, and whether it is worth it. Rule L7, KIP-58, KIP-354.

Clean is what lies below the first dirty offset (kept in `cleaner-offset-checkpoint`); dirty what follows, up to the
first segment that may not be cleaned: the active one, one that reaches past the last stable offset, or one with
records younger than `min.compaction.lag.ms`. Only what is on the disk counts, markers of transactions as well: what a
power failure may take must not supersede what it spares. A log is cleaned when more than `min.cleanable.dirty.ratio`
of its bytes is dirty, or when a dirty record is older than `max.compaction.lag.ms`.
Source: Kafka's `LogCleanerManager` and `LogToClean`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from barnabas.storage.cleaning.task import NO_DATA, CleaningTask

if TYPE_CHECKING:
    from barnabas.storage.log import Log
    from barnabas.storage.segment import Segment

_FOR_EVER_MS = 2**63 - 1


class Cleanable(NamedTuple):
    """The part of a log that may be cleaned: offsets, bytes, and whether a lag says that it has to be.

    `reset_from` is the offset of the checkpoint if that lies outside the log, so that the clean part is nothing.
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
        """The dirty part of the bytes."""
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0

    @property
    def is_due(self) -> bool:
        """Whether the log is to be cleaned now."""
        return self.dirty_bytes > 0 and (self.is_overdue or self.dirty_ratio > self.min_dirty_ratio)


class CleanerLimits(NamedTuple):
    """What a cleaner may use: bytes of memory for keys, bytes read at a time, bytes of input and output a second."""

    key_memory: int
    io_buffer: int
    io_per_second: float


def cleanable(log: Log, checkpoint: int | None, now_ms: int) -> Cleanable:
    """The part of `log` that may be cleaned; `checkpoint` is the offset up to which it was cleaned last."""
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
    """What a cleaner has to know to clean this part."""
    config = log.config
    segments = [
        (segment.base_offset, segment.size) for segment in log.segments if segment.base_offset < part.end_offset
    ]
    return CleaningTask(
        directory=log.directory,
        segments=segments,
        first_dirty_offset=part.first_dirty_offset,
        end_offset=part.end_offset,
        producers=_live_producers(log, part.end_offset),
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


def _live_producers(log: Log, end_offset: int) -> dict[int, tuple[int, int]]:
    """The producers whose memory lies in the part to be cleaned: what they wrote last must not go (L9).

    Neither must what they wrote last of all that is synced: it will be their memory if a crash takes the rest.
    """
    live = {}
    for entry in log.active_producers():
        synced = [batch.last_offset for batch in entry.batches if batch.last_offset < log.synced_offset]
        last_offset = synced[-1] if synced else entry.last_offset if entry.batches else NO_DATA
        if last_offset < end_offset:
            live[entry.producer_id] = (last_offset, entry.producer_epoch)
    return live
