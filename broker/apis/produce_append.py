"""Appends the batches of a Produce request to the logs of their partitions.

With acks=-1 there must be enough in-sync replicas (R12). A batch whose records take long to validate is appended later,
by `produce_late`, and its connection waits for that. When the response is sent: `produce_response`.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING

from barnabas.broker.apis.current_leaders import MOVED, endpoints_of, leader_of
from barnabas.broker.apis.produce_response import (
    NO_LEADER,
    Appends,
    Errors,
    LateAppend,
    Verify,
    failed,
    is_stored,
    rejected,
    respond,
)
from barnabas.broker.apis.sliced_response import FEW_ELEMENTS, in_steps, respond_in_steps
from barnabas.storage.batch_content import RecordValidationError, UnfinishedCheck
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceResponseLeaderIdAndEpoch,
    ProduceResponseNodeEndpoint,
    TopicProduceData,
    TopicProduceResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.broker.net.delayed_response import DelayedResponse
    from barnabas.broker.replicas.partition import Partition
    from barnabas.coord.transactions.transaction import TopicPartition

FIRST_VERSION_WITH_LEADERS = 10
FIRST_VERSION_WITH_TOPIC_IDS = 13
ADMIN_CLIENT_ID = "__admin_client"
NO_TRANSACTIONAL_ID = "The records are transactional, but the request has no transactional id."

PARTITIONS_OF_A_STEP = 100
"""Each takes up to ten microseconds."""

_ATTRIBUTES_AT = 22  # the low byte of a batch's attributes
_TRANSACTIONAL_BIT = 0x10


def append_all(
    ctx: RequestContext,
    request: ProduceRequest,
    refused: Mapping[TopicPartition, KafkaError],
    verify: Verify | None = None,
) -> ProduceResponse | DelayedResponse | None:
    """Append the batch of each partition, except for those in `refused`, which get their error.

    `verify` is called before batches are appended that were validated in slices, see `produce_late`.
    """
    topics = request.topic_data
    if len(topics) + sum([len(topic.partition_data) for topic in topics]) > FEW_ELEMENTS:
        keep_records(request)
        steps = in_steps(_append_each(ctx, request, refused, verify), PARTITIONS_OF_A_STEP)
        return respond_in_steps(ctx, steps, send_before_close=True)
    responses = []
    appends = Appends()
    for topic in topics:
        answers = [_append(ctx, request, topic, data, refused, appends) for data in topic.partition_data]
        responses.append(TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=answers))
    return _appended(ctx, request, ProduceResponse(responses=responses), appends, verify)


def _append_each(
    ctx: RequestContext, request: ProduceRequest, refused: Errors, verify: Verify | None
) -> Generator[None, None, ProduceResponse | DelayedResponse | None]:
    """`append_all` for many partitions; yields after each."""
    response = ProduceResponse(responses=[])
    appends = Appends()
    for topic in request.topic_data:
        answers: list[PartitionProduceResponse] = []
        response.responses.append(
            TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=answers)
        )
        for data in topic.partition_data:
            answers.append(_append(ctx, request, topic, data, refused, appends))
            yield
    return _appended(ctx, request, response, appends, verify)


def _appended(
    ctx: RequestContext, request: ProduceRequest, response: ProduceResponse, appends: Appends, verify: Verify | None
) -> ProduceResponse | DelayedResponse | None:
    """The response when each batch has been appended, refused, or found to take long."""
    if appends.leaders:
        response.node_endpoints = endpoints_of(ctx, appends.leaders, ProduceResponseNodeEndpoint)
    if appends.late:
        from barnabas.broker.apis.produce_late import append_late

        return append_late(ctx, request, response, appends, verify)
    return respond(ctx, request, response, appends)


def _append(
    ctx: RequestContext,
    request: ProduceRequest,
    topic: TopicProduceData,
    data: PartitionProduceData,
    refused: Mapping[TopicPartition, KafkaError],
    appends: Appends,
) -> PartitionProduceResponse:
    """Append the batch of one partition; adds it to `appends` if the response must wait for it."""
    try:
        partition = find(ctx, topic, data.index)
        if request.acks == -1:
            partition.check_in_sync_replicas()
        if data.records is None:
            raise KafkaError(ErrorCode.INVALID_RECORD, "The request has no records for this partition.")
        if request.transactional_id is None and is_transactional(data.records):  # type: ignore[arg-type]
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, NO_TRANSACTIONAL_ID)
        if refused and (error := refused.get((partition.topic, partition.index))) is not None:
            raise error
        info = partition.append(data.records, ctx.now, budget=appends)  # type: ignore[arg-type]
    except RecordValidationError as error:
        return rejected(data.index, error, partition)
    except KafkaError as error:
        return failed(data.index, error) if error.code not in MOVED else _moved(ctx, topic, data.index, error, appends)
    except UnfinishedCheck as check:
        answer = PartitionProduceResponse(index=data.index, current_leader=NO_LEADER)
        appends.late.append(LateAppend(partition, data, check, answer))
        return answer
    answer = PartitionProduceResponse(
        index=data.index,
        base_offset=info.first_offset,
        log_append_time_ms=info.log_append_time_ms,
        log_start_offset=info.log_start_offset,
        current_leader=NO_LEADER,
    )
    if info.last_offset >= partition.log.high_watermark and not is_stored(partition, request, info.last_offset):
        appends.uncommitted.append((partition, info.last_offset, answer))
    return answer


def _moved(
    ctx: RequestContext, topic: TopicProduceData, index: int, error: KafkaError, appends: Appends
) -> PartitionProduceResponse:
    """The answer of a partition that is led by another broker (KIP-951)."""
    answer = failed(index, error)
    if ctx.api_version >= FIRST_VERSION_WITH_LEADERS:
        leader, epoch = leader_of(ctx.broker, topic.name, topic.topic_id, index)
        answer.current_leader = ProduceResponseLeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch)
        appends.leaders = {*appends.leaders, leader}
    return answer


def keep_records(request: ProduceRequest) -> None:
    """Copy the records out of the frame, whose memory is used again."""
    for topic in request.topic_data:
        for data in topic.partition_data:
            if data.records is not None:
                data.records = memoryview(bytearray(data.records))  # type: ignore[arg-type]


def is_transactional(records: memoryview) -> bool:
    """Whether the batch is transactional; a request has one batch per partition."""
    return len(records) > _ATTRIBUTES_AT and bool(records[_ATTRIBUTES_AT] & _TRANSACTIONAL_BIT)


def find(ctx: RequestContext, topic: TopicProduceData, index: int) -> Partition:
    """The partition to append to. KafkaError if it is not served here, internal, or may not be written to."""
    partitions = ctx.broker.partitions
    by_id = ctx.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
    if ctx.refused_topics and (topic.topic_id if by_id else topic.name) in ctx.refused_topics:
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if by_id:
        partition = partitions.get_leader_by_id(topic.topic_id, index)
    else:
        partition = partitions.get_leader(topic.name, index)
    if partition.is_internal and ctx.client_id != ADMIN_CLIENT_ID:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Clients may not write to {partition.topic}.")
    return partition
