"""The directories of new partitions: chosen one by one, then made together, in a thread if need be.

A new directory has `partition.metadata` and an empty log file. Nothing is synced: a directory that a power failure
removes is made again at the next start, and the first flush of its log makes it durable.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from barnabas.storage import layout
from barnabas.storage.directories.checkpoints import write_partition_metadata
from barnabas.storage.files import Files
from barnabas.storage.layout import TopicPartition


class _NewPartition(NamedTuple):
    key: TopicPartition
    path: str
    topic_id: bytes


class NewDirectories:
    """Directories to make."""

    __slots__ = ("_files", "_partitions", "failures", "made")

    def __init__(self, files: Files) -> None:
        self._files = files
        self._partitions: list[_NewPartition] = []
        self.made: set[TopicPartition] = set()
        """The partitions whose directories were made; not those whose directory was there already."""
        self.failures: dict[TopicPartition, OSError] = {}
        """Why a directory could not be made."""

    def __len__(self) -> int:
        return len(self._partitions)

    def add(self, key: TopicPartition, path: str, topic_id: bytes) -> None:
        """Have a directory made."""
        self._partitions.append(_NewPartition(key, path, topic_id))

    def make(self) -> None:
        """Make the directories; the outcomes are in `made` and `failures`. May be called in a thread."""
        for new in self._partitions:
            try:
                if not self._files.exists(new.path):
                    make_directory(self._files, new.path, new.topic_id, 0)
                    self.made.add(new.key)
            except OSError as error:
                self.failures[new.key] = error


def make_directory(files: Files, directory: str, topic_id: bytes, base_offset: int) -> None:
    """Make the directory of a new partition, with an empty log file. After an OSError nothing of it is left."""
    files.mkdirs(directory)
    try:
        write_partition_metadata(files, f"{directory}/{layout.PARTITION_METADATA}", topic_id)
        files.open(f"{directory}/{layout.segment_name(base_offset, layout.LOG_SUFFIX)}").close()
    except OSError:
        with suppress(OSError):  # else the next start completes it
            files.remove_tree(directory)
        raise
