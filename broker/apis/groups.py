"""Members of classic groups: JoinGroup (11), Heartbeat (12), LeaveGroup (13), SyncGroup (14).

JoinGroup: v4 member ids are required (KIP-394), v5 static members (KIP-345), v7 the protocol name may be null, v9 the
leader may skip the assignment (KIP-814). SyncGroup: v5 the protocol is named (KIP-559). LeaveGroup: v3 several members.
The events are handled in `coord.groups.classic`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.apis.access import check_group
from barnabas.broker.apis.group_requests import client_of
from barnabas.broker.apis.parts import Parts
from barnabas.broker.apis.registry import api
from barnabas.broker.net.delayed_response import DelayedResponse
from barnabas.coord.security.acls import Operation
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.groups import (
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

FIRST_JOIN_WITH_NULL_PROTOCOL = 7
FIRST_LEAVE_WITH_MEMBERS = 3
FIRST_SYNC_WITH_PROTOCOL = 5


@api(JoinGroupRequest)
def join_group(ctx: RequestContext, request: JoinGroupRequest) -> DelayedResponse:
    """Join a group; answered when its next generation starts."""
    check_group(ctx, Operation.READ, request.group_id)
    delayed = DelayedResponse(send_before_close=True)
    allows_null = ctx.api_version >= FIRST_JOIN_WITH_NULL_PROTOCOL

    def answer(response: JoinGroupResponse) -> None:
        if response.protocol_name is None and not allows_null:
            response.protocol_name = ""
        delayed.resolve(response)

    client = client_of(ctx)
    ctx.broker.group_coordinators.admit(request.group_id, request.member_id, request.protocols)
    ctx.broker.group_coordinators.handle(
        request.group_id, lambda groups, at: groups.classic.join(request, delayed.guard(answer), client, at)
    )
    return delayed


@api(SyncGroupRequest)
def sync_group(ctx: RequestContext, request: SyncGroupRequest) -> DelayedResponse | SyncGroupResponse:
    """Get the member's assignment; answered when the assignment of the leader is committed."""
    lacks_protocol = request.protocol_type is None or request.protocol_name is None
    if lacks_protocol and ctx.api_version >= FIRST_SYNC_WITH_PROTOCOL:
        return SyncGroupResponse(error_code=int(ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
    check_group(ctx, Operation.READ, request.group_id)
    if request.assignments:
        assignments = [one.assignment for one in request.assignments]
        ctx.broker.group_coordinators.admit_assignments(request.group_id, assignments)
    delayed = DelayedResponse(send_before_close=True)
    ctx.broker.group_coordinators.handle(
        request.group_id, lambda groups, at: groups.classic.sync(request, delayed.resolve, at)
    )
    return delayed


@api(HeartbeatRequest)
def heartbeat(ctx: RequestContext, request: HeartbeatRequest) -> DelayedResponse | HeartbeatResponse:
    """Renew the member's session.

    While the coordinator is loaded every heartbeat is good, as in Kafka (`GroupCoordinatorService.heartbeat`): nobody
    can tell yet, and sessions start anew afterwards. Some clients (aiokafka) stop if it is an error.
    """
    check_group(ctx, Operation.READ, request.group_id)
    delayed = DelayedResponse(send_before_close=True)
    try:
        ctx.broker.group_coordinators.handle(
            request.group_id, lambda groups, at: groups.classic.heartbeat(request, delayed.resolve, at)
        )
    except KafkaError as error:
        if error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return HeartbeatResponse()
        raise
    return delayed


@api(LeaveGroupRequest, parts=Parts("members"))
def leave_group(ctx: RequestContext, request: LeaveGroupRequest) -> DelayedResponse:
    """Remove one member (up to v2) or several."""
    check_group(ctx, Operation.READ, request.group_id)
    delayed = DelayedResponse(send_before_close=True)
    has_members = ctx.api_version >= FIRST_LEAVE_WITH_MEMBERS
    if not has_members:
        request.members = [MemberIdentity(member_id=request.member_id)]

    def answer(response: LeaveGroupResponse) -> None:
        if not has_members and response.members:
            response = LeaveGroupResponse(error_code=response.members[0].error_code)
        delayed.resolve(response)

    ctx.broker.group_coordinators.handle(
        request.group_id, lambda groups, at: groups.classic.leave(request, delayed.guard(answer), at)
    )
    return delayed
