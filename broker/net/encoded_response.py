"""A response that is encoded already: one that was encoded in steps, or once for many clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.wire.schema import Message

if TYPE_CHECKING:
    from barnabas.wire.types import Chunk


class EncodedResponse(Message):
    """The encoded body of a response, in the version of the request that it answers."""

    __slots__ = ("chunks", "throttle_time_ms")

    chunks: list[Chunk]
    throttle_time_ms: int
    """The throttle time in the response, if it was known when the response was encoded."""
