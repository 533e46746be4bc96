"""A delayed response: what a handler returns when it cannot answer yet (long polls, JoinGroup, waits for commits).

While it is open its connection handles no further request, so responses are sent in the order of the requests (Kafka
mutes the channel for the same reason). There is no registry of delayed responses: only the partition, coordinator or
timer that will resolve one, and its connection, refer to it.

Invariants: the first of `resolve`, `fail`, `complete` and `cancel` wins, later calls do nothing. A response that is
over refers to nobody: what would complete or cancel it refers to it, and often holds a whole request. Whatever is
called later to complete the response (the callback of a waiter, a commit, a timer, a coordinator's answer) is made
with `guard`: an exception in it becomes the response, so no client waits for an answer that cannot come.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeAlias

from barnabas.broker.guarded import call_guarded, kept, log_failure
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.schema import Message

P = ParamSpec("P")

Outcome: TypeAlias = "Message | Exception | None"
"""A response, the exception that it is an error for, or None for no response."""


class DelayedResponse:
    """A response that is sent later, or never if the client disconnects first."""

    __slots__ = ("_deliver", "_outcome", "is_done", "on_cancel", "send_before_close")

    has_paused = False

    def __init__(self, on_cancel: Callable[[], None] | None = None, *, send_before_close: bool = False) -> None:
        """`on_cancel` releases what the response waits for. It is called if the connection closes before there is a
        response, and if a guarded function has failed.

        `send_before_close`: the request has taken effect and its response follows soon (its records are being
        committed, for example), so a broker that shuts down sends the response before it closes the connection.
        """
        self.is_done = False
        self.send_before_close = send_before_close
        self.on_cancel = on_cancel
        self._deliver: Callable[[Outcome], None] | None = None
        self._outcome: Outcome = None

    def resolve(self, response: Message | None) -> None:
        """Answer with `response`; callable from anywhere in the event loop, also before the handler has returned.

        With None nothing is sent, and the connection goes on with its next request (Produce with acks=0).
        """
        self.complete(response)

    def fail(self, code: ErrorCode, message: str | None = None) -> None:
        """Answer with an error in the shape of the request's response."""
        self.complete(KafkaError(code, message))

    def complete(self, outcome: Outcome) -> None:
        """Answer with a response, or with the error for an exception, as if the handler had raised it."""
        if self.is_done:
            return
        self.is_done = True
        self.on_cancel = None
        if isinstance(outcome, KafkaError):
            outcome = kept(outcome)
        deliver, self._deliver = self._deliver, None
        if deliver is not None:
            deliver(outcome)
        else:
            self._outcome = outcome

    def follow(self, outcome: DelayedResponse | Outcome, then: Callable[[Outcome], None] | None = None) -> None:
        """Answer with `outcome`: a response, or that of another delayed response, as soon as it has one.

        Instead `then` is called with it, if given; an exception of it is the answer. The other is cancelled with this.
        """
        deliver = self.complete if then is None else self.guard(then)
        if not isinstance(outcome, DelayedResponse):
            deliver(outcome)
        elif self.is_done:
            outcome.cancel()
        else:
            self.on_cancel = outcome.cancel
            self.send_before_close |= outcome.send_before_close
            outcome.attach(deliver)

    def guard(self, function: Callable[P, object]) -> Callable[P, None]:
        """`function`, to be called later. If it raises, the response is the error for the exception.

        After the response has been sent, or the client has disconnected, an exception other than KafkaError is logged.
        """

        def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
            try:
                function(*args, **kwargs)
            except Exception as error:
                self._broken(error)

        return guarded

    def _broken(self, error: Exception) -> None:
        if self.is_done:
            if not isinstance(error, KafkaError):  # that is an answer which nobody waits for
                log_failure("What should have completed a response that is over", error)
            return
        self._release()
        self.complete(error)

    def cancel(self) -> None:
        """Drop the response, because the client has disconnected."""
        if self.is_done:
            return
        self.is_done = True
        self._deliver = None
        self._release()

    def _release(self) -> None:
        on_cancel, self.on_cancel = self.on_cancel, None
        if on_cancel is not None:
            call_guarded("Releasing what a response waits for", on_cancel)

    def attach(self, deliver: Callable[[Outcome], None]) -> None:
        """Have `deliver` called with the outcome: immediately if there is one, else as soon as there is."""
        if self.is_done:
            deliver(self._outcome)
        else:
            self._deliver = deliver
