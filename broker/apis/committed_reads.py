"""Responses that are sent once the state that they report is committed, so that no crash can revoke it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, TypeVar

from barnabas.broker.net.delayed_response import DelayedResponse
from barnabas.wire.errors import ErrorCode
from barnabas.wire.schema import Message

if TYPE_CHECKING:
    from barnabas.broker.loop import Loop
    from barnabas.broker.replicas.partition import Partition

R = TypeVar("R", bound=Message)


def once_committed(response: R, partitions: Collection[Partition], loop: Loop, limit_s: float) -> R | DelayedResponse:
    """Send `response` when all records that these partitions hold now are committed.

    If one of them will never be, the whole request is answered with NOT_COORDINATOR; if they are not after `limit_s`,
    with COORDINATOR_LOAD_IN_PROGRESS, so that the client asks again, and its connection does not wait for ever for
    replicas that are gone. A coordinator that has just moved here may wait for its followers' next fetches. Kafka
    answers from what is committed meanwhile: an older state, which is right as well.
    """
    if not partitions:
        return response
    delayed = DelayedResponse(send_before_close=True)
    left = len(partitions)
    waiting: list[Callable[[ErrorCode], None]] = []

    def committed(error: ErrorCode) -> None:
        nonlocal left
        left -= 1
        if error:
            forget()
            delayed.fail(ErrorCode.NOT_COORDINATOR)
        elif not left:
            forget()
            delayed.resolve(response)

    def out_of_time() -> None:
        forget()
        delayed.fail(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    def forget() -> None:
        timer.cancel()
        for one in waiting if left else ():
            for partition in partitions:
                partition.forget(one)
        waiting.clear()  # it refers to this function

    then = delayed.guard(committed)
    waiting.append(then)
    timer = loop.timers.at(loop.now() + limit_s, out_of_time)
    delayed.on_cancel = forget
    for partition in partitions:
        partition.when_committed(partition.log.log_end_offset - 1, then)
    return delayed
