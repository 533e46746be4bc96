"""Responses as messages, also those that a handler has encoded already."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.net.encoded_response import EncodedResponse
from barnabas.wire.types import chunk_bytes

if TYPE_CHECKING:
    from barnabas.broker.apis.registry import Route
    from barnabas.wire.schema import Message


def decoded(route: Route, response: Message | None) -> Message | None:
    """A response as a message that can be read and changed; None if there is none."""
    if not isinstance(response, EncodedResponse):
        return response
    data = memoryview(b"".join(map(chunk_bytes, response.chunks)))
    return route.response_codec.parse(data, 0)[0]
