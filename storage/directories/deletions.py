"""Deleted logs: files and directories that are removed after file.delete.delay.ms, and the ids of deleted topics.

Source: Kafka's `LogManager.deleteLogs`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from barnabas.storage import layout
from barnabas.storage.files import Files

RECENT: Final = 10_000
"""At least so many of the deleted topics that were added last are kept."""


class Deletions:
    """The scheduled deletions of a broker; times are seconds of the monotonic clock."""

    __slots__ = ("_files", "_scheduled")

    def __init__(self, files: Files) -> None:
        self._files = files
        self._scheduled: list[tuple[float, str]] = []

    def schedule(self, paths: Iterable[str], due: float) -> None:
        """Remove these paths at the first `take_due` at or after `due`."""
        self._scheduled.extend((due, path) for path in paths)

    def take_due(self, now: float) -> list[str]:
        """The paths to remove now, each returned once, for `remove`."""
        due = [path for at, path in self._scheduled if at <= now]
        self._scheduled = [(at, path) for at, path in self._scheduled if at > now]
        return due

    def remove(self, path: str) -> None:
        """Remove a file or a directory returned by `take_due`; may be called in a thread."""
        if path.endswith(layout.DELETE_DIR_SUFFIX):
            self._files.remove_tree(path)
        else:
            self._files.unlink(path)


class DeletedTopics:
    """The ids of deleted topics of which a directory may be left (R22): such a directory is set aside.

    All topics that were deleted in the log that is read at a start are kept: the log is bounded, and the directories
    are read next. Of the topics that are deleted while the broker serves only the newest are kept: their directories
    are renamed at once, and otherwise the set would grow as long as the broker runs.
    """

    __slots__ = ("_ids",)

    def __init__(self) -> None:
        self._ids: dict[bytes, None] = {}

    def __contains__(self, topic_id: object) -> bool:
        return topic_id in self._ids

    def __len__(self) -> int:
        return len(self._ids)

    def add_all(self, topic_ids: Iterable[bytes]) -> None:
        """Keep all of these: they were read at a start."""
        self._ids.update(dict.fromkeys(topic_ids))

    def add_recent(self, topic_ids: Iterable[bytes]) -> None:
        """Keep these, which were deleted now, and forget the oldest."""
        self.add_all(topic_ids)
        while len(self._ids) > RECENT:
            del self._ids[next(iter(self._ids))]
