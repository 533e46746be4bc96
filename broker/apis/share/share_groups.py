"""Members of share groups: ShareGroupHeartbeat (76), ShareGroupDescribe (77). KIP-932.

The events are handled in `coord.groups.share`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.apis.access import DESCRIBED_TEXT, check_group, check_topics
from barnabas.broker.apis.authorized_operations import group_operations
from barnabas.broker.apis.groups.group_protocols import needs_share_groups
from barnabas.broker.apis.groups.group_requests import MAX_MEMBER_ID_LENGTH, client_of
from barnabas.broker.apis.parts import Parts, distinct_names
from barnabas.broker.apis.registry import api
from barnabas.broker.event_loop.waiting import Future
from barnabas.coord.groups.modern.members import JOIN_EPOCH
from barnabas.coord.security.acls import Operation
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.groups.share_groups import (
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    ShareGroupDescribeResponseDescribedGroup,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext


@api(ShareGroupHeartbeatRequest, needs=needs_share_groups)
async def share_group_heartbeat(
    ctx: RequestContext, request: ShareGroupHeartbeatRequest
) -> ShareGroupHeartbeatResponse:
    """Join, stay in or leave a group; answered when its changes are committed."""
    check_group(ctx, Operation.READ, request.group_id)
    check_topics(ctx, Operation.DESCRIBE, set(request.subscribed_topic_names or ()))
    if not 0 < len(request.member_id) <= MAX_MEMBER_ID_LENGTH:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid member id in the request.")
    data = (request.subscribed_topic_names, request.rack_id)
    if request.member_epoch == JOIN_EPOCH or any(data):
        ctx.broker.group_coordinators.admit(request.group_id, request.member_id, *data)
    future: Future[ShareGroupHeartbeatResponse] = Future()
    ctx.broker.group_coordinators.share_states.heartbeat(request, client_of(ctx), future.complete)
    return await future


def _none_described(request: ShareGroupDescribeRequest, error: KafkaError) -> ShareGroupDescribeResponse:
    return ShareGroupDescribeResponse(groups=[_not_described(group_id, error) for group_id in request.group_ids])


@api(
    ShareGroupDescribeRequest,
    on_error=_none_described,
    needs=needs_share_groups,
    parts=Parts("group_ids", "groups", distinct=distinct_names),
)
def share_group_describe(ctx: RequestContext, request: ShareGroupDescribeRequest) -> ShareGroupDescribeResponse:
    """Describe the state, the members and the assignments of each group."""
    response = ShareGroupDescribeResponse(groups=[_describe(ctx, group_id) for group_id in request.group_ids])
    if request.include_authorized_operations:
        for group in response.groups:
            if not group.error_code:
                group.authorized_operations = group_operations(ctx, group.group_id)
    return response


def _describe(ctx: RequestContext, group_id: str) -> ShareGroupDescribeResponseDescribedGroup:
    try:
        check_group(ctx, Operation.DESCRIBE, group_id)
        if not group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        group = ctx.broker.group_coordinators.coordinator_of(group_id).share_groups.describe(group_id)
        assigned = (topic.topic_name for member in group.members for topic in member.assignment.topic_partitions)
        check_topics(ctx, Operation.DESCRIBE, assigned, DESCRIBED_TEXT)
    except KafkaError as error:
        return _not_described(group_id, error)
    return group


def _not_described(group_id: str, error: KafkaError) -> ShareGroupDescribeResponseDescribedGroup:
    return ShareGroupDescribeResponseDescribedGroup(
        group_id=group_id, error_code=int(error.code), error_message=error.message
    )
