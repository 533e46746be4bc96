"""Periodic jobs: retention, compaction, checkpoints, expiry, removal of deleted files, disk checks, idle connections.

Each job runs at its own interval; a failure is logged, and the job runs again at its next time. File removal, flushes
and checkpoints run in a thread, so that the event loop does not wait for the disk.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import trio

from barnabas.broker.config.keys.general import DELEGATION_TOKEN_EXPIRY_CHECK_INTERVAL_MS
from barnabas.broker.config.keys.groups import OFFSETS_RETENTION_CHECK_INTERVAL_MS
from barnabas.broker.config.keys.log import (
    LOG_CLEANER_BACKOFF_MS,
    LOG_CLEANER_ENABLE,
    LOG_FLUSH_OFFSET_CHECKPOINT_INTERVAL_MS,
    LOG_FLUSH_START_OFFSET_CHECKPOINT_INTERVAL_MS,
    LOG_RETENTION_CHECK_INTERVAL_MS,
)
from barnabas.broker.config.keys.own import ALWAYS, LOG_SYNC
from barnabas.broker.config.keys.replication import REPLICA_HIGH_WATERMARK_CHECKPOINT_INTERVAL_MS
from barnabas.broker.exhausted_dirs import NO_DESCRIPTORS
from barnabas.storage import layout

if TYPE_CHECKING:
    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.broker.context import Broker
    from barnabas.broker.event_loop.steps import Steps
    from barnabas.broker.net.reactor import Reactor
    from barnabas.storage.log import Log

R = TypeVar("R")
_Job: TypeAlias = Callable[[], Awaitable[None]]

logger = logging.getLogger("kafka.server.KafkaScheduler")

IDLE_CHECK_S = 1.0
DELETION_CHECK_S = 1.0
CLEANER_START_S = 2.0
DISK_CHECK_S = 1.0
PRODUCER_CHECK_S = 600.0  # Kafka's producer.id.expiration.check.interval.ms, which is no public key
FLUSHED_CHECKPOINT_S = 5.0
"""Longest interval between recovery point checkpoints with `barnabas.log.sync=always`, seconds. Everything below a
recovery point is known to be flushed: damage to it is not treated as a torn write (L2)."""


class BackgroundJobs:
    """The periodic jobs of a broker."""

    def __init__(self, broker: Broker, reactor: Reactor) -> None:
        self._broker = broker
        self._reactor = reactor

    async def run(self) -> None:
        """Run all jobs until cancelled."""
        config = self._broker.config
        log_starts_s = config[LOG_FLUSH_START_OFFSET_CHECKPOINT_INTERVAL_MS] / 1000
        repeated = [
            (_recovery_points_interval_s(config), self._checkpoint_recovery_points),
            (log_starts_s, self._checkpoint_log_starts),
            (DELETION_CHECK_S, self._remove_deleted),
            (DISK_CHECK_S, self._check_disks),
            (IDLE_CHECK_S, self._close_idle_connections),
        ]
        if "broker" in config.roles:
            high_watermarks_s = config[REPLICA_HIGH_WATERMARK_CHECKPOINT_INTERVAL_MS] / 1000
            repeated.append((high_watermarks_s, self._checkpoint_high_watermarks))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._start_when_due, nursery, repeated)
            if "controller" in config.roles:
                tokens_s = config[DELEGATION_TOKEN_EXPIRY_CHECK_INTERVAL_MS] / 1000
                nursery.start_soon(self._repeat_by_state, tokens_s, self._remove_expired_tokens)
            if "broker" in config.roles:
                self._start_jobs_of_broker(nursery)

    def _start_jobs_of_broker(self, nursery: trio.Nursery) -> None:
        """Start the jobs that a process which is only a controller does not have."""
        from barnabas.broker.replicas.cleaning.retention import INITIAL_DELAY_S, Retention

        broker, config = self._broker, self._broker.config
        retention = Retention(broker.loop, broker.partitions)
        retention_s = config[LOG_RETENTION_CHECK_INTERVAL_MS] / 1000
        offsets_s = config[OFFSETS_RETENTION_CHECK_INTERVAL_MS] / 1000
        nursery.start_soon(self._repeat_by_state, retention_s, retention.check, min(retention_s, INITIAL_DELAY_S))
        nursery.start_soon(self._clean_logs)
        nursery.start_soon(self._repeat_by_state, PRODUCER_CHECK_S, self._expire_producers)
        nursery.start_soon(self._repeat_by_state, offsets_s, self._expire_offsets)

    async def _start_when_due(self, nursery: trio.Nursery, jobs: Iterable[tuple[float, _Job]]) -> None:
        """Give each job a task of its own when it runs first: most virtual clusters of the test kit end before that."""
        started = trio.current_time()
        for interval_s, job in sorted(jobs, key=lambda entry: entry[0]):
            await trio.sleep_until(started + max(interval_s, 0.001))
            nursery.start_soon(self._repeat, interval_s, job)

    async def _repeat(self, interval_s: float, job: _Job) -> None:
        """Run a job now, and again every `interval_s` seconds of real time."""
        while True:
            await _attempt(job)
            await trio.sleep(max(interval_s, 0.001))

    async def _repeat_by_state(self, interval_s: float, job: _Job, first_s: float | None = None) -> None:
        """Run a job every `interval_s` seconds by the clock of the state, the first time after `first_s` seconds."""
        delay_s = interval_s if first_s is None else first_s
        while True:
            await self._broker.loop.pause(max(delay_s, 0.001))
            delay_s = interval_s
            await _attempt(job)

    async def _checkpoint_recovery_points(self) -> None:
        for log in self._broker.log_dirs.logs_with_rolled_segments():
            await self._flush_closed_segments(log)
        await self._checkpoint(layout.RECOVERY_POINT_CHECKPOINT)

    async def _checkpoint_log_starts(self) -> None:
        await self._checkpoint(layout.LOG_START_CHECKPOINT)

    async def _checkpoint_high_watermarks(self) -> None:
        await self._checkpoint(layout.REPLICATION_CHECKPOINT)

    async def _expire_producers(self) -> None:
        await _run(self._broker.partitions.forget_expired_producers())

    async def _expire_offsets(self) -> None:
        await _run(self._broker.group_coordinators.expire_offsets())
        self._end_turn()

    async def _remove_expired_tokens(self) -> None:
        if self._broker.image.tokens:
            self._broker.controller.remove_expired_tokens()
            self._end_turn()

    async def _check_disks(self) -> None:
        broker = self._broker
        broker.log_dir_failures.check()
        if "broker" in broker.config.roles:
            broker.partitions.reopen(broker.image)
        self._end_turn()

    async def _close_idle_connections(self) -> None:
        self._reactor.close_idle(self._broker.loop.now())

    def _end_turn(self) -> None:
        """Run the callbacks that a job has left for the end of the turn: jobs run outside of the reactor's turns."""
        self._broker.loop.end_turn()

    async def _checkpoint(self, name: str) -> None:
        """Write the checkpoint files of this name in a thread: their sync takes long when much data is dirty."""
        await _run(self._broker.log_dir_failures.write_checkpoint(name))
        self._end_turn()

    async def _remove_deleted(self) -> None:
        """Remove the deleted files whose delay has passed; the next start removes files that cannot be removed now."""
        deletions = self._broker.log_dirs.deletions
        for path in deletions.take_due(self._broker.loop.now()):
            try:
                await trio.to_thread.run_sync(deletions.remove, path)
            except OSError as error:
                logger.error("Cannot remove the deleted %s: %s. The next start tries it again", path, error)

    async def _flush_closed_segments(self, log: Log) -> None:
        """Flush a log's closed segments with their indexes."""
        log_dirs, failures = self._broker.log_dirs, self._broker.log_dir_failures
        log_dir = log_dirs.dir_of(log.topic, log.partition)
        if log_dirs.logs.get((log.topic, log.partition)) is not log:
            return  # deleted, or moved to another directory
        try:
            job = log.start_flush(log.segments.active.base_offset)
        except OSError as error:  # nothing was synced, so it can be retried
            if log_dir is not None:
                failures.report(log_dir, "sync of closed segments", error)
            return
        if job is None:
            return
        try:
            await trio.to_thread.run_sync(job.run)
        except OSError as error:
            if log_dir is not None and error.errno in NO_DESCRIPTORS:  # the next check tries it again
                failures.report(log_dir, "sync of closed segments", error)
            elif log_dir is not None and log_dirs.logs.get((log.topic, log.partition)) is log:  # not deleted meanwhile
                failures.take_offline(log_dir, "sync of closed segments", error)
                self._end_turn()
            return
        log.finish_flush(job)

    async def _clean_logs(self) -> None:
        """Compact logs; the cleaner is imported after the start."""
        broker = self._broker
        if not broker.config[LOG_CLEANER_ENABLE]:
            return
        await broker.loop.pause(min(broker.config[LOG_CLEANER_BACKOFF_MS] / 1000, CLEANER_START_S))
        while True:
            try:
                from barnabas.broker.replicas.cleaning.cleaner import LogCleaner
            except (ImportError, OSError) as error:  # no descriptor is left to read the module
                logger.error("The log cleaner cannot be started: %s. It is tried again", error)
                await broker.loop.pause(CLEANER_START_S)
            else:
                break
        parts = (broker.loop, broker.config, broker.log_dirs, broker.log_dir_failures, broker.partitions)
        while True:
            try:
                cleaner = LogCleaner(*parts)
                if broker.meter is not None:
                    broker.meter.cleaner = cleaner
                await cleaner.run()
                return
            except Exception:
                logger.exception("The log cleaner failed. It is started again")
                await broker.loop.pause(CLEANER_START_S)


async def _run(steps: Steps[R]) -> R:
    """Do work in steps: other tasks run between two steps, and functions that wait for a disk run in a thread."""
    failure: Exception | None = None
    while True:
        try:
            waits_for = next(steps) if failure is None else steps.throw(failure)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        failure = None
        if waits_for is None:
            await trio.lowlevel.checkpoint()
            continue
        try:
            await trio.to_thread.run_sync(waits_for)
        except Exception as error:
            failure = error


def _recovery_points_interval_s(config: ServerConfig) -> float:
    interval_s: float = config[LOG_FLUSH_OFFSET_CHECKPOINT_INTERVAL_MS] / 1000
    return min(interval_s, FLUSHED_CHECKPOINT_S) if config[LOG_SYNC] == ALWAYS else interval_s


async def _attempt(job: Callable[[], Awaitable[None]]) -> None:
    try:
        await job()
    except Exception:
        logger.exception("The job %s failed", job.__name__)
