"""What the message screens of one console share: schemas and running exports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import BoundedSemaphore

from barnabas.console.messages.contents.registry import HttpRegistry
from barnabas.console.messages.contents.schemas import Schemas
from barnabas.console.messages.exports import Exports

MOST_SEARCHES = 4
"""Searches that run at once. They share the interpreter's lock with pages: each takes a part of their speed."""
SEARCH_WAIT_S = 5.0


class MessagesState:
    """Schemas and exports. ValueError and OSError if a schema file or the registry's address is wrong."""

    def __init__(self, schema_files: Sequence[str] = (), schema_registry: str | None = None) -> None:
        self.schemas = Schemas(None if schema_registry is None else HttpRegistry(schema_registry))
        self.exports = Exports()
        self._searches = BoundedSemaphore(MOST_SEARCHES)
        for path in schema_files:
            self.schemas.add_file(Path(path))

    @contextmanager
    def search(self) -> Iterator[bool]:
        """One of the searches that may run at once; False if none got free in time."""
        is_free = self._searches.acquire(timeout=SEARCH_WAIT_S)
        try:
            yield is_free
        finally:
            if is_free:
                self._searches.release()
