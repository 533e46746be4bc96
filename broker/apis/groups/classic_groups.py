"""Members of classic groups: JoinGroup (11), Heartbeat (12), LeaveGroup (13), SyncGroup (14).

JoinGroup: v4 member ids are required (KIP-394), v5 static members (KIP-345), v7 the protocol name may be null, v9 the
leader may skip the assignment (KIP-814). SyncGroup: v5 the protocol is named (KIP-559). LeaveGroup: v3 several members.
The events are handled in `coord.groups.classic`, by the coordinator that a group has when its request comes; it answers
all waiting requests if it is unloaded. Nothing that was read before a wait is used after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.apis.access import check_group
from barnabas.broker.apis.groups.group_requests import client_of
from barnabas.broker.apis.parts import Parts
from barnabas.broker.apis.registry import api
from barnabas.broker.event_loop.waiting import Future, now_or_later
from barnabas.coord.security.acls import Operation
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.groups.classic_groups import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.broker.event_loop.waiting import Waiting

FIRST_JOIN_WITH_NULL_PROTOCOL = 7
FIRST_LEAVE_WITH_MEMBERS = 3
FIRST_SYNC_WITH_PROTOCOL = 5


@api(JoinGroupRequest, send_before_close=True)
async def join_group(ctx: RequestContext, request: JoinGroupRequest) -> JoinGroupResponse:
    """Join a group; answered when its next generation starts."""
    check_group(ctx, Operation.READ, request.group_id)
    future: Future[JoinGroupResponse] = Future()
    client = client_of(ctx)
    ctx.broker.group_coordinators.admit(request.group_id, request.member_id, request.protocols)
    ctx.broker.group_coordinators.handle(
        request.group_id, lambda groups, at: groups.classic.join(request, future.complete, client, at)
    )
    response = await future
    if response.protocol_name is None and ctx.api_version < FIRST_JOIN_WITH_NULL_PROTOCOL:
        response.protocol_name = ""
    return response


@api(SyncGroupRequest, send_before_close=True)
async def sync_group(ctx: RequestContext, request: SyncGroupRequest) -> SyncGroupResponse:
    """Get the member's assignment; answered when the assignment of the leader is committed."""
    lacks_protocol = request.protocol_type is None or request.protocol_name is None
    if lacks_protocol and ctx.api_version >= FIRST_SYNC_WITH_PROTOCOL:
        return SyncGroupResponse(error_code=int(ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
    check_group(ctx, Operation.READ, request.group_id)
    if request.assignments:
        assignments = [member.assignment for member in request.assignments]
        ctx.broker.group_coordinators.admit_assignments(request.group_id, assignments)
    future: Future[SyncGroupResponse] = Future()
    ctx.broker.group_coordinators.handle(
        request.group_id, lambda groups, at: groups.classic.sync(request, future.complete, at)
    )
    return await future


@api(HeartbeatRequest, send_before_close=True)
def heartbeat(ctx: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse | Waiting[HeartbeatResponse]:
    """Renew the member's session.

    While the coordinator is loaded every heartbeat is good, as in Kafka (`GroupCoordinatorService.heartbeat`): the
    members are not known yet, and sessions start anew afterwards. Some clients (aiokafka) stop if it is an error.
    """
    check_group(ctx, Operation.READ, request.group_id)
    future: Future[HeartbeatResponse] = Future()
    try:
        ctx.broker.group_coordinators.handle(
            request.group_id, lambda groups, at: groups.classic.heartbeat(request, future.complete, at)
        )
    except KafkaError as error:
        if error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return HeartbeatResponse()
        raise
    return now_or_later(future)


@api(LeaveGroupRequest, parts=Parts("members"), send_before_close=True)
async def leave_group(ctx: RequestContext, request: LeaveGroupRequest) -> LeaveGroupResponse:
    """Remove one member (up to v2) or several."""
    check_group(ctx, Operation.READ, request.group_id)
    has_members = ctx.api_version >= FIRST_LEAVE_WITH_MEMBERS
    if not has_members:
        request.members = [MemberIdentity(member_id=request.member_id)]
    future: Future[LeaveGroupResponse] = Future()
    ctx.broker.group_coordinators.handle(
        request.group_id, lambda groups, at: groups.classic.leave(request, future.complete, at)
    )
    response = await future
    if not has_members and response.members:
        return LeaveGroupResponse(error_code=response.members[0].error_code)
    return response
