"""How a broker reaches the active controller: over the network (`remote_channel`), or in its own process.

A request is repeated, at the right controller, after NOT_CONTROLLER, NOT_LEADER_OR_FOLLOWER and network errors, until
its time is up. All other errors of the response are the caller's. Source: Kafka's `NodeToControllerChannelManager`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from barnabas.broker.event_loop.guarded import call_guarded
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.registry import message_for

if TYPE_CHECKING:
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.metadata.active_controller import ActiveController
    from barnabas.wire.schema import Message


class ControllerChannel(Protocol):
    """Sends requests to the active controller."""

    def send(self, request: Message, then: Callable[[Any], None], *, timeout_s: float | None = None) -> None:
        """Send a request; `then` gets the response's message, or a KafkaError, never within the call.

        `timeout_s` is for all attempts together; without it, controller.socket.timeout.ms is used.
        """

    def close(self) -> None:
        """Fail all requests that wait, and all later ones, with NETWORK_EXCEPTION."""


class LocalChannel:
    """Sends requests to the controller of this process."""

    def __init__(self, loop: Loop, controller: ActiveController) -> None:
        self._loop = loop
        self._controller = controller
        self._is_closed = False

    def send(self, request: Message, then: Callable[[Any], None], *, timeout_s: float | None = None) -> None:  # noqa: ARG002 - it never waits for a network
        """Have the controller answer; `then` gets the response's message, or a KafkaError, never within the call."""
        self._loop.timers.at(self._loop.now(), partial(self._ask, request, then))

    def close(self) -> None:
        """Fail all later requests with NETWORK_EXCEPTION."""
        self._is_closed = True

    def _ask(self, request: Message, then: Callable[[Any], None]) -> None:
        if self._is_closed:
            call_guarded("A request to the controller", then, KafkaError(ErrorCode.NETWORK_EXCEPTION))
            return
        self._controller.request(request, type(request).max_version, partial(_finish, request, then))


def _finish(request: Message, then: Callable[[Any], None], outcome: Message | KafkaError) -> None:
    """As over the network, the error of a whole request is in its response if that has a field for it."""
    if isinstance(outcome, KafkaError):
        response = message_for(request.api_key)[1]()
        if hasattr(response, "error_code"):
            response.error_code = int(outcome.code)
            outcome = response
    then(outcome)
