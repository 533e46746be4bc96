"""The log directories of a broker (`log.dirs`) and the logs in them. Source: Kafka's `LogManager`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator

from barnabas.storage import layout
from barnabas.storage.damage import DamagedLog, missing_log, of_unknown_topic
from barnabas.storage.directories.checkpoints import read_partition_metadata, topic_id_text
from barnabas.storage.directories.deletions import DeletedTopics, Deletions
from barnabas.storage.directories.foreign import in_the_way, is_known_of_partition, is_of_partition, partition_in
from barnabas.storage.directories.future_logs import FutureLog, FutureLogs, forget_offsets, newest_copy
from barnabas.storage.directories.log_dir import DataDirLocked, DataDirMismatch, LogDir, close_logs
from barnabas.storage.directories.new_directories import NewDirectories
from barnabas.storage.files import Files
from barnabas.storage.layout import TopicPartition
from barnabas.storage.log import PRODUCER_EXPIRATION_MS, Log
from barnabas.storage.log_config import LogConfig
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.steps import result_of
from barnabas.wire.types import ZERO_UUID

__all__ = ["DataDirLocked", "DataDirMismatch", "LogDir", "LogDirs", "TopicPartition"]

_DESCRIPTORS_FOR_A_LOG = 8
"""The files and directories that are open at the same time while logs are created, with a reserve."""

MAX_PREFERRED = 100_000
"""How many partitions that are not here yet may have a directory that they are to be made in."""

_CHECKPOINTED: dict[str, Callable[[Log], int | None]] = {
    layout.RECOVERY_POINT_CHECKPOINT: lambda log: log.recovery_point_to_write,
    layout.LOG_START_CHECKPOINT: lambda log: log.log_start_offset or None,  # a crash may undo the deletion of a segment
    layout.REPLICATION_CHECKPOINT: lambda log: log.high_watermark,
}

_LOGS_PER_STEP = 250
"""The number of logs whose offsets are read in one step of planning a checkpoint: about 0.3 ms."""


class LogDirs:
    """All log directories of a broker and the logs in them.

    A partition whose log cannot be served is offline: its files and checkpointed offsets are not changed, and its
    directory gets no clean shutdown marker, so that the next start checks the log again.
    """

    __slots__ = (
        "_held",
        "_log_dir_of",
        "_missing",
        "_offline",
        "_unsettled",
        "are_replicas",
        "deleted_topics",
        "deletions",
        "dirs",
        "files",
        "foreign",
        "futures",
        "ignores_case",
        "logs",
        "new_id",
        "on_error",
        "preferred",
        "strays",
    )

    def __init__(self, files: Files, paths: Iterable[str], new_id: Callable[[], bytes]) -> None:
        self.files = files
        self.new_id = new_id
        self.dirs = [LogDir(files, path.rstrip("/") or "/") for path in paths]
        self.logs: dict[TopicPartition, Log] = {}
        self._log_dir_of: dict[TopicPartition, LogDir] = {}
        self._held: Counter[LogDir] = Counter()  # how many of `_log_dir_of` each directory has
        self._missing: dict[TopicPartition, LogDir] = {}
        self._offline: set[TopicPartition] = set()
        self._unsettled: dict[TopicPartition, tuple[LogDir, LogDir]] = {}  # moved from, to, until `settle`
        self.deletions = Deletions(files)
        """Directories that are renamed for deletion and not yet removed."""
        self.futures = FutureLogs(files, new_id)
        """The future replicas, which are being moved here from another directory."""
        self.preferred: dict[TopicPartition, LogDir] = {}
        """Where partitions that are not here yet are to be made (AlterReplicaLogDirs)."""
        self.deleted_topics = DeletedTopics()
        """Not filled where `are_replicas`."""
        self.ignores_case = False
        """Whether a directory is on a file system where names that differ only in case are equal."""
        self.foreign: dict[TopicPartition, str] = {}
        """Directories that have a partition's name only (`storage.directories.foreign`): they are left as they are."""
        self.strays: list[str] = []
        """Directories that were renamed as strays and not yet logged."""
        self.are_replicas = False
        """Whether the logs may have batches of other brokers, whose logs may have been compacted."""
        self.on_error: Callable[[LogDir, str, OSError], None] | None = None
        """Called when a checkpoint cannot be written (directory, operation, error); None: the OSError is raised."""

    # --- start

    def open(self, node_id: int, cluster_id: str = "", *, invents_id: bool = True) -> str:
        """Lock and identify the directories, finish interrupted deletions, find the partitions; the cluster id.

        The cluster id is `cluster_id` if not empty, else the directories' id, else a new one; without `invents_id`
        DataDirMismatch, since the node belongs to a cluster that has one.
        Raises DataDirLocked, DataDirMismatch, CorruptCheckpoint, OSError.
        """
        try:
            for log_dir in self.dirs:
                log_dir.open()
            self._check_directory_ids()
            cluster_id = cluster_id or self._known_cluster_id()
            if not cluster_id and not invents_id:
                raise DataDirMismatch(
                    f"{self.dirs[0].path} is new: set the cluster id of the controllers in the environment (CLUSTER_ID)"
                )
            cluster_id = cluster_id or topic_id_text(self.new_id())
            for log_dir in self.dirs:
                log_dir.identify(node_id, cluster_id, topic_id_text(self.new_id()))
                self._find(log_dir)
            self._find_missing()
        except BaseException:
            self.release()
            raise
        return cluster_id

    def _known_cluster_id(self) -> str:
        """The cluster id of the directories, empty if all are new.

        DataDirMismatch when they belong to different clusters, or when a directory with partitions has lost its own:
        it must not be given to another cluster, nor to a new one.
        """
        known = [log_dir for log_dir in self.dirs if log_dir.cluster_id]
        for log_dir in known[1:]:
            if log_dir.cluster_id != known[0].cluster_id:
                raise DataDirMismatch(
                    f"The log directories {known[0].path} (cluster {known[0].cluster_id}) and {log_dir.path} (cluster "
                    f"{log_dir.cluster_id}) belong to different clusters: remove one of them from log.dirs"
                )
        for log_dir in self.dirs:
            if not log_dir.cluster_id and partition_in(self.files, log_dir.path):
                raise DataDirMismatch(
                    f"{log_dir.path} has partitions but no {layout.META_PROPERTIES}, which says whose they are: "
                    "restore the file from a copy, or start once with their cluster id in the environment (CLUSTER_ID)"
                )
        return known[0].cluster_id if known else ""

    def _check_directory_ids(self) -> None:
        """DataDirMismatch when two directories have the same id: one is a copy. As in Kafka."""
        seen: dict[str, LogDir] = {}
        for log_dir in self.dirs:
            first = seen.setdefault(log_dir.directory_id, log_dir) if log_dir.directory_id else log_dir
            if first is not log_dir:
                raise DataDirMismatch(
                    f"The log directories {first.path} and {log_dir.path} have the same directory.id "
                    f"{log_dir.directory_id} in {layout.META_PROPERTIES}: one is a copy; remove it from log.dirs"
                )

    def _find(self, log_dir: LogDir) -> None:
        for name in self.files.list_dirs(log_dir.path):
            path = f"{log_dir.path}/{name}"
            partition = layout.parse_partition_dir(name)
            if partition is not None:
                other = self._log_dir_of.get(partition, log_dir)
                if other is not log_dir and is_of_partition(self.files, path):
                    is_copy = is_of_partition(self.files, f"{other.path}/{name}")
                    other = newest_copy(self.files, name, other, log_dir) if is_copy else log_dir
                self._put(partition, other)
            elif layout.is_deleted_dir(name):
                if is_of_partition(self.files, path):
                    self.files.remove_tree(path)
            elif name.endswith(layout.FUTURE_DIR_SUFFIX) and is_of_partition(self.files, path):
                self.futures.find(log_dir, name)

    def _find_missing(self) -> None:
        """Find the partitions with synced records whose directory is missing."""
        for log_dir in self.dirs:
            for key, offset in log_dir.recovery_points.items():
                if key not in self._log_dir_of and offset > log_dir.log_starts.get(key, 0):
                    self._missing[key] = log_dir

    def forget_missing(self) -> None:
        """Remove missing partitions from the checkpoints; to be called when all partitions are opened."""
        deleted = [key for key in self._missing if key not in self._offline]
        self._missing.clear()
        for key in deleted:
            self._forget_everywhere(key)
        self.write_checkpoint(layout.RECOVERY_POINT_CHECKPOINT)  # strays are removed from it as well

    def not_opened(self) -> Iterator[TopicPartition]:
        """The partitions that have a directory but no opened log: after all logs are opened, these are strays."""
        return iter([key for key in self._log_dir_of if key not in self.logs and key not in self._offline])

    def leave_foreign(self) -> list[str]:
        """Of the directories without an opened log, leave the ones that may not belong to partitions; their paths."""
        for key in list(self.not_opened()):
            path = f"{self._log_dir_of[key].path}/{layout.partition_dir_name(*key)}"
            if not is_known_of_partition(self.files, path):
                self._leave(key, path)
        return list(self.foreign.values())

    def _leave(self, key: TopicPartition, path: str) -> None:
        self._held[self._log_dir_of.pop(key)] -= 1
        self.foreign[key] = path

    def take_offline(self, topic: str, partition: int) -> None:
        """Stop using a partition's log, opened or not; its files and checkpointed offsets are not changed."""
        key = (topic, partition)
        self._offline.add(key)
        log = self.logs.pop(key, None)
        if log is not None:
            self._keep_checkpoints(self._log_dir_of[key], key, log)

    def bring_online(self, topic: str, partition: int) -> None:
        """Undo `take_offline`; the caller opens the log next."""
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
        new_directories: NewDirectories | None = None,
    ) -> Log:
        """Open a partition's log: load its directory, or make one in `home` or in the directory with the fewest logs.

        A directory in `new_directories` was made for the partition just before (`place`), so nothing is read from it.

        A directory of a deleted topic of the same name is renamed as a stray first (R22). If it has records and another
        topic id, but no topic with that id was deleted, it is damaged: DamagedLog. One that is not of a partition is in
        the way: KafkaError(KAFKA_STORAGE_ERROR). The clean shutdown marker only applies to logs in the checkpoint of
        recovery points: Kafka does not close its metadata log.
        Raises what `Log.open` raises.
        """
        key = (topic, partition)
        log = self.logs.get(key)
        if log is not None:
            return log
        log_dir = self._log_dir_of.get(key)
        path = f"{log_dir.path}/{layout.partition_dir_name(topic, partition)}" if log_dir is not None else ""
        is_made = new_directories is not None and key in new_directories.made
        if log_dir is not None and not is_made and not self.files.is_on_same_file_system(path, log_dir.path):
            raise DamagedLog(f"{path} is on another file system than its log directory, with which it would be synced")
        other_id = self._other_id(key, path, topic_id) if log_dir is not None and not is_made else None
        if key in self.foreign:
            raise in_the_way(self.foreign[key])
        if log_dir is not None and other_id is not None:
            is_known = other_id in self.deleted_topics or self.are_replicas  # the controllers know which topics exist
            if not is_known and self._has_records(log_dir, key, path):
                raise of_unknown_topic(path, other_id, topic_id)
            self.rename_stray(topic, partition)
            log_dir = None
        if key in self._missing and log_dir is None:
            last = self._missing[key]
            raise missing_log(f"{last.path}/{layout.partition_dir_name(*key)}", last.recovery_points[key])
        if log_dir is None:
            log_dir = home or self._chosen(key)
            path = f"{log_dir.path}/{layout.partition_dir_name(topic, partition)}"
            for stale in self._forget_predecessor(log_dir, key):
                self._write_in(log_dir, stale)
        log = Log.open(
            self.files,
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
            is_replica=self.are_replicas,
            is_made=is_made,
        )
        self.logs[key] = log
        self._put(key, log_dir)
        return log

    def new_directories(self) -> NewDirectories:
        """An empty collection of directories to make."""
        return NewDirectories(self.files)

    def place(
        self, topic: str, partition: int, topic_id: bytes, directories: NewDirectories
    ) -> list[tuple[LogDir, str]]:
        """Choose a directory for a partition that has none, and add it to `directories`; nothing if it has one.

        Returns the checkpoint files with offsets of a deleted log of the same name: they have to be written again
        before the new log is used. KafkaError(KAFKA_STORAGE_ERROR) when no directory works.
        """
        key = (topic, partition)
        if key in self.logs or key in self._log_dir_of or key in self._missing or key in self.foreign:
            return []
        log_dir = self._chosen(key)
        stale = [(log_dir, name) for name in self._forget_predecessor(log_dir, key)]
        self._put(key, log_dir)
        directories.add(key, f"{log_dir.path}/{layout.partition_dir_name(topic, partition)}", topic_id)
        return stale

    def unplace(self, topic: str, partition: int) -> None:
        """Undo `place`: the directory could not be made."""
        key = (topic, partition)
        log_dir = self._log_dir_of.get(key)
        if log_dir is not None and key not in self.logs:
            self._forget(log_dir, key)

    def _put(self, key: TopicPartition, log_dir: LogDir) -> None:
        held_in = self._log_dir_of.get(key)
        if held_in is not log_dir:
            if held_in is not None:
                self._held[held_in] -= 1
            self._log_dir_of[key] = log_dir
            self._held[log_dir] += 1

    def _other_id(self, key: TopicPartition, path: str, topic_id: bytes) -> bytes | None:
        """The topic id of a directory if it is known and not `topic_id`. One that is not of a partition is left."""
        stored = read_partition_metadata(self.files, f"{path}/{layout.PARTITION_METADATA}")
        if stored is None and not is_of_partition(self.files, path):
            self._leave(key, path)
        return None if topic_id == ZERO_UUID or stored in (None, ZERO_UUID, topic_id) else stored

    def _has_records(self, log_dir: LogDir, key: TopicPartition, path: str) -> bool:
        if log_dir.recovery_points.get(key, 0) > log_dir.log_starts.get(key, 0):
            return True
        return any(size and name.endswith(layout.LOG_SUFFIX) for name, size in self.files.list_files(path))

    def rename_stray(self, topic: str, partition: int) -> str:
        """Rename the directory of a partition that is not in the metadata as a stray, as Kafka does; the new path.

        It is not deleted: its topic may have been deleted, but the metadata or its topic id may also be wrong (R22).
        """
        key = (topic, partition)
        log_dir = self._log_dir_of[key]
        path = f"{log_dir.path}/{layout.partition_dir_name(topic, partition)}"
        renamed = f"{log_dir.path}/{layout.stray_dir_name(topic, partition, self.new_id().hex())}"
        self.files.rename(path, renamed)
        self._forget(log_dir, key)
        self.strays.append(renamed)
        return renamed

    def give_up(self, topic: str, partition: int) -> str:
        """Set a damaged or missing log aside, which is then made anew and filled from another replica (L2).

        The new path of a damaged log; empty for a missing one.
        """
        key = (topic, partition)
        path = ""
        if key in self._log_dir_of:
            path = self.rename_stray(topic, partition)
            self.strays.remove(path)  # the caller logs it
        self._missing.pop(key, None)
        return path

    def _forget_predecessor(self, log_dir: LogDir, key: TopicPartition) -> list[str]:
        """Forget the offsets of a deleted log of the same name; else the new log would look like lost data.

        Returns the checkpoint files that still have them.
        """
        self._forget(log_dir, key)
        return [name for name in _CHECKPOINTED if log_dir.checkpoints.forget(name, key)]

    def _forget_everywhere(self, key: TopicPartition) -> None:
        for log_dir in self.dirs:
            self._forget(log_dir, key)

    def _forget(self, log_dir: LogDir, key: TopicPartition) -> None:
        held_in = self._log_dir_of.pop(key, None)
        if held_in is not None:
            self._held[held_in] -= 1
        if key in self._unsettled:
            self._forget_former(key, self._unsettled[key][0])
        self._offline.discard(key)
        for offsets in (log_dir.recovery_points, log_dir.log_starts, log_dir.high_watermarks):
            offsets.pop(key, None)

    def _chosen(self, key: TopicPartition) -> LogDir:
        """Where to make a partition: where AlterReplicaLogDirs wants it, else the directory with the fewest partitions.

        KafkaError(KAFKA_STORAGE_ERROR) when none works.
        """
        preferred = self.preferred.pop(key, None)
        if preferred is not None and preferred.failure is None:
            return preferred
        working = self.working
        if not working:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "All log directories have failed")
        return min(working, key=self._held.__getitem__)

    def has_descriptors(self) -> bool:
        """Whether enough descriptors are left to make a log."""
        return self.files.has_descriptors(_DESCRIPTORS_FOR_A_LOG)

    @property
    def working(self) -> list[LogDir]:
        """The directories that have not failed."""
        return [log_dir for log_dir in self.dirs if log_dir.failure is None]

    def dir_of(self, topic: str, partition: int) -> LogDir | None:
        """The directory that holds a partition."""
        return self._log_dir_of.get((topic, partition))

    def prefer(self, topic: str, partition: int, log_dir: LogDir) -> None:
        """Make a partition that is not here yet in this directory; the last `MAX_PREFERRED` wishes are remembered."""
        self.preferred.pop((topic, partition), None)
        self.preferred[topic, partition] = log_dir
        if len(self.preferred) > MAX_PREFERRED:
            del self.preferred[next(iter(self.preferred))]

    def dir_to_tell(self, topic: str, partition: int) -> LogDir | None:
        """The directory to report to the controller: the new one if a move has been assigned there (KIP-858)."""
        future = self.futures.logs.get((topic, partition))
        return future.log_dir if future is not None and future.is_assigned else self.dir_of(topic, partition)

    def replace_log(self, topic: str, partition: int, future: FutureLog) -> Log:
        """Use the future log, which has everything that the current one has, instead of it; the current one until now.

        The files of the latter stay until `futures.retire`, for their readers; a start removes them as well.
        OSError when nothing has changed.
        """
        key = (topic, partition)
        current, former = self.logs[key], self._log_dir_of[key]
        self.futures.take_over(key, future, current, former)
        self.logs[key] = future.log
        self._put(key, future.log_dir)
        self._keep_checkpoints(former, key, current)
        self._unsettled[key] = (former, future.log_dir)
        return current

    def settle(self, key: TopicPartition, home: LogDir) -> None:
        """The name of a partition in `home`, to which it was moved, is durable: forget the offsets of the former log.

        Before that a crash may bring the former log back, with records that were deleted if its log start is lost.
        """
        former, moved_to = self._unsettled.get(key, (home, None))
        if moved_to is home:
            self._forget_former(key, former)

    def _forget_former(self, key: TopicPartition, former: LogDir) -> None:
        del self._unsettled[key]
        forget_offsets(former, key)

    # --- deletion

    def delete_log(self, topic: str, partition: int, *, now: float) -> LogDir:
        """Delete a partition's log: its directory is renamed, and removed after file.delete.delay.ms.

        `LogDir.sync_names` of the returned directory makes that durable. The recovery points have to be written before
        a log of the same name is made; else it counts as missing (L2). After an OSError the log is not used any longer
        either: a directory that was not renamed is set aside as a stray by the next start, or for a new topic of the
        same name.
        """
        key = (topic, partition)
        log = self.logs.pop(key)
        log_dir = self._log_dir_of[key]
        log.delete_renamed(self.new_id().hex())
        self._forget(log_dir, key)
        self.deletions.schedule([log.directory], now + log.config.file_delete_delay_ms / 1000)
        return log_dir

    def delete_offline(self, topic: str, partition: int, *, now: float) -> None:
        """Delete the files of an offline partition; its directory is removed with the next deletions that are due."""
        key = (topic, partition)
        log_dir = self._log_dir_of.get(key)
        if log_dir is None:
            self._forget_everywhere(key)
            return
        path = f"{log_dir.path}/{layout.partition_dir_name(topic, partition)}"
        renamed = f"{log_dir.path}/{layout.deleted_dir_name(topic, partition, self.new_id().hex())}"
        self.files.rename(path, renamed)
        self._forget(log_dir, key)
        self.deletions.schedule([renamed], now)

    # --- checkpoints and close

    def write_checkpoint(self, name: str) -> bool:
        """Write a checkpoint file (`layout.RECOVERY_POINT_CHECKPOINT` …) where it has changed. False if one failed."""
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
        """For each directory a function that writes the current offsets to its checkpoint file; may run in a thread."""
        return result_of(self.plan_checkpoint_in_steps(name))

    def plan_checkpoint_in_steps(
        self, name: str, only: LogDir | None = None
    ) -> Generator[None, None, list[tuple[LogDir, Callable[[], None]]]]:
        """`plan_checkpoint`, for one directory if given; yields after each few logs.

        Logs may be used meanwhile: each offset is read after the plan was made, so it is at least as new.
        """
        dirs = self.working if only is None else [only]
        plans = {log_dir: log_dir.checkpoints.plan(name) for log_dir in dirs}
        offset_of = _CHECKPOINTED[name]
        for log_dir, planned in plans.items():
            closed = log_dir.offsets_read(name)
            planned.offsets.update({key: offset for key, offset in closed.items() if key not in self.logs})
            for key, (former, _) in self._unsettled.items():
                if former is log_dir and key in closed:
                    planned.offsets[key] = closed[key]
            for key, log in self.futures.logs_in(log_dir):  # before the others, since one may take over meanwhile
                future_offset = offset_of(log)
                if future_offset is not None:
                    planned.offsets[key] = future_offset
            yield
        for at, (key, log) in enumerate(list(self.logs.items()), 1):
            own = plans.get(self._log_dir_of[key]) if self.logs.get(key) is log else None
            offset = offset_of(log)
            if own is not None and offset is not None:
                own.offsets[key] = offset
            if at % _LOGS_PER_STEP == 0:
                yield
        return list(plans.items())

    def _write_in(self, log_dir: LogDir, name: str) -> None:
        for _, write in result_of(self.plan_checkpoint_in_steps(name, log_dir)):
            write()

    def _logs_in(self, log_dir: LogDir) -> list[tuple[TopicPartition, Log]]:
        return [(key, log) for key, log in self.logs.items() if self._log_dir_of[key] is log_dir]

    def logs_with_rolled_segments(self) -> list[Log]:
        """The logs with closed segments that are not synced yet: as in Kafka, a segment is synced when it rolls."""
        return [
            log
            for key, log in self.logs.items()
            if log.recovery_point < log.segments.active.base_offset and self._log_dir_of[key].failure is None
        ]

    def close(self, broker_epoch: int = -1) -> None:
        """The clean stop: close every log, write the checkpoints and the clean shutdown marker, unlock.

        The marker contains `broker_epoch` (KIP-966). Directories that failed before are not touched. A directory in
        which something fails now gets no marker, so that its logs are checked at the next start; the failure of the
        first such directory is raised after all the others are closed.
        """
        self.futures.retire_all()
        outcomes = [self._close_dir(log_dir, broker_epoch) for log_dir in self.working]
        self.release()
        for failure in outcomes:
            if failure is not None:
                raise failure

    def _close_dir(self, log_dir: LogDir, broker_epoch: int) -> Exception | None:
        logs = [log for _, log in (*self._logs_in(log_dir), *self.futures.logs_in(log_dir))]
        failure = close_logs(log_dir, logs)
        try:
            for name in _CHECKPOINTED:
                self._write_in(log_dir, name)
            if failure is None and all(self._log_dir_of.get(key) is not log_dir for key in self._offline):
                log_dir.mark_clean(broker_epoch)
        except OSError as error:
            failure = failure or error
        return failure

    def release(self) -> None:
        """Unlock the directories, and do nothing else."""
        for log_dir in self.dirs:
            log_dir.release()
