"""Members of share groups: ShareGroupHeartbeat (76), ShareGroupDescribe (77). KIP-932.

The events are handled in `coord.groups.share`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.apis.access import check_group, check_topics
from barnabas.broker.apis.groups.group_protocols import needs_share_groups
from barnabas.broker.apis.groups.group_requests import MAX_MEMBER_ID_LENGTH, client_of, described, none_described
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
    from collections.abc import Iterator

    from barnabas.broker.context import RequestContext


@api(ShareGroupHeartbeatRequest, needs=needs_share_groups)
async def share_group_heartbeat(
    ctx: RequestContext, request: ShareGroupHeartbeatRequest
) -> ShareGroupHeartbeatResponse:
    """Join, stay in or leave a group; answered when its changes are committed."""
    check_group(ctx, Operation.READ, request.group_id)
    check_topics(ctx, Operation.DESCRIBE, set(request.subscribed_topic_names or ()))
    if not 0 < len(request.member_id) <= MAX_MEMBER_ID_LENGTH:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    data = (request.subscribed_topic_names, request.rack_id)
    if request.member_epoch == JOIN_EPOCH or any(data):
        ctx.broker.group_coordinators.admit(request.group_id, request.member_id, *data)
    future: Future[ShareGroupHeartbeatResponse] = Future()
    ctx.broker.group_coordinators.share_states.heartbeat(request, client_of(ctx), future.complete)
    return await future


@api(
    ShareGroupDescribeRequest,
    on_error=none_described(ShareGroupDescribeResponse, ShareGroupDescribeResponseDescribedGroup),
    needs=needs_share_groups,
    parts=Parts("group_ids", "groups", distinct=distinct_names),
)
def share_group_describe(ctx: RequestContext, request: ShareGroupDescribeRequest) -> ShareGroupDescribeResponse:
    """Describe the state, the members and the assignments of each group."""
    groups = described(
        *(ctx, request, ShareGroupDescribeResponseDescribedGroup),
        lambda groups, group_id: groups.share_groups.describe(group_id),
        _assigned_topics,
    )
    return ShareGroupDescribeResponse(groups=groups)


def _assigned_topics(group: ShareGroupDescribeResponseDescribedGroup) -> Iterator[str]:
    return (topic.topic_name for member in group.members for topic in member.assignment.topic_partitions)
