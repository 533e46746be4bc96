"""DeleteRecords (21): move the log start offset of partitions forward (KIP-107, L6).

Offset -1 is the high watermark. There are no followers to wait for, only the disk, so `timeout_ms` has no effect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.apis.parts import Parts
from barnabas.broker.apis.registry import api
from barnabas.broker.net.delayed_response import DelayedResponse
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
    from barnabas.broker.replicas.partition import Partition

TO_HIGH_WATERMARK = -1


@api(DeleteRecordsRequest, parts=Parts("topics.partitions", size=1000))
def delete_records(ctx: RequestContext, request: DeleteRecordsRequest) -> DelayedResponse:
    """Delete the records below the given offset of each partition; answered when the new log starts are durable."""
    delayed = DelayedResponse(send_before_close=True)
    response = DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name, partitions=[_delete(ctx, topic.name, requested) for requested in topic.partitions]
            )
            for topic in request.topics
        ]
    )

    def persisted(is_written: bool) -> None:
        if not is_written:
            _not_persisted(response)
        delayed.resolve(response)

    ctx.broker.partitions.persist_log_starts(delayed.guard(persisted))
    return delayed


def _not_persisted(response: DeleteRecordsResponse) -> None:
    """Report an error: the new log starts are effective, but could not be written, so a restart may lose them."""
    for topic in response.topics:
        for answer in topic.partitions:
            if not answer.error_code:
                answer.error_code, answer.low_watermark = int(ErrorCode.KAFKA_STORAGE_ERROR), -1


def _delete(ctx: RequestContext, topic: str, requested: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
    answer = DeleteRecordsPartitionResult(partition_index=requested.partition_index, low_watermark=-1)
    try:
        partition = ctx.broker.partitions.get(topic, requested.partition_index)
        answer.low_watermark = _advance(partition, requested)
    except KafkaError as error:
        answer.error_code = int(error.code)
    except OSError as error:
        partition.report_failure("new log start", error)
        answer.error_code = int(ErrorCode.KAFKA_STORAGE_ERROR)
    return answer


def _advance(partition: Partition, requested: DeleteRecordsPartition) -> int:
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
    return log.log_start_offset
