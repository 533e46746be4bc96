"""OffsetDelete (47). KIP-496.

Whether the partitions exist and may be read is decided when the request comes, before the deletion: the response has
the errors of the others, even if that changes before the deletion is committed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.apis.access import check_group, refused_topics
from barnabas.broker.apis.parts import Parts
from barnabas.broker.apis.registry import api
from barnabas.broker.event_loop.waiting import Future
from barnabas.coord.security.acls import Operation
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.groups.offsets import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext


@api(OffsetDeleteRequest, parts=Parts("topics.partitions"), send_before_close=True)
async def offset_delete(ctx: RequestContext, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    """Delete the offsets of partitions that exist and to which no member of the group is subscribed."""
    check_group(ctx, Operation.DELETE, request.group_id)
    response = _split_off_missing(ctx, request)
    future: Future[OffsetDeleteResponse] = Future()
    ctx.broker.group_coordinators.handle(
        request.group_id, lambda groups, _: groups.offsets.delete(request, future.complete)
    )
    decided = await future
    if decided.error_code:
        return decided
    _fill_in(response, decided)
    return response


def _split_off_missing(ctx: RequestContext, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    """Remove partitions that do not exist or may not be read from the request; returns a response with the errors."""
    response = OffsetDeleteResponse()
    refused = refused_topics(ctx, Operation.READ, [topic.name for topic in request.topics])
    accepted: list[OffsetDeleteRequestTopic] = []
    for topic in request.topics:
        image = ctx.broker.image.topic(topic.name)
        indexes = image.partitions if image is not None and topic.name not in refused else ()
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if topic.name in refused:
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        existing = [partition for partition in topic.partitions if partition.partition_index in indexes]
        if existing:
            accepted.append(OffsetDeleteRequestTopic(name=topic.name, partitions=existing))
        partitions = [
            OffsetDeleteResponsePartition(
                partition_index=partition.partition_index,
                error_code=0 if partition.partition_index in indexes else int(error),
            )
            for partition in topic.partitions
        ]
        if partitions:  # as Kafka, which does not answer for a topic without any
            response.topics.append(OffsetDeleteResponseTopic(name=topic.name, partitions=partitions))
    request.topics = accepted
    return response


def _fill_in(response: OffsetDeleteResponse, decided: OffsetDeleteResponse) -> None:
    """Copy the coordinator's error codes into the response."""
    codes = {
        (topic.name, partition.partition_index): partition.error_code
        for topic in decided.topics
        for partition in topic.partitions
    }
    for topic in response.topics:
        for partition in topic.partitions:
            partition.error_code = codes.get((topic.name, partition.partition_index), partition.error_code)
