"""Responses that are sent once the state that they report is committed, so that no crash can revoke it."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, TypeVar

from barnabas.broker.event_loop.waiting import Future, until
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.schema import Message

if TYPE_CHECKING:
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.event_loop.waiting import Waiting
    from barnabas.broker.replicas.partition import Partition

R = TypeVar("R", bound=Message)


def once_committed(response: R, partitions: Collection[Partition], loop: Loop, limit_s: float) -> R | Waiting[R]:
    """`response`, or a coroutine that returns it when all records that these partitions hold now are committed."""
    return _once_committed(response, partitions, loop, limit_s) if partitions else response


async def _once_committed(response: R, partitions: Collection[Partition], loop: Loop, limit_s: float) -> R:
    await all_committed(partitions, loop, limit_s)
    return response


async def all_committed(partitions: Collection[Partition], loop: Loop, limit_s: float) -> None:
    """Wait until all records that these partitions hold now are committed.

    KafkaError(NOT_COORDINATOR) if one of them will never be; COORDINATOR_LOAD_IN_PROGRESS if they are not after
    `limit_s`, so that the client asks again, and its connection does not wait for ever for replicas that are gone. A
    coordinator that has just moved here may wait for its followers' next fetches. Kafka answers with the committed
    state meanwhile, which is older and correct as well.
    """
    if not partitions:
        return
    done: Future[None] = Future()
    missing = len(partitions)

    def decided(code: ErrorCode) -> None:
        nonlocal missing
        missing -= 1
        if code:
            done.complete(KafkaError(ErrorCode.NOT_COORDINATOR))
        elif not missing:
            done.complete()

    for partition in partitions:
        partition.when_committed(partition.log.log_end_offset - 1, decided)
    late = KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    try:
        await until(loop.timers, loop.now() + limit_s, done, late)
    finally:
        for partition in partitions if missing else ():
            partition.forget(decided)
