"""The response to a Produce request, and what it waits for.

Acks 1 and -1 are answered when the records are committed: immediately, or after the flush that the topic's flush policy
requires (Kafka with flush.messages=1 also flushes before both). The answer to a duplicate batch waits for the original
batch. With acks=0 there is no response (R13).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
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

_Uncommitted: TypeAlias = "tuple[Partition, int, PartitionProduceResponse]"


class Appends(Budget):
    """The appends of one request: the budget of their validation, and those that are not done or not committed."""

    __slots__ = ("late", "uncommitted")

    def __init__(self) -> None:
        super().__init__()
        self.uncommitted: list[_Uncommitted] = []
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
    return DelayedProduce(response, uncommitted).delayed if uncommitted else response


class DelayedProduce:
    """A response that waits until all records of the request are committed."""

    __slots__ = ("_left", "_response", "delayed")

    def __init__(self, response: ProduceResponse, uncommitted: list[_Uncommitted]) -> None:
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
