"""Snapshots of a cluster: everything that it has, to return to, to begin another cluster with, or to keep."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.testing.forms import Async, Sync, operation

if TYPE_CHECKING:
    from barnabas.testing.link import Link

__tracebackhide__ = True
"""For pytest: a failure is shown where the test made it."""


class SnapshotOperations:
    """What can be done with a snapshot. It is there until it is removed, or the broker's process ends."""

    def __init__(self, link: Link, number: int) -> None:
        self._link = link
        self.number = number

    @operation
    def save(self, path: str | Path) -> Path:
        """Save it as a new directory, for `barnabas serve --data-dir`; the directory."""
        absolute = Path(path).absolute()
        self._link.perform("save_snapshot", {"snapshot": self.number, "path": str(absolute)})
        return absolute

    @operation
    def remove(self) -> None:
        """Remove it with its files."""
        self._link.perform("remove_snapshot", {"snapshot": self.number})


class Snapshot(SnapshotOperations, Sync):
    """A snapshot, for plain tests."""


class AsyncSnapshot(SnapshotOperations, Async):
    """A snapshot, for tests in asyncio, trio and anyio."""
