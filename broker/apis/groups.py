"""Classic groups: FindCoordinator (10), JoinGroup (11), Heartbeat (12), LeaveGroup (13), SyncGroup (14),
DescribeGroups (15), ListGroups (16), DeleteGroups (42).

FindCoordinator: v4 several keys (KIP-699), v6 share groups. JoinGroup: v4 member ids are required (KIP-394), v5
static members, v7 protocol names may be null, v9 skips assignment (KIP-814). SyncGroup: from v5 on the protocol is
named (KIP-559). LeaveGroup: v3 several members.
DescribeGroups: v3 authorised operations, v6 GROUP_ID_NOT_FOUND (KIP-1043). ListGroups: v4 states, v5 types. What the
requests mean is in `coord.groups`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.broker.apis.registry import api
from barnabas.broker.net.delayed_response import DelayedResponse
from barnabas.coord.groups.context import ClientContext
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.groups import (
    Coordinator,
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    DescribeGroupsResponseDescribedGroup,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.broker.coordinators.groups import GroupEvent

GROUP_KEY, TRANSACTION_KEY, SHARE_KEY = 0, 1, 2
FIRST_VERSION_WITH_KEYS = 4
FIRST_VERSION_WITH_SHARE_KEYS = 6
FIRST_JOIN_WITH_NULL_PROTOCOL = 7
FIRST_LEAVE_WITH_MEMBERS = 3
FIRST_SYNC_WITH_PROTOCOL = 5

GROUP_OPERATIONS = sum(1 << n for n in (3, 6, 8, 10, 11))
"""Bit n stands for AclOperation n: read, delete, describe, describe and alter configs."""


def client_of(ctx: RequestContext) -> ClientContext:
    """What coordinators may know of the client."""
    return ClientContext(ctx.client_id or "", ctx.client_host, ctx.api_version)


# ---- FindCoordinator


@api(FindCoordinatorRequest)
def find_coordinator(ctx: RequestContext, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    """On one node every coordinator is this broker; the first question creates the coordinators' internal topic."""
    if ctx.api_version >= FIRST_VERSION_WITH_KEYS:
        keys = request.coordinator_keys
        return FindCoordinatorResponse(coordinators=[_find(ctx, request.key_type, key) for key in keys])
    found = _find(ctx, request.key_type, request.key)
    if not found.error_code:
        found.error_message = "NONE"  # Kafka's own words up to v3
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _find(ctx: RequestContext, key_type: int, key: str) -> Coordinator:
    try:
        if key_type == TRANSACTION_KEY:
            ctx.broker.transactions.find(key)
        elif key_type == GROUP_KEY:
            ctx.broker.coordinators.find(key)
        elif key_type == SHARE_KEY:
            _find_share(ctx, key)
        else:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"There is no coordinator of type {key_type}.")
    except KafkaError as error:
        return Coordinator(
            key=key, node_id=-1, host="", port=-1, error_code=int(error.code), error_message=error.message
        )
    node_id, host, port, _ = ctx.broker.endpoints(ctx)[0]
    return Coordinator(key=key, node_id=node_id, host=host, port=port)


def _find_share(ctx: RequestContext, key: str) -> None:
    """The share coordinator's keys are `group:topicId:partition` (KIP-932)."""
    from barnabas.coord.share_state.key import parse_key

    if ctx.api_version < FIRST_VERSION_WITH_SHARE_KEYS:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Share coordinators are found from version 6 on.")
    try:
        about = parse_key(key)
    except ValueError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from None
    ctx.broker.shares.find(str(about))


# ---- membership


@api(JoinGroupRequest)
def join_group(ctx: RequestContext, request: JoinGroupRequest) -> DelayedResponse:
    """Answered when the group's next generation begins."""
    delayed = DelayedResponse(send_before_close=True)
    knows_null = ctx.api_version >= FIRST_JOIN_WITH_NULL_PROTOCOL

    def answer(response: JoinGroupResponse) -> None:
        if response.protocol_name is None and not knows_null:
            response.protocol_name = ""
        delayed.resolve(response)

    client = client_of(ctx)
    ctx.broker.coordinators.handle(request.group_id, lambda groups, at: groups.join(request, answer, client, at))
    return delayed


@api(SyncGroupRequest)
def sync_group(ctx: RequestContext, request: SyncGroupRequest) -> DelayedResponse | SyncGroupResponse:
    """Answered when the leader's assignment is in the log."""
    lacks_protocol = request.protocol_type is None or request.protocol_name is None
    if lacks_protocol and ctx.api_version >= FIRST_SYNC_WITH_PROTOCOL:
        return SyncGroupResponse(error_code=int(ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
    delayed = DelayedResponse(send_before_close=True)
    ctx.broker.coordinators.handle(request.group_id, lambda groups, at: groups.sync(request, delayed.resolve, at))
    return delayed


@api(HeartbeatRequest)
def heartbeat(ctx: RequestContext, request: HeartbeatRequest) -> DelayedResponse:
    """Renews the member's session."""
    delayed = DelayedResponse(send_before_close=True)
    ctx.broker.coordinators.handle(request.group_id, lambda groups, at: groups.heartbeat(request, delayed.resolve, at))
    return delayed


@api(LeaveGroupRequest)
def leave_group(ctx: RequestContext, request: LeaveGroupRequest) -> DelayedResponse:
    """Removes one member (up to v2) or several."""
    delayed = DelayedResponse(send_before_close=True)
    has_members = ctx.api_version >= FIRST_LEAVE_WITH_MEMBERS
    if not has_members:
        request.members = [MemberIdentity(member_id=request.member_id)]

    def answer(response: LeaveGroupResponse) -> None:
        if not has_members and response.members:
            response = LeaveGroupResponse(error_code=response.members[0].error_code)
        delayed.resolve(response)

    ctx.broker.coordinators.handle(request.group_id, lambda groups, at: groups.leave(request, answer, at))
    return delayed


# ---- administration


def _no_group_described(request: DescribeGroupsRequest, error: KafkaError) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(
        groups=[
            DescribeGroupsResponseDescribedGroup(group_id=group_id, error_code=int(error.code))
            for group_id in request.groups
        ]
    )


@api(DescribeGroupsRequest, on_error=_no_group_described)
def describe_groups(ctx: RequestContext, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    """State, members and assignments of each group."""
    response = DescribeGroupsResponse(groups=[_describe(ctx, group_id) for group_id in request.groups])
    if request.include_authorized_operations:
        for group in response.groups:
            if not group.error_code:
                group.authorized_operations = GROUP_OPERATIONS
    return response


def _describe(ctx: RequestContext, group_id: str) -> DescribeGroupsResponseDescribedGroup:
    try:
        return ctx.broker.coordinators.of_group(group_id).describe(group_id, ctx.api_version)
    except KafkaError as error:
        return DescribeGroupsResponseDescribedGroup(group_id=group_id, error_code=int(error.code))


@api(ListGroupsRequest)
def list_groups(ctx: RequestContext, request: ListGroupsRequest) -> ListGroupsResponse:
    """Every group that has the wanted state and type, once all are loaded."""
    ctx.broker.coordinators.check_loaded()
    return ListGroupsResponse(
        groups=[
            group
            for coordinator in ctx.broker.coordinators
            for group in coordinator.list_groups(request.states_filter, request.types_filter)
        ]
    )


def _no_group_deleted(request: DeleteGroupsRequest, error: KafkaError) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(results=[_not_deleted(group_id, error) for group_id in request.groups_names])


def _not_deleted(group_id: str, error: KafkaError) -> DeletableGroupResult:
    return DeletableGroupResult(group_id=group_id, error_code=int(error.code), error_message=error.message)


@api(DeleteGroupsRequest, on_error=_no_group_deleted)
def delete_groups(ctx: RequestContext, request: DeleteGroupsRequest) -> DelayedResponse:
    """Removes empty groups with their offsets; answered when all of that is committed."""
    delayed = DelayedResponse(send_before_close=True)
    response = DeleteGroupsResponse()
    coordinators = ctx.broker.coordinators
    group_ids = list(dict.fromkeys(request.groups_names))

    def answer(result: DeletableGroupResult) -> None:
        response.results.append(result)
        if len(response.results) == len(group_ids):
            delayed.resolve(response)

    for group_id in group_ids:
        try:
            coordinators.handle(group_id, _deletion(group_id, answer))
        except KafkaError as error:
            answer(_not_deleted(group_id, error))
    if not group_ids:
        delayed.resolve(response)
    return delayed


def _deletion(group_id: str, answer: Callable[[DeletableGroupResult], None]) -> GroupEvent:
    return lambda groups, _: groups.delete_group(group_id, answer)
