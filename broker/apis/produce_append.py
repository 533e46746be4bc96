"""Appends the batches of a Produce request to the logs of their partitions.

With acks=-1 there must be enough in-sync replicas (R12). Acks 1 and -1 are answered when the records are committed:
immediately, or after the flush that the topic's flush policy requires (Kafka with flush.messages=1 also flushes before
both). The answer to a duplicate batch waits for the original batch.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from barnabas.broker.net.delayed_response import DelayedResponse
from barnabas.storage.batch_check import RecordValidationError
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceResponseLeaderIdAndEpoch,
    TopicProduceData,
    TopicProduceResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.broker.replicas.partition import Partition
    from barnabas.coord.transactions.transaction import TopicPartition

logger = logging.getLogger("kafka.server.KafkaApis")

FIRST_VERSION_WITH_TOPIC_IDS = 13
ADMIN_CLIENT_ID = "__admin_client"
NO_TRANSACTIONAL_ID = "The records are transactional, but the request has no transactional id."
NOT_COMMITTED = "The records were appended, but could not be flushed to disk."

_Uncommitted: TypeAlias = "tuple[Partition, int, PartitionProduceResponse]"

_ATTRIBUTES_AT = 22  # the low byte of a batch's attributes
_TRANSACTIONAL_BIT = 0x10
_NO_LEADER = ProduceResponseLeaderIdAndEpoch()  # shared by all responses: never modified


def append_all(
    ctx: RequestContext, request: ProduceRequest, refused: Mapping[TopicPartition, KafkaError]
) -> ProduceResponse | DelayedResponse | None:
    """Append the batch of each partition, except for those in `refused`, which get their error."""
    responses = []
    uncommitted: list[_Uncommitted] = []
    failure: PartitionProduceResponse | None = None
    for topic in request.topic_data:
        answers = []
        for data in topic.partition_data:
            answer = _append(ctx, request, topic, data, refused, uncommitted)
            if answer.error_code:
                failure = answer
            answers.append(answer)
        responses.append(TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=answers))
    if request.acks == 0:
        if failure is not None:
            _close_unacknowledged(ctx, failure)
        return None
    response = ProduceResponse(responses=responses)
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


def _append(
    ctx: RequestContext,
    request: ProduceRequest,
    topic: TopicProduceData,
    data: PartitionProduceData,
    refused: Mapping[TopicPartition, KafkaError],
    uncommitted: list[_Uncommitted],
) -> PartitionProduceResponse:
    """Append the batch of one partition; adds it to `uncommitted` if the response must wait for it."""
    try:
        partition = find(ctx, topic, data.index)
        if request.acks == -1:
            partition.check_in_sync_replicas()
        if data.records is None:
            raise KafkaError(ErrorCode.INVALID_RECORD, "The request has no records for this partition.")
        if request.transactional_id is None and _is_transactional(data.records):  # type: ignore[arg-type]
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, NO_TRANSACTIONAL_ID)
        if refused and (error := refused.get((partition.topic, partition.index))) is not None:
            raise error
        info = partition.append(data.records, ctx.now)  # type: ignore[arg-type]
    except RecordValidationError as error:
        return _rejected(data.index, error, partition)
    except KafkaError as error:
        return failed(data.index, error)
    answer = PartitionProduceResponse(
        index=data.index,
        base_offset=info.first_offset,
        log_append_time_ms=info.log_append_time_ms,
        log_start_offset=info.log_start_offset,
        current_leader=_NO_LEADER,
    )
    if info.last_offset >= partition.log.high_watermark:
        uncommitted.append((partition, info.last_offset, answer))
    return answer


def _is_transactional(records: memoryview) -> bool:
    """Whether the batch is transactional; a request has one batch per partition."""
    return len(records) > _ATTRIBUTES_AT and bool(records[_ATTRIBUTES_AT] & _TRANSACTIONAL_BIT)


def find(ctx: RequestContext, topic: TopicProduceData, index: int) -> Partition:
    """The partition to append to. KafkaError if it is not served here, or internal."""
    partitions = ctx.broker.partitions
    if ctx.api_version >= FIRST_VERSION_WITH_TOPIC_IDS:
        partition = partitions.get_by_id(topic.topic_id, index)
    else:
        partition = partitions.get(topic.name, index)
    if partition.is_internal and ctx.client_id != ADMIN_CLIENT_ID:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Clients may not write to {partition.topic}.")
    return partition


def failed(index: int, error: KafkaError) -> PartitionProduceResponse:
    """The response of a partition whose batch was not appended."""
    return PartitionProduceResponse(
        index=index, error_code=int(error.code), base_offset=-1, error_message=error.message, current_leader=_NO_LEADER
    )


def _rejected(index: int, error: RecordValidationError, partition: Partition) -> PartitionProduceResponse:
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
