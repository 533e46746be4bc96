"""How a broker reaches the active controller: over the network (`remote_channel`), or in its own process.

A request is repeated, at the right controller, after NOT_CONTROLLER, NOT_LEADER_OR_FOLLOWER and network errors, until
its time is up. All other errors of the response are the caller's. Source: Kafka's `NodeToControllerChannelManager`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from barnabas.wire.schema import Message


class ControllerChannel(Protocol):
    """Sends requests to the active controller."""

    def send(self, request: Message, then: Callable[[Any], None], *, timeout_s: float | None = None) -> None:
        """Send a request; `then` gets the response's message, or a KafkaError, never within the call.

        `timeout_s` is for all attempts together; without it, controller.socket.timeout.ms is used.
        """

    def close(self) -> None:
        """Fail all requests that wait, and all later ones, with NETWORK_EXCEPTION."""
