"""The checkpoint files of one log directory: recovery points, log starts, high watermarks.

Writes are planned by the thread that uses the logs and may run in other threads, late and in any order.
Source: Kafka's `LogManager`.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from barnabas.storage import layout
from barnabas.storage.checkpoints import OffsetCheckpoint
from barnabas.storage.files import Files
from barnabas.storage.layout import TopicPartition

_NAMES = (layout.RECOVERY_POINT_CHECKPOINT, layout.LOG_START_CHECKPOINT, layout.REPLICATION_CHECKPOINT)


class CheckpointFiles:
    """The files, by name, with what they contain."""

    __slots__ = ("_checkpoints", "_done", "_planned", "_writing", "_written")

    def __init__(self, files: Files, path: str) -> None:
        self._checkpoints = {name: OffsetCheckpoint(files, f"{path}/{name}") for name in _NAMES}
        self._written: dict[str, dict[TopicPartition, int]] = {}
        self._planned: dict[str, int] = {}
        self._done: dict[str, int] = {}
        self._writing = Lock()

    def read(self, name: str) -> dict[TopicPartition, int]:
        """The offsets in a checkpoint file. CorruptCheckpoint when it cannot be read."""
        offsets = self._checkpoints[name].read()
        self._written[name] = dict(offsets)
        return offsets

    def has_written(self, name: str, key: TopicPartition) -> bool:
        """Whether the checkpoint file on disk contains a partition, or may contain it after a failed write."""
        return name not in self._written or key in self._written[name]

    def plan_write(self, name: str, offsets: dict[TopicPartition, int]) -> Callable[[], None]:
        """A function that replaces a checkpoint file if its content has changed, durably; it may run in a thread.

        When several are planned, one that runs late does not overwrite a later one.
        """
        self._planned[name] = version = self._planned.get(name, 0) + 1
        return lambda: self._write(name, offsets, version)

    def cancel_planned(self, name: str) -> None:
        """Cancel the writes that are planned and have not begun: their content is stale."""
        with self._writing:
            self._planned[name] = self._done[name] = self._planned.get(name, 0) + 1

    def _write(self, name: str, offsets: dict[TopicPartition, int], version: int) -> None:
        with self._writing:
            if version < self._done.get(name, 0):
                return
            self._done[name] = version
            if self._written.get(name) == offsets:
                return
            self._written[name] = offsets  # from here on the file may contain them
            try:
                self._checkpoints[name].write(offsets)
            except BaseException:
                del self._written[name]
                raise
