"""Files of which nothing is in the page cache."""

from __future__ import annotations

from barnabas.storage.files import File, Files
from tests.support.world import Flushes


class ColdFiles(Files):
    """Files of which nothing is in memory until it was read in a thread; counts what the event loop has to wait for."""

    def __init__(self) -> None:
        super().__init__()
        self.is_in_thread = False
        self.cached: set[tuple[str, int]] = set()
        self.waits: list[str] = []

    def _seen(self, path: str, position: int) -> None:
        if self.is_in_thread:
            self.cached.add((path, position))
        elif (path, position) not in self.cached:
            self.waits.append(f"{path.rpartition('/')[2]} at {position}")

    def is_cached(self, file: File, length: int, position: int) -> bool:
        return (file.path, position) in self.cached

    def read_cached(self, file: File, length: int, position: int) -> bytes | None:
        return self.read_at(file, length, position) if self.is_cached(file, length, position) else None

    def read_at(self, file: File, length: int, position: int) -> bytes:
        self._seen(file.path, position)
        return super().read_at(file, length, position)

    def read_file(self, path: str) -> bytes:
        self._seen(path, 0)
        return super().read_file(path)

    def run(self, flushes: Flushes) -> None:
        """Run what was submitted, as a thread does, and its callback in the loop."""
        work, then = flushes.held.pop(0)
        self.is_in_thread = True
        work()
        self.is_in_thread = False
        then(None)
