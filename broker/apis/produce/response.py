"""The answers of partitions to a Produce, and the acknowledgements that they wait for (R12-R14).

With acks=-1 the records must be committed: immediately, after the flush that the topic's flush policy requires, or when
the followers have them. With acks=1 the leader must have them, flushed if the policy asks for that (Kafka with
flush.messages=1 also flushes before both). With acks=0 there is no response. Source: Kafka's `DelayedProduce`.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from barnabas.broker.apis.current_leaders import leader_of
from barnabas.broker.event_loop.waiting import Future, until
from barnabas.storage.append.batch_check import NotOneBatchError
from barnabas.storage.batch_content import RecordValidationError
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceResponseLeaderIdAndEpoch,
    TopicProduceData,
    TopicProduceResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.apis.produce.usual import UsualProduce
    from barnabas.broker.context import RequestContext
    from barnabas.broker.replicas.partition import Partition
    from barnabas.storage.append.offset_assignment import AppendInfo

logger = logging.getLogger("kafka.server.KafkaApis")

NOT_COMMITTED: Final = "The records were appended, but could not be flushed to disk."
NO_LEADER: Final = ProduceResponseLeaderIdAndEpoch()  # shared by all responses: never modified

_WITHOUT_LOG_START: Final = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)

Unacknowledged: TypeAlias = "tuple[Partition, int, PartitionProduceResponse]"
"""A batch in the log that the response waits for: its partition, its last offset and its answer."""


class UnverifiedError(KafkaError):
    """The coordinator of the transaction has refused a partition, so its log was not asked."""


def whole_request_failed(request: ProduceRequest | UsualProduce, error: KafkaError) -> ProduceResponse | None:
    """The response for an error of the whole request, which each partition gets."""
    if request.acks == 0:
        return None
    response = ProduceResponse(responses=[])
    for topic in request.topic_data:
        answers_of(response, topic).extend([failed(data.index, error) for data in topic.partition_data])
    return response


def answers_of(response: ProduceResponse, topic: TopicProduceData) -> list[PartitionProduceResponse]:
    """A topic of the response, which has no answers yet."""
    answers: list[PartitionProduceResponse] = []
    added = TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=answers)
    response.responses.append(added)
    return answers


def failed(index: int, error: KafkaError) -> PartitionProduceResponse:
    """The answer of a partition whose batch was not appended."""
    return PartitionProduceResponse(
        index=index, error_code=int(error.code), base_offset=-1, error_message=error.message, current_leader=NO_LEADER
    )


def rejected(index: int, error: KafkaError, partition: Partition) -> PartitionProduceResponse:
    """The answer for a batch that `partition` was to have; of invalid records it lists which are (KIP-467).

    As in Kafka it has the log start offset if the log has refused the batch, except for some common errors.
    """
    partition_response = failed(index, error)
    if error.code not in _WITHOUT_LOG_START and not isinstance(error, (NotOneBatchError, UnverifiedError)):
        partition_response.log_start_offset = partition.log.log_start_offset
    if isinstance(error, RecordValidationError):
        partition_response.record_errors = [
            BatchIndexAndErrorMessage(batch_index=position, batch_index_error_message=text)
            for position, text in error.record_errors
        ]
    return partition_response


def moved(
    ctx: RequestContext, topic: TopicProduceData, index: int, error: KafkaError, leaders: set[int]
) -> PartitionProduceResponse:
    """The answer of a partition that is led by another broker, which is added to `leaders` (KIP-951)."""
    partition_response = failed(index, error)
    leader, epoch = leader_of(ctx.broker, topic.name, topic.topic_id, index)
    partition_response.current_leader = ProduceResponseLeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch)
    leaders.add(leader)
    return partition_response


def close_after_failure(ctx: RequestContext, response: ProduceResponse) -> None:
    """Close the connection if a batch was refused: with acks=0 the client gets no other sign of it (R13)."""
    for topic in response.responses:
        for partition_response in topic.partition_responses:
            if partition_response.error_code:
                text = "Closing the connection from %s: a produce request with acks=0 failed with %s"
                logger.info(text, ctx.client_host, ErrorCode(partition_response.error_code).name)
                ctx.connection.is_closing = True
                return


# ---- acknowledgements


def is_acknowledged(partition: Partition, request: ProduceRequest | UsualProduce, last_offset: int) -> bool:
    """Whether acks=1 is satisfied although the record is not committed: the leader has it, followers may not (R13)."""
    return request.acks == 1 and partition.leading is not None and last_offset < partition.leading.own_end


async def acknowledged(
    ctx: RequestContext, request: ProduceRequest | UsualProduce, batches: list[Unacknowledged]
) -> None:
    """Wait for batches, and set the errors of batches that are not acknowledged.

    Followers may stop fetching, so the request's timeout applies if there are any. While the ISR is smaller than
    min.insync.replicas the high watermark does not move, so nothing is acknowledged (R7);
    NOT_ENOUGH_REPLICAS_AFTER_APPEND is for records that were committed when it had become too small.
    """
    loop, by_all = ctx.broker.loop, request.acks == -1
    deadline: float | None = None
    waits = []
    for partition, last_offset, partition_response in batches:
        if deadline is None and partition.leading is not None:
            deadline = loop.now() + max(0, request.timeout_ms) / 1000
        future: Future[ErrorCode] = Future()
        then = partial(_decided, future, partition, by_all)
        waits.append((partition, partition_response, future, then))
        (partition.when_committed if by_all else partition.when_stored)(last_offset, then)
    forgets = True
    try:
        for partition, partition_response, future, _ in waits:
            if deadline is None:
                code = await future
            else:
                code = await until(loop.timers, deadline, future, ErrorCode.REQUEST_TIMED_OUT)
            if code:
                if ctx.broker.meter is not None:
                    ctx.broker.meter.failed_produce(partition)
                _set_error(partition_response, code, NOT_COMMITTED if deadline is None else None)
        forgets = deadline is not None  # without one each batch was decided: its partition has forgotten the callback
    finally:
        if forgets:
            for partition, _, _, then in waits:
                partition.forget(then)


def not_acknowledged(
    request: UsualProduce, partition: Partition, info: AppendInfo, code: ErrorCode
) -> ProduceResponse | None:
    """The response to a batch that was appended but is not acknowledged; None if it is, and `code` is NONE."""
    code = _with_replicas(code, partition, by_all=request.acks == -1)
    if not code:
        return None
    response = ProduceResponse(responses=[])
    known = request.known
    partition_response = PartitionProduceResponse(
        index=known.index,
        base_offset=info.first_offset,
        log_append_time_ms=info.log_append_time_ms,
        log_start_offset=info.log_start_offset,
        current_leader=NO_LEADER,
    )
    _set_error(partition_response, code, NOT_COMMITTED)
    answers_of(response, request.topic_data[0]).append(partition_response)
    return response


def _with_replicas(code: ErrorCode, partition: Partition, *, by_all: bool) -> ErrorCode:
    """NOT_ENOUGH_REPLICAS_AFTER_APPEND in place of NONE if too few replicas are in sync now."""
    if not code and by_all and partition.leading is not None and partition.leading.is_short_of_replicas:
        return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    return code


def _decided(future: Future[ErrorCode], partition: Partition, by_all: bool, code: ErrorCode) -> None:
    future.complete(_with_replicas(code, partition, by_all=by_all))


def _set_error(partition_response: PartitionProduceResponse, code: ErrorCode, message: str | None) -> None:
    partition_response.error_code = int(code)
    if code not in (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND):
        partition_response.base_offset, partition_response.error_message = -1, message
