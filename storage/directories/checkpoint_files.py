"""The checkpoint files of one log directory: recovery points, log starts, high watermarks.

Writes are planned by the thread that uses the logs and may run in other threads, late and in any order. A lock is held
during a write, so only threads that may wait for the disk take it; the thread that uses the logs never does.
Source: Kafka's `LogManager`.
"""

from __future__ import annotations

from threading import Lock
from weakref import WeakSet

from barnabas.storage import layout
from barnabas.storage.directories.checkpoints import OffsetCheckpoint
from barnabas.storage.files import Files
from barnabas.storage.layout import TopicPartition

CHECKPOINT_NAMES = (layout.RECOVERY_POINT_CHECKPOINT, layout.LOG_START_CHECKPOINT, layout.REPLICATION_CHECKPOINT)


class PlannedWrite:
    """A write of a checkpoint file that is planned; its offsets may be added until it is called."""

    __slots__ = ("__weakref__", "_files", "_name", "offsets", "version")

    def __init__(self, files: CheckpointFiles, name: str, version: int) -> None:
        self._files = files
        self._name = name
        self.version = version
        self.offsets: dict[TopicPartition, int] = {}

    def __call__(self) -> None:
        """Replace the file if its content has changed, durably; may be called in a thread.

        Does nothing if a later one was written meanwhile: its offsets are at least as new. OSError when the disk fails.
        """
        self._files.write(self._name, self)


class CheckpointFiles:
    """The checkpoint files by name, with their content."""

    __slots__ = ("_checkpoints", "_done", "_planned", "_state", "_versions", "_writing", "_written")

    def __init__(self, files: Files, path: str) -> None:
        self._checkpoints = {name: OffsetCheckpoint(files, f"{path}/{name}") for name in CHECKPOINT_NAMES}
        self._written: dict[str, dict[TopicPartition, int]] = {}
        self._versions: dict[str, int] = {}
        self._done: dict[str, int] = {}
        self._planned: dict[str, WeakSet[PlannedWrite]] = {name: WeakSet() for name in CHECKPOINT_NAMES}
        self._state = Lock()  # never held during a disk operation
        self._writing = Lock()  # held during a write

    def read(self, name: str) -> dict[TopicPartition, int]:
        """The offsets in a checkpoint file. CorruptCheckpoint when it cannot be read."""
        offsets = self._checkpoints[name].read()
        self._written[name] = dict(offsets)
        return offsets

    def forget(self, name: str, key: TopicPartition) -> bool:
        """Leave a partition out of the planned writes that have not begun: their offsets belong to a deleted log.

        Returns whether the file contains the partition, or may contain it after a failed write: then it is to be
        written again before a new log of the partition is used.
        """
        with self._state:
            for planned in self._planned[name]:
                planned.offsets.pop(key, None)
            written = self._written.get(name)
            return written is None or key in written

    def plan(self, name: str) -> PlannedWrite:
        """A write of a checkpoint file, whose offsets are to be added; several may be planned at a time.

        Every offset has to be read after this call: a write that was planned later replaces it.
        """
        with self._state:
            self._versions[name] = version = self._versions.get(name, 0) + 1
            planned = PlannedWrite(self, name, version)
            self._planned[name].add(planned)
        return planned

    def write(self, name: str, planned: PlannedWrite) -> None:
        """Write the offsets of a planned write."""
        with self._writing:
            with self._state:
                self._planned[name].discard(planned)
                if planned.version < self._done.get(name, 0):
                    return
                offsets = planned.offsets
                if self._written.get(name) == offsets:
                    self._done[name] = planned.version
                    return
                self._written[name] = offsets  # from here on the file may contain them
            try:
                self._checkpoints[name].write(offsets)
            except BaseException:
                with self._state:
                    del self._written[name]
                raise
            self._done[name] = planned.version
