"""What the message screens of one console share: schemas and running exports."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from barnabas.console.messages.contents.registry import HttpRegistry
from barnabas.console.messages.contents.schemas import Schemas
from barnabas.console.messages.exports import Exports


class MessagesState:
    """Schemas and exports. ValueError and OSError if a schema file or the registry's address is wrong."""

    def __init__(self, schema_files: Sequence[str] = (), schema_registry: str | None = None) -> None:
        self.schemas = Schemas(None if schema_registry is None else HttpRegistry(schema_registry))
        self.exports = Exports()
        for path in schema_files:
            self.schemas.add_file(Path(path))
