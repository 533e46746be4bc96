"""How far each compacted log has been cleaned: in memory, and in `cleaner-offset-checkpoint` of each log directory."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

import trio

from barnabas.storage import layout
from barnabas.storage.directories.checkpoints import CorruptCheckpoint, OffsetCheckpoint

if TYPE_CHECKING:
    from barnabas.broker.replicas.partition import Partition
    from barnabas.storage.directories.log_dir import LogDir
    from barnabas.storage.directories.log_dirs import LogDirs

logger = logging.getLogger("kafka.log.LogCleaner")


class CleanedOffsets:
    """The offsets below which logs are clean."""

    def __init__(self, log_dirs: LogDirs) -> None:
        self._log_dirs = log_dirs
        # With topic ids, since a deleted topic's name may be used again.
        self._offsets: dict[tuple[str, int], tuple[bytes, int]] = {}

    def get(self, partition: Partition) -> int | None:
        """The offset below which a log is clean; None if it has never been cleaned."""
        topic_id, offset = self._offsets.get((partition.topic, partition.index), (partition.topic_id, None))
        return offset if topic_id == partition.topic_id else None

    async def set(self, partition: Partition, offset: int) -> None:
        """Record that a log is clean below `offset`, and write the checkpoint of its directory.

        A failed write is logged: it costs no more than a second cleaning after a restart.
        """
        self._offsets[partition.topic, partition.index] = (partition.topic_id, offset)
        dir_of = self._log_dirs.dir_of
        log_dir = dir_of(partition.topic, partition.index)
        if log_dir is None:
            return
        offsets = {key: offset for key, (_, offset) in self._offsets.items() if dir_of(*key) is log_dir}
        try:
            await trio.to_thread.run_sync(_checkpoint(partition, log_dir).write, offsets)
        except OSError as error:
            logger.warning("Cannot write the cleaner offset checkpoint of %s: %s", log_dir.path, error)

    def load(self, partitions: Iterable[Partition]) -> None:
        """Read the checkpoints of the directories that hold compacted logs."""
        read: dict[LogDir, dict[tuple[str, int], int]] = {}
        for partition in partitions:
            key = (partition.topic, partition.index)
            log_dir = self._log_dirs.dir_of(*key)
            if log_dir is None or "compact" not in partition.log.config.cleanup_policy:
                continue
            if log_dir not in read:
                read[log_dir] = _read(partition, log_dir)
            if key in read[log_dir]:
                self._offsets[key] = (partition.topic_id, read[log_dir][key])

    def keep_only(self, partitions: Iterable[Partition]) -> None:
        """Forget the partitions that are not among `partitions`."""
        present = {(partition.topic, partition.index): partition.topic_id for partition in partitions}
        self._offsets = {key: entry for key, entry in self._offsets.items() if present.get(key) == entry[0]}


def _checkpoint(partition: Partition, log_dir: LogDir) -> OffsetCheckpoint:
    return OffsetCheckpoint(partition.log.files, f"{log_dir.path}/{layout.CLEANER_CHECKPOINT}")


def _read(partition: Partition, log_dir: LogDir) -> dict[tuple[str, int], int]:
    try:
        return _checkpoint(partition, log_dir).read()
    except (CorruptCheckpoint, OSError) as error:
        logger.warning("Treating all compacted logs in %s as dirty: %s", log_dir.path, error)
        return {}
