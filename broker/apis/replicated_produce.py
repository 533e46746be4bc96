"""A response to Produce that waits for followers (R12-R14). Source: Kafka's `DelayedProduce`.

Followers may stay away, so the request's timeout applies: what is not decided then is answered with REQUEST_TIMED_OUT.
While the ISR is smaller than min.insync.replicas the high watermark does not move (R7), so nothing is acknowledged;
NOT_ENOUGH_REPLICAS_AFTER_APPEND is for records that were committed when it had become too small.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from barnabas.broker.net.delayed_response import DelayedResponse
from barnabas.wire.errors import ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.broker.replicas.partition import Partition
    from barnabas.broker.timers import Timer
    from barnabas.wire.messages.produce import PartitionProduceResponse, ProduceRequest, ProduceResponse

_Uncommitted: TypeAlias = "tuple[Partition, int, PartitionProduceResponse]"
_Wait: TypeAlias = "tuple[Partition, PartitionProduceResponse, Callable[[ErrorCode], None]]"


class ReplicatedProduce:
    """A response that waits until the records of a request are committed, or stored by the leader for acks=1."""

    __slots__ = ("_acks", "_response", "_timer", "_waits", "delayed")

    def __init__(
        self, ctx: RequestContext, request: ProduceRequest, response: ProduceResponse, uncommitted: list[_Uncommitted]
    ) -> None:
        self.delayed = DelayedResponse(send_before_close=True)
        self._acks = request.acks
        self._response = response
        self._timer: Timer | None = None
        self._waits: dict[int, _Wait] = {}
        for number, (partition, _, answer) in enumerate(uncommitted):
            then = self.delayed.guard(partial(self._decided, number))
            self._waits[number] = (partition, answer, then)
            if self._timer is None and partition.leading is not None:
                loop = ctx.broker.loop
                deadline = loop.now() + max(0, request.timeout_ms) / 1000
                self._timer = loop.timers.at(deadline, self.delayed.guard(self._expire))
        for number, (partition, last_offset, _) in enumerate(uncommitted):
            wait = partition.when_committed if request.acks == -1 else partition.when_stored
            wait(last_offset, self._waits[number][2])

    def _decided(self, number: int, error: ErrorCode) -> None:
        wait = self._waits.pop(number, None)
        if wait is None:
            return
        partition, answer, _ = wait
        if error:
            answer.error_code, answer.base_offset = int(error), -1
        elif self._acks == -1 and partition.leading is not None and partition.leading.is_short_of_replicas:
            answer.error_code = int(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
        if not self._waits:
            self._finish()

    def _expire(self) -> None:
        waits, self._waits = self._waits, {}
        for partition, answer, then in waits.values():
            partition.forget(then)
            answer.error_code = int(ErrorCode.REQUEST_TIMED_OUT)
        self._finish()

    def _finish(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self.delayed.resolve(self._response)
