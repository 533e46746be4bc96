"""The consumer group protocol: ConsumerGroupHeartbeat (68), ConsumerGroupDescribe (69). KIP-848.

Heartbeat: v1 regular expressions, and member ids chosen by the members (KIP-1082). Describe: v1 the protocol of each
member (KIP-1099). The events are handled in `coord.groups.consumer`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.apis.access import DESCRIBED_TEXT, check_group, check_topics
from barnabas.broker.apis.authorized_operations import group_operations
from barnabas.broker.apis.groups.group_protocols import needs_consumer_groups
from barnabas.broker.apis.groups.group_requests import seeing_client_of
from barnabas.broker.apis.parts import Parts, distinct_names
from barnabas.broker.apis.registry import api
from barnabas.broker.event_loop.waiting import Future, now_or_later
from barnabas.coord.groups.modern.members import JOIN_EPOCH
from barnabas.coord.security.acls import Operation
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.groups.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupDescribeResponseDescribedGroup,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from barnabas.broker.context import RequestContext
    from barnabas.broker.event_loop.waiting import Waiting


@api(ConsumerGroupHeartbeatRequest, needs=needs_consumer_groups, send_before_close=True)
def consumer_group_heartbeat(
    ctx: RequestContext, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse | Waiting[ConsumerGroupHeartbeatResponse]:
    """Join, stay in or leave a group; answered when its changes are committed."""
    check_group(ctx, Operation.READ, request.group_id)
    check_topics(ctx, Operation.DESCRIBE, set(request.subscribed_topic_names or ()))
    future: Future[ConsumerGroupHeartbeatResponse] = Future()
    client = seeing_client_of(ctx)
    data = (request.subscribed_topic_names, request.subscribed_topic_regex, request.rack_id)
    if request.member_epoch == JOIN_EPOCH or any(data):
        ctx.broker.group_coordinators.admit(request.group_id, request.member_id, *data)
    ctx.broker.group_coordinators.handle(
        request.group_id,
        lambda groups, at: groups.consumer_groups.heartbeat(request, future.complete, client, at),
    )
    return now_or_later(future)


def _none_described(request: ConsumerGroupDescribeRequest, error: KafkaError) -> ConsumerGroupDescribeResponse:
    return ConsumerGroupDescribeResponse(groups=[_failed(group_id, error) for group_id in request.group_ids])


@api(
    ConsumerGroupDescribeRequest,
    on_error=_none_described,
    needs=needs_consumer_groups,
    parts=Parts("group_ids", "groups", distinct=distinct_names),
)
def consumer_group_describe(
    ctx: RequestContext, request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse:
    """Describe the state, the members and the assignments of each group."""
    response = ConsumerGroupDescribeResponse(groups=[_describe(ctx, group_id) for group_id in request.group_ids])
    if request.include_authorized_operations:
        for group in response.groups:
            if not group.error_code:
                group.authorized_operations = group_operations(ctx, group.group_id)
    return response


def _describe(ctx: RequestContext, group_id: str) -> ConsumerGroupDescribeResponseDescribedGroup:
    try:
        check_group(ctx, Operation.DESCRIBE, group_id)
        if not group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        group = ctx.broker.group_coordinators.coordinator_of(group_id).consumer_groups.describe(group_id)
        check_topics(ctx, Operation.DESCRIBE, _assigned_topics(group), DESCRIBED_TEXT)
    except KafkaError as error:
        return _failed(group_id, error)
    return group


def _assigned_topics(group: ConsumerGroupDescribeResponseDescribedGroup) -> Iterator[str]:
    for member in group.members:
        for assignment in (member.assignment, member.target_assignment):
            for topic in assignment.topic_partitions:
                yield topic.topic_name


def _failed(group_id: str, error: KafkaError) -> ConsumerGroupDescribeResponseDescribedGroup:
    return ConsumerGroupDescribeResponseDescribedGroup(
        group_id=group_id, error_code=int(error.code), error_message=error.message
    )
