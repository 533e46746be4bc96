"""The response to a Produce request, and what it waits for.

Acks=-1 is answered when the records are committed: immediately, after the flush that the topic's flush policy requires,
or when the followers have them (R12). Acks=1 waits for the leader's part of that only (Kafka with flush.messages=1 also
flushes before both). The answer to a duplicate batch waits for the original batch. With acks=0 there is no response
(R13).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from barnabas.broker.net.delayed_response import DelayedResponse
from barnabas.storage.batch_content import Budget, RecordValidationError, UnfinishedCheck
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceResponseLeaderIdAndEpoch,
)

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.broker.replicas.partition import Partition
    from barnabas.coord.transactions.transaction import TopicPartition

logger = logging.getLogger("kafka.server.KafkaApis")

NOT_COMMITTED = "The records were appended, but could not be flushed to disk."
NO_LEADER = ProduceResponseLeaderIdAndEpoch()  # shared by all responses: never modified

Errors: TypeAlias = "Mapping[TopicPartition, KafkaError]"
Verify: TypeAlias = "Callable[[Sequence[LateAppend], Callable[[Errors], None], DelayedResponse], None]"
"""Checks batches that are about to be appended, and calls its second argument with the errors of those that may not;
the third is the response that waits for it."""

Uncommitted: TypeAlias = "tuple[Partition, int, PartitionProduceResponse]"


class Appends(Budget):
    """The appends of one request: the budget of their validation, and those that are not done or not committed."""

    __slots__ = ("late", "leaders", "uncommitted")

    def __init__(self) -> None:
        super().__init__()
        self.leaders: Collection[int] = ()  # of partitions that are led elsewhere
        self.uncommitted: list[Uncommitted] = []
        self.late: list[LateAppend] = []


class LateAppend(NamedTuple):
    """A batch whose validation is not finished, and the response of its partition, to be filled in."""

    partition: Partition
    data: PartitionProduceData
    check: UnfinishedCheck
    answer: PartitionProduceResponse


def respond(
    ctx: RequestContext, request: ProduceRequest, response: ProduceResponse, appends: Appends
) -> ProduceResponse | DelayedResponse | None:
    """The response when all batches have been appended or refused."""
    if request.acks == 0:
        for topic in response.responses:
            for answer in topic.partition_responses:
                if answer.error_code:
                    _close_unacknowledged(ctx, answer)
                    return None
        return None
    uncommitted = appends.uncommitted
    if not uncommitted:
        return response
    for partition, _, _ in uncommitted:
        if partition.leading is not None:
            from barnabas.broker.apis.replicated_produce import ReplicatedProduce

            return ReplicatedProduce(ctx, request, response, uncommitted).delayed
    return DelayedProduce(response, uncommitted).delayed


def is_stored(partition: Partition, request: ProduceRequest, last_offset: int) -> bool:
    """Whether acks=1 is satisfied although the record is not committed: the leader has it, followers may not (R13)."""
    return request.acks == 1 and partition.leading is not None and last_offset < partition.leading.own_end


class DelayedProduce:
    """A response that waits until all records of the request are committed."""

    __slots__ = ("_left", "_response", "delayed")

    def __init__(self, response: ProduceResponse, uncommitted: list[Uncommitted]) -> None:
        self.delayed = DelayedResponse(send_before_close=True)
        self._response = response
        self._left = len(uncommitted)
        for partition, last_offset, answer in uncommitted:
            partition.when_committed(last_offset, self.delayed.guard(partial(self._decided, answer)))

    def _decided(self, answer: PartitionProduceResponse, error: ErrorCode) -> None:
        if error:
            answer.error_code, answer.base_offset, answer.error_message = int(error), -1, NOT_COMMITTED
        self._left -= 1
        if not self._left:
            self.delayed.resolve(self._response)


def failed(index: int, error: KafkaError) -> PartitionProduceResponse:
    """The response of a partition whose batch was not appended."""
    return PartitionProduceResponse(
        index=index, error_code=int(error.code), base_offset=-1, error_message=error.message, current_leader=NO_LEADER
    )


def rejected(index: int, error: RecordValidationError, partition: Partition) -> PartitionProduceResponse:
    """The response for a batch with invalid records, which it lists (KIP-467)."""
    answer = failed(index, error)
    answer.log_start_offset = partition.log.log_start_offset
    answer.record_errors = [
        BatchIndexAndErrorMessage(batch_index=position, batch_index_error_message=text)
        for position, text in error.record_errors
    ]
    return answer


def _close_unacknowledged(ctx: RequestContext, failure: PartitionProduceResponse) -> None:
    """Close the connection: with acks=0 the client gets no other sign of the error (R13)."""
    logger.info(
        "Closing the connection from %s: a produce request with acks=0 failed with %s",
        ctx.client_host,
        ErrorCode(failure.error_code).name,
    )
    ctx.connection.is_closing = True
