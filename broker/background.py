"""What a broker does on its own from time to time: checkpoints, retention, removal of deleted files, idle connections.

Each job runs at its own interval; a failing one is logged and tried again at its next time. File removal and syncs
run in a thread, so that the loop does not wait for the disk.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import trio

from broker.config_keys.log import (
    LOG_FLUSH_OFFSET_CHECKPOINT_INTERVAL_MS,
    LOG_FLUSH_START_OFFSET_CHECKPOINT_INTERVAL_MS,
    LOG_RETENTION_CHECK_INTERVAL_MS,
)
from broker.config_keys.replication import REPLICA_HIGH_WATERMARK_CHECKPOINT_INTERVAL_MS
from broker.retention import INITIAL_DELAY_S, Retention

if TYPE_CHECKING:
    from broker.context import Broker
    from broker.transport import Reactor

logger = logging.getLogger("kafka.server.KafkaScheduler")

IDLE_CHECK_S = 1.0
DELETION_CHECK_S = 1.0


async def run(broker: Broker, reactor: Reactor) -> None:
    """All jobs, until cancelled."""
    config = broker.config

    async def recovery_points() -> None:
        for log in broker.log_dirs.logs_with_rolled_segments():
            job = log.start_flush(log.segments.active.base_offset)
            if job is not None:
                await trio.to_thread.run_sync(job.run)
                log.finish_flush(job)
        broker.log_dirs.write_recovery_points()

    async def log_starts() -> None:
        broker.log_dirs.write_log_starts()

    async def high_watermarks() -> None:
        broker.log_dirs.write_high_watermarks()

    async def deletions() -> None:
        for path in broker.log_dirs.due_deletions(broker.now()):
            await trio.to_thread.run_sync(broker.log_dirs.remove, path)

    async def idle_connections() -> None:
        reactor.close_idle(broker.now())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(_repeat, config[LOG_FLUSH_OFFSET_CHECKPOINT_INTERVAL_MS] / 1000, recovery_points)
        nursery.start_soon(_repeat, config[LOG_FLUSH_START_OFFSET_CHECKPOINT_INTERVAL_MS] / 1000, log_starts)
        nursery.start_soon(_repeat, config[REPLICA_HIGH_WATERMARK_CHECKPOINT_INTERVAL_MS] / 1000, high_watermarks)
        check_interval_s = config[LOG_RETENTION_CHECK_INTERVAL_MS] / 1000
        nursery.start_soon(_repeat, check_interval_s, Retention(broker).check, min(check_interval_s, INITIAL_DELAY_S))
        nursery.start_soon(_repeat, DELETION_CHECK_S, deletions)
        nursery.start_soon(_repeat, IDLE_CHECK_S, idle_connections)


async def _repeat(interval_s: float, job: Callable[[], Awaitable[None]], first_s: float | None = None) -> None:
    delay_s = interval_s if first_s is None else first_s
    while True:
        await trio.sleep(max(delay_s, 0.001))
        delay_s = interval_s
        try:
            await job()
        except Exception:
            logger.exception("The job %s failed", job.__name__)
