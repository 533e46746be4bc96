"""DeleteRecords (21): move the log start offset of partitions forward (KIP-107, L6).

Offset -1 is the high watermark. Answered when the new log starts are durable here and, as far as there are followers,
all replicas on live brokers have reached them; at the latest after `timeout_ms`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from barnabas.broker.apis.access import refused_topics, topic_error
from barnabas.broker.apis.parts import Parts
from barnabas.broker.apis.registry import api
from barnabas.broker.event_loop.waiting import Future, TaskGroup, until
from barnabas.coord.security.acls import Operation
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.topics import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    DeleteRecordsTopicResult,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from barnabas.broker.context import RequestContext
    from barnabas.broker.replicas.partition import Partition

TO_HIGH_WATERMARK = -1

_Replicated: TypeAlias = "tuple[Partition, int, DeleteRecordsPartitionResult]"


@api(DeleteRecordsRequest, parts=Parts("topics.partitions", size=1000), send_before_close=True)
async def delete_records(ctx: RequestContext, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    """Delete the records below the requested offset of each partition."""
    replicated: list[_Replicated] = []
    ctx.refused_topics = refused_topics(ctx, Operation.DELETE, [topic.name for topic in request.topics])
    response = DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[_delete(ctx, topic.name, requested, replicated) for requested in _last_of_each(topic)],
            )
            for topic in request.topics
        ]
    )

    persisted: Future[bool] = Future()
    ctx.broker.partitions.persist_log_starts(persisted.complete)
    if not await persisted:
        _not_persisted(response)
    deadline = ctx.broker.loop.now() + max(0, request.timeout_ms) / 1000
    with TaskGroup(ctx.broker.loop.slices) as group:
        for partition, offset, result in replicated:
            if not result.error_code:
                group.start(_wait_for_replicas(ctx, partition, offset, result, deadline))
        for failure in await group.results():
            if failure is not None:
                raise failure
    return response


def _last_of_each(topic: DeleteRecordsTopic) -> Iterable[DeleteRecordsPartition]:
    """The partitions of a topic; of one that is named twice the last offset counts, as in Kafka."""
    return {requested.partition_index: requested for requested in topic.partitions}.values()


def _not_persisted(response: DeleteRecordsResponse) -> None:
    """Report an error: the new log starts are effective, but could not be written, so a restart may lose them."""
    for topic in response.topics:
        for result in topic.partitions:
            if not result.error_code:
                _fail(result, ErrorCode.KAFKA_STORAGE_ERROR)


def _delete(
    ctx: RequestContext, topic: str, requested: DeleteRecordsPartition, replicated: list[_Replicated]
) -> DeleteRecordsPartitionResult:
    result = DeleteRecordsPartitionResult(partition_index=requested.partition_index, low_watermark=-1)
    try:
        if topic in ctx.refused_topics:
            raise topic_error()
        partition = ctx.broker.partitions.get_leader(topic, requested.partition_index)
        result.low_watermark, offset = _advance(partition, requested)
        if partition.leading is not None:
            replicated.append((partition, offset, result))
    except KafkaError as error:
        result.error_code = int(error.code)
    except OSError as error:
        partition.report_failure("new log start", error)
        result.error_code = int(ErrorCode.KAFKA_STORAGE_ERROR)
    return result


def _advance(partition: Partition, requested: DeleteRecordsPartition) -> tuple[int, int]:
    """Move the log start offset; return it and the requested offset."""
    if partition.is_internal:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
    log = partition.log
    if "delete" not in log.config.cleanup_policy:
        raise KafkaError(ErrorCode.POLICY_VIOLATION)
    offset = log.high_watermark if requested.offset == TO_HIGH_WATERMARK else requested.offset
    if not 0 <= offset <= log.high_watermark:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if offset > log.log_start_offset:
        log.advance_log_start_offset(offset)
    return log.log_start_offset, offset


async def _wait_for_replicas(
    ctx: RequestContext, partition: Partition, offset: int, result: DeleteRecordsPartitionResult, deadline: float
) -> None:
    """Wait until the replicas have reached the new log start, or the time is up (Kafka's `DelayedDeleteRecords`)."""
    leading = partition.leading  # again: it may have ended since the log starts are being written
    if leading is None:
        if not partition.is_leader:
            _fail(result, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return
    future: Future[ErrorCode] = Future()
    then = future.complete
    leading.when_deleted(offset, then)
    try:
        error = await until(ctx.broker.loop.timers, deadline, future, ErrorCode.REQUEST_TIMED_OUT)
    finally:
        leading.forget(then)
    if error in (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT):
        result.error_code, result.low_watermark = int(error), leading.low_watermark
    else:
        _fail(result, error)


def _fail(result: DeleteRecordsPartitionResult, error: ErrorCode) -> None:
    result.error_code, result.low_watermark = int(error), -1
