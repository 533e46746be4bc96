"""OffsetCommit (8). v6 leader epochs, v7 static members, v10 topic ids (KIP-848).

Topics are checked against the metadata image here; the commit is handled in `coord.groups`. A commit of more than 100
partitions is handled in parts (`parts`): each checks member and epoch and is a batch of its own, where Kafka writes one
batch. So after an error in between, a rebalance for example, the partitions before it are committed, and the response
has the error for the others only; a crash of the broker may leave a part of the commit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.apis.access import check_group, refused_as_named
from barnabas.broker.apis.groups.group_requests import client_of
from barnabas.broker.apis.groups.usual_commit import usual_commit_server
from barnabas.broker.apis.parts import Parts
from barnabas.broker.apis.registry import api
from barnabas.broker.event_loop.waiting import Future
from barnabas.coord.groups.offsets import commit_error
from barnabas.coord.security.acls import Operation
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.groups.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.coord.cluster.image import ClusterImage

FIRST_VERSION_WITH_TOPIC_IDS = 10

_UNDECIDED = -32768
"""Placeholder for an error code that the coordinator will set."""


@api(
    OffsetCommitRequest,
    on_error=lambda request, error: commit_error(request, error.code),
    parts=Parts("topics.partitions"),
    send_before_close=True,
    usual=usual_commit_server,
)
async def offset_commit(ctx: RequestContext, request: OffsetCommitRequest) -> OffsetCommitResponse:
    """Commit the offsets of partitions that exist; the others get an error."""
    check_group(ctx, Operation.READ, request.group_id)
    refused = refuse_missing(ctx, request, by_id=ctx.api_version >= FIRST_VERSION_WITH_TOPIC_IDS)
    if refused is not None and not request.topics:
        return refused
    future: Future[OffsetCommitResponse] = Future()
    client = client_of(ctx)
    ctx.broker.group_coordinators.handle(
        request.group_id, lambda groups, at: groups.offsets.commit(request, future.complete, client, at)
    )
    return joined(refused, await future)


def refuse_missing(ctx: RequestContext, request: OffsetCommitRequest, *, by_id: bool) -> OffsetCommitResponse | None:
    """Remove partitions that do not exist or may not be read from the request, and set name and id of the other topics.

    None if no partition was removed; else a response with the errors of the removed ones, for `joined`. With `by_id`
    the request names topics by id.
    """
    named = [topic.topic_id for topic in request.topics] if by_id else [topic.name for topic in request.topics]
    ctx.refused_topics = refused_as_named(ctx, Operation.READ, named)
    if not ctx.refused_topics and _all_exist(ctx.broker.image, request, by_id=by_id):
        return None
    response = OffsetCommitResponse()
    accepted: list[OffsetCommitRequestTopic] = []
    for topic in request.topics:
        answers = OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id)
        response.topics.append(answers)
        _check_topic(ctx, topic, answers, accepted, by_id=by_id)
    request.topics = accepted
    return response


def joined(refused: OffsetCommitResponse | None, committed: OffsetCommitResponse) -> OffsetCommitResponse:
    """The response of the coordinator, with the errors of the partitions that were removed from its request."""
    if refused is None:
        return committed
    codes = iter([partition.error_code for topic in committed.topics for partition in topic.partitions])
    for topic in refused.topics:
        for partition in topic.partitions:
            if partition.error_code == _UNDECIDED:
                partition.error_code = next(codes)
    return refused


def _all_exist(image: ClusterImage, request: OffsetCommitRequest, *, by_id: bool) -> bool:
    """Whether every partition of the request exists, the usual case; if so, sets name and id of its topics."""
    for topic in request.topics:
        topic_image = image.topic_by_id(topic.topic_id) if by_id else image.topic(topic.name)
        if topic_image is None:
            return False
        for partition in topic.partitions:
            if partition.partition_index not in topic_image.partitions:
                return False
        topic.name, topic.topic_id = topic_image.name, topic_image.topic_id
    return True


def _check_topic(
    ctx: RequestContext,
    topic: OffsetCommitRequestTopic,
    answers: OffsetCommitResponseTopic,
    accepted: list[OffsetCommitRequestTopic],
    *,
    by_id: bool,
) -> None:
    """Add the errors of partitions that do not exist to `answers`, and the others, with name and id, to `accepted`."""
    image = ctx.broker.image
    topic_image = image.topic_by_id(topic.topic_id) if by_id else image.topic(topic.name)
    if (topic.topic_id if by_id else topic.name) in ctx.refused_topics:
        code = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        answers.partitions += [
            OffsetCommitResponsePartition(partition_index=refused.partition_index, error_code=code)
            for refused in topic.partitions
        ]
        return
    missing = ErrorCode.UNKNOWN_TOPIC_ID if by_id and topic_image is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    existing = []
    for partition in topic.partitions:
        index = partition.partition_index
        if topic_image is not None and index in topic_image.partitions:
            existing.append(partition)
            error = _UNDECIDED
        else:
            error = int(missing)
        answers.partitions.append(OffsetCommitResponsePartition(partition_index=index, error_code=error))
    if topic_image is not None and existing:
        accepted.append(
            OffsetCommitRequestTopic(name=topic_image.name, topic_id=topic_image.topic_id, partitions=existing)
        )
