"""The producer snapshot files of one log, `<offset>.snapshot` in its directory (rule I5).

Snapshots are not synced when they are written: the CRC in the file shows whether it is whole, and an older snapshot
can be used instead. Source: Kafka's `ProducerStateManager`.
"""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.storage import layout
from barnabas.storage.directories.checkpoints import replace_file
from barnabas.storage.files import Files
from barnabas.storage.producers.producer_snapshot import encode_snapshot
from barnabas.storage.producers.producer_state import ProducerState


class SnapshotFiles:
    """The snapshot files of one log."""

    __slots__ = ("_directory", "_files", "unsynced")

    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self._directory = directory
        self.unsynced: list[int] = []
        """Offsets of the snapshots that may not be durable; the next flush that includes the indexes syncs them."""

    def relocate(self, directory: str) -> None:
        """The directory was renamed."""
        self._directory = directory

    def path(self, offset: int) -> str:
        """The path of the snapshot at an offset."""
        return f"{self._directory}/{layout.snapshot_name(offset)}"

    def offsets(self) -> list[int]:
        """The offsets of the snapshots in the directory, ascending."""
        return offsets_of(dict(self._files.list_files(self._directory)))

    def read(self, offset: int) -> bytes:
        """The content of a snapshot; FileNotFoundError when it is missing."""
        return self._files.read_file(self.path(offset))

    def write(self, producers: ProducerState) -> None:
        """Write a snapshot of the state at its `end_offset`, unless there is one already. It is not synced."""
        if producers.end_offset > producers.snapshot_offset:
            content = encode_snapshot(producers.producers.values())
            replace_file(self._files, self.path(producers.end_offset), content, sync=False)
            producers.snapshot_offset = producers.end_offset
            self.unsynced.append(producers.end_offset)

    def unsynced_paths(self) -> list[str]:
        """The paths of the unsynced snapshots that still exist."""
        return [path for offset in self.unsynced if self._files.exists(path := self.path(offset))]

    def synced(self, offsets: list[int]) -> None:
        """The snapshots at these offsets are durable, or do not exist any longer."""
        self.unsynced = [offset for offset in self.unsynced if offset not in offsets]

    def remove(self, offset: int) -> None:
        """Remove the snapshot at an offset."""
        self._files.unlink(self.path(offset))

    def remove_from(self, start_offset: int) -> None:
        """Remove the snapshots at or above an offset."""
        for offset in self.offsets():
            if offset >= start_offset:
                self.remove(offset)


def offsets_of(names: Iterable[str]) -> list[int]:
    """The offsets of the producer snapshots among a directory's file names, ascending."""
    offsets = (layout.offset_of(name) for name in names if name.endswith(layout.SNAPSHOT_SUFFIX))
    return sorted(offset for offset in offsets if offset is not None)
