"""Requests of share groups to the share coordinator (KIP-932).

A task is part of the result of an event and begins when the records of the result are committed, so a crash does not
forget it. Its outcome is reported as another event.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.groups.share_groups import ShareGroupHeartbeatResponse

if TYPE_CHECKING:
    from barnabas.coord.groups.context import ClientContext
    from barnabas.coord.groups.modern.partitions import Partitions
    from barnabas.coord.machine import Ticket
    from barnabas.wire.messages.groups.share_groups import ShareGroupHeartbeatRequest
    from barnabas.wire.types import Uuid

StartOffsets = Mapping["Uuid", Mapping[int, int]]
"""Start offset by topic and partition; -1: chosen by the group's `share.auto.offset.reset`."""

Failures = Mapping["Uuid", Mapping[int, "ErrorCode"]]
"""The error of each partition for which a task failed."""


class ParkedHeartbeat(NamedTuple):
    """A heartbeat that is handled again when a task has ended."""

    request: ShareGroupHeartbeatRequest
    ticket: Ticket
    context: ClientContext


class InitializeStates(NamedTuple):
    """Initialize the state of partitions."""

    group_id: str
    state_epoch: int
    partitions: StartOffsets


class DeleteStates(NamedTuple):
    """Delete the state of partitions."""

    group_id: str
    partitions: Partitions


@dataclass(slots=True, eq=False)
class Initialization:
    """An `InitializeStates` that has been started and has not ended, and the heartbeats that wait for it."""

    group_id: str
    partitions: Partitions
    since: float
    """When it was started, monotonic seconds."""
    waiting: list[ParkedHeartbeat] = field(default_factory=list)


def heartbeat_error(error: ErrorCode, message: str | None = None) -> ShareGroupHeartbeatResponse:
    """The response to a heartbeat that failed."""
    return ShareGroupHeartbeatResponse(error_code=int(error), error_message=message)
