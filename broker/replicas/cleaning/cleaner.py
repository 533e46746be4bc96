"""Compaction in the background: picks the dirtiest log, has a cleaner process clean it, and swaps in the result.

Up to `log.cleaner.threads` cleaners run at a time, each a process (`broker.replicas.cleaning.cleaner_worker`) that
lives while there is something to clean. All compacted partitions are checked every `log.cleaner.backoff.ms` and
whenever a cleaner has finished.

A damaged log is marked as uncleanable until the next start, which is logged once; the others are cleaned. After a
transient error (no space, no descriptors, process killed) the log is tried again after the backoff.
Source: Kafka's `LogCleaner` and `LogCleanerManager`.
"""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

import trio

from barnabas.broker.config.keys.log import (
    LOG_CLEANER_BACKOFF_MS,
    LOG_CLEANER_DEDUPE_BUFFER_SIZE,
    LOG_CLEANER_ENABLE,
    LOG_CLEANER_IO_BUFFER_LOAD_FACTOR,
    LOG_CLEANER_IO_BUFFER_SIZE,
    LOG_CLEANER_IO_MAX_BYTES_PER_SECOND,
    LOG_CLEANER_THREADS,
)
from barnabas.broker.log_dir_failures import TRANSIENT
from barnabas.broker.replicas.cleaning.cleaned_offsets import CleanedOffsets
from barnabas.storage.cleaning.selection import Cleanable, CleanerLimits, cleanable, cleaning_task
from barnabas.storage.cleaning.task import CleaningDone
from barnabas.storage.damage import DamagedLog

if TYPE_CHECKING:
    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.log_dir_failures import LogDirFailures
    from barnabas.broker.replicas.cleaning.cleaner_process import CleanerProcess
    from barnabas.broker.replicas.partition import Partition
    from barnabas.broker.replicas.partitions import Partitions
    from barnabas.storage.cleaning.replacement import Replacement
    from barnabas.storage.cleaning.task import CleanedGroup
    from barnabas.storage.directories.log_dirs import LogDirs

logger = logging.getLogger("kafka.log.LogCleaner")

RETRY_S = 1.0
"""Delay before a step is retried that failed with a transient error, seconds."""
_MIN_BACKOFF_S = 0.01
_UNTHROTTLED = sys.float_info.max


class CleaningTotals:
    """What was compacted since the broker started."""

    def __init__(self) -> None:
        self.logs = self.bytes_read = self.bytes_written = self.records_read = self.records_kept = 0
        self.seconds = 0.0

    def add(self, done: CleaningDone, seconds: float) -> None:
        """A log was compacted."""
        self.logs += 1
        self.seconds += seconds
        self.bytes_read += done.bytes_read
        self.bytes_written += done.bytes_written
        self.records_read += done.records_read
        self.records_kept += done.records_kept


class LogCleaner:
    """Compacts the logs of a broker."""

    def __init__(
        self, loop: Loop, config: ServerConfig, log_dirs: LogDirs, failures: LogDirFailures, partitions: Partitions
    ) -> None:
        self._loop = loop
        self._config = config
        self._log_dirs = log_dirs
        self._failures = failures
        self._partitions = partitions
        self._cleaned_offsets = CleanedOffsets(log_dirs)
        self._busy: set[Partition] = set()
        self._uncleanable: set[Partition] = set()
        self._not_before: dict[Partition, float] = {}
        self.totals = CleaningTotals()
        self._cleaners = 0
        self._cleaner_ended = trio.Event()

    async def run(self) -> None:
        """Clean logs until cancelled; return immediately with `log.cleaner.enable=false`."""
        if not self._config[LOG_CLEANER_ENABLE]:
            return
        self._cleaned_offsets.load(self._partitions)
        async with trio.open_nursery() as nursery:
            while True:
                await self._loop.pause(self._backoff_s(), self._cleaner_ended)
                self._cleaner_ended = trio.Event()
                self._forget_closed()
                await self._flush_closed_segments()
                while self._cleaners < self._config[LOG_CLEANER_THREADS] and (chosen := self._choose()):
                    self._cleaners += 1
                    nursery.start_soon(self._work, *chosen)

    @property
    def uncleanable_count(self) -> int:
        """The number of logs that are not cleaned until the broker is started again, because that has failed."""
        return len(self._uncleanable)

    def _backoff_s(self) -> float:
        return max(self._config[LOG_CLEANER_BACKOFF_MS] / 1000, _MIN_BACKOFF_S)

    # --- choosing

    async def _flush_closed_segments(self) -> None:
        """Flush the closed segments of compacted logs, since only flushed segments can be cleaned."""
        for partition in list(self._partitions):
            log = partition.log
            if "compact" not in log.config.cleanup_policy or log.synced_offset >= log.segments.active.base_offset:
                continue
            if self._is_moving(partition):
                continue
            try:
                job = log.start_flush(log.segments.active.base_offset)
                if job is not None:
                    await trio.to_thread.run_sync(job.run)
                    log.finish_flush(job)
            except OSError as error:
                if partition.log is log:  # else it has moved to another log directory meanwhile
                    self._disk_failed(partition, error)

    def _choose(self) -> tuple[Partition, Cleanable] | None:
        """The log with the highest dirty ratio among those that are due, marked as being cleaned; None if none is."""
        now, now_ms = self._loop.now(), self._loop.now_ms()
        best: tuple[Partition, Cleanable] | None = None
        for partition in list(self._partitions):
            log = partition.log
            if "compact" not in log.config.cleanup_policy or partition in self._busy or partition in self._uncleanable:
                continue
            if self._not_before.get(partition, now) > now or self._is_moving(partition):
                continue
            try:
                part = cleanable(log, self._cleaned_offsets.get(partition), now_ms)
            except OSError as error:
                self._clean_later(partition, str(error))
                continue
            except DamagedLog as error:
                self._uncleanable.add(partition)
                partition.damaged(str(error))
                continue
            except Exception as error:  # a bug; the others go on
                logger.exception("Checking %r for compaction failed", partition)
                self._failed(partition, None, f"checking it has failed: {error!r}")
                continue
            if part.is_due and (best is None or part.dirty_ratio > best[1].dirty_ratio):
                best = (partition, part)
        if best is not None:
            self._busy.add(best[0])
            best[0].log.is_cleaning = True
        return best

    def _is_moving(self, partition: Partition) -> bool:
        """Whether the log is copied to another directory, as a whole: as in Kafka it is cleaned when it is there."""
        return (partition.topic, partition.index) in self._log_dirs.futures.logs

    def _limits(self) -> CleanerLimits:
        config = self._config
        cleaners = max(1, config[LOG_CLEANER_THREADS])
        per_second = config[LOG_CLEANER_IO_MAX_BYTES_PER_SECOND]
        return CleanerLimits(
            int(config[LOG_CLEANER_DEDUPE_BUFFER_SIZE] / cleaners * config[LOG_CLEANER_IO_BUFFER_LOAD_FACTOR]),
            config[LOG_CLEANER_IO_BUFFER_SIZE] // cleaners // 2,
            per_second / cleaners if per_second < _UNTHROTTLED else 0.0,
        )

    # --- cleaning

    async def _work(self, partition: Partition, part: Cleanable) -> None:
        """Run one cleaner: clean this log, then others while any is due."""
        chosen: tuple[Partition, Cleanable] | None = (partition, part)
        process: CleanerProcess | None = None
        with self._loop.at_work():
            try:
                while chosen is not None:
                    process = await self._clean_with(process, *chosen)
                    chosen = self._choose()
            finally:
                if process is not None:
                    await process.close()
                self._cleaners -= 1
                self._cleaner_ended.set()

    async def _clean_with(
        self, process: CleanerProcess | None, partition: Partition, part: Cleanable
    ) -> CleanerProcess | None:
        """Clean one log in `process` or a new one; return the process for the next log, None if it is of no use."""
        from barnabas.broker.replicas.cleaning.cleaner_process import CleanerProcess  # imported only when there is work

        try:
            if not partition.log.files.is_published:
                await trio.to_thread.run_sync(partition.log.files.publish)
            process = process or CleanerProcess()
            if await self._clean(process, partition, part):
                return process
        except OSError as error:
            self._clean_later(partition, f"no cleaner can be started: {error}")
        except Exception as error:
            logger.exception("Cleaning %r failed", partition)
            self._failed(partition, None, f"the cleaning has failed: {error!r}")
        finally:
            self._unmark(partition)
        if process is not None:
            await process.close()
        return None

    def _unmark(self, partition: Partition) -> None:
        """Unmark the partition as being cleaned, and delete the segments whose deletion had to wait for that."""
        self._busy.discard(partition)
        partition.log.is_cleaning = False
        if not partition.is_closed:
            self._partitions.persist_log_starts()

    async def _clean(self, process: CleanerProcess, partition: Partition, part: Cleanable) -> bool:
        """Clean one log. False when the process cannot be used again."""
        from barnabas.broker.replicas.cleaning.cleaner_process import CleanerLost, CleaningFailed

        if part.reset_from is not None:
            logger.warning(
                "Resetting the first dirty offset of %r to log start offset %d, since the checkpointed offset %d is "
                "invalid",
                *(partition, part.first_dirty_offset, part.reset_from),
            )
        began = self._loop.now()
        try:
            await process.start(cleaning_task(partition.log, part, self._limits(), self._loop.now_ms()))
            while not isinstance(result := await process.answer(), CleaningDone):
                if partition.is_closed or not await self._replace(partition, result):
                    return False
        except CleanerLost:
            self._clean_later(partition, "its cleaner process has ended")
            return False
        except CleaningFailed as failed:
            self._failed(partition, failed.errno, failed.reason)
            if failed.is_damaged and partition.has_peers and not partition.is_closed:
                partition.damaged(failed.reason)
                self._loop.end_turn()  # outside of the reactor's turns
            return True
        await self._note_clean(partition, part, result, self._loop.now() - began)
        return True

    def _failed(self, partition: Partition, errno: int | None, reason: str) -> None:
        if errno in TRANSIENT:
            self._clean_later(partition, reason)
        elif not partition.is_closed:
            self._uncleanable.add(partition)
            logger.error(
                "Cannot clean %r: %s. It is marked as uncleanable and grows until the broker is started again",
                *(partition, reason),
            )

    def _clean_later(self, partition: Partition, reason: str) -> None:
        if not partition.is_closed:
            self._not_before[partition] = self._loop.now() + self._backoff_s()
            logger.warning("Cannot clean %r now: %s", partition, reason)

    async def _replace(self, partition: Partition, group: CleanedGroup) -> bool:
        """Swap in a cleaned segment. False when that failed."""
        from barnabas.storage.cleaning.replacement import Replacement

        replacement = Replacement(partition.log, group)
        with trio.CancelScope(shield=True):  # interrupted halfway it would be finished by the next start
            try:
                await trio.to_thread.run_sync(replacement.publish)
            except OSError as error:
                self._disk_failed(partition, error)
                return False
            if partition.is_closed:
                return False
            replacement.take_over()
            renamed = await self._retire(partition, replacement)
        while renamed is None:  # the log already reads from the new segment: retry until it works
            if _is_closed(partition):
                return False
            await trio.sleep(RETRY_S)
            renamed = await self._retire(partition, replacement)
        delay_s = partition.log.config.file_delete_delay_ms / 1000
        self._log_dirs.deletions.schedule(renamed, self._loop.now() + delay_s)
        return True

    async def _retire(self, partition: Partition, replacement: Replacement) -> list[str] | None:
        """Rename the replaced segments and finish; the renamed files to delete, None when the disk failed."""
        try:
            renamed = await trio.to_thread.run_sync(replacement.retire)
            if not partition.is_closed:
                replacement.finish()
        except OSError as error:
            self._disk_failed(partition, error)
            return None
        return renamed

    def _disk_failed(self, partition: Partition, error: OSError) -> None:
        log_dir = self._log_dirs.dir_of(partition.topic, partition.index)
        if error.errno in TRANSIENT:
            self._clean_later(partition, str(error))
        elif not partition.is_closed and log_dir is not None:
            self._failures.take_offline(log_dir, "compaction", error)
            self._loop.end_turn()  # outside of the reactor's turns

    # --- results

    async def _note_clean(self, partition: Partition, part: Cleanable, done: CleaningDone, seconds: float) -> None:
        self._not_before.pop(partition, None)
        self.totals.add(done, seconds)
        logger.info(
            "Cleaned %r from dirty offset %d up to %d in %.1f s: %.1f MB in, %.1f MB out, %d of %d records kept",
            *(partition, part.first_dirty_offset, done.end_offset, seconds),
            *(done.bytes_read / 1e6, done.bytes_written / 1e6, done.records_kept, done.records_read),
        )
        await self._cleaned_offsets.set(partition, done.end_offset)

    def _forget_closed(self) -> None:
        """Forget the partitions that are deleted or offline."""
        self._cleaned_offsets.keep_only(self._partitions)
        self._uncleanable = {partition for partition in self._uncleanable if not partition.is_closed}
        self._not_before = {delayed: at for delayed, at in self._not_before.items() if not delayed.is_closed}


def _is_closed(partition: Partition) -> bool:
    """Whether the partition is deleted or offline by now."""
    return partition.is_closed
