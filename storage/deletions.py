"""Files and directories that are already renamed for deletion and are removed after file.delete.delay.ms.

Source: Kafka's `LogManager.deleteLogs`.
"""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.storage import layout
from barnabas.storage.files import Files


class Deletions:
    """The scheduled deletions of a broker; times are seconds of the monotonic clock."""

    __slots__ = ("_files", "_scheduled")

    def __init__(self, files: Files) -> None:
        self._files = files
        self._scheduled: list[tuple[float, str]] = []

    def schedule(self, paths: Iterable[str], due: float) -> None:
        """Remove these paths at the first `take_due` at or after `due`."""
        self._scheduled.extend((due, path) for path in paths)

    def next_due(self) -> float | None:
        """When the next path is due; None if nothing is scheduled."""
        return min((due for due, _ in self._scheduled), default=None)

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
