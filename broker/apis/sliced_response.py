"""Responses that are made in steps: the first in place, the others between the next turns (`broker/slices.py`).

A response that needed several steps is encoded in steps too.

Nearly every request needs one step, and is answered like any other. Only a request that is not done after its first
step has a delayed response. Between two steps other requests are served, so a generator must not rely on anything that
they change: it takes a copy of what it iterates over, and of the frame's memory, in its first step.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, TypeVar

from barnabas.broker.net.delayed_response import DelayedResponse
from barnabas.broker.net.encoded_response import EncodedResponse
from barnabas.wire.frame import message_for
from barnabas.wire.schema import Message

if TYPE_CHECKING:
    from barnabas.broker.apis.registry import Route
    from barnabas.broker.context import RequestContext

R = TypeVar("R", bound=Message | None)
T = TypeVar("T")

FEW_ELEMENTS = 250
"""Requests with so many elements are parsed, and their batches appended, at once; those with more in steps."""
ELEMENTS_OF_A_STEP = 300
"""How many elements of arrays are parsed or encoded in a step: each takes a few microseconds."""


def encode_in_steps(route: Route, response: Message) -> Generator[None, None, EncodedResponse]:
    """Encode a long response."""
    encoded = EncodedResponse()
    encoded.throttle_time_ms = getattr(response, "throttle_time_ms", 0)
    encoded.chunks = yield from in_steps(route.response_codec.build_in_steps(response))
    return encoded


def _encode(ctx: RequestContext, response: Message) -> Generator[None, None, EncodedResponse]:
    encoded = EncodedResponse()
    encoded.throttle_time_ms = getattr(response, "throttle_time_ms", 0)
    encoded.chunks = yield from in_steps(message_for(ctx.api_key)[1].codec(ctx.api_version).build_in_steps(response))
    return encoded


def in_steps(elements: Generator[None, None, T], size: int = ELEMENTS_OF_A_STEP) -> Generator[None, None, T]:
    """Do what yields after each element, and yield after `size` of them; returns what `elements` returns."""
    left = size
    while True:
        try:
            next(elements)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        left -= 1
        if not left:
            left = size
            yield


def _as_it_is(error: Exception) -> Exception:
    return error


def respond_in_steps(
    ctx: RequestContext,
    steps: Generator[None, None, R | DelayedResponse],
    *,
    send_before_close: bool = False,
    answer: Callable[[Exception], Message | Exception] = _as_it_is,
) -> R | DelayedResponse:
    """The response that `steps` returns, or a delayed response if it is not done after its first step.

    The generator yields after each step of about a millisecond at most, and returns the response, or a delayed response
    that is answered for it. Exceptions of the first step are raised, those of a later step are the outcome of the
    delayed response, or what `answer` makes of them. When the client disconnects, the generator is closed.
    `send_before_close` is that of `DelayedResponse`.
    """
    try:
        next(steps)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    delayed = DelayedResponse(send_before_close=send_before_close)
    slices = ctx.broker.loop.slices

    def encode(outcome: Message | Exception | None) -> None:
        if isinstance(outcome, Exception):
            outcome = answer(outcome)
        if outcome is None or isinstance(outcome, Exception | EncodedResponse):
            delayed.complete(outcome)
        else:
            complete_encoded(ctx, delayed, outcome)

    work = slices.start(steps, lambda outcome: delayed.follow(outcome, encode), delayed.guard(encode))
    delayed.on_cancel = work.cancel
    return delayed


def complete_encoded(ctx: RequestContext, delayed: DelayedResponse, response: Message) -> None:
    """Answer `delayed` with a long response, which is encoded in steps."""
    if delayed.is_done:
        return  # the client has disconnected
    work = ctx.broker.loop.slices.start(_encode(ctx, response), delayed.complete, delayed.complete)
    delayed.on_cancel = work.cancel
