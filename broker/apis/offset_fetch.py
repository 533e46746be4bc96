"""OffsetFetch (9).

v2 all topics, and an error of the whole group; v7 require_stable (KIP-447); v8 several groups (KIP-709); v10 topic ids
(KIP-848). Groups of which all offsets are requested are answered once and one after the other, in parts; the offsets of
one group are one part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.apis.access import check_group, refused_as_named, refused_topics
from barnabas.broker.apis.committed_reads import once_committed
from barnabas.broker.apis.parts import Parts
from barnabas.broker.apis.registry import api
from barnabas.coord.security.acls import Operation
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.offsets import (
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
from barnabas.wire.types import ZERO_UUID

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.broker.waiting import Waiting
    from barnabas.coord.cluster.image import ClusterImage
    from barnabas.coord.cluster.topic_image import TopicImage

FIRST_VERSION_WITH_TOPIC_IDS = 10
FIRST_VERSION_WITH_GROUPS = 8
FIRST_VERSION_WITH_GROUP_ERROR = 2


def _none_fetched(request: OffsetFetchRequest, error: KafkaError) -> OffsetFetchResponse:
    return OffsetFetchResponse(
        error_code=int(error.code),
        groups=[
            OffsetFetchResponseGroup(group_id=group.group_id, error_code=int(error.code)) for group in request.groups
        ],
    )


def _distinct_groups(groups: list[OffsetFetchRequestGroup]) -> list[OffsetFetchRequestGroup]:
    """The groups without those of which all offsets are requested a second time."""
    of_all = {group.group_id: group for group in groups if group.topics is None}
    return [group for group in groups if group.topics is not None or of_all[group.group_id] is group]


@api(
    OffsetFetchRequest,
    on_error=_none_fetched,
    parts=(
        Parts("groups.topics.partition_indexes", "groups.topics.partitions", distinct=_distinct_groups),
        Parts("topics.partition_indexes", "topics.partitions"),
    ),
)
def offset_fetch(
    ctx: RequestContext, request: OffsetFetchRequest
) -> OffsetFetchResponse | Waiting[OffsetFetchResponse]:
    """The offsets of one group (up to v7) or several, answered when they are committed."""
    group_ids = [request.group_id, *(group.group_id for group in request.groups)]
    groups = ctx.broker.group_coordinators
    uncommitted = groups.uncommitted(group_ids)
    return once_committed(_fetch(ctx, request), uncommitted, ctx.broker.loop, groups.write_timeout_s)


def _fetch(ctx: RequestContext, request: OffsetFetchRequest) -> OffsetFetchResponse:
    if ctx.api_version >= FIRST_VERSION_WITH_GROUPS:
        return OffsetFetchResponse(
            groups=[_fetch_group(ctx, group, request.require_stable) for group in request.groups]
        )
    topics = request.topics
    group = OffsetFetchRequestGroup(
        group_id=request.group_id,
        topics=None
        if topics is None
        else [OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes) for topic in topics],
    )
    found = _fetch_group(ctx, group, request.require_stable)
    if found.error_code and ctx.api_version < FIRST_VERSION_WITH_GROUP_ERROR:
        found.topics = [
            _no_offsets(topic.name, topic.partition_indexes, found.error_code) for topic in group.topics or ()
        ]
    return OffsetFetchResponse(error_code=found.error_code, topics=[_single_group_topic(one) for one in found.topics])


def _single_group_topic(topic: OffsetFetchResponseTopics) -> OffsetFetchResponseTopic:
    """A topic of a group in the form of versions with one group."""
    return OffsetFetchResponseTopic(
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


def _fetch_group(ctx: RequestContext, group: OffsetFetchRequestGroup, require_stable: bool) -> OffsetFetchResponseGroup:
    try:
        check_group(ctx, Operation.DESCRIBE, group.group_id)
        coordinator = ctx.broker.group_coordinators.coordinator_of(group.group_id)
    except KafkaError as error:
        return OffsetFetchResponseGroup(group_id=group.group_id, error_code=int(error.code))
    image = ctx.broker.image
    by_id = ctx.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
    if group.topics is None:
        response = coordinator.offsets.fetch(group, require_stable=require_stable)
        hidden = refused_topics(ctx, Operation.DESCRIBE, (topic.name for topic in response.topics))
        if hidden:
            response.topics = [topic for topic in response.topics if topic.name not in hidden]
        if by_id:
            response.topics = [topic for topic in response.topics if _set_id(image, topic)]
        return response
    unknown: dict[int, OffsetFetchResponseTopics] = {}
    known = []
    named = [topic.topic_id for topic in group.topics] if by_id else [topic.name for topic in group.topics]
    refused = refused_as_named(ctx, Operation.DESCRIBE, named)
    for position, topic in enumerate(group.topics):
        found = image.topic_by_id(topic.topic_id) if by_id else image.topic(topic.name)
        if by_id and found is None:
            code = int(ErrorCode.UNKNOWN_TOPIC_ID)
            unknown[position] = _no_offsets("", topic.partition_indexes, code, topic.topic_id)
        elif refused and (topic.topic_id if by_id else topic.name) in refused:
            code = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            unknown[position] = _no_offsets(topic.name, topic.partition_indexes, code, topic.topic_id)
        else:
            known.append(_with_name_and_id(topic, found))
    response = coordinator.offsets.fetch(
        OffsetFetchRequestGroup(group_id=group.group_id, topics=known), require_stable=require_stable
    )
    if unknown and not response.error_code:
        answers = iter(response.topics)
        response.topics = [unknown.get(position) or next(answers) for position in range(len(group.topics))]
    return response


def _with_name_and_id(topic: OffsetFetchRequestTopics, found: TopicImage | None) -> OffsetFetchRequestTopics:
    """Set name and id of a requested topic that exists, so that offsets of a deleted topic of the name do not match."""
    if found is not None:
        topic.name, topic.topic_id = found.name, found.topic_id
    return topic


def _set_id(image: ClusterImage, topic: OffsetFetchResponseTopics) -> bool:
    """Set the topic id of an answer; False if the topic that was committed to does not exist any more."""
    found = image.topic(topic.name)
    if found is None or topic.topic_id not in (ZERO_UUID, found.topic_id):
        return False
    topic.topic_id = found.topic_id
    return True


def _no_offsets(name: str, partitions: list[int], error: int, topic_id: bytes = ZERO_UUID) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        name=name,
        topic_id=topic_id,
        partitions=[
            OffsetFetchResponsePartitions(partition_index=index, committed_offset=-1, metadata="", error_code=error)
            for index in partitions
        ],
    )
