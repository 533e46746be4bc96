"""What a broker does on its own from time to time: retention, compaction, checkpoints, deleted files, idle connections.

Each job runs at its own interval; a failing one is logged and tried again at its next time. File removal, syncs
and checkpoints run in a thread, so that the loop does not wait for the disk.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import trio

from barnabas.broker.config.keys.groups import OFFSETS_RETENTION_CHECK_INTERVAL_MS
from barnabas.broker.config.keys.log import (
    LOG_CLEANER_BACKOFF_MS,
    LOG_FLUSH_OFFSET_CHECKPOINT_INTERVAL_MS,
    LOG_FLUSH_START_OFFSET_CHECKPOINT_INTERVAL_MS,
    LOG_RETENTION_CHECK_INTERVAL_MS,
)
from barnabas.broker.config.keys.own import ALWAYS, LOG_SYNC
from barnabas.broker.config.keys.replication import REPLICA_HIGH_WATERMARK_CHECKPOINT_INTERVAL_MS
from barnabas.broker.replicas.retention import INITIAL_DELAY_S, Retention
from barnabas.storage import layout

if TYPE_CHECKING:
    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.broker.context import Broker
    from barnabas.broker.net.reactor import Reactor
    from barnabas.storage.log import Log

logger = logging.getLogger("kafka.server.KafkaScheduler")

IDLE_CHECK_S = 1.0
DELETION_CHECK_S = 1.0
CLEANER_START_S = 2.0
DISK_CHECK_S = 1.0
PRODUCER_CHECK_S = 600.0  # Kafka's producer.id.expiration.check.interval.ms, which is no public key
SYNCED_CHECKPOINT_S = 5.0
"""With `barnabas.log.sync=always` recovery points are written down at least this often. What lies below them is known
to have been synced: later damage to it is not taken for a torn write (L2)."""


async def run(broker: Broker, reactor: Reactor) -> None:
    """All jobs, until cancelled."""
    config = broker.config

    async def recovery_points() -> None:
        for log in broker.log_dirs.logs_with_rolled_segments():
            await _flush_rolled(broker, log)
        await _checkpoint(broker, layout.RECOVERY_POINT_CHECKPOINT)

    async def log_starts() -> None:
        await _checkpoint(broker, layout.LOG_START_CHECKPOINT)

    async def high_watermarks() -> None:
        await _checkpoint(broker, layout.REPLICATION_CHECKPOINT)

    async def producers() -> None:
        broker.partitions.forget_expired_producers()

    async def offsets() -> None:
        broker.group_coordinators.expire_offsets()
        broker.loop.after_turn()  # outside of the reactor's turns

    async def deletions() -> None:
        await _remove_deleted(broker)

    async def disks() -> None:
        broker.log_dir_failures.check()
        broker.partitions.reopen(broker.image)
        broker.loop.after_turn()  # outside of the reactor's turns

    async def idle_connections() -> None:
        reactor.close_idle(broker.loop.now())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(_repeat, _recovery_points_interval_s(config), recovery_points)
        nursery.start_soon(_repeat, config[LOG_FLUSH_START_OFFSET_CHECKPOINT_INTERVAL_MS] / 1000, log_starts)
        nursery.start_soon(_repeat, config[REPLICA_HIGH_WATERMARK_CHECKPOINT_INTERVAL_MS] / 1000, high_watermarks)
        check_interval_s = config[LOG_RETENTION_CHECK_INTERVAL_MS] / 1000
        nursery.start_soon(
            _repeat,
            check_interval_s,
            Retention(broker.loop, broker.partitions).check,
            min(check_interval_s, INITIAL_DELAY_S),
        )
        nursery.start_soon(_clean, broker)
        nursery.start_soon(_repeat, PRODUCER_CHECK_S, producers)
        nursery.start_soon(_repeat, config[OFFSETS_RETENTION_CHECK_INTERVAL_MS] / 1000, offsets)
        nursery.start_soon(_repeat, DELETION_CHECK_S, deletions)
        nursery.start_soon(_repeat, DISK_CHECK_S, disks)
        nursery.start_soon(_repeat, IDLE_CHECK_S, idle_connections)


def _recovery_points_interval_s(config: ServerConfig) -> float:
    interval_s: float = config[LOG_FLUSH_OFFSET_CHECKPOINT_INTERVAL_MS] / 1000
    return min(interval_s, SYNCED_CHECKPOINT_S) if config[LOG_SYNC] == ALWAYS else interval_s


async def _checkpoint(broker: Broker, name: str) -> None:
    """Write the checkpoint files of a name, in a thread: with much data unwritten their sync may take a while."""
    for log_dir, write in broker.log_dirs.plan_checkpoint(name):
        try:
            await trio.to_thread.run_sync(write)
        except OSError as error:
            broker.log_dir_failures.report(log_dir, f"checkpoint {name}", error)
            broker.loop.after_turn()  # outside of the reactor's turns


async def _remove_deleted(broker: Broker) -> None:
    """Remove the files whose time has come; what cannot be removed is left to the next start."""
    for path in broker.log_dirs.deletions.take_due(broker.loop.now()):
        try:
            await trio.to_thread.run_sync(broker.log_dirs.deletions.remove, path)
        except OSError as error:
            logger.error("Cannot remove %s, which was deleted: %s. The next start tries it again", path, error)


async def _flush_rolled(broker: Broker, log: Log) -> None:
    """Sync a log's closed segments with their indexes."""
    log_dir = broker.log_dirs.dir_of(log.topic, log.partition)
    try:
        job = log.start_flush(log.segments.active.base_offset)
    except OSError as error:  # nothing is synced yet, so that it may be tried again
        if log_dir is not None:
            broker.log_dir_failures.report(log_dir, "sync of closed segments", error)
        return
    if job is None:
        return
    try:
        await trio.to_thread.run_sync(job.run)
    except OSError as error:
        if log_dir is not None and broker.log_dirs.logs.get((log.topic, log.partition)) is log:  # not deleted since
            broker.log_dir_failures.take_offline(log_dir, "sync of closed segments", error)
            broker.loop.after_turn()
        return
    log.finish_flush(job)


async def _clean(broker: Broker) -> None:
    """Compact logs; what that takes is not imported while the broker starts."""
    await trio.sleep(min(broker.config[LOG_CLEANER_BACKOFF_MS] / 1000, CLEANER_START_S))
    from barnabas.broker.replicas.cleaner import LogCleaner

    await LogCleaner(broker.loop, broker.config, broker.log_dirs, broker.log_dir_failures, broker.partitions).run()


async def _repeat(interval_s: float, job: Callable[[], Awaitable[None]], first_s: float | None = None) -> None:
    delay_s = interval_s if first_s is None else first_s
    while True:
        await trio.sleep(max(delay_s, 0.001))
        delay_s = interval_s
        try:
            await job()
        except Exception:
            logger.exception("The job %s failed", job.__name__)
