"""What a disk refuses or fails to do: said once in words an operator can act on, and acted on.

A full disk and too many open files are refusals: the request at hand is answered with KAFKA_STORAGE_ERROR, all else
goes on, and appends are taken again when there is room. Anything else is a failure of the log directory, and for good
(rules section 3): after a failed sync nobody knows what is on the disk, so its partitions are offline until a new
start checks them. Without any directory, or without the metadata, the broker stops. What cannot be read is answered
with KAFKA_STORAGE_ERROR and harms nothing else.
Source: Kafka's `ReplicaManager.handleLogDirFailure` and `LogManager`; Kafka takes a full disk for a failure too.
"""

from __future__ import annotations

import errno
import logging
from typing import TYPE_CHECKING

from barnabas.coord.cluster.topic_names import CLUSTER_METADATA_TOPIC

if TYPE_CHECKING:
    from barnabas.broker.context import Broker
    from barnabas.broker.replicas.partition import Partition
    from barnabas.storage.log_dir import LogDir

logger = logging.getLogger("kafka.log.LogManager")

NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})
NO_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE})
PASSING = NO_SPACE | NO_DESCRIPTORS | {errno.ENOMEM, errno.EINTR, errno.EAGAIN}
"""Errors of a disk that is whole: something has run out and may come back."""
REPEAT_S = 30.0
"""The same trouble is not told more often."""
ROOM_BYTES = 1 << 20
"""So much must be free before a full directory is said to have room again."""


def is_passing(error: BaseException | None) -> bool:
    """Whether what failed may work later."""
    return isinstance(error, OSError) and error.errno in PASSING


class LogDirFailures:
    """The troubles of a broker's disks."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._told: dict[tuple[str, int | None], float] = {}  # place and error number -> when
        self._full: dict[LogDir, None] = {}

    def note(self, log_dir: LogDir, deed: str, error: OSError) -> None:
        """A `deed` (write, checkpoint ...) has not succeeded in `log_dir`; nothing of it has stayed."""
        if not is_passing(error):
            self.take_offline(log_dir, deed, error)
            return
        if error.errno in NO_SPACE:
            self._full[log_dir] = None
        if self._is_news(log_dir.path, error):
            logger.error("%s: the %s was refused. %s", _place(log_dir, error), deed, _advice(error))

    def note_unreadable(self, partition: Partition, error: OSError) -> None:
        """Something of a partition could not be read; who asked for it is told KAFKA_STORAGE_ERROR."""
        if self._is_news(partition.log.directory, error):
            advice = _advice(error) if is_passing(error) else "The disk may be failing: the system's log knows more"
            logger.error("Cannot read %s-%d: %s. %s", partition.topic, partition.index, error, advice)

    def take_offline(self, log_dir: LogDir, deed: str, error: Exception) -> None:
        """Serve nothing of `log_dir` any more, since a `deed` has failed there. Once is enough."""
        if log_dir.failure is not None:
            return
        log_dir.failure = error
        broker = self._broker
        logger.error(
            "A %s has failed in the log directory %s: %s. Nothing in it is served until the disk is mended and the "
            "broker started again, which checks it",
            deed,
            log_dir.path,
            error,
        )
        broker.partitions.take_dir_offline(log_dir, f"a {deed} has failed in {log_dir.path}: {error}")
        if not broker.log_dirs.working:
            broker.halt("no log directory is left")
        elif broker.log_dirs.dir_of(CLUSTER_METADATA_TOPIC, 0) is log_dir:
            broker.halt(f"the cluster's metadata is in the failed log directory {log_dir.path}")

    def check(self) -> None:
        """Look after the directories: one that has gone, one that has room again. For every second or so."""
        for log_dir in self._broker.log_dirs.working:
            try:
                log_dir.check_there()
                if log_dir in self._full and log_dir.volume()[1] >= ROOM_BYTES:
                    del self._full[log_dir]
                    self._told = {key: told for key, told in self._told.items() if key[0] != log_dir.path}
                    logger.info("There is room again in the log directory %s: appends are taken", log_dir.path)
            except OSError as error:
                self.note(log_dir, "look", error)
        self._broker.partitions.reopen()

    def _is_news(self, place: str, error: OSError) -> bool:
        now = self._broker.now()
        key = (place, error.errno)
        if now - self._told.get(key, -REPEAT_S) < REPEAT_S:
            return False
        self._told[key] = now
        return True


def _place(log_dir: LogDir, error: OSError) -> str:
    reason = error.strerror or str(error)
    if error.errno in NO_SPACE:
        return f"{reason} in the log directory {log_dir.path}"
    return f"{reason}, needed in the log directory {log_dir.path}"


def _advice(error: OSError) -> str:
    """What to do about an error that may pass."""
    if error.errno in NO_SPACE:
        return (
            "Clients that need space get KAFKA_STORAGE_ERROR, reads and retention go on. "
            "Free space, or shorten retention: it is taken up by itself"
        )
    if error.errno in NO_DESCRIPTORS:
        return "Clients get KAFKA_STORAGE_ERROR meanwhile. Raise the limit of open files (ulimit -n)"
    return "It is tried again"
