"""What share groups want of the share coordinator: asked for in a result, and reported back as an event (KIP-932).

The records of a result are written first, so that whatever was begun is known after a crash.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from barnabas.coord.machine import Result

if TYPE_CHECKING:
    from barnabas.coord.groups.context import ClientContext
    from barnabas.coord.groups.modern.partitions import Partitions
    from barnabas.coord.groups.share.share_groups import ShareGroups
    from barnabas.coord.machine import Moment, Reply, Ticket
    from barnabas.wire.errors import ErrorCode
    from barnabas.wire.messages.share_groups import ShareGroupHeartbeatRequest
    from barnabas.wire.types import Uuid

StartOffsets = Mapping["Uuid", Mapping[int, int]]
"""By topic and partition the offset to begin at; -1: where the group's `share.auto.offset.reset` says."""

Failures = Mapping["Uuid", Mapping[int, "ErrorCode"]]
"""The partitions for which it has not worked, and why."""


class ParkedHeartbeat(NamedTuple):
    """A heartbeat that is to be handled again."""

    request: ShareGroupHeartbeatRequest
    ticket: Ticket
    context: ClientContext


class InitializeStates(NamedTuple):
    """Begin to keep the state of partitions."""

    group_id: str
    state_epoch: int
    partitions: StartOffsets


class DeleteStates(NamedTuple):
    """Delete the state of partitions."""

    group_id: str
    partitions: Partitions


Then = Callable[["ShareGroups", Failures, "Moment"], "ShareGroupResult"]
"""The event that the outcome of a task is, handled by whoever coordinates the group then."""


class ShareGroupResult(Result):
    """A result that may have a task for the share coordinator, which begins when the records are committed."""

    __slots__ = ("awaiting", "resumed", "task", "then")

    def __init__(self) -> None:
        super().__init__()
        self.task: InitializeStates | DeleteStates | None = None
        self.then: Then | None = None
        self.awaiting: Reply | None = None
        """What those who wait for the task are told if it does not come to be."""
        self.resumed: ParkedHeartbeat | None = None
        """To be handled again once the records are committed."""

    def failed_replies(self, error: ErrorCode) -> Result:
        """Also who waits for what follows gets an answer."""
        instead = super().failed_replies(error)
        if self.awaiting is not None:
            ticket, message, on_error = self.awaiting
            instead.reply(ticket, message if on_error is None else on_error(error))
        return instead
