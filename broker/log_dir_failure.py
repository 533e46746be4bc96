"""What happens when a log directory fails: its partitions go offline, and without metadata or data the broker stops.

A failure is for good (rule section 3): after a failed sync nobody knows what is on the disk, so a directory is served
again only by a new start, which checks it. A full disk and too many open files are no failures: the append at hand is
refused, the rest goes on, and so do appends when there is room again.
Source: Kafka's `ReplicaManager.handleLogDirFailure` and `LogManager`; Kafka takes a full disk for a failure too.
"""

from __future__ import annotations

import errno
import logging
from typing import TYPE_CHECKING

from coord.cluster.topic_names import CLUSTER_METADATA_TOPIC

if TYPE_CHECKING:
    from broker.context import Broker
    from storage.log_dir import LogDir

logger = logging.getLogger("kafka.log.LogManager")

PASSING = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR, errno.EAGAIN})
"""Errors of a disk that is whole: something has run out and may come back."""


def is_passing(error: BaseException | None) -> bool:
    """Whether what failed may work later."""
    return isinstance(error, OSError) and error.errno in PASSING


def take_offline(broker: Broker, log_dir: LogDir, deed: str, error: Exception) -> None:
    """Stop serving what lies in `log_dir`: a `deed` (sync, write ...) has failed there. Once is enough."""
    if log_dir.failure is not None:
        return
    log_dir.failure = error
    logger.error(
        "A %s has failed in the log directory %s: %s. Nothing in it is served until the broker is started again",
        deed,
        log_dir.path,
        error,
    )
    broker.partitions.take_dir_offline(log_dir, f"a {deed} has failed in {log_dir.path}: {error}")
    if all(one.failure is not None for one in broker.log_dirs.dirs):
        broker.halt("no log directory is left")
    elif broker.log_dirs.dir_of(CLUSTER_METADATA_TOPIC, 0) is log_dir:
        broker.halt(f"the metadata log is in the failed directory {log_dir.path}")
