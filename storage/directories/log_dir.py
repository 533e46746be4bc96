"""One log directory: its lock, its identity, the clean shutdown marker, and the syncs of its file system.

The marker is removed when it is read: only a stop that was completed leaves one.
Sources: Kafka's `LogManager`, `MetaProperties`, `CleanShutdownFileHandler`.
"""

from __future__ import annotations

import errno
import json
import os
import threading
from collections.abc import Sequence

from barnabas.storage import layout
from barnabas.storage.append.flush_job import FlushJob
from barnabas.storage.directories.checkpoint_files import CheckpointFiles
from barnabas.storage.directories.checkpoints import replace_file
from barnabas.storage.directories.foreign import refuse_cluster
from barnabas.storage.directories.meta_properties import (
    DataDirMismatch,
    MetaProperties,
    read_meta_properties,
    write_meta_properties,
)
from barnabas.storage.files import File, Files
from barnabas.storage.layout import TopicPartition
from barnabas.storage.log import Log

__all__ = ["DataDirLocked", "DataDirMismatch", "FileSystemSync", "LogDir", "close_logs"]

_BATCH_SIZE = 128
"""The number of logs closed with one sync; each holds about five open descriptors for it."""
_SYNC_FILE_SYSTEM_FROM = 8
"""From this number of changed logs on the whole file system is synced instead of each file."""


class DataDirLocked(Exception):  # noqa: N818 - named after the condition
    """Another process is using the log directory."""


class LogDir:
    """One log directory."""

    __slots__ = (
        "_file_system",
        "_files",
        "_lock",
        "checkpoints",
        "clean_epoch",
        "cluster_id",
        "directory_id",
        "failure",
        "had_clean_shutdown",
        "high_watermarks",
        "log_starts",
        "node_id",
        "path",
        "recovery_points",
    )

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self.path = path
        self.cluster_id = ""
        self.node_id = -1
        self.directory_id = ""
        self.had_clean_shutdown = False
        self.clean_epoch = -1
        """The broker epoch in the marker of the clean stop, -1 if it has none."""
        self.failure: Exception | None = None
        """Why the directory is not used any longer; None while it works."""
        self.checkpoints = CheckpointFiles(files, path)
        self.recovery_points: dict[TopicPartition, int] = {}
        self.log_starts: dict[TopicPartition, int] = {}
        self.high_watermarks: dict[TopicPartition, int] = {}
        self._lock: File | None = None

    def open(self) -> None:
        """Make the directory if it is missing, lock it, and read its identity and checkpoints.

        Raises DataDirLocked when another process has it, DataDirMismatch when it was used with ZooKeeper or is the
        directory of a cluster, CorruptCheckpoint, OSError.
        """
        refuse_cluster(self._files, self.path)  # before anything is made there
        self._make()
        self._lock = self._files.lock(f"{self.path}/{layout.LOCK}")
        if self._lock is None:
            raise DataDirLocked(f"The log directory {self.path} is in use by another broker")
        refuse_cluster(self._files, self.path)  # a supervisor may have had the lock until now
        self._file_system = FileSystemSync(self._files, self._lock)
        if self._files.can_sync_file_system():
            self._files.open_files.file_systems.setdefault(self._files.device(self._lock), self._file_system)
        self._read_identity(f"{self.path}/{layout.META_PROPERTIES}")
        marker = f"{self.path}/{layout.CLEAN_SHUTDOWN}"
        self.had_clean_shutdown = self._files.exists(marker)
        if self.had_clean_shutdown:
            self.clean_epoch = _epoch_of(self._files.read_file(marker))
            self._files.unlink(marker)
            self._files.sync_dir(self.path)  # else a crash may restore it, and the next start would trust a torn log
        self.recovery_points = self.checkpoints.read(layout.RECOVERY_POINT_CHECKPOINT)
        self.log_starts = self.checkpoints.read(layout.LOG_START_CHECKPOINT)
        self.high_watermarks = self.checkpoints.read(layout.REPLICATION_CHECKPOINT)

    def _read_identity(self, path: str) -> None:
        identity = read_meta_properties(self._files, path)
        if identity is not None:
            self.node_id, self.cluster_id, self.directory_id = identity

    def _make(self) -> None:
        """Make the directory if it is missing; durable, so that a power failure does not remove it."""
        missing = []
        path = self.path
        while path and not self._files.exists(path):
            missing.append(path)
            path = path.rpartition("/")[0]
        self._files.mkdirs(self.path)
        for directory in reversed(missing):
            self._files.sync_dir(directory.rpartition("/")[0] or "/")

    def identify(self, node_id: int, cluster_id: str, directory_id: str) -> None:
        """Write `meta.properties` when it is missing; DataDirMismatch when it names another node or cluster."""
        if self.node_id not in (-1, node_id):
            raise DataDirMismatch(
                f"The log directory {self.path} belongs to node {self.node_id}, not to node {node_id}: "
                f"set node.id={self.node_id}"
            )
        if self.cluster_id not in ("", cluster_id):
            raise DataDirMismatch(
                f"The log directory {self.path} belongs to cluster {self.cluster_id}, not to {cluster_id}"
            )
        if self.directory_id and self.cluster_id and self.node_id == node_id:
            return
        self.node_id, self.cluster_id = node_id, cluster_id
        self.directory_id = self.directory_id or directory_id
        identity = MetaProperties(node_id, cluster_id, self.directory_id)
        write_meta_properties(self._files, f"{self.path}/{layout.META_PROPERTIES}", identity)

    def offsets_read(self, name: str) -> dict[TopicPartition, int]:
        """The offsets of a checkpoint file as they were read: they still hold for partitions without an open log."""
        return {
            layout.RECOVERY_POINT_CHECKPOINT: self.recovery_points,
            layout.LOG_START_CHECKPOINT: self.log_starts,
            layout.REPLICATION_CHECKPOINT: self.high_watermarks,
        }[name]

    def mark_clean(self, broker_epoch: int) -> None:
        """Write the clean shutdown marker with the broker epoch (KIP-966); to be called right before `release`."""
        content = f'{{"version":0,"brokerEpoch":{broker_epoch}}}'
        replace_file(self._files, f"{self.path}/{layout.CLEAN_SHUTDOWN}", content.encode())

    def sync(self, jobs: Sequence[FlushJob], *, whole_file_system: bool = False) -> None:
        """Run the flush jobs of several logs in this directory; may be called in a thread.

        With `whole_file_system` the file system is synced instead of each file. An OSError means that the directory
        must not be used any longer, FileNotFoundError that it was removed. The directory of a log that is missing is
        recorded in its job.
        """
        if (whole_file_system or any(job.file_system for job in jobs)) and self._file_system.run():
            renaming = [job for job in jobs if job.epochs is not None]
            for job in renaming:
                job.install_epochs()
            if renaming:
                self._file_system.run()
            for job in jobs:
                job.check_directories()
        else:
            for job in jobs:
                job.sync_files()
            for job in jobs:
                job.sync_directories()
        self.check_exists()

    def sync_names(self) -> None:
        """Make the names of the partitions' directories durable; may be called in a thread."""
        self._files.sync_dir(self.path)

    def check_exists(self) -> None:
        """Raise FileNotFoundError when the directory was removed, renamed or unmounted: writes to it would be lost."""
        if self._lock is not None and not self._files.is_named(self._lock):
            raise FileNotFoundError(errno.ENOENT, "the directory was removed", self.path)

    def volume(self) -> tuple[int, int]:
        """(size, free) of the directory's volume in bytes."""
        return self._files.volume(self.path)

    def release(self) -> None:
        """Unlock the directory."""
        if self._lock is not None:
            file_systems = self._files.open_files.file_systems
            for device in [device for device, file_system in file_systems.items() if file_system is self._file_system]:
                del file_systems[device]
            self._lock.close()
            self._lock = None


def _epoch_of(marker: bytes) -> int:
    """The broker epoch in a clean shutdown marker, -1 if there is none, as before Kafka 3.8."""
    try:
        return int(json.loads(marker)["brokerEpoch"])
    except (ValueError, KeyError, TypeError):
        return -1


class FileSystemSync:
    """Syncs the file system of a log directory through one descriptor that is open as long as the directory is used.

    The system reports a failed write to the descriptors that were open when it failed, once to each. A log file that
    was closed before its data was written would never see it; and if the file is opened again, the error is reported to
    the new descriptor only as long as the system still has the file's inode in memory. But the whole file system's
    errors are reported to this descriptor (Linux 5.8 and later), whatever was open when they happened. So data that was
    written through a descriptor that is closed by now is synced here.

    An error is reported once, and two threads may sync at the same time: after an error every further sync fails too.
    """

    __slots__ = ("__weakref__", "_error", "_file", "_files", "_syncing")

    def __init__(self, files: Files, file: File) -> None:
        """`file` is on the file system and must have been open before any data was written."""
        self._files = files
        self._file = file
        self._error: OSError | None = None
        self._syncing = threading.Lock()

    def run(self) -> bool:
        """Make all data of the file system durable; False where the system cannot, or does not report errors.

        May be called in a thread. OSError when a write has failed since the file was opened.
        """
        with self._syncing:
            if self._error is not None:
                raise OSError(self._error.errno, self._error.strerror, self._file.path)
            try:
                return self._files.sync_file_system(self._file)
            except OSError as error:
                self._error = error
                raise

    def require(self) -> None:
        """As `run`; OSError where the system cannot."""
        if not self.run():
            raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP), self._file.path)


def close_logs(log_dir: LogDir, logs: Sequence[Log]) -> Exception | None:
    """Close all these logs of a directory at a clean stop, many with one sync, whatever fails.

    Returns the last failure, None if all are closed.
    """
    failure: Exception | None = None
    for at in range(0, len(logs), _BATCH_SIZE):
        failure = _close_batch(log_dir, logs[at : at + _BATCH_SIZE]) or failure
    return failure


def _close_batch(log_dir: LogDir, logs: Sequence[Log]) -> Exception | None:
    failure: Exception | None = None
    closing: list[tuple[Log, FlushJob | None]] = []
    for log in logs:
        try:
            closing.append((log, log.start_close()))
        except OSError as error:
            failure = error
    jobs = [job for _, job in closing if job is not None]
    try:
        if jobs:
            log_dir.sync(jobs, whole_file_system=len(jobs) >= _SYNC_FILE_SYSTEM_FROM)
    except OSError as error:
        return error
    for log, job in closing:
        if job is not None and job.missing is not None:
            failure = job.missing
        else:
            log.finish_close(job)
    return failure
