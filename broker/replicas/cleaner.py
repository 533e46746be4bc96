"""Compaction in the background: picks the filthiest log, has a cleaner process clean it, puts the result in place.

Up to `log.cleaner.threads` cleaners work at a time, each a process (`broker.replicas.cleaner_worker`) that lives
while there is something to clean. Every `log.cleaner.backoff.ms`, and whenever a log is done, all compacted
partitions are looked at. What was cleaned up to where is kept in `cleaner-offset-checkpoint` of each log directory.

A log that cannot be cleaned because it is damaged is uncleanable until the next start: that is said once, the others
go on. When something has only run out (room, files) or the process was lost, its turn comes again after the backoff.
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
from barnabas.broker.replicas.log_dir_failure import PASSING
from barnabas.storage import layout
from barnabas.storage.checkpoints import CorruptCheckpoint, OffsetCheckpoint
from barnabas.storage.cleaning.selection import Cleanable, CleanerLimits, cleanable, cleaning_task
from barnabas.storage.cleaning.task import CleaningDone
from barnabas.storage.damage import DamagedLog

if TYPE_CHECKING:
    from barnabas.broker.context import Broker
    from barnabas.broker.replicas.cleaner_process import CleanerProcess
    from barnabas.broker.replicas.partition import Partition
    from barnabas.storage.cleaning.replacement import Replacement
    from barnabas.storage.cleaning.task import CleanedGroup
    from barnabas.storage.log_dir import LogDir

logger = logging.getLogger("kafka.log.LogCleaner")

RETRY_S = 1.0
"""Time until a step is tried again that failed because something has run out."""
_MIN_BACKOFF_S = 0.01
_UNTHROTTLED = sys.float_info.max


class LogCleaner:
    """The compaction of all partitions of a broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._clean_to: dict[tuple[str, int], tuple[bytes, int]] = {}  # topic id and offset: names are used again
        self._busy: set[Partition] = set()
        self._uncleanable: set[Partition] = set()
        self._not_before: dict[Partition, float] = {}
        self._cleaners = 0
        self._news = trio.Event()

    async def run(self) -> None:
        """Until cancelled; nothing with `log.cleaner.enable=false`."""
        if not self._broker.config[LOG_CLEANER_ENABLE]:
            return
        self._read_checkpoints()
        async with trio.open_nursery() as nursery:
            while True:
                with trio.move_on_after(self._backoff_s()):
                    await self._news.wait()
                self._news = trio.Event()
                self._forget_gone()
                await self._sync_closed()
                while self._cleaners < self._broker.config[LOG_CLEANER_THREADS] and (chosen := self._choose()):
                    self._cleaners += 1
                    nursery.start_soon(self._work, *chosen)

    def _backoff_s(self) -> float:
        return max(self._broker.config[LOG_CLEANER_BACKOFF_MS] / 1000, _MIN_BACKOFF_S)

    # --- what to clean

    async def _sync_closed(self) -> None:
        """Only what is synced can be cleaned: sync the closed segments of compacted logs."""
        for partition in list(self._broker.partitions):
            log = partition.log
            if "compact" not in log.config.cleanup_policy or log.synced_offset >= log.segments.active.base_offset:
                continue
            try:
                job = log.start_flush(log.segments.active.base_offset)
                if job is not None:
                    await trio.to_thread.run_sync(job.run)
                    log.finish_flush(job)
            except OSError as error:
                self._disk_failed(partition, error)

    def _choose(self) -> tuple[Partition, Cleanable] | None:
        """The log with the greatest part of dirty bytes among those that are due; from now on it is being cleaned."""
        broker = self._broker
        now, now_ms = broker.now(), broker.now_ms()
        best: tuple[Partition, Cleanable] | None = None
        for partition in list(broker.partitions):
            log = partition.log
            if "compact" not in log.config.cleanup_policy or partition in self._busy or partition in self._uncleanable:
                continue
            if self._not_before.get(partition, now) > now:
                continue
            try:
                part = cleanable(log, self._clean_offset(partition), now_ms)
            except OSError as error:
                self._put_off(partition, str(error))
                continue
            except DamagedLog as error:
                partition.fail(str(error))
                continue
            except Exception as error:  # a bug; the others go on
                logger.exception("Looking at %r failed", partition)
                self._failed(partition, None, f"looking at it has failed: {error!r}")
                continue
            if part.is_due and (best is None or part.dirty_ratio > best[1].dirty_ratio):
                best = (partition, part)
        if best is not None:
            self._busy.add(best[0])
            best[0].log.is_cleaning = True
        return best

    def _clean_offset(self, partition: Partition) -> int | None:
        topic_id, offset = self._clean_to.get((partition.topic, partition.index), (partition.topic_id, None))
        return offset if topic_id == partition.topic_id else None

    def _limits(self) -> CleanerLimits:
        config = self._broker.config
        cleaners = max(1, config[LOG_CLEANER_THREADS])
        per_second = config[LOG_CLEANER_IO_MAX_BYTES_PER_SECOND]
        return CleanerLimits(
            int(config[LOG_CLEANER_DEDUPE_BUFFER_SIZE] / cleaners * config[LOG_CLEANER_IO_BUFFER_LOAD_FACTOR]),
            config[LOG_CLEANER_IO_BUFFER_SIZE] // cleaners // 2,
            per_second / cleaners if per_second < _UNTHROTTLED else 0.0,
        )

    # --- cleaning

    async def _work(self, partition: Partition, part: Cleanable) -> None:
        """One cleaner: clean this log, then others while there are any that are due."""
        chosen: tuple[Partition, Cleanable] | None = (partition, part)
        process: CleanerProcess | None = None
        try:
            while chosen is not None:
                process = await self._clean_with(process, *chosen)
                chosen = self._choose()
        finally:
            if process is not None:
                await process.close()
            self._cleaners -= 1
            self._news.set()

    async def _clean_with(
        self, process: CleanerProcess | None, partition: Partition, part: Cleanable
    ) -> CleanerProcess | None:
        """Clean one log, in the process of the one before or a new one; the process for the next."""
        from barnabas.broker.replicas.cleaner_process import (
            CleanerProcess,  # only who has something to clean pays for it
        )

        try:
            process = process or CleanerProcess()
            if await self._clean(process, partition, part):
                return process
        except OSError as error:
            self._put_off(partition, f"no cleaner can be started: {error}")
        except Exception as error:
            logger.exception("Cleaning %r failed", partition)
            self._failed(partition, None, f"the cleaning has failed: {error!r}")
        finally:
            self._let_go(partition)
        if process is not None:
            await process.close()
        return None

    def _let_go(self, partition: Partition) -> None:
        """The partition is no longer being cleaned; what had to wait for that is done."""
        self._busy.discard(partition)
        partition.log.is_cleaning = False
        if not partition.is_gone:
            self._broker.partitions.persist_log_starts()

    async def _clean(self, process: CleanerProcess, partition: Partition, part: Cleanable) -> bool:
        """Clean one log. False when the process is of no more use."""
        from barnabas.broker.replicas.cleaner_process import CleanerLost, CleaningFailed

        if part.reset_from is not None:
            logger.warning(
                "Resetting the first dirty offset of %r to its log start %d: the checkpoint says %d",
                *(partition, part.first_dirty_offset, part.reset_from),
            )
        began = self._broker.now()
        try:
            await process.start(cleaning_task(partition.log, part, self._limits(), self._broker.now_ms()))
            while not isinstance(answer := await process.answer(), CleaningDone):
                if partition.is_gone or not await self._replace(partition, answer):
                    return False
        except CleanerLost:
            self._put_off(partition, "its cleaner process has ended")
            return False
        except CleaningFailed as failed:
            self._failed(partition, failed.errno, failed.reason)
            return True
        await self._note_clean(partition, part, answer, self._broker.now() - began)
        return True

    def _failed(self, partition: Partition, errno: int | None, reason: str) -> None:
        if errno in PASSING:
            self._put_off(partition, reason)
        elif not partition.is_gone:
            self._uncleanable.add(partition)
            logger.error(
                "Cannot clean %r: %s. It is marked as uncleanable and grows until the broker is started again",
                *(partition, reason),
            )

    def _put_off(self, partition: Partition, why: str) -> None:
        if not partition.is_gone:
            self._not_before[partition] = self._broker.now() + self._backoff_s()
            logger.warning("Cannot clean %r now: %s", partition, why)

    async def _replace(self, partition: Partition, group: CleanedGroup) -> bool:
        """Put a cleaned segment in place. False when that did not work."""
        from barnabas.storage.cleaning.replacement import Replacement

        replacement = Replacement(partition.log, group)
        with trio.CancelScope(shield=True):  # a stop halfway would leave work to the next start
            try:
                await trio.to_thread.run_sync(replacement.publish)
            except OSError as error:
                self._disk_failed(partition, error)
                return False
            if partition.is_gone:
                return False
            replacement.take_over()
            renamed = await self._retire(partition, replacement)
        while renamed is None:  # the log reads from the new segment already: there is no way back
            if _is_gone(partition):
                return False
            await trio.sleep(RETRY_S)
            renamed = await self._retire(partition, replacement)
        delay_s = partition.log.config.file_delete_delay_ms / 1000
        self._broker.log_dirs.delete_later(renamed, self._broker.now() + delay_s)
        return True

    async def _retire(self, partition: Partition, replacement: Replacement) -> list[str] | None:
        """The last two steps; None when the disk did not let us."""
        try:
            renamed = await trio.to_thread.run_sync(replacement.retire)
            if not partition.is_gone:
                replacement.finish()
        except OSError as error:
            self._disk_failed(partition, error)
            return None
        return renamed

    def _disk_failed(self, partition: Partition, error: OSError) -> None:
        log_dir = self._broker.log_dirs.dir_of(partition.topic, partition.index)
        if error.errno in PASSING:
            self._put_off(partition, str(error))
        elif not partition.is_gone and log_dir is not None:
            self._broker.log_dir_failed(log_dir, "compaction", error)
            self._broker.after_turn()  # this is no turn of the reactor, and somebody may have been told

    # --- what is clean

    async def _note_clean(self, partition: Partition, part: Cleanable, done: CleaningDone, seconds: float) -> None:
        self._clean_to[partition.topic, partition.index] = (partition.topic_id, done.end_offset)
        self._not_before.pop(partition, None)
        logger.info(
            "Cleaned %r from dirty offset %d up to %d in %.1f s: %.1f MB in, %.1f MB out, %d of %d records kept",
            *(partition, part.first_dirty_offset, done.end_offset, seconds),
            *(done.bytes_read / 1e6, done.bytes_written / 1e6, done.records_kept, done.records_read),
        )
        await self._write_checkpoint(partition)

    def _read_checkpoints(self) -> None:
        read: dict[LogDir, dict[tuple[str, int], int]] = {}
        for partition in self._broker.partitions:
            key = (partition.topic, partition.index)
            log_dir = self._broker.log_dirs.dir_of(*key)
            if log_dir is None or "compact" not in partition.log.config.cleanup_policy:
                continue
            if log_dir not in read:
                read[log_dir] = self._read_checkpoint(partition, log_dir)
            if key in read[log_dir]:
                self._clean_to[key] = (partition.topic_id, read[log_dir][key])

    @staticmethod
    def _read_checkpoint(partition: Partition, log_dir: LogDir) -> dict[tuple[str, int], int]:
        try:
            return OffsetCheckpoint(partition.log.files, f"{log_dir.path}/{layout.CLEANER_CHECKPOINT}").read()
        except (CorruptCheckpoint, OSError) as error:
            logger.warning("Every compacted log in %s is taken for dirty: %s", log_dir.path, error)
            return {}

    async def _write_checkpoint(self, partition: Partition) -> None:
        """Write how far the logs of this partition's directory are clean; failing costs no more than a cleaning."""
        dir_of = self._broker.log_dirs.dir_of
        log_dir = dir_of(partition.topic, partition.index)
        if log_dir is None:
            return
        offsets = {key: offset for key, (_, offset) in self._clean_to.items() if dir_of(*key) is log_dir}
        checkpoint = OffsetCheckpoint(partition.log.files, f"{log_dir.path}/{layout.CLEANER_CHECKPOINT}")
        try:
            await trio.to_thread.run_sync(checkpoint.write, offsets)
        except OSError as error:
            logger.warning("Cannot write how far the logs in %s are clean: %s", log_dir.path, error)

    def _forget_gone(self) -> None:
        """Topics have been deleted, and others made under their names."""
        present = {(partition.topic, partition.index): partition.topic_id for partition in self._broker.partitions}
        self._clean_to = {key: entry for key, entry in self._clean_to.items() if present.get(key) == entry[0]}
        self._uncleanable = {partition for partition in self._uncleanable if not partition.is_gone}
        self._not_before = {one: at for one, at in self._not_before.items() if not one.is_gone}


def _is_gone(partition: Partition) -> bool:
    """Whether it has been deleted or taken offline since it was last asked."""
    return partition.is_gone
