"""Requests that only the controller handles, on a node that has it in its process: metadata changes and queries.

The controller calls back when a change is durable and in effect; this is the one place where handlers wait for it. The
metadata and the ACLs that a request depends on are read in `validate`, when all earlier changes are in effect.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from barnabas.broker.event_loop.waiting import Future, pause
from barnabas.wire.schema import Message

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.broker.event_loop.steps import Steps
    from barnabas.coord.cluster.local_controller import Outcome

R = TypeVar("R", bound=Message)

LONG_FROM = 20
"""The response for so many topics or resources is encoded in steps: the one for a new topic has all its configs."""


async def change_metadata(
    ctx: RequestContext, validate: Callable[[], Outcome[R] | Steps[Outcome[R]]], *, items: int = 1
) -> R:
    """Make a change; its response. KafkaError if it is refused or cannot be written (`Controller.commit`).

    `items` is the number of topics or resources in the request.
    """
    future: Future[R] = Future()
    ctx.broker.controller.commit(validate, future.complete)
    response = await future
    if items >= LONG_FROM:
        await pause()  # the response of a coroutine that has paused is encoded in steps
    return response


async def ask_controller(ctx: RequestContext, request: Message) -> Any:
    """The response to a request of `controller_requests`; KafkaError for an error of the whole request."""
    future: Future[Any] = Future()
    ctx.broker.controller.request(request, ctx.api_version, future.complete)
    return await future
