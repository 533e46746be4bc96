"""A delayed response: what a handler returns when it cannot answer yet (long polls, JoinGroup, waits for commits).

While it is open its connection handles no further request, so responses are sent in the order of the requests (Kafka
mutes the channel for the same reason). There is no registry of delayed responses: only the partition, coordinator or
timer that will resolve one, and its connection, refer to it.

Invariant: the first of `resolve`, `fail` and `cancel` wins; later calls do nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.schema import Message


class DelayedResponse:
    """A response that is sent later, or never if the client disconnects first."""

    __slots__ = ("_deliver", "_outcome", "is_done", "on_cancel", "send_before_close")

    def __init__(self, on_cancel: Callable[[], None] | None = None, *, send_before_close: bool = False) -> None:
        """`on_cancel` is called once if the connection closes before there is a response.

        `send_before_close`: the request has taken effect and its response follows soon (its records are being
        committed, for example), so a broker that shuts down sends the response before it closes the connection.
        """
        self.is_done = False
        self.send_before_close = send_before_close
        self.on_cancel = on_cancel
        self._deliver: Callable[[Message | KafkaError], None] | None = None
        self._outcome: Message | KafkaError | None = None

    def resolve(self, response: Message) -> None:
        """Answer with `response`; callable from anywhere in the event loop, also before the handler has returned."""
        self._finish(response)

    def fail(self, code: ErrorCode, message: str | None = None) -> None:
        """Answer with an error in the shape of the request's response."""
        self._finish(KafkaError(code, message))

    def cancel(self) -> None:
        """Drop the response, because the client has disconnected."""
        if self.is_done:
            return
        self.is_done = True
        if self.on_cancel is not None:
            self.on_cancel()

    def attach(self, deliver: Callable[[Message | KafkaError], None]) -> None:
        """Have `deliver` called with the outcome: immediately if there is one, else as soon as there is."""
        if self._outcome is not None:
            deliver(self._outcome)
        else:
            self._deliver = deliver

    def _finish(self, outcome: Message | KafkaError) -> None:
        if self.is_done:
            return
        self.is_done = True
        if self._deliver is not None:
            self._deliver(outcome)
        else:
            self._outcome = outcome
