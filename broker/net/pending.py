"""A parked reply: what a handler returns when it cannot answer yet.

A long poll, a JoinGroup or any other wait is one of these, kept by whoever will answer it. While it is open its
connection takes no further request, so that answers leave in the order of their questions (Kafka mutes the channel
in the same way). There is no registry of pending replies: the partition, the group or the timer that will resolve one
holds the only other reference.

Invariant: the first of `resolve`, `fail` and `abandon` wins; the later ones do nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.schema import Message


class Pending:
    """A reply that will come later, or never if the client leaves first."""

    __slots__ = ("_deliver", "_outcome", "is_done", "is_owed", "on_abandon")

    def __init__(self, on_abandon: Callable[[], None] | None = None, *, is_owed: bool = False) -> None:
        """`on_abandon` is called once if the connection closes before the reply is there.

        An owed reply is about something that is done and will be safe in a moment: a broker that stops gives it first.
        """
        self.is_done = False
        self.is_owed = is_owed
        self.on_abandon = on_abandon
        self._deliver: Callable[[Message | KafkaError], None] | None = None
        self._outcome: Message | KafkaError | None = None

    def resolve(self, response: Message) -> None:
        """Answer with `response`; callable from anywhere in the event loop, also before the handler has returned."""
        self._finish(response)

    def fail(self, code: ErrorCode, message: str | None = None) -> None:
        """Answer with an error in the shape of the request's response."""
        self._finish(KafkaError(code, message))

    def abandon(self) -> None:
        """The client has gone: nothing will be sent."""
        if self.is_done:
            return
        self.is_done = True
        if self.on_abandon is not None:
            self.on_abandon()

    def attach(self, deliver: Callable[[Message | KafkaError], None]) -> None:
        """Called by the connection: `deliver` gets the outcome, at once if it is there already."""
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
