"""The streams group protocol: StreamsGroupHeartbeat (88), StreamsGroupDescribe (89). KIP-1071.

Heartbeat: v1 reports missing client tags. Describe: v1 requests a description of the topology, which in Kafka comes
from a Java plug-in and is never available here (`topology_description_status`). The events are handled in
`coord.groups.streams`.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import TYPE_CHECKING

from barnabas.broker.apis.access import check_group, check_topics
from barnabas.broker.apis.groups.group_protocols import needs_streams_groups
from barnabas.broker.apis.groups.group_requests import client_of, described, none_described
from barnabas.broker.apis.parts import Parts, distinct_names
from barnabas.broker.apis.registry import api
from barnabas.broker.event_loop.waiting import Future
from barnabas.coord.groups.modern.members import JOIN_EPOCH
from barnabas.coord.groups.streams.internal_topics import InternalTopic, Status
from barnabas.coord.security.acls import Operation, ResourceType
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.groups.streams_groups import (
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    StreamsGroupDescribeResponseDescribedGroup,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from barnabas.wire.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.wire.messages.groups.streams_groups import (
        StreamsGroupDescribeResponseTopology,
        StreamsGroupHeartbeatRequestTopology,
    )

    Topology = StreamsGroupDescribeResponseTopology | StreamsGroupHeartbeatRequestTopology

logger = logging.getLogger("kafka.server.AutoTopicCreation")

_DESCRIBED_TEXT = "The described group uses topics that the client is not authorized to describe."
_EXISTS = {int(ErrorCode.NONE), int(ErrorCode.TOPIC_ALREADY_EXISTS)}


@api(StreamsGroupHeartbeatRequest, needs=needs_streams_groups, send_before_close=True)
async def streams_group_heartbeat(
    ctx: RequestContext, request: StreamsGroupHeartbeatRequest
) -> StreamsGroupHeartbeatResponse:
    """Join, stay in or leave a group; answered when its changes are committed.

    Missing internal topics of the group are created before the response is sent, so the next heartbeat finds them.
    The missing topics are determined again then: the coordinator may have moved, and other members create them too.
    """
    check_group(ctx, Operation.READ, request.group_id)
    check_topics(ctx, Operation.DESCRIBE, _used_topics(request.topology))
    data = (request.topology, request.client_tags, request.user_endpoint, request.process_id, request.rack_id)
    if request.member_epoch == JOIN_EPOCH or any(data):
        ctx.broker.group_coordinators.admit(request.group_id, request.member_id, *data)
    future: Future[StreamsGroupHeartbeatResponse] = Future()
    client = client_of(ctx)
    ctx.broker.group_coordinators.handle(
        request.group_id, lambda groups, at: groups.streams_groups.heartbeat(request, future.complete, client, at)
    )
    response = await future
    missing = [status for status in response.status or () if status.status_code == Status.MISSING_INTERNAL_TOPICS]
    if missing:
        failures = await _create_missing(ctx, request.group_id)
        if failures:
            for status in missing:
                status.status_detail += f"; {failures}."
    return response


async def _create_missing(ctx: RequestContext, group_id: str) -> str:
    """Create the missing internal topics of a group; returns the failures as text, empty if there are none."""

    def topics() -> list[CreatableTopic]:
        missing = ctx.broker.group_coordinators.coordinator_of(group_id).streams_groups.missing_topics(group_id)
        return [_creatable(topic) for topic in missing]

    refused = _refused_creations(ctx, [topic.name for topic in topics()])
    if refused:
        return f"Unauthorized to CREATE on topics {', '.join(sorted(refused))}"
    future: Future[CreateTopicsResponse] = Future()
    ctx.broker.metadata.create_topics(topics, future.complete)
    try:
        response = await future
    except KafkaError as error:
        logger.warning("Cannot create the internal topics of streams group %r: %s", group_id, error)
        return f"Creation failed: {error.message or error.code.name}"
    failed = [
        f"{result.name} ({result.error_message or ErrorCode(result.error_code).name})"
        for result in response.topics
        if result.error_code not in _EXISTS
    ]
    for failure in failed:
        logger.warning("Cannot create an internal topic of streams group %r: %s", group_id, failure)
    return f"Creation failed: {', '.join(failed)}" if failed else ""


def _refused_creations(ctx: RequestContext, names: list[str]) -> Collection[str]:
    """The topics that the member may not create."""
    if ctx.is_allowed_on_cluster(Operation.CREATE, logs_denied=False):
        return ()
    return ctx.refused(Operation.CREATE, ResourceType.TOPIC, names)


def _creatable(topic: InternalTopic) -> CreatableTopic:
    return CreatableTopic(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in topic.configs],
    )


@api(
    StreamsGroupDescribeRequest,
    on_error=none_described(StreamsGroupDescribeResponse, StreamsGroupDescribeResponseDescribedGroup),
    needs=needs_streams_groups,
    parts=Parts("group_ids", "groups", distinct=distinct_names),
)
def streams_group_describe(ctx: RequestContext, request: StreamsGroupDescribeRequest) -> StreamsGroupDescribeResponse:
    """Describe the state, the topology, the members and the assignments of each group."""
    wants = request.include_topology_description
    groups = described(
        *(ctx, request, StreamsGroupDescribeResponseDescribedGroup),
        lambda groups, group_id: groups.streams_groups.describe(group_id, wants_description=wants),
        lambda group: _used_topics(group.topology),
        _DESCRIBED_TEXT,
    )
    return StreamsGroupDescribeResponse(groups=groups)


def _used_topics(topology: Topology | None) -> set[str]:
    """The topics that a topology names, its changelogs included where they are described."""
    names: set[str] = set()
    for part in topology.subtopologies or () if topology is not None else ():
        names.update(part.source_topics, part.repartition_sink_topics)
        names.update(topic.name for topic in part.repartition_source_topics)
        names.update(topic.name for topic in part.state_changelog_topics)
    return names
