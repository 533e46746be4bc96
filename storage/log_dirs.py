"""The log directories of a broker (`log.dirs`): locked, identified, and full of partitions' logs.

A directory holds `.lock`, `meta.properties` (cluster, node and directory id), the three checkpoint files, the marker
of a clean stop, and a directory for each partition. The marker is removed as soon as it has been seen: only a stop that
got to its end leaves one. Sources: Kafka's `LogManager`, `MetaProperties`, `CleanShutdownFileHandler`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from storage import layout
from storage.checkpoints import OffsetCheckpoint, read_properties, replace_file, topic_id_text, write_properties
from storage.files import File, Files
from storage.log import Log
from storage.log_config import LogConfig

ZERO_UUID = bytes(16)
TopicPartition = tuple[str, int]

_CLEAN_SHUTDOWN_JSON = b'{"version":0,"brokerEpoch":-1}'


class DataDirLocked(Exception):
    """Another process is using the log directory."""


class DataDirMismatch(Exception):
    """The log directory belongs to another node or cluster."""


class LogDir:
    """One log directory."""

    __slots__ = (
        "_checkpoints",
        "_files",
        "_lock",
        "_written",
        "cluster_id",
        "directory_id",
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
        self._checkpoints = {
            name: OffsetCheckpoint(files, f"{path}/{name}")
            for name in (layout.RECOVERY_POINT_CHECKPOINT, layout.LOG_START_CHECKPOINT, layout.REPLICATION_CHECKPOINT)
        }
        self._written: dict[str, dict[TopicPartition, int]] = {}
        self.recovery_points: dict[TopicPartition, int] = {}
        self.log_starts: dict[TopicPartition, int] = {}
        self.high_watermarks: dict[TopicPartition, int] = {}
        self._lock: File | None = None

    def open(self) -> None:
        """Make the directory if need be, lock it, and read what is kept beside the logs. DataDirLocked when taken."""
        self._files.mkdirs(self.path)
        self._lock = self._files.lock(f"{self.path}/{layout.LOCK}")
        if self._lock is None:
            raise DataDirLocked(f"The log directory {self.path} is in use by another broker")
        properties = read_properties(self._files, f"{self.path}/{layout.META_PROPERTIES}")
        self.cluster_id = properties.get("cluster.id", "")
        self.node_id = int(properties.get("node.id", -1))
        self.directory_id = properties.get("directory.id", "")
        marker = f"{self.path}/{layout.CLEAN_SHUTDOWN}"
        self.had_clean_shutdown = self._files.exists(marker)
        if self.had_clean_shutdown:
            self._files.unlink(marker)
        self.recovery_points = self._read(layout.RECOVERY_POINT_CHECKPOINT)
        self.log_starts = self._read(layout.LOG_START_CHECKPOINT)
        self.high_watermarks = self._read(layout.REPLICATION_CHECKPOINT)

    def _read(self, name: str) -> dict[TopicPartition, int]:
        offsets = self._checkpoints[name].read()
        self._written[name] = dict(offsets)
        return offsets

    def identify(self, node_id: int, cluster_id: str, directory_id: str) -> None:
        """Write `meta.properties` when it is missing; DataDirMismatch when it names another node or cluster."""
        if self.node_id not in (-1, node_id):
            raise DataDirMismatch(
                f"The log directory {self.path} belongs to node {self.node_id}, not to node {node_id}"
            )
        if self.cluster_id not in ("", cluster_id):
            raise DataDirMismatch(
                f"The log directory {self.path} belongs to cluster {self.cluster_id}, not to {cluster_id}"
            )
        if self.directory_id and self.cluster_id and self.node_id == node_id:
            return
        self.node_id, self.cluster_id = node_id, cluster_id
        self.directory_id = self.directory_id or directory_id
        properties = {
            "version": "1",
            "node.id": str(node_id),
            "cluster.id": cluster_id,
            "directory.id": self.directory_id,
        }
        write_properties(self._files, f"{self.path}/{layout.META_PROPERTIES}", properties)

    def write(self, name: str, offsets: dict[TopicPartition, int]) -> None:
        """Replace a checkpoint file when its content has changed."""
        if self._written.get(name) != offsets:
            self._checkpoints[name].write(offsets)
            self._written[name] = offsets

    def mark_clean(self) -> None:
        """Leave the marker of a clean stop; the last thing before `release`."""
        replace_file(self._files, f"{self.path}/{layout.CLEAN_SHUTDOWN}", _CLEAN_SHUTDOWN_JSON)

    def release(self) -> None:
        """Unlock the directory."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None


class LogDirs:
    """All log directories of a broker and the logs in them."""

    __slots__ = ("_deletions", "_files", "_found", "dirs", "logs", "new_id")

    def __init__(self, files: Files, paths: Iterable[str], new_id: Callable[[], bytes]) -> None:
        self._files = files
        self.new_id = new_id
        self.dirs = [LogDir(files, path.rstrip("/") or "/") for path in paths]
        self.logs: dict[TopicPartition, Log] = {}
        self._found: dict[TopicPartition, LogDir] = {}
        self._deletions: list[tuple[float, str]] = []

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

    def found(self) -> Iterator[TopicPartition]:
        """The partitions that have a directory but no log opened yet: what is left after loading is stray."""
        return iter([partition for partition in self._found if partition not in self.logs])

    def open_log(
        self, topic: str, partition: int, config: LogConfig, *, topic_id: bytes, now_ms: int, now: float
    ) -> Log:
        """The log of a partition: loaded when it has a directory, else made in the directory with the fewest logs.

        A directory that belongs to another topic of that name is set aside for deletion first (R22).
        """
        key = (topic, partition)
        log = self.logs.get(key)
        if log is not None:
            return log
        log_dir = self._found.get(key)
        path = f"{log_dir.path}/{layout.partition_dir_name(topic, partition)}" if log_dir is not None else ""
        if log_dir is not None and self._belongs_to_another(path, topic_id):
            self._set_aside(log_dir, key, path, config, now)
            log_dir = None
        if log_dir is None:
            log_dir = self._emptiest()
            path = f"{log_dir.path}/{layout.partition_dir_name(topic, partition)}"
        log = Log.open(
            self._files,
            path,
            topic,
            partition,
            config,
            topic_id=topic_id,
            now_ms=now_ms,
            now=now,
            clean_shutdown=log_dir.had_clean_shutdown,
            recovery_point=log_dir.recovery_points.get(key, 0),
            log_start_offset=log_dir.log_starts.get(key, 0),
            high_watermark=log_dir.high_watermarks.get(key, 0),
        )
        self.logs[key] = log
        self._found[key] = log_dir
        return log

    def _belongs_to_another(self, path: str, topic_id: bytes) -> bool:
        from storage.checkpoints import read_partition_metadata  # noqa: PLC0415

        if topic_id == ZERO_UUID:
            return False
        stored = read_partition_metadata(self._files, f"{path}/{layout.PARTITION_METADATA}")
        return stored not in (None, ZERO_UUID, topic_id)

    def _set_aside(self, log_dir: LogDir, key: TopicPartition, path: str, config: LogConfig, now: float) -> None:
        renamed = f"{log_dir.path}/{layout.deleted_dir_name(*key, self.new_id().hex())}"
        self._files.rename(path, renamed)
        self._forget(log_dir, key)
        self._deletions.append((now + config.file_delete_delay_ms / 1000, renamed))

    def _forget(self, log_dir: LogDir, key: TopicPartition) -> None:
        self._found.pop(key, None)
        for offsets in (log_dir.recovery_points, log_dir.log_starts, log_dir.high_watermarks):
            offsets.pop(key, None)

    def _emptiest(self) -> LogDir:
        counts = {id(log_dir): 0 for log_dir in self.dirs}
        for log_dir in self._found.values():
            counts[id(log_dir)] += 1
        return min(self.dirs, key=lambda log_dir: counts[id(log_dir)])

    def dir_of(self, topic: str, partition: int) -> LogDir | None:
        """The directory that holds a partition."""
        return self._found.get((topic, partition))

    # --- deletion

    def delete_log(self, topic: str, partition: int, *, now: float) -> None:
        """Take a partition's log away: its directory is renamed at once and removed after file.delete.delay.ms."""
        key = (topic, partition)
        log = self.logs.pop(key)
        log_dir = self._found[key]
        renamed = log.delete_renamed(self.new_id().hex())
        self._forget(log_dir, key)
        self._deletions.append((now + log.config.file_delete_delay_ms / 1000, renamed))

    def delete_stray(self, topic: str, partition: int, *, now: float) -> None:
        """Set the directory of a partition that nobody has opened aside, and remove it at the next `due_deletions`."""
        key = (topic, partition)
        log_dir = self._found[key]
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
        """The files and directories to remove now, each handed out once; give them to `remove`, in a thread if need be."""
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

    def write_recovery_points(self) -> None:
        """Write `recovery-point-offset-checkpoint` where it has changed."""
        self._write(layout.RECOVERY_POINT_CHECKPOINT, lambda log: log.recovery_point)

    def write_log_starts(self) -> None:
        """Write `log-start-offset-checkpoint` where it has changed: logs whose start lies behind their first segment's."""
        for log_dir in self.dirs:
            offsets = {
                key: log.log_start_offset
                for key, log in self._logs_in(log_dir)
                if log.log_start_offset > log.segments[0].base_offset
            }
            log_dir.write(layout.LOG_START_CHECKPOINT, offsets)

    def write_high_watermarks(self) -> None:
        """Write `replication-offset-checkpoint` where it has changed."""
        self._write(layout.REPLICATION_CHECKPOINT, lambda log: log.high_watermark)

    def _write(self, name: str, offset_of: Callable[[Log], int]) -> None:
        for log_dir in self.dirs:
            log_dir.write(name, {key: offset_of(log) for key, log in self._logs_in(log_dir)})

    def _logs_in(self, log_dir: LogDir) -> list[tuple[TopicPartition, Log]]:
        return [(key, log) for key, log in self.logs.items() if self._found[key] is log_dir]

    def logs_with_rolled_segments(self) -> list[Log]:
        """The logs that have closed segments which are not synced yet: Kafka syncs a segment when it rolls."""
        return [log for log in self.logs.values() if log.recovery_point < log.segments.active.base_offset]

    def close(self) -> None:
        """The clean stop: close every log, write the checkpoints, leave the marker, unlock."""
        for log in self.logs.values():
            log.close()
        self.write_recovery_points()
        self.write_log_starts()
        self.write_high_watermarks()
        for log_dir in self.dirs:
            log_dir.mark_clean()
        self.release()

    def release(self) -> None:
        """Unlock the directories without any of the rest."""
        for log_dir in self.dirs:
            log_dir.release()
