"""The consumer group protocol: ConsumerGroupHeartbeat (68), ConsumerGroupDescribe (69). KIP-848.

Heartbeat: v1 regular expressions, and member ids chosen by the members (KIP-1082). Describe: v1 the protocol of each
member (KIP-1099). The events are handled in `coord.groups.consumer`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.apis.access import check_group, check_topics
from barnabas.broker.apis.groups.group_protocols import needs_consumer_groups
from barnabas.broker.apis.groups.group_requests import described, none_described, seeing_client_of
from barnabas.broker.apis.parts import Parts, distinct_names
from barnabas.broker.apis.registry import api
from barnabas.broker.event_loop.waiting import Future, now_or_later
from barnabas.coord.groups.modern.members import JOIN_EPOCH
from barnabas.coord.security.acls import Operation
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


@api(
    ConsumerGroupDescribeRequest,
    on_error=none_described(ConsumerGroupDescribeResponse, ConsumerGroupDescribeResponseDescribedGroup),
    needs=needs_consumer_groups,
    parts=Parts("group_ids", "groups", distinct=distinct_names),
)
def consumer_group_describe(
    ctx: RequestContext, request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse:
    """Describe the state, the members and the assignments of each group."""
    groups = described(
        *(ctx, request, ConsumerGroupDescribeResponseDescribedGroup),
        lambda groups, group_id: groups.consumer_groups.describe(group_id),
        _assigned_topics,
    )
    return ConsumerGroupDescribeResponse(groups=groups)


def _assigned_topics(group: ConsumerGroupDescribeResponseDescribedGroup) -> Iterator[str]:
    for member in group.members:
        for assignment in (member.assignment, member.target_assignment):
            for topic in assignment.topic_partitions:
                yield topic.topic_name
