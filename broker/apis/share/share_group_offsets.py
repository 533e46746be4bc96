"""Offsets of share groups: DescribeShareGroupOffsets (90), AlterShareGroupOffsets (91), DeleteShareGroupOffsets (92).

KIP-932. DescribeShareGroupOffsets v1 returns the lag (KIP-1226). The share coordinator has the offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from barnabas.broker.apis.access import TOPIC_TEXT, check_group, refused_topics
from barnabas.broker.apis.groups.group_protocols import needs_share_groups
from barnabas.broker.apis.parts import Parts
from barnabas.broker.apis.registry import api
from barnabas.broker.event_loop.guarded import kept
from barnabas.broker.event_loop.waiting import Future
from barnabas.coord.security.acls import Operation
from barnabas.coord.share_state.key import SharePartitionKey
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.groups.share_groups import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from barnabas.wire.types import ZERO_UUID

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.wire.messages.groups.share_state import ReadShareGroupStateSummaryResponsePartitionResult
    from barnabas.wire.types import Uuid

T = TypeVar("T")

NO_OFFSET, NO_COUNT = -1, -1
MAX_LAG = 2**63 - 1


def _no_offsets_described(
    request: DescribeShareGroupOffsetsRequest, error: KafkaError
) -> DescribeShareGroupOffsetsResponse:
    return DescribeShareGroupOffsetsResponse(groups=[_no_offsets(group.group_id, error) for group in request.groups])


def _no_offsets(group_id: str, error: KafkaError) -> DescribeShareGroupOffsetsResponseGroup:
    return DescribeShareGroupOffsetsResponseGroup(
        group_id=group_id, error_code=int(error.code), error_message=error.message
    )


@api(
    DescribeShareGroupOffsetsRequest,
    on_error=_no_offsets_described,
    needs=needs_share_groups,
    parts=Parts("groups.topics.partitions", size=30),
)
async def describe_share_group_offsets(
    ctx: RequestContext, request: DescribeShareGroupOffsetsRequest
) -> DescribeShareGroupOffsetsResponse:
    """The start offsets of groups, for the given partitions or all that the group reads.

    All summaries are requested at once, and then all end offsets, so that each broker gets one request.
    """
    response = DescribeShareGroupOffsetsResponse()
    unknown: list[tuple[SharePartitionKey, str, DescribeShareGroupOffsetsResponsePartition]] = []
    for group in request.groups:
        response.groups.append(_described_offsets(ctx, group, unknown))
    summaries: list[Future[ReadShareGroupStateSummaryResponsePartitionResult]] = []
    for key, _, _ in unknown:
        summary: Future[ReadShareGroupStateSummaryResponsePartitionResult] = Future()
        ctx.broker.share_states.read_summary(key, summary.complete)
        summaries.append(summary)
    ends = []
    for (_, name, partition), summary in zip(unknown, summaries, strict=True):
        result = await summary
        if _has_lag(partition, result):
            ends.append((partition, result, _end_of(ctx, name, partition.partition_index)))
    for partition, result, end in ends:
        try:
            lag = await end - result.start_offset - result.delivery_complete_count
        except KafkaError as error:
            partition.start_offset, partition.leader_epoch = 0, 0
            partition.error_code, partition.error_message = int(error.code), error.message
        else:
            partition.lag = max(-MAX_LAG, min(lag, MAX_LAG))  # a client can set any start offset
    return response


def _described_offsets(
    ctx: RequestContext,
    requested: DescribeShareGroupOffsetsRequestGroup,
    unknown: list[tuple[SharePartitionKey, str, DescribeShareGroupOffsetsResponsePartition]],
) -> DescribeShareGroupOffsetsResponseGroup:
    """The response of one group; partitions that still need their offsets are added to `unknown`."""
    described = DescribeShareGroupOffsetsResponseGroup(group_id=requested.group_id)
    try:
        topics = _requested_topics(ctx, requested)
    except KafkaError as error:
        return _no_offsets(requested.group_id, error)
    refused: Collection[str] = ()
    if requested.topics:
        refused = refused_topics(ctx, Operation.DESCRIBE, (topic.topic_name for topic in requested.topics))
    for name, topic_id, partitions in topics:
        topic = DescribeShareGroupOffsetsResponseTopic(topic_name=name, topic_id=topic_id)
        described.topics.append(topic)
        for index in partitions:
            partition = DescribeShareGroupOffsetsResponsePartition(partition_index=index, start_offset=NO_OFFSET)
            topic.partitions.append(partition)
            if name in refused:
                topic.topic_id = ZERO_UUID
                partition.error_code, partition.error_message = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED), TOPIC_TEXT
            elif topic_id != ZERO_UUID:
                unknown.append((SharePartitionKey(requested.group_id, topic_id, index), name, partition))
    return described


def _requested_topics(
    ctx: RequestContext, requested: DescribeShareGroupOffsetsRequestGroup
) -> Iterable[tuple[str, Uuid, Iterable[int]]]:
    """Names, ids and partitions of the requested topics; a topic that does not exist has the zero id."""
    image = ctx.broker.image
    check_group(ctx, Operation.DESCRIBE, requested.group_id)
    if not requested.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    if requested.topics is not None:
        by_name = [(topic.topic_name, image.topic(topic.topic_name), topic.partitions) for topic in requested.topics]
        return [(name, ZERO_UUID if topic is None else topic.topic_id, parts) for name, topic, parts in by_name]
    groups = ctx.broker.group_coordinators.coordinator_of(requested.group_id).share_groups
    initialized = groups.group(requested.group_id).state_partitions.initialized
    by_id = [(image.topic_by_id(topic_id), sorted(parts)) for topic_id, parts in sorted(initialized.items())]
    existing = [(topic.name, topic.topic_id, parts) for topic, parts in by_id if topic is not None]
    hidden = refused_topics(ctx, Operation.DESCRIBE, (name for name, _, _ in existing))
    return [(name, topic_id, parts) for name, topic_id, parts in existing if name not in hidden]


def _has_lag(
    partition: DescribeShareGroupOffsetsResponsePartition, summary: ReadShareGroupStateSummaryResponsePartitionResult
) -> bool:
    """Set offset and leader epoch from the share coordinator's summary; returns whether the lag can be computed."""
    if summary.error_code:
        return False  # the offset stays unknown
    partition.start_offset, partition.leader_epoch = summary.start_offset, summary.leader_epoch
    return summary.start_offset != NO_OFFSET and summary.delivery_complete_count != NO_COUNT


def _end_of(ctx: RequestContext, name: str, index: int) -> Future[int]:
    """Ask the leader of a partition for its end offset; image and leader are looked up after the summary has come."""
    end: Future[int] = Future()
    partition = ctx.broker.image.partition(name, index)
    if partition is not None and partition.leader not in (-1, ctx.broker.node_id):
        ctx.broker.latest_offsets.ask(partition.leader, name, index, end.complete)
        return end
    try:
        end.complete(ctx.broker.partitions.get_leader(name, index).log.high_watermark)
    except KafkaError as error:
        end.complete(kept(error))
    return end


def _refused(ctx: RequestContext, request: Any, operation: Operation, answer_of: Callable[[Any], T]) -> list[T]:
    """Check the access to the group, and remove the topics from the request that may not be read: their answers."""
    check_group(ctx, operation, request.group_id)
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    refused = refused_topics(ctx, Operation.READ, [topic.topic_name for topic in request.topics])
    answers = [answer_of(topic) for topic in request.topics if topic.topic_name in refused]
    request.topics = [topic for topic in request.topics if topic.topic_name not in refused]
    return answers


@api(
    AlterShareGroupOffsetsRequest,
    needs=needs_share_groups,
    parts=Parts("topics.partitions", "responses.partitions", size=1000),
    send_before_close=True,
)
async def alter_share_group_offsets(
    ctx: RequestContext, request: AlterShareGroupOffsetsRequest
) -> AlterShareGroupOffsetsResponse:
    """Set the start offsets of an empty group."""
    failed = _refused(ctx, request, Operation.READ, _not_altered)
    future: Future[AlterShareGroupOffsetsResponse] = Future()
    ctx.broker.group_coordinators.handle(
        request.group_id, lambda groups, at: groups.share_groups.alter_offsets(request, future.complete, at)
    )
    response = await future
    if not response.error_code:
        response.responses += failed
    return response


def _not_altered(topic: AlterShareGroupOffsetsRequestTopic) -> AlterShareGroupOffsetsResponseTopic:
    """The answer of a topic that may not be read."""
    return AlterShareGroupOffsetsResponseTopic(
        topic_name=topic.topic_name,
        partitions=[
            AlterShareGroupOffsetsResponsePartition(
                partition_index=partition.partition_index,
                error_code=int(ErrorCode.TOPIC_AUTHORIZATION_FAILED),
                error_message=TOPIC_TEXT,
            )
            for partition in topic.partitions
        ],
    )


@api(
    DeleteShareGroupOffsetsRequest,
    needs=needs_share_groups,
    parts=Parts("topics", "responses", size=1000),
    send_before_close=True,
)
async def delete_share_group_offsets(
    ctx: RequestContext, request: DeleteShareGroupOffsetsRequest
) -> DeleteShareGroupOffsetsResponse:
    """Delete the offsets of an empty group for topics."""
    failed = _refused(ctx, request, Operation.DELETE, _not_deleted)
    future: Future[DeleteShareGroupOffsetsResponse] = Future()
    ctx.broker.group_coordinators.handle(
        request.group_id, lambda groups, _: groups.share_groups.delete_offsets(request, future.complete)
    )
    response = await future
    if not response.error_code:
        response.responses += failed
    return response


def _not_deleted(topic: DeleteShareGroupOffsetsRequestTopic) -> DeleteShareGroupOffsetsResponseTopic:
    """The answer of a topic that may not be read."""
    return DeleteShareGroupOffsetsResponseTopic(
        topic_name=topic.topic_name, error_code=int(ErrorCode.TOPIC_AUTHORIZATION_FAILED), error_message=TOPIC_TEXT
    )
