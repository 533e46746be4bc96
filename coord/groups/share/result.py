"""The result of an event of a share group: records and replies, and possibly a task for the share coordinator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from barnabas.coord.groups.share.tasks import heartbeat_error
from barnabas.coord.machine import Result

if TYPE_CHECKING:
    from barnabas.coord.groups.share.registry import ShareGroupRegistry
    from barnabas.coord.groups.share.tasks import DeleteStates, Failures, InitializeStates, ParkedHeartbeat
    from barnabas.coord.machine import Moment, Reply
    from barnabas.wire.errors import ErrorCode

Then = Callable[["ShareGroupRegistry", "Failures", "Moment"], "ShareGroupResult"]
"""Handles the outcome of a task, in the coordinator that the group has by then."""


class ShareGroupResult(Result):
    """A result that may have a task, which begins when the records are committed."""

    __slots__ = ("awaiting", "parked", "resumed", "task", "then")

    def __init__(self) -> None:
        super().__init__()
        self.task: InitializeStates | DeleteStates | None = None
        self.then: Then | None = None
        self.awaiting: Reply | None = None
        """The request that `then` answers; it is answered with an error if the task is not run."""
        self.parked: Sequence[ParkedHeartbeat] = ()
        """Heartbeats that wait for the task; they are answered with an error if it is not run."""
        self.resumed: Sequence[ParkedHeartbeat] = ()
        """Heartbeats to be handled again once the records are committed."""

    def failed_replies(self, error: ErrorCode) -> Result:
        """The error replies, including those to the requests that wait for the task."""
        instead = super().failed_replies(error)
        if self.awaiting is not None:
            ticket, message, on_error = self.awaiting
            instead.reply(ticket, message if on_error is None else on_error(error))
        for heartbeat in (*self.parked, *self.resumed):
            instead.reply(heartbeat.ticket, heartbeat_error(error))
        return instead
