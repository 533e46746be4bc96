"""DeleteRecords (21): move the log start offset of partitions forward (KIP-107, L6).

Offset -1 is the high watermark. Answered when the new log starts are durable here and, as far as there are followers,
all replicas on live brokers have reached them; at the latest after `timeout_ms`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from barnabas.broker.apis.access import refused_topics, topic_error
from barnabas.broker.apis.parts import Parts
from barnabas.broker.apis.registry import api
from barnabas.broker.net.delayed_response import DelayedResponse
from barnabas.coord.security.acls import Operation
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.topics import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.broker.replicas.leading import Leading
    from barnabas.broker.replicas.partition import Partition
    from barnabas.broker.timers import Timer

TO_HIGH_WATERMARK = -1

_Replicated: TypeAlias = "tuple[Partition, int, DeleteRecordsPartitionResult]"


@api(DeleteRecordsRequest, parts=Parts("topics.partitions", size=1000))
def delete_records(ctx: RequestContext, request: DeleteRecordsRequest) -> DelayedResponse:
    """Delete the records below the given offset of each partition."""
    delayed = DelayedResponse(send_before_close=True)
    replicated: list[_Replicated] = []
    ctx.refused_topics = refused_topics(ctx, Operation.DELETE, [topic.name for topic in request.topics])
    response = DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[_delete(ctx, topic.name, requested, replicated) for requested in topic.partitions],
            )
            for topic in request.topics
        ]
    )

    def persisted(is_written: bool) -> None:
        if not is_written:
            _not_persisted(response)
        if replicated:
            _WaitForReplicas(ctx, request.timeout_ms, response, replicated, delayed)
        else:
            delayed.resolve(response)

    ctx.broker.partitions.persist_log_starts(delayed.guard(persisted))
    return delayed


def _not_persisted(response: DeleteRecordsResponse) -> None:
    """Report an error: the new log starts are effective, but could not be written, so a restart may lose them."""
    for topic in response.topics:
        for answer in topic.partitions:
            if not answer.error_code:
                answer.error_code, answer.low_watermark = int(ErrorCode.KAFKA_STORAGE_ERROR), -1


def _delete(
    ctx: RequestContext, topic: str, requested: DeleteRecordsPartition, replicated: list[_Replicated]
) -> DeleteRecordsPartitionResult:
    answer = DeleteRecordsPartitionResult(partition_index=requested.partition_index, low_watermark=-1)
    try:
        if topic in ctx.refused_topics:
            raise topic_error()
        partition = ctx.broker.partitions.get_leader(topic, requested.partition_index)
        answer.low_watermark, offset = _advance(partition, requested)
        if partition.leading is not None:
            replicated.append((partition, offset, answer))
    except KafkaError as error:
        answer.error_code = int(error.code)
    except OSError as error:
        partition.report_failure("new log start", error)
        answer.error_code = int(ErrorCode.KAFKA_STORAGE_ERROR)
    return answer


def _advance(partition: Partition, requested: DeleteRecordsPartition) -> tuple[int, int]:
    """Move the log start; it, and the offset that was asked for."""
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


class _WaitForReplicas:
    """Waits until the replicas have reached the new log starts (Kafka's `DelayedDeleteRecords`)."""

    def __init__(
        self,
        ctx: RequestContext,
        timeout_ms: int,
        response: DeleteRecordsResponse,
        replicated: list[_Replicated],
        delayed: DelayedResponse,
    ) -> None:
        self._response = response
        self._delayed = delayed
        self._left: dict[int, tuple[Leading, DeleteRecordsPartitionResult, Callable[[ErrorCode], None]]] = {}
        loop = ctx.broker.loop
        self._timer: Timer = loop.timers.at(loop.now() + max(0, timeout_ms) / 1000, delayed.guard(self._expire))
        waits = []
        for number, (partition, offset, answer) in enumerate(replicated):
            if answer.error_code:
                continue
            if partition.leading is None:
                if not partition.is_leader:
                    _fail(answer, ErrorCode.NOT_LEADER_OR_FOLLOWER)
                continue
            then = delayed.guard(partial(self._decided, number))
            self._left[number] = (partition.leading, answer, then)
            waits.append((partition.leading, offset, then))
        for leading, offset, then in waits:
            leading.when_deleted(offset, then)
        if not waits:
            self._finish()

    def _decided(self, number: int, error: ErrorCode) -> None:
        waited = self._left.pop(number, None)
        if waited is None:
            return
        leading, answer, _ = waited
        if error:
            _fail(answer, error)
        else:
            answer.low_watermark = leading.low_watermark
        if not self._left:
            self._finish()

    def _expire(self) -> None:
        left, self._left = self._left, {}
        for leading, answer, then in left.values():
            leading.forget(then)
            answer.error_code = int(ErrorCode.REQUEST_TIMED_OUT)
            answer.low_watermark = leading.low_watermark
        self._finish()

    def _finish(self) -> None:
        self._timer.cancel()
        self._delayed.resolve(self._response)


def _fail(answer: DeleteRecordsPartitionResult, error: ErrorCode) -> None:
    answer.error_code, answer.low_watermark = int(error), -1
