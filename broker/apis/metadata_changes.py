"""Requests that change the metadata: answered when the change is durable and in effect (`broker.metadata`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from barnabas.broker.apis.sliced_response import complete_encoded
from barnabas.broker.net.delayed_response import DelayedResponse
from barnabas.wire.errors import KafkaError
from barnabas.wire.schema import Message

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.broker.steps import Steps
    from barnabas.coord.cluster.local_controller import Outcome

R = TypeVar("R", bound=Message)

LONG_FROM = 20
"""The response for so many topics or resources is encoded in steps: that for a new topic has all its configs."""


def change_metadata(
    ctx: RequestContext,
    validate: Callable[[], Outcome[R] | Steps[Outcome[R]]],
    shape: Callable[[R | KafkaError], Message | KafkaError] = lambda outcome: outcome,
    *,
    items: int = 1,
) -> DelayedResponse:
    """Make a change; its response, or the error of the controller, as `shape` returns it.

    `items` is the number of topics or resources in the request.
    `validate` is called when all earlier changes are in effect (`Controller.commit`).
    """
    delayed = DelayedResponse(send_before_close=True)

    def answer(outcome: R | KafkaError) -> None:
        response = shape(outcome)
        if items < LONG_FROM or isinstance(response, KafkaError):
            delayed.complete(response)
        else:
            complete_encoded(ctx, delayed, response)

    ctx.broker.controller.commit(validate, delayed.guard(answer))
    return delayed
