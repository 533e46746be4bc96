"""Handles disk operations that are refused or fail: one log line an operator can act on, and the consequences.

A full disk and too many open files are refusals: the request at hand is answered with KAFKA_STORAGE_ERROR, everything
else goes on, and appends are accepted again once there is space; in a cluster other brokers lead its partitions
meanwhile (`exhausted_dirs`). Any other error fails the log directory for good: after a failed sync the data on the disk
is unknown, so its partitions are offline until a new start checks them. Without any working directory, or without the
metadata, the broker stops. A failed read is answered with KAFKA_STORAGE_ERROR and has no further consequence.
Source: Kafka's `ReplicaManager.handleLogDirFailure` and `LogManager`; Kafka treats a full disk as a failure too.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.broker.event_loop.guarded import call_guarded
from barnabas.broker.exhausted_dirs import NO_DESCRIPTORS, NO_SPACE, RECOVERED_BYTES, ExhaustedDirs
from barnabas.coord.topic_names import CLUSTER_METADATA_TOPIC

if TYPE_CHECKING:
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.event_loop.steps import Steps
    from barnabas.storage.directories.log_dir import LogDir
    from barnabas.storage.directories.log_dirs import LogDirs

logger = logging.getLogger("kafka.log.LogManager")

TRANSIENT = NO_SPACE | NO_DESCRIPTORS | {errno.ENOMEM, errno.EINTR, errno.EAGAIN}
"""Errors of a disk that works: a resource is exhausted and may become available again."""
REPEAT_S = 30.0
"""Minimum interval between log lines about the same error of the same directory, seconds."""


def is_transient(error: BaseException | None) -> bool:
    """Whether the failed operation may succeed later."""
    return isinstance(error, OSError) and error.errno in TRANSIENT


class LogDirFailures:
    """Handles the errors of a broker's log directories."""

    def __init__(self, loop: Loop, log_dirs: LogDirs, halt: Callable[[str], None]) -> None:
        """`halt` stops the broker; its argument is the reason."""
        self._loop = loop
        self._log_dirs = log_dirs
        self._halt = halt
        self._reported: dict[tuple[str, int | None], float] = {}  # (path, errno) -> when it was logged
        self._full: dict[LogDir, None] = {}
        self.exhausted = ExhaustedDirs(loop, log_dirs.has_descriptors)
        self.on_failure: list[Callable[[LogDir, str], None]] = []
        """Called with a log directory that has failed and the reason, to stop serving its partitions."""

    def report(self, log_dir: LogDir, operation: str, error: OSError) -> None:
        """Handle the failure of an `operation` (write, checkpoint ...) that left no partial data in `log_dir`."""
        if not is_transient(error):
            self.take_offline(log_dir, operation, error)
            return
        if error.errno in NO_SPACE:
            self._full[log_dir] = None
        self.exhausted.refused(log_dir, error.errno or 0)
        if self._is_due(log_dir.path, error):
            logger.error("%s: the %s was refused. %s", _cause(log_dir, error), operation, _advice(error))

    def report_log(self, topic: str, index: int, operation: str, error: OSError) -> None:
        """Handle the failure of an `operation` on the log of a partition."""
        log_dir = self._log_dirs.dir_of(topic, index)
        if log_dir is not None:
            self.report(log_dir, f"{operation} of {topic}-{index}", error)

    def report_unreadable(self, topic: str, index: int, directory: str, error: OSError) -> None:
        """Log that a partition's log in `directory` could not be read; the client gets KAFKA_STORAGE_ERROR."""
        if self._is_due(directory, error):
            advice = _advice(error) if is_transient(error) else "The disk may be failing: see the system's log"
            logger.error("Cannot read %s-%d: %s. %s", topic, index, error, advice)

    def take_offline(self, log_dir: LogDir, operation: str, error: Exception) -> None:
        """Stop serving the partitions in `log_dir` until the next start, because an `operation` failed there."""
        if log_dir.failure is not None:
            return
        log_dir.failure = error
        logger.error(
            "A %s has failed in the log directory %s: %s. Nothing in it is served until the disk is repaired and the "
            "broker started again, which checks it",
            operation,
            log_dir.path,
            error,
        )
        for callback in self.on_failure:
            reason = f"a {operation} has failed in {log_dir.path}: {error}"
            call_guarded(f"What follows a failure of the log directory {log_dir.path}", callback, log_dir, reason)
        if not self._log_dirs.working:
            self._halt("no log directory is left")
        elif self._log_dirs.dir_of(CLUSTER_METADATA_TOPIC, 0) is log_dir:
            self._halt(f"the cluster's metadata is in the failed log directory {log_dir.path}")

    def write_checkpoint(self, name: str) -> Steps[bool]:
        """Write the current offsets to the checkpoint files of this name; False when a disk has refused one."""
        is_written = True
        for log_dir, write in (yield from self._log_dirs.plan_checkpoint_in_steps(name)):
            try:
                yield write
            except OSError as error:
                is_written = False
                self.report(log_dir, f"checkpoint {name}", error)
        return is_written

    def check(self) -> None:
        """Find directories that have disappeared, and full ones that have space again. To be called every second."""
        for log_dir in self._log_dirs.working:
            try:
                log_dir.check_exists()
                if log_dir in self._full and log_dir.volume()[1] >= RECOVERED_BYTES:
                    del self._full[log_dir]
                    self._reported = {key: at for key, at in self._reported.items() if key[0] != log_dir.path}
                    logger.info("There is space again in the log directory %s: appends are accepted", log_dir.path)
            except OSError as error:
                self.report(log_dir, "check", error)
        self.exhausted.check()

    def _is_due(self, path: str, error: OSError) -> bool:
        """Whether to log this error now; True at most every `REPEAT_S`."""
        now = self._loop.now()
        key = (path, error.errno)
        if now - self._reported.get(key, -REPEAT_S) < REPEAT_S:
            return False
        self._reported[key] = now
        return True


def _cause(log_dir: LogDir, error: OSError) -> str:
    reason = error.strerror or str(error)
    if error.errno in NO_SPACE:
        return f"{reason} in the log directory {log_dir.path}"
    return f"{reason}, needed in the log directory {log_dir.path}"


def _advice(error: OSError) -> str:
    """What the operator can do about a transient error."""
    if error.errno in NO_SPACE:
        return (
            "Clients that need space get KAFKA_STORAGE_ERROR, reads and retention go on. "
            "Free space or shorten retention: the broker then continues by itself"
        )
    if error.errno in NO_DESCRIPTORS:
        return "Clients get KAFKA_STORAGE_ERROR meanwhile. Raise the limit of open files (ulimit -n)"
    return "It is retried"
