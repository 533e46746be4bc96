"""Produce (0): records in.

v5 log start offset; v8 record errors and messages (KIP-467); v13 topic ids (KIP-516). A failure stays with its
partition. acks 0 has no response, so a failure closes the connection (R13); acks -1 asks for enough in-sync replicas
first (R12). Both others are answered when the records are committed: at once, or after the sync that the policy asks
for (Kafka with flush.messages=1 syncs before both answers). A repeated batch waits like the one that it repeats.
What writes in transactions ask before is in `transactional_writes`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from barnabas.broker.apis.registry import api
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
NO_TRANSACTIONAL_ID = "The records belong to a transaction, and the request names none."
NOT_COMMITTED = "The records were written, and could not be made durable."

_Uncommitted: TypeAlias = "tuple[Partition, int, PartitionProduceResponse]"

_ATTRIBUTES_AT = 22  # the low byte of a batch's attributes
_TRANSACTIONAL_BIT = 0x10
_NOTHING: Mapping[TopicPartition, KafkaError] = {}
_NO_LEADER = ProduceResponseLeaderIdAndEpoch()  # shared by all answers: nobody changes it


def _whole_request_failed(request: ProduceRequest, error: KafkaError) -> ProduceResponse | None:
    if request.acks == 0:
        return None
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[_failed(data.index, error) for data in topic.partition_data],
            )
            for topic in request.topic_data
        ]
    )


@api(ProduceRequest, on_error=_whole_request_failed)
def produce(ctx: RequestContext, request: ProduceRequest) -> ProduceResponse | DelayedResponse | None:
    """Append each partition's batch."""
    if request.acks not in (-1, 0, 1):
        raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
    if request.transactional_id is not None:
        from barnabas.broker.apis.transactional_writes import produce_in_transaction

        return produce_in_transaction(ctx, request, _find, _append_all)
    return _append_all(ctx, request, _NOTHING)


def _append_all(
    ctx: RequestContext, request: ProduceRequest, refused: Mapping[TopicPartition, KafkaError]
) -> ProduceResponse | DelayedResponse | None:
    """Append each partition's batch, but for those that its transaction refuses."""
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
    return _CommitWait(response, uncommitted).delayed if uncommitted else response


class _CommitWait:
    """An answer whose records are in the log and not committed yet."""

    __slots__ = ("_left", "_response", "delayed")

    def __init__(self, response: ProduceResponse, uncommitted: list[_Uncommitted]) -> None:
        self.delayed = DelayedResponse(send_before_close=True)
        self._response = response
        self._left = len(uncommitted)
        for partition, last_offset, answer in uncommitted:
            partition.when_committed(last_offset, partial(self._decided, answer))

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
    """Append one partition's batch; what must be waited for is put into `uncommitted`."""
    try:
        partition = _find(ctx, topic, data.index)
        if request.acks == -1:
            partition.check_in_sync_replicas()
        if data.records is None:
            raise KafkaError(ErrorCode.INVALID_RECORD, "The request holds no records for this partition.")
        if request.transactional_id is None and _is_transactional(data.records):  # type: ignore[arg-type]
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, NO_TRANSACTIONAL_ID)
        if refused and (error := refused.get((partition.topic, partition.index))) is not None:
            raise error
        info = partition.append(data.records, ctx.now)  # type: ignore[arg-type]
    except RecordValidationError as error:
        return _rejected(data.index, error, partition)
    except KafkaError as error:
        return _failed(data.index, error)
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
    """Whether the batch (a request holds one a partition) belongs to a transaction."""
    return len(records) > _ATTRIBUTES_AT and bool(records[_ATTRIBUTES_AT] & _TRANSACTIONAL_BIT)


def _find(ctx: RequestContext, topic: TopicProduceData, index: int) -> Partition:
    partitions = ctx.broker.partitions
    if ctx.api_version >= FIRST_VERSION_WITH_TOPIC_IDS:
        partition = partitions.get_by_id(topic.topic_id, index)
    else:
        partition = partitions.get(topic.name, index)
    if partition.is_internal and ctx.client_id != ADMIN_CLIENT_ID:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Clients may not write to {partition.topic}.")
    return partition


def _failed(index: int, error: KafkaError) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=index, error_code=int(error.code), base_offset=-1, error_message=error.message, current_leader=_NO_LEADER
    )


def _rejected(index: int, error: RecordValidationError, partition: Partition) -> PartitionProduceResponse:
    """The answer to a batch with invalid records, which it lists (KIP-467)."""
    answer = _failed(index, error)
    answer.log_start_offset = partition.log.log_start_offset
    answer.record_errors = [
        BatchIndexAndErrorMessage(batch_index=position, batch_index_error_message=text)
        for position, text in error.record_errors
    ]
    return answer


def _close_unacknowledged(ctx: RequestContext, failure: PartitionProduceResponse) -> None:
    """With acks 0 a closed connection is all the client can see (R13)."""
    logger.info(
        "Closing the connection from %s: a produce request with acks=0 failed with %s",
        ctx.client_host,
        ErrorCode(failure.error_code).name,
    )
    ctx.connection.is_closing = True
