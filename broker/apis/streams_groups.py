"""The streams protocol: StreamsGroupHeartbeat (88), StreamsGroupDescribe (89). KIP-1071.

Heartbeat: v1 tells of missing client tags. Describe: v1 asks for a description of the topology, which Kafka leaves to a
plug-in in Java; here nobody has one (`topology_description_status`). What the requests mean is in
`coord.groups.streams`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from barnabas.broker.apis.authorized_operations import GROUP_OPERATIONS
from barnabas.broker.apis.group_protocols import needs_streams_groups
from barnabas.broker.apis.group_requests import client_of
from barnabas.broker.apis.registry import api
from barnabas.broker.net.delayed_response import DelayedResponse
from barnabas.coord.groups.streams.internal_topics import InternalTopic, Status
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.streams_groups import (
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    StreamsGroupDescribeResponseDescribedGroup,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from barnabas.wire.messages.topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext

logger = logging.getLogger("kafka.server.AutoTopicCreation")

_EXISTS = {int(ErrorCode.NONE), int(ErrorCode.TOPIC_ALREADY_EXISTS)}


@api(StreamsGroupHeartbeatRequest, needs=needs_streams_groups)
def streams_group_heartbeat(ctx: RequestContext, request: StreamsGroupHeartbeatRequest) -> DelayedResponse:
    """Joins, stays in or leaves a group; answered when what it changes is committed.

    Internal topics that the group lacks are created before the answer leaves: the next heartbeat finds them.
    """
    delayed = DelayedResponse(send_before_close=True)
    client = client_of(ctx)

    def answer(response: StreamsGroupHeartbeatResponse) -> None:
        for status in response.status or ():
            if status.status_code == Status.MISSING_INTERNAL_TOPICS:
                failures = _create_missing(ctx, request.group_id)
                if failures:
                    status.status_detail += f"; Creation failed: {failures}."
        delayed.resolve(response)

    ctx.broker.coordinators.handle(
        request.group_id, lambda groups, at: groups.streams_groups.heartbeat(request, answer, client, at)
    )
    return delayed


def _create_missing(ctx: RequestContext, group_id: str) -> str:
    """Create the internal topics that a group lacks; says which could not be, and why."""
    controller = ctx.broker.controller
    try:
        missing = ctx.broker.coordinators.of_group(group_id).streams_groups.missing_topics(group_id)
        request = CreateTopicsRequest(topics=[_creatable(topic) for topic in missing])
        response = controller.commit(controller.local.create_topics(request, controller.topic_defaults()))
    except KafkaError as error:
        logger.warning("Cannot create the internal topics of streams group %r: %s", group_id, error)
        return error.message or error.code.name
    failed = [
        f"{result.name} ({result.error_message or ErrorCode(result.error_code).name})"
        for result in response.topics
        if result.error_code not in _EXISTS
    ]
    for failure in failed:
        logger.warning("Cannot create an internal topic of streams group %r: %s", group_id, failure)
    return ", ".join(failed)


def _creatable(topic: InternalTopic) -> CreatableTopic:
    return CreatableTopic(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in topic.configs],
    )


def _none_described(request: StreamsGroupDescribeRequest, error: KafkaError) -> StreamsGroupDescribeResponse:
    return StreamsGroupDescribeResponse(groups=[_failed(group_id, error) for group_id in request.group_ids])


@api(StreamsGroupDescribeRequest, on_error=_none_described, needs=needs_streams_groups)
def streams_group_describe(ctx: RequestContext, request: StreamsGroupDescribeRequest) -> StreamsGroupDescribeResponse:
    """State, topology, members and assignments of each group."""
    wants = request.include_topology_description
    response = StreamsGroupDescribeResponse(groups=[_describe(ctx, group_id, wants) for group_id in request.group_ids])
    if request.include_authorized_operations:
        for group in response.groups:
            if not group.error_code:
                group.authorized_operations = GROUP_OPERATIONS
    return response


def _describe(
    ctx: RequestContext, group_id: str, wants_description: bool
) -> StreamsGroupDescribeResponseDescribedGroup:
    try:
        if not group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        groups = ctx.broker.coordinators.of_group(group_id).streams_groups
        return groups.describe(group_id, wants_description=wants_description)
    except KafkaError as error:
        return _failed(group_id, error)


def _failed(group_id: str, error: KafkaError) -> StreamsGroupDescribeResponseDescribedGroup:
    return StreamsGroupDescribeResponseDescribedGroup(
        group_id=group_id, error_code=int(error.code), error_message=error.message
    )
