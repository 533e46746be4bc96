"""Responses as messages, also those that a handler has encoded already."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.net.encoded_response import EncodedResponse
from barnabas.wire.types import chunk_bytes

if TYPE_CHECKING:
    from barnabas.broker.apis.registry import Route
    from barnabas.broker.net.delayed_response import Outcome


def decoded(route: Route, outcome: Outcome) -> Outcome:
    """An outcome whose response, if it is one, is a message that can be read and changed."""
    if not isinstance(outcome, EncodedResponse):
        return outcome
    data = memoryview(b"".join(map(chunk_bytes, outcome.chunks)))
    return route.response_codec.parse(data, 0)[0]
