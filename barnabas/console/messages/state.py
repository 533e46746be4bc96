"""What the message screens of one console share: schemas, running exports, and the processes that read records."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.console.messages.contents.registry import HttpRegistry
from barnabas.console.messages.contents.schemas import Schemas
from barnabas.console.messages.exports import Exports
from barnabas.console.messages.processes import ReadingProcesses

if TYPE_CHECKING:
    from barnabas.console.settings import Settings


class MessagesState:
    """Schemas, exports, processes. ValueError and OSError if a schema file or the registry's address is wrong."""

    def __init__(self, settings: Settings) -> None:
        registry = settings.schema_registry
        self.schemas = Schemas(None if registry is None else HttpRegistry(registry))
        self.exports = Exports()
        self.processes = ReadingProcesses(settings)
        for path in settings.schema_files:
            self.schemas.add_file(Path(path))
