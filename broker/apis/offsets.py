"""Offsets of groups: OffsetCommit (8), OffsetFetch (9), OffsetDelete (47).

OffsetCommit: v6 leader epochs, v7 static members, v10 topic ids (KIP-848). OffsetFetch: v2 all topics and an error of
the whole group, v7 require_stable (KIP-447), v8 several groups
(KIP-709), v10 topic ids. Here topics are checked against the image, and names and ids are put together; what the
requests mean is in `coord.groups`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.broker.apis.committed_reads import once_committed
from barnabas.broker.apis.groups import client_of
from barnabas.broker.apis.registry import api
from barnabas.broker.net.delayed_response import DelayedResponse
from barnabas.coord.groups.offsets import commit_error
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.coord.cluster.image import ClusterImage
    from barnabas.coord.cluster.topic_image import TopicImage

FIRST_VERSION_WITH_TOPIC_IDS = 10
FIRST_FETCH_WITH_GROUPS = 8
FIRST_FETCH_WITH_GROUP_ERROR = 2

# ---- OffsetCommit


@api(OffsetCommitRequest, on_error=lambda request, error: commit_error(request, error.code))
def offset_commit(ctx: RequestContext, request: OffsetCommitRequest) -> DelayedResponse | OffsetCommitResponse:
    """Commits the offsets of partitions that exist; the others are answered beside them."""
    delayed = DelayedResponse(send_before_close=True)
    by_id = ctx.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
    response, complete = settle_topics(ctx, request, delayed.resolve, by_id=by_id)
    if not request.topics:
        return response
    client = client_of(ctx)
    ctx.broker.coordinators.handle(
        request.group_id, lambda groups, at: groups.commit_offsets(request, complete, client, at)
    )
    return delayed


def settle_topics(
    ctx: RequestContext,
    request: OffsetCommitRequest,
    answer: Callable[[OffsetCommitResponse], None],
    *,
    by_id: bool,
) -> tuple[OffsetCommitResponse, Callable[[OffsetCommitResponse], None]]:
    """Leave only topics and partitions that exist in the request, by name and id.

    Gives the response to the others, and who takes the coordinator's answer: it puts both together for `answer`.
    """
    response = OffsetCommitResponse()
    if _all_exist(ctx.broker.image, request, by_id=by_id):
        return response, answer
    accepted: list[OffsetCommitRequestTopic] = []
    for topic in request.topics:
        answers = OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id)
        response.topics.append(answers)
        _check_topic(ctx, topic, answers, accepted, by_id=by_id)
    request.topics = accepted

    def complete(decided: OffsetCommitResponse) -> None:
        _fill_in(response, decided)
        answer(response)

    return response, complete


def _all_exist(image: ClusterImage, request: OffsetCommitRequest, *, by_id: bool) -> bool:
    """Whether every partition of the request exists, as nearly always; its topics get name and id then."""
    for topic in request.topics:
        found = image.topic_by_id(topic.topic_id) if by_id else image.topic(topic.name)
        if found is None:
            return False
        for partition in topic.partitions:
            if partition.partition_index not in found.partitions:
                return False
        topic.name, topic.topic_id = found.name, found.topic_id
    return True


def _check_topic(
    ctx: RequestContext,
    topic: OffsetCommitRequestTopic,
    answers: OffsetCommitResponseTopic,
    accepted: list[OffsetCommitRequestTopic],
    *,
    by_id: bool,
) -> None:
    """Answer for the partitions that do not exist, and put the others, with name and id, among the accepted."""
    image = ctx.broker.image
    found = image.topic_by_id(topic.topic_id) if by_id else image.topic(topic.name)
    missing = ErrorCode.UNKNOWN_TOPIC_ID if by_id and found is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    there = []
    for partition in topic.partitions:
        index = partition.partition_index
        if found is not None and index in found.partitions:
            there.append(partition)
            error = _UNDECIDED
        else:
            error = int(missing)
        answers.partitions.append(OffsetCommitResponsePartition(partition_index=index, error_code=error))
    if found is not None and there:
        accepted.append(OffsetCommitRequestTopic(name=found.name, topic_id=found.topic_id, partitions=there))


_UNDECIDED = -32768
"""Stands for an error code that the coordinator will give."""


def _fill_in(response: OffsetCommitResponse, decided: OffsetCommitResponse) -> None:
    """Put the coordinator's answers, which come in the order of the request, into their places."""
    codes = iter([partition.error_code for topic in decided.topics for partition in topic.partitions])
    for topic in response.topics:
        for partition in topic.partitions:
            if partition.error_code == _UNDECIDED:
                partition.error_code = next(codes)


# ---- OffsetFetch


def _nothing_fetched(request: OffsetFetchRequest, error: KafkaError) -> OffsetFetchResponse:
    return OffsetFetchResponse(
        error_code=int(error.code),
        groups=[
            OffsetFetchResponseGroup(group_id=group.group_id, error_code=int(error.code)) for group in request.groups
        ],
    )


@api(OffsetFetchRequest, on_error=_nothing_fetched)
def offset_fetch(ctx: RequestContext, request: OffsetFetchRequest) -> OffsetFetchResponse | DelayedResponse:
    """The committed offsets of one group (up to v7) or several, once they cannot be lost any more."""
    group_ids = [request.group_id, *(group.group_id for group in request.groups)]
    return once_committed(_fetch(ctx, request), ctx.broker.coordinators.uncommitted(group_ids))


def _fetch(ctx: RequestContext, request: OffsetFetchRequest) -> OffsetFetchResponse:
    if ctx.api_version >= FIRST_FETCH_WITH_GROUPS:
        return OffsetFetchResponse(
            groups=[_fetch_group(ctx, group, request.require_stable) for group in request.groups]
        )
    topics = request.topics
    asked = OffsetFetchRequestGroup(
        group_id=request.group_id,
        topics=None
        if topics is None
        else [OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes) for topic in topics],
    )
    found = _fetch_group(ctx, asked, request.require_stable)
    if found.error_code and ctx.api_version < FIRST_FETCH_WITH_GROUP_ERROR:
        found.topics = [
            _no_offsets(topic.name, topic.partition_indexes, found.error_code) for topic in asked.topics or ()
        ]
    return OffsetFetchResponse(
        error_code=found.error_code,
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=partition.partition_index,
                        committed_offset=partition.committed_offset,
                        committed_leader_epoch=partition.committed_leader_epoch,
                        metadata=partition.metadata,
                        error_code=partition.error_code,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in found.topics
        ],
    )


def _fetch_group(ctx: RequestContext, asked: OffsetFetchRequestGroup, require_stable: bool) -> OffsetFetchResponseGroup:
    try:
        coordinator = ctx.broker.coordinators.of_group(asked.group_id)
    except KafkaError as error:
        return OffsetFetchResponseGroup(group_id=asked.group_id, error_code=int(error.code))
    image = ctx.broker.image
    by_id = ctx.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
    if asked.topics is None:
        response = coordinator.fetch_offsets(asked, require_stable=require_stable)
        if by_id:
            response.topics = [topic for topic in response.topics if _give_id(image, topic)]
        return response
    unknown: dict[int, OffsetFetchResponseTopics] = {}
    known = []
    for place, topic in enumerate(asked.topics):
        found = image.topic_by_id(topic.topic_id) if by_id else image.topic(topic.name)
        if by_id and found is None:
            code = int(ErrorCode.UNKNOWN_TOPIC_ID)
            unknown[place] = _no_offsets("", topic.partition_indexes, code, topic.topic_id)
        else:
            known.append(_with_name_and_id(topic, found))
    response = coordinator.fetch_offsets(
        OffsetFetchRequestGroup(group_id=asked.group_id, topics=known), require_stable=require_stable
    )
    for place, answer in unknown.items():
        response.topics.insert(place, answer)
    return response


def _with_name_and_id(topic: OffsetFetchRequestTopics, found: TopicImage | None) -> OffsetFetchRequestTopics:
    """The topic asked for, with both; an offset of a former topic of that name is not shown by its id."""
    if found is not None:
        topic.name, topic.topic_id = found.name, found.topic_id
    return topic


def _give_id(image: ClusterImage, topic: OffsetFetchResponseTopics) -> bool:
    """Answer by topic id; a topic that is gone, or not the one that was committed to, cannot be shown."""
    found = image.topic(topic.name)
    if found is None or topic.topic_id not in (bytes(16), found.topic_id):
        return False
    topic.topic_id = found.topic_id
    return True


def _no_offsets(name: str, partitions: list[int], error: int, topic_id: bytes = bytes(16)) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        name=name,
        topic_id=topic_id,
        partitions=[
            OffsetFetchResponsePartitions(partition_index=index, committed_offset=-1, metadata="", error_code=error)
            for index in partitions
        ],
    )


# ---- OffsetDelete


@api(OffsetDeleteRequest)
def offset_delete(ctx: RequestContext, request: OffsetDeleteRequest) -> DelayedResponse:
    """Deletes offsets of partitions that exist and that the group's members do not read."""
    response = OffsetDeleteResponse()
    accepted: list[OffsetDeleteRequestTopic] = []
    for topic in request.topics:
        found = ctx.broker.image.topic(topic.name)
        there = [asked for asked in topic.partitions if found is not None and asked.partition_index in found.partitions]
        if there:
            accepted.append(OffsetDeleteRequestTopic(name=topic.name, partitions=there))
        response.topics.append(
            OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetDeleteResponsePartition(
                        partition_index=asked.partition_index,
                        error_code=0 if asked in there else int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
                    )
                    for asked in topic.partitions
                ],
            )
        )
    request.topics = accepted
    delayed = DelayedResponse(send_before_close=True)

    def answer(decided: OffsetDeleteResponse) -> None:
        if decided.error_code:
            delayed.resolve(decided)
            return
        codes = {
            (topic.name, partition.partition_index): partition.error_code
            for topic in decided.topics
            for partition in topic.partitions
        }
        for topic in response.topics:
            for partition in topic.partitions:
                partition.error_code = codes.get((topic.name, partition.partition_index), partition.error_code)
        delayed.resolve(response)

    ctx.broker.coordinators.handle(request.group_id, lambda groups, _: groups.delete_offsets(request, answer))
    return delayed
