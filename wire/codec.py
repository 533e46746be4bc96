"""The codec of one message version: bytes to object and back."""

from __future__ import annotations

import io
from struct import error as StructError
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from construct import ConstructError

from wire.errors import ProtocolError

if TYPE_CHECKING:
    from construct import Construct

    from wire.types import Chunk

M = TypeVar("M")


class Codec(Generic[M]):
    """Parses and builds one version of a message."""

    def __init__(self, message_class: type[M], version: int, interpreted: Construct[Any, Any]) -> None:
        self.message_class = message_class
        self.version = version
        self.interpreted = interpreted

    def parse(self, buf: bytes | bytearray | memoryview, pos: int = 0) -> tuple[M, int]:
        """The message that starts at `pos`, and the position after it. ProtocolError when there is none."""
        stream = io.BytesIO(bytes(buf[pos:]))
        try:
            return self.interpreted.parse_stream(stream), pos + stream.tell()
        except ConstructError as error:
            raise ProtocolError(f"{self.message_class.__name__} v{self.version}: {error}") from None

    def build(self, obj: M) -> list[Chunk]:
        """The message in pieces."""
        try:
            return [self.interpreted.build(obj)]
        except (ConstructError, StructError, TypeError, AttributeError) as error:
            raise ValueError(f"{self.message_class.__name__} v{self.version}: {error}") from None
