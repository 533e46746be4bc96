"""Responses that are made in steps: the first in place, the others between the next turns (`broker/slices.py`).

Nearly every request needs one step, and is answered like any other. Only a request that is not done after its first
step has a delayed response. Between two steps other requests are served, so a generator must not rely on anything that
they change: it takes a copy of what it iterates over, and of the frame's memory, in its first step.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, TypeVar

from barnabas.broker.net.delayed_response import DelayedResponse
from barnabas.wire.schema import Message

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext

R = TypeVar("R", bound=Message | None)


def respond_in_steps(
    ctx: RequestContext, steps: Generator[None, None, R | DelayedResponse], *, send_before_close: bool = False
) -> R | DelayedResponse:
    """The response that `steps` returns, or a delayed response if it is not done after its first step.

    The generator yields after each step of about a millisecond at most, and returns the response, or a delayed response
    that is answered for it. Exceptions of the first step are raised, those of a later step are the outcome of the
    delayed response. When the client disconnects, the generator is closed. `send_before_close` is that of
    `DelayedResponse`.
    """
    try:
        next(steps)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    delayed = DelayedResponse(send_before_close=send_before_close)

    def done(outcome: R | DelayedResponse) -> None:
        if isinstance(outcome, DelayedResponse):
            delayed.on_cancel = outcome.cancel
            delayed.send_before_close = outcome.send_before_close
            outcome.attach(delayed.complete)
        else:
            delayed.resolve(outcome)

    work = ctx.broker.loop.slices.start(steps, delayed.guard(done), delayed.complete)
    delayed.on_cancel = work.cancel
    return delayed
