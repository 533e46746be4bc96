"""AlterShareGroupOffsets, DeleteShareGroupOffsets and DeleteGroups of share groups without members (KIP-932).

The start offset of a share partition is part of its state, which the share coordinator keeps. Each request has two
steps: the intended change is recorded, then the share coordinator is asked; its response decides the response.
Source: Kafka 4.4 `GroupMetadataManager.alterShareGroupOffsets`, `sharePartitionsEligibleForOffsetDeletion`,
`shareGroupBuildPartitionDeleteRequest`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from barnabas.coord.groups.share.result import ShareGroupResult
from barnabas.coord.groups.share.state_partitions import StatePartitions, plus
from barnabas.coord.groups.share.tasks import DeleteStates, InitializeStates
from barnabas.coord.machine import Reply
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.groups.classic_groups import DeletableGroupResult
from barnabas.wire.messages.groups.share_groups import (
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)

if TYPE_CHECKING:
    from barnabas.coord.groups.modern.partitions import Partitions
    from barnabas.coord.groups.share.group import ShareGroup
    from barnabas.coord.groups.share.registry import ShareGroupRegistry
    from barnabas.coord.groups.share.tasks import Failures, Initialization
    from barnabas.coord.groups.topics import Topic
    from barnabas.coord.machine import Moment, Ticket
    from barnabas.wire.messages.groups.share_groups import (
        AlterShareGroupOffsetsRequest,
        AlterShareGroupOffsetsRequestTopic,
        DeleteShareGroupOffsetsRequest,
    )
    from barnabas.wire.types import Uuid

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
NOTHING_TO_DELETE = "There is no offset information to delete."
NO_SUCH_PARTITION = "This server does not host this topic-partition."


# ---- AlterShareGroupOffsets


def alter_error(error: ErrorCode, message: str | None = None) -> AlterShareGroupOffsetsResponse:
    """The response to an AlterShareGroupOffsets that failed as a whole."""
    return AlterShareGroupOffsetsResponse(error_code=int(error), error_message=message)


def alter(
    registry: ShareGroupRegistry, request: AlterShareGroupOffsetsRequest, ticket: Ticket, at: Moment
) -> ShareGroupResult:
    """Set the start offsets of an empty group; a group that does not exist is created."""
    result = ShareGroupResult()
    try:
        group = registry.group_or_new(request.group_id)
        group.validate_delete()
    except KafkaError as refused:
        result.reply(ticket, alter_error(refused.code, refused.message))
        return result
    response = AlterShareGroupOffsetsResponse()
    start_offsets: dict[Uuid, dict[int, int]] = {}
    for requested in request.topics:
        topic = registry.topics.by_name(requested.topic_name)
        response.responses.append(_altered(requested, topic))
        if topic is not None:
            offsets = {each.partition_index: each.start_offset for each in requested.partitions}
            offsets = {index: offset for index, offset in offsets.items() if 0 <= index < topic.partitions}
            if offsets:
                start_offsets[topic.topic_id] = offsets
    if not start_offsets:
        result.reply(ticket, response)
        return result
    partitions: Partitions = {topic_id: frozenset(offsets) for topic_id, offsets in start_offsets.items()}
    initialization = registry.begin(group, partitions, at, result)
    result.task = InitializeStates(group.group_id, group.epoch, start_offsets)
    result.then = partial(_altered_states, initialization=initialization, response=response, ticket=ticket)
    result.parked = initialization.waiting
    result.awaiting = Reply(ticket, response, alter_error)
    return result


def _altered(requested: AlterShareGroupOffsetsRequestTopic, topic: Topic | None) -> AlterShareGroupOffsetsResponseTopic:
    count = 0 if topic is None else topic.partitions
    response = AlterShareGroupOffsetsResponseTopic(topic_name=requested.topic_name)
    if topic is not None:
        response.topic_id = topic.topic_id
    for each in requested.partitions:
        entry = AlterShareGroupOffsetsResponsePartition(partition_index=each.partition_index)
        if not 0 <= each.partition_index < count:
            entry.error_code, entry.error_message = int(UNKNOWN), NO_SUCH_PARTITION
        response.partitions.append(entry)
    return response


def _altered_states(
    registry: ShareGroupRegistry,
    failures: Failures,
    _at: Moment,
    *,
    initialization: Initialization,
    response: AlterShareGroupOffsetsResponse,
    ticket: Ticket,
) -> ShareGroupResult:
    result = ShareGroupResult()
    registry.end(initialization, failures, result)
    for topic in response.responses:
        failed = failures.get(topic.topic_id, {})
        for partition in topic.partitions:
            error = failed.get(partition.partition_index)
            if error is not None and not partition.error_code:
                partition.error_code, partition.error_message = (
                    int(error),
                    f"The state cannot be initialized: {error.name}",
                )
    result.reply(ticket, response, alter_error)
    result.resumed = initialization.waiting
    return result


# ---- DeleteShareGroupOffsets


def delete_error(error: ErrorCode, message: str | None = None) -> DeleteShareGroupOffsetsResponse:
    """The response to a DeleteShareGroupOffsets that failed as a whole."""
    return DeleteShareGroupOffsetsResponse(error_code=int(error), error_message=message)


def delete(registry: ShareGroupRegistry, request: DeleteShareGroupOffsetsRequest, ticket: Ticket) -> ShareGroupResult:
    """Delete the offsets of topics of an empty group."""
    result = ShareGroupResult()
    try:
        group = registry.group(request.group_id)
        group.validate_delete()
    except KafkaError as refused:
        result.reply(ticket, delete_error(refused.code, refused.message))
        return result
    response = DeleteShareGroupOffsetsResponse()
    partitions: Partitions = {}
    state = group.state_partitions
    for requested in request.topics:
        topic = registry.topics.by_name(requested.topic_name)
        entry = DeleteShareGroupOffsetsResponseTopic(topic_name=requested.topic_name)
        response.responses.append(entry)
        if topic is None:
            entry.error_code, entry.error_message = int(UNKNOWN), NO_SUCH_PARTITION
            continue
        entry.topic_id = topic.topic_id
        if topic.topic_id in state.initialized:
            partitions[topic.topic_id] = state.initialized[topic.topic_id]
        elif topic.topic_id in state.deleting:  # an earlier deletion was begun and has not ended
            partitions[topic.topic_id] = frozenset(range(topic.partitions))
        else:
            entry.error_code, entry.error_message = int(UNKNOWN), NOTHING_TO_DELETE
    if not partitions:
        result.reply(ticket, response)
        return result
    registry.write_states(group, state.deletion_begun(partitions), result)
    result.task = DeleteStates(group.group_id, partitions)
    result.then = partial(
        _deleted_states, group_id=group.group_id, partitions=partitions, response=response, ticket=ticket
    )
    result.awaiting = Reply(ticket, response, delete_error)
    return result


def _deleted_states(
    registry: ShareGroupRegistry,
    failures: Failures,
    _at: Moment,
    *,
    group_id: str,
    partitions: Partitions,
    response: DeleteShareGroupOffsetsResponse,
    ticket: Ticket,
) -> ShareGroupResult:
    result = ShareGroupResult()
    group = registry.find(group_id)
    deleted = set(partitions) - {topic_id for topic_id, failed in failures.items() if failed}
    if deleted and group is not None:
        registry.write_states(group, group.state_partitions.without_topics(deleted), result)
    for topic in response.responses:
        error = next(iter(failures.get(topic.topic_id, {}).values()), None)
        if error is not None and not topic.error_code:
            topic.error_code, topic.error_message = int(error), f"The state cannot be deleted: {error.name}"
    result.reply(ticket, response, delete_error)
    return result


# ---- DeleteGroups


def delete_group(registry: ShareGroupRegistry, group: ShareGroup, ticket: Ticket) -> ShareGroupResult:
    """DeleteGroups of a share group: deletes its states, then the group; the reply is a `DeletableGroupResult`."""
    result = ShareGroupResult()
    group_id = group.group_id
    try:
        group.validate_delete()
    except KafkaError as refused:
        result.reply(ticket, _not_deleted(refused.code, group_id=group_id))
        return result
    state = group.state_partitions
    partitions = plus(state.initialized, state.initializing)
    for topic_id in state.deleting:
        topic = registry.topics.by_id(topic_id)
        if topic is not None:
            partitions[topic_id] = frozenset(range(topic.partitions))
    if not partitions:
        _remove_group(group, ticket, result)
        return result
    registry.write_states(group, StatePartitions(deleting=frozenset(partitions)), result)
    result.task = DeleteStates(group_id, partitions)
    result.then = partial(_deleted_group_states, group_id=group_id, ticket=ticket)
    result.awaiting = Reply(ticket, DeletableGroupResult(group_id=group_id), partial(_not_deleted, group_id=group_id))
    return result


def _deleted_group_states(
    registry: ShareGroupRegistry, failures: Failures, _at: Moment, *, group_id: str, ticket: Ticket
) -> ShareGroupResult:
    result = ShareGroupResult()
    error = next((code for by_partition in failures.values() for code in by_partition.values()), None)
    try:
        if error is not None:
            raise KafkaError(error)
        group = registry.group(group_id)
        group.validate_delete()  # a member may have joined in between
    except KafkaError as refused:
        result.reply(ticket, _not_deleted(refused.code, group_id=group_id))
    else:
        _remove_group(group, ticket, result)
    return result


def _remove_group(group: ShareGroup, ticket: Ticket, result: ShareGroupResult) -> None:
    result.records = group.tombstones()
    response = DeletableGroupResult(group_id=group.group_id)
    result.reply(ticket, response, partial(_not_deleted, group_id=group.group_id))


def _not_deleted(error: ErrorCode, *, group_id: str) -> DeletableGroupResult:
    return DeletableGroupResult(group_id=group_id, error_code=int(error))
