"""Long requests and responses in steps, each of about a millisecond, between which other requests are served.

Requests with many elements are parsed in steps (`large_requests`), and the response of a coroutine that has paused is
encoded in steps. Between two steps others may change what a generator iterates over: it takes a copy in its first step.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, TypeVar

from barnabas.broker.net.encoded_response import EncodedResponse

if TYPE_CHECKING:
    from barnabas.broker.apis.registry import Route
    from barnabas.wire.schema import Message

T = TypeVar("T")

FEW_ELEMENTS = 250
"""Requests with up to so many elements are parsed, and their batches appended, at once; larger ones in steps."""
ELEMENTS_OF_A_STEP = 300
"""How many elements of arrays are parsed or encoded in a step: each takes a few microseconds."""


def encode_in_steps(route: Route, response: Message) -> Generator[None, None, EncodedResponse]:
    """Encode a long response."""
    encoded = EncodedResponse()
    encoded.throttle_time_ms = getattr(response, "throttle_time_ms", 0)
    encoded.chunks = yield from in_steps(route.response_codec.build_in_steps(response))
    return encoded


def in_steps(elements: Generator[None, None, T], size: int = ELEMENTS_OF_A_STEP) -> Generator[None, None, T]:
    """Run a generator that yields after each element; yield after `size` elements, and return its value."""
    remaining = size
    while True:
        try:
            next(elements)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        remaining -= 1
        if not remaining:
            remaining = size
            yield
