"""The log directories of a broker (`log.dirs`) and the partitions' logs in them. Source: Kafka's `LogManager`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from barnabas.storage import layout
from barnabas.storage.checkpoints import read_partition_metadata, topic_id_text
from barnabas.storage.damage import DamagedLog
from barnabas.storage.files import Files
from barnabas.storage.flush_job import FlushJob
from barnabas.storage.log import PRODUCER_EXPIRATION_MS, Log
from barnabas.storage.log_config import LogConfig
from barnabas.storage.log_dir import DataDirLocked, DataDirMismatch, LogDir, TopicPartition
from barnabas.wire.errors import ErrorCode, KafkaError

__all__ = ["DataDirLocked", "DataDirMismatch", "LogDir", "LogDirs", "TopicPartition"]

ZERO_UUID = bytes(16)


_CHECKPOINTED: dict[str, Callable[[Log], int | None]] = {
    layout.RECOVERY_POINT_CHECKPOINT: lambda log: log.recovery_point_to_write,
    layout.LOG_START_CHECKPOINT: lambda log: log.log_start_offset or None,  # a deleted segment may come back
    layout.REPLICATION_CHECKPOINT: lambda log: log.high_watermark,
}


_CLOSED_TOGETHER = 128
"""So many logs are closed with a sync in common; each holds some five descriptors open for it."""
_SYNCED_WHOLE = 8
"""From so many logs on the whole file system is synced."""


class LogDirs:
    """All log directories of a broker and the logs in them.

    A partition whose log cannot be served is offline: nothing here touches its files, its checkpoints stay as they
    are, and its directory gets no marker of a clean stop, so that the next start looks at it again.
    """

    __slots__ = (
        "_deletions",
        "_files",
        "_found",
        "_missing",
        "_offline",
        "dirs",
        "logs",
        "new_id",
        "on_error",
        "strays",
    )

    def __init__(self, files: Files, paths: Iterable[str], new_id: Callable[[], bytes]) -> None:
        self._files = files
        self.new_id = new_id
        self.dirs = [LogDir(files, path.rstrip("/") or "/") for path in paths]
        self.logs: dict[TopicPartition, Log] = {}
        self._found: dict[TopicPartition, LogDir] = {}
        self._missing: dict[TopicPartition, LogDir] = {}
        self._offline: set[TopicPartition] = set()
        self._deletions: list[tuple[float, str]] = []
        self.strays: list[str] = []
        """Directories that were set aside, for whoever tells the operator."""
        self.on_error: Callable[[LogDir, str, OSError], None] | None = None
        """Told of what cannot be written beside the logs (directory, deed, error); without it OSError is raised."""

    # --- start

    def open(self, node_id: int, cluster_id: str = "") -> str:
        """Lock and identify the directories, remove what an earlier deletion has left, note the partitions found.

        A cluster id is taken from the directories, from `cluster_id`, or made up, in this order; it is returned.
        Raises DataDirLocked, DataDirMismatch, CorruptCheckpoint, OSError.
        """
        try:
            for log_dir in self.dirs:
                log_dir.open()
            known = next((log_dir.cluster_id for log_dir in self.dirs if log_dir.cluster_id), "")
            cluster_id = cluster_id or known or topic_id_text(self.new_id())
            for log_dir in self.dirs:
                log_dir.identify(node_id, cluster_id, topic_id_text(self.new_id()))
                self._find(log_dir)
            self._miss()
        except BaseException:
            self.release()
            raise
        return cluster_id

    def _find(self, log_dir: LogDir) -> None:
        for name in self._files.list_dirs(log_dir.path):
            if name.endswith(layout.DELETE_DIR_SUFFIX):
                self._files.remove_tree(f"{log_dir.path}/{name}")
                continue
            partition = layout.parse_partition_dir(name)
            if partition is not None:
                self._found[partition] = log_dir

    def _miss(self) -> None:
        """Note the partitions of which records were synced, and of which there is no directory any more."""
        for log_dir in self.dirs:
            for key, offset in log_dir.recovery_points.items():
                if key not in self._found and offset > log_dir.log_starts.get(key, 0):
                    self._missing[key] = log_dir

    def forget_missing(self) -> None:
        """All partitions that there are have been opened: of the others no checkpoint needs to speak any more."""
        deleted = [key for key in self._missing if key not in self._offline]
        self._missing.clear()
        for key in deleted:
            self._forget_everywhere(key)
        self.write_recovery_points()  # of strays that were set aside neither

    def found(self) -> Iterator[TopicPartition]:
        """The partitions that have a directory but no log opened yet: what is left after loading is stray."""
        return iter([key for key in self._found if key not in self.logs and key not in self._offline])

    def take_offline(self, topic: str, partition: int) -> None:
        """Give up a partition's log, opened or not; its files and checkpoints stay as they are."""
        key = (topic, partition)
        self._offline.add(key)
        log = self.logs.pop(key, None)
        if log is not None:
            self._keep_checkpoints(self._found[key], key, log)

    def bring_back(self, topic: str, partition: int) -> None:
        """Try a partition again that was taken offline: `open_log` is called next."""
        self._offline.discard((topic, partition))

    def _keep_checkpoints(self, log_dir: LogDir, key: TopicPartition, log: Log) -> None:
        log_dir.recovery_points[key] = log.recovery_point
        log_dir.high_watermarks[key] = log.high_watermark
        log_dir.log_starts[key] = log.log_start_offset

    def open_log(
        self,
        topic: str,
        partition: int,
        config: LogConfig,
        *,
        topic_id: bytes,
        now_ms: int,
        now: float,
        home: LogDir | None = None,
        producer_expiration_ms: int = PRODUCER_EXPIRATION_MS,
    ) -> Log:
        """The log of a partition: loaded when it has a directory, else made in `home` or where the fewest logs are.

        A directory that belongs to another topic of that name is set aside first (R22). The marker of a clean stop
        speaks for the logs in the checkpoint of recovery points: Kafka does not close its metadata log.
        """
        key = (topic, partition)
        log = self.logs.get(key)
        if log is not None:
            return log
        log_dir = self._found.get(key)
        path = f"{log_dir.path}/{layout.partition_dir_name(topic, partition)}" if log_dir is not None else ""
        if log_dir is not None and self._belongs_to_another(path, topic_id):
            self.set_aside(topic, partition)
            log_dir = None
        if key in self._missing and log_dir is None:
            raise _missing(self._missing[key], key)
        if log_dir is None:
            log_dir = home or self._emptiest()
            path = f"{log_dir.path}/{layout.partition_dir_name(topic, partition)}"
            self._forget_predecessor(log_dir, key)
        log = Log.open(
            self._files,
            path,
            topic,
            partition,
            config,
            topic_id=topic_id,
            now_ms=now_ms,
            now=now,
            clean_shutdown=log_dir.had_clean_shutdown and key in log_dir.recovery_points,
            recovery_point=log_dir.recovery_points.get(key, 0),
            log_start_offset=log_dir.log_starts.get(key, 0),
            high_watermark=log_dir.high_watermarks.get(key, 0),
            producer_expiration_ms=producer_expiration_ms,
        )
        self.logs[key] = log
        self._found[key] = log_dir
        return log

    def _belongs_to_another(self, path: str, topic_id: bytes) -> bool:
        if topic_id == ZERO_UUID:
            return False
        stored = read_partition_metadata(self._files, f"{path}/{layout.PARTITION_METADATA}")
        return stored not in (None, ZERO_UUID, topic_id)

    def set_aside(self, topic: str, partition: int) -> str:
        """Rename the directory of a partition that nobody knows, and leave it to the operator, as Kafka does.

        The new name. It may be of a deleted topic; but it may be the metadata that is wrong, or its topic id (R22).
        """
        key = (topic, partition)
        log_dir = self._found[key]
        path = f"{log_dir.path}/{layout.partition_dir_name(topic, partition)}"
        renamed = f"{log_dir.path}/{layout.stray_dir_name(topic, partition, self.new_id().hex())}"
        self._files.rename(path, renamed)
        self._forget(log_dir, key)
        self.strays.append(renamed)
        return renamed

    def _forget_predecessor(self, log_dir: LogDir, key: TopicPartition) -> None:
        """Before a log is made: no checkpoint may speak of a deleted one of its name, as if data had been lost."""
        self._forget(log_dir, key)
        for name in _CHECKPOINTED:
            log_dir.drop_planned(name)
            if log_dir.has_written(name, key):
                self._write_in(log_dir, name)

    def _forget_everywhere(self, key: TopicPartition) -> None:
        for log_dir in self.dirs:
            self._forget(log_dir, key)

    def _forget(self, log_dir: LogDir, key: TopicPartition) -> None:
        self._found.pop(key, None)
        self._offline.discard(key)
        for offsets in (log_dir.recovery_points, log_dir.log_starts, log_dir.high_watermarks):
            offsets.pop(key, None)

    def _emptiest(self) -> LogDir:
        """The working directory with the fewest partitions. KafkaError(KAFKA_STORAGE_ERROR) when none works."""
        working = self.working
        if not working:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "No log directory is left.")
        held = list(self._found.values())
        return min(working, key=held.count)

    @property
    def working(self) -> list[LogDir]:
        """The directories that have not failed."""
        return [log_dir for log_dir in self.dirs if log_dir.failure is None]

    def dir_of(self, topic: str, partition: int) -> LogDir | None:
        """The directory that holds a partition."""
        return self._found.get((topic, partition))

    # --- cutting and deletion

    def truncate_log(self, topic: str, partition: int, offset: int) -> bool:
        """Cut a log at `offset` as `Log.truncate_to` does; its checkpoint forgets first what was synced behind it.

        The record before goes with it: a segment may be begun at `offset` next, and the one that was cut would be
        trusted then, though its indexes are cut in memory only (`Log.recovery_point_to_write`).
        """
        key = (topic, partition)
        log = self.logs[key]
        if offset <= log.recovery_point:
            log.recovery_point = max(0, offset - 1)
            self._write_in(self._found[key], layout.RECOVERY_POINT_CHECKPOINT)
        return log.truncate_to(offset)

    def delete_log(self, topic: str, partition: int, *, now: float) -> None:
        """Take a partition's log away: its directory is renamed at once and removed after file.delete.delay.ms.

        Before a log of its name can be made, `write_recovery_points` must have said so, or it would be missing (L2).
        """
        key = (topic, partition)
        log = self.logs.pop(key)
        log_dir = self._found[key]
        renamed = log.delete_renamed(self.new_id().hex())
        self._forget(log_dir, key)
        self._deletions.append((now + log.config.file_delete_delay_ms / 1000, renamed))

    def delete_offline(self, topic: str, partition: int, *, now: float) -> None:
        """Delete the files of a partition that is offline; they are removed at the next `due_deletions`."""
        key = (topic, partition)
        log_dir = self._found.get(key)
        if log_dir is None:
            self._forget_everywhere(key)
            return
        path = f"{log_dir.path}/{layout.partition_dir_name(topic, partition)}"
        renamed = f"{log_dir.path}/{layout.deleted_dir_name(topic, partition, self.new_id().hex())}"
        self._files.rename(path, renamed)
        self._forget(log_dir, key)
        self._deletions.append((now, renamed))

    def delete_later(self, paths: Iterable[str], due: float) -> None:
        """Remove files (of deleted segments) at the first `due_deletions` at or after `due`."""
        self._deletions.extend((due, path) for path in paths)

    def next_deletion(self) -> float | None:
        """When `due_deletions` next has work, in monotonic seconds."""
        return min((due for due, _ in self._deletions), default=None)

    def due_deletions(self, now: float) -> list[str]:
        """The files and directories to remove now, each handed out once, for `remove` (if need be in a thread)."""
        due = [path for at, path in self._deletions if at <= now]
        self._deletions = [(at, path) for at, path in self._deletions if at > now]
        return due

    def remove(self, path: str) -> None:
        """Remove a file or a directory handed out by `due_deletions`."""
        if path.endswith(layout.DELETE_DIR_SUFFIX):
            self._files.remove_tree(path)
        else:
            self._files.unlink(path)

    # --- checkpoints and the end

    def write_recovery_points(self) -> bool:
        """Write `recovery-point-offset-checkpoint` where it has changed. False when a disk refused it."""
        return self._write(layout.RECOVERY_POINT_CHECKPOINT)

    def write_log_starts(self) -> bool:
        """Write `log-start-offset-checkpoint` where it has changed. False when a disk refused it."""
        return self._write(layout.LOG_START_CHECKPOINT)

    def write_high_watermarks(self) -> bool:
        """Write `replication-offset-checkpoint` where it has changed. False when a disk refused it."""
        return self._write(layout.REPLICATION_CHECKPOINT)

    def _write(self, name: str) -> bool:
        is_written = True
        for log_dir in self.working:
            try:
                self._write_in(log_dir, name)
            except OSError as error:
                is_written = False
                if self.on_error is None:
                    raise
                self.on_error(log_dir, f"checkpoint {name}", error)
        return is_written

    def plan_checkpoint(self, name: str) -> list[tuple[LogDir, Callable[[], None]]]:
        """The writes, one a directory, that bring the checkpoint files of a name up to this moment: for a thread."""
        return [(log_dir, self._plan(log_dir, name)) for log_dir in self.working]

    def _write_in(self, log_dir: LogDir, name: str) -> None:
        self._plan(log_dir, name)()

    def _plan(self, log_dir: LogDir, name: str) -> Callable[[], None]:
        offsets = {key: offset for key, offset in log_dir.known(name).items() if key not in self.logs}
        for key, log in self._logs_in(log_dir):
            offset = _CHECKPOINTED[name](log)
            if offset is not None:
                offsets[key] = offset
        return log_dir.plan_write(name, offsets)

    def _logs_in(self, log_dir: LogDir) -> list[tuple[TopicPartition, Log]]:
        return [(key, log) for key, log in self.logs.items() if self._found[key] is log_dir]

    def logs_with_rolled_segments(self) -> list[Log]:
        """The logs that have closed segments which are not synced yet: Kafka syncs a segment when it rolls."""
        return [
            log
            for key, log in self.logs.items()
            if log.recovery_point < log.segments.active.base_offset and self._found[key].failure is None
        ]

    def close(self, broker_epoch: int = -1) -> None:
        """The clean stop: close every log, write the checkpoints, leave the marker, unlock.

        `broker_epoch` is the registration under which the broker ran; the marker names it (KIP-966).
        A directory that has failed before is left alone. One in which anything fails now gets no marker, so that its
        logs are checked at the next start; the first failure is raised when all the rest is done.
        """
        outcomes = [self._close_dir(log_dir, broker_epoch) for log_dir in self.working]
        self.release()
        for failure in outcomes:
            if failure is not None:
                raise failure

    def _close_dir(self, log_dir: LogDir, broker_epoch: int) -> Exception | None:
        logs = [log for _, log in self._logs_in(log_dir)]
        failure: Exception | None = None
        for at in range(0, len(logs), _CLOSED_TOGETHER):
            failure = self._close_logs(log_dir, logs[at : at + _CLOSED_TOGETHER]) or failure
        try:
            for name in _CHECKPOINTED:
                self._write_in(log_dir, name)
            if failure is None and all(self._found.get(key) is not log_dir for key in self._offline):
                log_dir.mark_clean(broker_epoch)
        except OSError as error:
            failure = failure or error
        return failure

    @staticmethod
    def _close_logs(log_dir: LogDir, logs: list[Log]) -> Exception | None:
        """Close some logs with syncs that they share; what has failed."""
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
                log_dir.sync(jobs, is_whole=len(jobs) >= _SYNCED_WHOLE)
        except OSError as error:
            return error
        for log, job in closing:
            if job is not None and job.missing is not None:
                failure = job.missing
            else:
                log.finish_close(job)
        return failure

    def release(self) -> None:
        """Unlock the directories without any of the rest."""
        for log_dir in self.dirs:
            log_dir.release()


def _missing(log_dir: LogDir, key: TopicPartition) -> DamagedLog:
    path = f"{log_dir.path}/{layout.partition_dir_name(*key)}"
    return DamagedLog(f"{path} is missing, though all up to offset {log_dir.recovery_points[key]} was synced in it")
