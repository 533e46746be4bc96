"""Responses that are sent once the state that they report is committed, so that no crash can revoke it."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, TypeVar

from barnabas.broker.net.delayed_response import DelayedResponse
from barnabas.wire.errors import ErrorCode
from barnabas.wire.schema import Message

if TYPE_CHECKING:
    from barnabas.broker.replicas.partition import Partition

R = TypeVar("R", bound=Message)


def once_committed(response: R, partitions: Collection[Partition]) -> R | DelayedResponse:
    """Send `response` when all records that these partitions hold now are committed.

    If one of them will never be, the whole request is answered with NOT_COORDINATOR.
    """
    if not partitions:
        return response
    delayed = DelayedResponse(send_before_close=True)
    left = len(partitions)

    def committed(error: ErrorCode) -> None:
        nonlocal left
        left -= 1
        if error:
            delayed.fail(ErrorCode.NOT_COORDINATOR)
        elif not left:
            delayed.resolve(response)

    then = delayed.guard(committed)
    for partition in partitions:
        partition.when_committed(partition.log.log_end_offset - 1, then)
    return delayed
