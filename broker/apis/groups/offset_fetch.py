"""OffsetFetch (9).

v2 all topics, and an error of the whole group; v7 require_stable (KIP-447); v8 several groups (KIP-709); v10 topic ids
(KIP-848). Answered when the reported offsets are committed, so that no crash can revoke it (`committed_reads`).

Groups of which all offsets are requested are answered once and one after the other, in parts, and the offsets of one
group in pieces, between which others are served: each offset is read, with the transactions that are open, in its
piece. The coordinator must be the same at the end; the client's access to topics, the topics' ids and the partitions
with uncommitted records are looked up then.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

from barnabas.broker.apis.access import check_group, refused_as_named, refused_topics
from barnabas.broker.apis.groups.committed_reads import all_committed, once_committed
from barnabas.broker.apis.parts import Parts
from barnabas.broker.apis.registry import api
from barnabas.broker.event_loop.waiting import pause
from barnabas.coord.security.acls import Operation
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.groups.offsets import (
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
    from collections.abc import Collection

    from barnabas.broker.context import RequestContext
    from barnabas.broker.event_loop.waiting import Waiting
    from barnabas.coord.cluster.image import ClusterImage
    from barnabas.coord.groups.coordinator import GroupCoordinator

FIRST_VERSION_WITH_TOPIC_IDS = 10
FIRST_VERSION_WITH_GROUPS = 8
FIRST_VERSION_WITH_GROUP_ERROR = 2
OFFSETS_OF_A_PIECE = 200
"""Each takes a few microseconds."""


def _none_fetched(request: OffsetFetchRequest, error: KafkaError) -> OffsetFetchResponse:
    return OffsetFetchResponse(
        error_code=int(error.code),
        groups=[
            OffsetFetchResponseGroup(group_id=group.group_id, error_code=int(error.code)) for group in request.groups
        ],
    )


def _distinct_groups(groups: list[OffsetFetchRequestGroup]) -> list[OffsetFetchRequestGroup]:
    """The groups; one of which all offsets are requested several times is kept once."""
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
    has_groups = ctx.api_version >= FIRST_VERSION_WITH_GROUPS
    groups = request.groups if has_groups else [_only_group(request)]
    ids = []
    for group in groups:
        if group.topics is None:
            return _fetch_in_pieces(ctx, request, groups)
        ids.append(group.group_id)
    coordinators = ctx.broker.group_coordinators
    uncommitted = coordinators.uncommitted(ids)
    fetched = [_fetch_group(ctx, group, request.require_stable) for group in groups]
    response = OffsetFetchResponse(groups=fetched) if has_groups else _response(ctx, groups, fetched)
    if not uncommitted:
        return response
    return once_committed(response, uncommitted, ctx.broker.loop, coordinators.write_timeout_s)


def _only_group(request: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    """The group of a request, in the form of versions with several."""
    topics = request.topics
    if topics is None:
        return OffsetFetchRequestGroup(group_id=request.group_id, topics=None)
    named = [OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes) for topic in topics]
    return OffsetFetchRequestGroup(group_id=request.group_id, topics=named)


async def _fetch_in_pieces(
    ctx: RequestContext, request: OffsetFetchRequest, groups: list[OffsetFetchRequestGroup]
) -> OffsetFetchResponse:
    """The response to a request of all offsets of groups."""
    coordinators = ctx.broker.group_coordinators
    read: dict[str, GroupCoordinator] = {}
    results = []
    for group in groups:
        try:
            if group.topics is None:
                results.append(await _fetch_all(ctx, group, request.require_stable, read))
            else:
                results.append(_fetch_group(ctx, group, request.require_stable))
        except KafkaError as error:
            results.append(OffsetFetchResponseGroup(group_id=group.group_id, error_code=int(error.code)))
    for group_id, coordinator in read.items():
        if coordinators.coordinator_of(group_id) is not coordinator:  # it has moved, or was loaded again
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
    uncommitted = coordinators.uncommitted([group.group_id for group in groups])
    await all_committed(uncommitted, ctx.broker.loop, coordinators.write_timeout_s)
    return _response(ctx, groups, results)


async def _fetch_all(
    ctx: RequestContext, group: OffsetFetchRequestGroup, require_stable: bool, read: dict[str, GroupCoordinator]
) -> OffsetFetchResponseGroup:
    """All offsets of a group, from the coordinator that is added to `read`."""
    check_group(ctx, Operation.DESCRIBE, group.group_id)
    coordinator = ctx.broker.group_coordinators.coordinator_of(group.group_id)
    coordinator.offsets.check_fetch(group)
    read[group.group_id] = coordinator
    response = OffsetFetchResponseGroup(group_id=group.group_id)
    steps = coordinator.offsets.fetch_all(group.group_id, require_stable=require_stable)
    for number, topic in enumerate(steps, 1):
        if topic is not None:
            response.topics.append(topic)
        if number % OFFSETS_OF_A_PIECE == 0:
            await pause()
    hidden = refused_topics(ctx, Operation.DESCRIBE, (topic.name for topic in response.topics))
    if hidden:
        response.topics = [topic for topic in response.topics if topic.name not in hidden]
    if ctx.api_version >= FIRST_VERSION_WITH_TOPIC_IDS:
        image = ctx.broker.image
        response.topics = [topic for topic in response.topics if _set_id(image, topic)]
    return response


def _response(
    ctx: RequestContext, groups: list[OffsetFetchRequestGroup], results: list[OffsetFetchResponseGroup]
) -> OffsetFetchResponse:
    if ctx.api_version >= FIRST_VERSION_WITH_GROUPS:
        return OffsetFetchResponse(groups=results)
    (group,), (result,) = groups, results
    if result.error_code and ctx.api_version < FIRST_VERSION_WITH_GROUP_ERROR:
        result.topics = [
            _no_offsets(topic.name, topic.partition_indexes, result.error_code) for topic in group.topics or ()
        ]
    return OffsetFetchResponse(
        error_code=result.error_code, topics=[_single_group_topic(topic) for topic in result.topics]
    )


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
    assert group.topics is not None
    unknown: dict[int, OffsetFetchResponseTopics] = {}
    known = []
    refused: Collection[bytes | str] = ()
    if ctx.broker.authorizer is not None:
        named = [topic.topic_id for topic in group.topics] if by_id else [topic.name for topic in group.topics]
        refused = refused_as_named(ctx, Operation.DESCRIBE, named)
    for position, topic in enumerate(group.topics):
        existing = image.topics_by_id.get(topic.topic_id) if by_id else image.topics.get(topic.name)
        if by_id and existing is None:
            code = int(ErrorCode.UNKNOWN_TOPIC_ID)
            unknown[position] = _no_offsets("", topic.partition_indexes, code, topic.topic_id)
        elif refused and (topic.topic_id if by_id else topic.name) in refused:
            code = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            unknown[position] = _no_offsets(topic.name, topic.partition_indexes, code, topic.topic_id)
        else:
            if existing is not None:  # so that offsets of a deleted topic of the name do not match
                topic.name, topic.topic_id = existing.name, existing.topic_id
            known.append(topic)
    known_group = copy(group)  # with the member and its epoch, which the coordinator checks
    known_group.topics = known
    response = coordinator.offsets.fetch(known_group, require_stable=require_stable)
    if unknown and not response.error_code:
        fetched = iter(response.topics)
        response.topics = [unknown.get(position) or next(fetched) for position in range(len(group.topics))]
    return response


def _set_id(image: ClusterImage, topic: OffsetFetchResponseTopics) -> bool:
    """Set the topic id of a result; False if the topic that was committed to does not exist any more."""
    existing = image.topic(topic.name)
    if existing is None or topic.topic_id not in (ZERO_UUID, existing.topic_id):
        return False
    topic.topic_id = existing.topic_id
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
