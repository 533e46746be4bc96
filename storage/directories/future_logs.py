"""Future replicas: copies of logs in other log directories of the same broker, which take over when they are complete.

The directory of a future replica is `<topic>-<partition>.<unique>-future`. Taking over renames it to the directory of
the partition; until then the current log counts, also after a crash. The file `MOVED` in it, made durable before, says
that it counts from then on: the former directory keeps its name for a while, since responses still read it. A start
that finds both removes the one without `MOVED`. So everything that was durable in the current log has to be durable in
the future log before it takes over, and `MOVED` has to be removed from the former one.
Source: Kafka's `LogManager.replaceCurrentWithFutureLog` and `Partition.maybeReplaceCurrentWithFutureReplica` (KIP-113).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from barnabas.storage import layout
from barnabas.storage.directories.checkpoint_files import CHECKPOINT_NAMES
from barnabas.storage.directories.meta_properties import DataDirMismatch
from barnabas.storage.files import Files
from barnabas.storage.layout import TopicPartition
from barnabas.storage.log import PRODUCER_EXPIRATION_MS, Log

if TYPE_CHECKING:
    from barnabas.storage.directories.log_dir import LogDir
    from barnabas.storage.log_config import LogConfig


class FutureLog:
    """A future replica with an open log."""

    __slots__ = ("is_assigned", "log", "log_dir", "stale_checkpoints")

    def __init__(self, log: Log, log_dir: LogDir) -> None:
        self.log = log
        self.log_dir = log_dir
        self.is_assigned = False
        """Whether the controller has it as the directory of the replica."""
        self.stale_checkpoints: list[str] = []
        """Checkpoint files with offsets of an earlier copy, to be written again before anything is copied."""


class FutureLogs:
    """The future replicas of a broker, and the directories that they have replaced."""

    __slots__ = ("_files", "_new_id", "_retired", "directories", "logs")

    def __init__(self, files: Files, new_id: Callable[[], bytes]) -> None:
        self._files = files
        self._new_id = new_id
        self.directories: dict[TopicPartition, tuple[LogDir, str]] = {}
        """The directories that the start has found and that are not opened yet, with their paths."""
        self.logs: dict[TopicPartition, FutureLog] = {}
        self._retired: dict[TopicPartition, tuple[str, LogDir, LogDir]] = {}
        # Former directory and the log directory that has it, the new log directory.

    def find(self, log_dir: LogDir, name: str) -> None:
        """Note the directory of a future replica; of two directories of one partition one is removed."""
        key = layout.parse_future_dir(name)
        if key is None:
            return
        path = f"{log_dir.path}/{name}"
        if key in self.directories:
            _remove(self._files, path, key, self._new_id().hex())
        else:
            self.directories[key] = (log_dir, path)

    def open(
        self,
        key: TopicPartition,
        log_dir: LogDir,
        config: LogConfig,
        *,
        topic_id: bytes,
        log_start_offset: int,
        now_ms: int,
        now: float,
        producer_expiration_ms: int = PRODUCER_EXPIRATION_MS,
    ) -> FutureLog:
        """Open the future replica that was found in `log_dir`, or make one that begins at `log_start_offset`.

        Raises what `Log.open` raises.
        """
        _, path = self.directories.get(key, (None, ""))
        is_found = bool(path)
        stale = [] if is_found else forget_offsets(log_dir, key)
        path = path or f"{log_dir.path}/{layout.future_dir_name(*key, self._new_id().hex())}"
        log = Log.open(
            self._files,
            path,
            *key,
            config,
            topic_id=topic_id,
            now_ms=now_ms,
            now=now,
            clean_shutdown=is_found and log_dir.had_clean_shutdown and key in log_dir.recovery_points,
            recovery_point=log_dir.recovery_points.get(key, 0) if is_found else 0,
            log_start_offset=log_dir.log_starts.get(key, 0) if is_found else log_start_offset,
            producer_expiration_ms=producer_expiration_ms,
            is_replica=True,
        )
        self.directories.pop(key, None)
        future = self.logs[key] = FutureLog(log, log_dir)
        future.stale_checkpoints = stale
        return future

    def logs_in(self, log_dir: LogDir) -> list[tuple[TopicPartition, Log]]:
        """The future logs in a directory."""
        return [(key, future.log) for key, future in self.logs.items() if future.log_dir is log_dir]

    def give_up(self, key: TopicPartition, future: FutureLog) -> None:
        """Treat a future replica as gone; its files are removed with `delete`."""
        if self.logs.get(key) is future:
            del self.logs[key]
        for offsets in (future.log_dir.recovery_points, future.log_dir.log_starts, future.log_dir.high_watermarks):
            offsets.pop(key, None)

    def delete(self, future: FutureLog) -> str:
        """Rename the directory of a future replica that was given up; the new name, to be removed."""
        return future.log.delete_renamed(self._new_id().hex())

    def delete_found(self, key: TopicPartition) -> str:
        """Rename a directory that the start has found and that is not needed; the new name, to be removed."""
        _, path = self.directories.pop(key)
        return _rename(self._files, path, key, self._new_id().hex())

    def take_over(self, key: TopicPartition, future: FutureLog, current: Log, former: LogDir) -> None:
        """Rename the future log's directory and take over the state of the current log; see `LogDirs.replace_log`.

        Both end at the same offset. The producers come from the current log: the records of some may be gone.
        """
        log = future.log
        path = f"{future.log_dir.path}/{layout.partition_dir_name(*key)}"
        self._files.rename(log.directory, path)
        del self.logs[key]
        log.take_over(current, path)
        self._retired[key] = (current.directory, former, future.log_dir)

    def retire(self, key: TopicPartition) -> list[str]:
        """Rename the former directory of a partition that was moved; the new name, to be removed.

        `LogDir.sync_names` of the new log directory has been called before. Until `sync_names` of the former one is
        called after it, a crash may bring the former directory back: the other one has to have `MOVED` until then.
        """
        retired = self._retired.pop(key, None)
        return [] if retired is None else [_rename(self._files, retired[0], key, self._new_id().hex())]

    def retired_from(self, key: TopicPartition) -> LogDir | None:
        """The log directory that still has the former directory of a partition, until `retire`."""
        retired = self._retired.get(key)
        return None if retired is None else retired[1]

    def retire_all(self) -> None:
        """`retire` all, before the broker stops; what fails is left to the next start."""
        for key, (_, former, new) in list(self._retired.items()):
            if former.failure is not None or new.failure is not None:
                continue  # the next start decides
            with suppress(OSError):
                new.sync_names()
                self.retire(key)


def forget_offsets(log_dir: LogDir, key: TopicPartition) -> list[str]:
    """Forget the offsets of a log that is not in the directory any more; the checkpoint files that still have them."""
    for offsets in (log_dir.recovery_points, log_dir.log_starts, log_dir.high_watermarks):
        offsets.pop(key, None)
    return [name for name in CHECKPOINT_NAMES if log_dir.checkpoints.forget(name, key)]


def unmark(files: Files, directory: str) -> None:
    """No other copy of the partition is left, or it has to count from now on; may be called in a thread."""
    with suppress(FileNotFoundError):
        files.unlink(f"{directory}/{layout.MOVED}")
    files.sync_dir(directory)


def mark_as_moved(files: Files, future: Log) -> None:
    """Have a start prefer the future log once it has the name of the partition; may be called in a thread.

    `unmark` of the current log has been called before.
    """
    file = files.open(f"{future.directory}/{layout.MOVED}")
    files.sync(file)
    file.close()
    files.sync_dir(future.directory)


def newest_copy(files: Files, name: str, first: LogDir, second: LogDir) -> LogDir:
    """The one of two directories whose copy of a partition counts; the other copy is removed.

    DataDirMismatch unless exactly one of them says that it was moved.
    """
    moved = [log_dir for log_dir in (first, second) if files.exists(f"{log_dir.path}/{name}/{layout.MOVED}")]
    key = layout.parse_partition_dir(name)
    if len(moved) != 1 or key is None:
        raise DataDirMismatch(f"{name} is in both {first.path} and {second.path}: move one of them away")
    chosen = moved[0]
    chosen.sync_names()
    former = second if chosen is first else first
    _remove(files, f"{former.path}/{name}", key, "0" * 32)
    for offsets in (former.recovery_points, former.log_starts, former.high_watermarks):
        offsets.pop(key, None)
    return chosen


def _rename(files: Files, path: str, key: TopicPartition, unique: str) -> str:
    renamed = f"{path.rpartition('/')[0]}/{layout.deleted_dir_name(*key, unique)}"
    files.rename(path, renamed)
    return renamed


def _remove(files: Files, path: str, key: TopicPartition, unique: str) -> None:
    files.remove_tree(_rename(files, path, key, unique))


def common_end(future: Log, current: Log) -> int:
    """Up to where the future log is a copy of the current one, by the leader epochs of both (R5)."""
    entries = future.leader_epochs.entries()
    end = min(future.log_end_offset, current.log_end_offset)
    while end > future.log_start_offset:
        epoch = future.leader_epochs.epoch_for_offset(end - 1)
        if epoch < 0:
            return end
        epoch_found, current_end = current.end_offset_for_epoch(epoch)
        if epoch_found == epoch:
            return min(end, current_end)
        end = next(start for its_epoch, start in entries if its_epoch > epoch_found)
        if epoch_found >= 0:
            end = min(end, current_end)
    return max(end, future.log_start_offset)
