"""Requests that change the metadata: answered when the change is durable and in effect (`broker.metadata`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from barnabas.broker.net.delayed_response import DelayedResponse
from barnabas.wire.errors import KafkaError
from barnabas.wire.schema import Message

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.broker.steps import Steps
    from barnabas.coord.cluster.local_controller import Outcome

R = TypeVar("R", bound=Message)


def change_metadata(
    ctx: RequestContext,
    validate: Callable[[], Outcome[R] | Steps[Outcome[R]]],
    shape: Callable[[R | KafkaError], Message | KafkaError] = lambda outcome: outcome,
) -> DelayedResponse:
    """Make a change; its response, or the error of the controller, as `shape` returns it.

    `validate` is called when all earlier changes are in effect (`Controller.commit`).
    """
    delayed = DelayedResponse(send_before_close=True)

    def answer(outcome: R | KafkaError) -> None:
        delayed.complete(shape(outcome))

    ctx.broker.controller.commit(validate, delayed.guard(answer))
    return delayed
