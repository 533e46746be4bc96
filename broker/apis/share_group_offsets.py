"""Offsets of share groups: DescribeShareGroupOffsets (90), AlterShareGroupOffsets (91), DeleteShareGroupOffsets (92).

KIP-932. DescribeShareGroupOffsets v1 returns the lag (KIP-1226). The share coordinator has the offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.apis.access import TOPIC_TEXT, check_group, refused_topics
from barnabas.broker.apis.group_protocols import needs_share_groups
from barnabas.broker.apis.parts import Parts
from barnabas.broker.apis.registry import api
from barnabas.broker.net.delayed_response import DelayedResponse
from barnabas.coord.security.acls import Operation
from barnabas.coord.share_state.key import SharePartitionKey
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.share_groups import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
    DeleteShareGroupOffsetsRequest,
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
    from barnabas.wire.messages.share_state import ReadShareGroupStateSummaryResponsePartitionResult
    from barnabas.wire.types import Uuid

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
def describe_share_group_offsets(ctx: RequestContext, request: DescribeShareGroupOffsetsRequest) -> DelayedResponse:
    """The start offsets of groups, for the given partitions or all that the group reads."""
    delayed = DelayedResponse()
    response = DescribeShareGroupOffsetsResponse()
    wanted: list[tuple[SharePartitionKey, str, DescribeShareGroupOffsetsResponsePartition]] = []
    for group in request.groups:
        response.groups.append(_described_offsets(ctx, group, wanted))
    missing = len(wanted)
    if not missing:
        delayed.resolve(response)

    def summarized(
        name: str,
        one: DescribeShareGroupOffsetsResponsePartition,
        summary: ReadShareGroupStateSummaryResponsePartitionResult,
    ) -> None:
        _fill_in(ctx, name, one, summary, delayed.guard(one_done))

    def one_done() -> None:
        nonlocal missing
        missing -= 1
        if not missing:
            delayed.resolve(response)

    for key, name, one in wanted:
        ctx.broker.share_states.read_summary(key, delayed.guard(partial(summarized, name, one)))
    return delayed


def _described_offsets(
    ctx: RequestContext,
    requested: DescribeShareGroupOffsetsRequestGroup,
    wanted: list[tuple[SharePartitionKey, str, DescribeShareGroupOffsetsResponsePartition]],
) -> DescribeShareGroupOffsetsResponseGroup:
    """The response of one group; partitions that still need their offsets are added to `wanted`."""
    found = DescribeShareGroupOffsetsResponseGroup(group_id=requested.group_id)
    try:
        topics = _requested_topics(ctx, requested)
    except KafkaError as error:
        return _no_offsets(requested.group_id, error)
    refused: Collection[str] = ()
    if requested.topics:
        refused = refused_topics(ctx, Operation.DESCRIBE, (topic.topic_name for topic in requested.topics))
    for name, topic_id, partitions in topics:
        topic = DescribeShareGroupOffsetsResponseTopic(topic_name=name, topic_id=topic_id)
        found.topics.append(topic)
        for index in partitions:
            one = DescribeShareGroupOffsetsResponsePartition(partition_index=index, start_offset=NO_OFFSET)
            topic.partitions.append(one)
            if name in refused:
                topic.topic_id = ZERO_UUID
                one.error_code, one.error_message = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED), TOPIC_TEXT
            elif topic_id != ZERO_UUID:
                wanted.append((SharePartitionKey(requested.group_id, topic_id, index), name, one))
    return found


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
    return [one for one in existing if one[0] not in hidden]


def _fill_in(
    ctx: RequestContext,
    name: str,
    one: DescribeShareGroupOffsetsResponsePartition,
    summary: ReadShareGroupStateSummaryResponsePartitionResult,
    done: Callable[[], None],
) -> None:
    """Set offset, leader epoch and lag from the share coordinator's summary; an error leaves the offset unknown.

    The end of a partition that another broker leads is asked of it.
    """
    if summary.error_code:
        done()
        return
    one.start_offset, one.leader_epoch = summary.start_offset, summary.leader_epoch
    if summary.start_offset == NO_OFFSET or summary.delivery_complete_count == NO_COUNT:
        done()
        return

    def known(end: int | KafkaError) -> None:
        if isinstance(end, KafkaError):
            one.start_offset, one.leader_epoch = 0, 0
            one.error_code, one.error_message = int(end.code), end.message
        else:
            lag = end - summary.start_offset - summary.delivery_complete_count
            one.lag = max(-MAX_LAG, min(lag, MAX_LAG))  # a client can set any start offset
        done()

    partition = ctx.broker.image.partition(name, one.partition_index)
    if partition is not None and partition.leader not in (-1, ctx.broker.node_id):
        ctx.broker.latest_offsets.ask(partition.leader, name, one.partition_index, known)
        return
    try:
        end = ctx.broker.partitions.get_leader(name, one.partition_index).log.high_watermark
    except KafkaError as error:
        known(error)
    else:
        known(end)


@api(
    AlterShareGroupOffsetsRequest,
    needs=needs_share_groups,
    parts=Parts("topics.partitions", "responses.partitions", size=1000),
)
def alter_share_group_offsets(ctx: RequestContext, request: AlterShareGroupOffsetsRequest) -> DelayedResponse:
    """Set the start offsets of an empty group."""
    check_group(ctx, Operation.READ, request.group_id)
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    delayed = DelayedResponse(send_before_close=True)
    refused = refused_topics(ctx, Operation.READ, [topic.topic_name for topic in request.topics])
    failed = [_not_altered(topic) for topic in request.topics if topic.topic_name in refused]
    request.topics = [topic for topic in request.topics if topic.topic_name not in refused]

    def answer(response: AlterShareGroupOffsetsResponse) -> None:
        if not response.error_code:
            response.responses += failed
        delayed.resolve(response)

    ctx.broker.group_coordinators.handle(
        request.group_id, lambda groups, at: groups.share_groups.alter_offsets(request, delayed.guard(answer), at)
    )
    return delayed


def _not_altered(topic: AlterShareGroupOffsetsRequestTopic) -> AlterShareGroupOffsetsResponseTopic:
    """The answer of a topic that may not be read."""
    return AlterShareGroupOffsetsResponseTopic(
        topic_name=topic.topic_name,
        partitions=[
            AlterShareGroupOffsetsResponsePartition(
                partition_index=one.partition_index,
                error_code=int(ErrorCode.TOPIC_AUTHORIZATION_FAILED),
                error_message=TOPIC_TEXT,
            )
            for one in topic.partitions
        ],
    )


@api(
    DeleteShareGroupOffsetsRequest,
    needs=needs_share_groups,
    parts=Parts("topics", "responses", size=1000),
)
def delete_share_group_offsets(ctx: RequestContext, request: DeleteShareGroupOffsetsRequest) -> DelayedResponse:
    """Delete the offsets of an empty group for topics."""
    check_group(ctx, Operation.DELETE, request.group_id)
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    delayed = DelayedResponse(send_before_close=True)
    refused = refused_topics(ctx, Operation.READ, [topic.topic_name for topic in request.topics])
    failed = [_not_deleted(topic.topic_name) for topic in request.topics if topic.topic_name in refused]
    request.topics = [topic for topic in request.topics if topic.topic_name not in refused]

    def answer(response: DeleteShareGroupOffsetsResponse) -> None:
        if not response.error_code:
            response.responses += failed
        delayed.resolve(response)

    ctx.broker.group_coordinators.handle(
        request.group_id, lambda groups, _: groups.share_groups.delete_offsets(request, delayed.guard(answer))
    )
    return delayed


def _not_deleted(name: str) -> DeleteShareGroupOffsetsResponseTopic:
    """The answer of a topic that may not be read."""
    return DeleteShareGroupOffsetsResponseTopic(
        topic_name=name, error_code=int(ErrorCode.TOPIC_AUTHORIZATION_FAILED), error_message=TOPIC_TEXT
    )
