"""Truncates the log of a follower, in steps that wait for the disk in threads (R5, R24).

The order is the same as in `storage.recover.truncation`, with the checkpoints in between. If the broker begins to lead
the partition before the log is cut, nothing has happened. A disk that fails takes the partition offline, not its
fetcher.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from barnabas.storage import layout
from barnabas.storage.damage import DamagedLog
from barnabas.storage.recover.truncation import Truncation

if TYPE_CHECKING:
    from barnabas.broker.event_loop.steps import Steps
    from barnabas.broker.replicas.fetchers.context import FetchContext
    from barnabas.broker.replicas.fetchers.followed import Followed
    from barnabas.storage.log import Log

logger = logging.getLogger("kafka.server.ReplicaFetcherThread")


def target_of(log: Log, epoch: int, end_offset: int) -> int:
    """Where to truncate when the leader's log ends its `epoch`, the last that both may have, at `end_offset` (R5).

    The leader names the greatest epoch that it has at or below the follower's last. If the follower has that epoch, the
    logs are equal up to the smaller end; if not, up to the end of the epoch below it, at most.
    Source: Kafka's `AbstractFetcherThread.getOffsetTruncationState`.
    """
    own_epoch, own_end = log.end_offset_for_epoch(epoch)
    if own_epoch == -1:
        return min(end_offset, log.log_end_offset)
    if own_epoch != epoch:
        return min(own_end, log.log_end_offset)
    return min(own_end, end_offset, log.log_end_offset)


def truncate(context: FetchContext, followed: Followed, offset: int, *, fully: bool = False) -> Steps[bool]:
    """Truncate the log of a followed partition at `offset`; whether that was done.

    It is not done if the broker does not follow this leader any longer, while a cleaner reads the log, or if the disk
    refuses a checkpoint; the caller then tries again later.
    """
    partition = followed.partition
    log = partition.log
    if log.is_cleaning and (fully or offset < log.segments.active.base_offset):
        return False
    if offset < log.high_watermark:
        logger.warning(
            "Truncating %s-%d to offset %d, below the high watermark %d",
            *(partition.topic, partition.index, offset, log.high_watermark),
        )
    truncation = Truncation(log, offset, fully=fully)
    if not (yield from _prepare(followed, truncation)):
        return False
    truncation.announce()
    is_written = yield from context.failures.write_checkpoint(layout.RECOVERY_POINT_CHECKPOINT)
    if not is_written or not followed.is_current:
        truncation.abandon()
        return False
    lowers_log_start = truncation.lowers_log_start
    if not _cut(context, followed, truncation):
        return False
    try:
        yield truncation.sync
    except OSError as error:
        log_dir = context.log_dirs.dir_of(partition.topic, partition.index)
        if log_dir is not None and not partition.is_closed:
            context.failures.take_offline(log_dir, "sync", error)
        return False
    truncation.finish()
    if lowers_log_start:
        yield from context.failures.write_checkpoint(layout.LOG_START_CHECKPOINT)
    return True


def _prepare(followed: Followed, truncation: Truncation) -> Steps[bool]:
    """Read the data that the truncation needs; whether it can go on."""
    try:
        yield from truncation.prepare()
    except DamagedLog as damage:
        followed.partition.damaged(str(damage))
        return False
    except OSError as error:
        followed.partition.report_unreadable(error)
        return False
    has_moved = followed.partition.log is not truncation.log  # to another log directory
    return followed.is_current and not has_moved and not (truncation.is_full and truncation.log.is_cleaning)


def _cut(context: FetchContext, followed: Followed, truncation: Truncation) -> bool:
    """Truncate the log in memory and its files; False when the disk has failed, and the partition is offline."""
    partition = followed.partition
    try:
        renamed = truncation.cut()
    except OSError as error:
        partition.report_failure("truncation", error)
        partition.fail(f"its truncation has failed: {error}")
        return False
    delay_s = partition.log.config.file_delete_delay_ms / 1000
    context.log_dirs.deletions.schedule(renamed, context.loop.now() + delay_s)
    partition.truncated()
    return True
