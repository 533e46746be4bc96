"""Administration of groups: DescribeGroups (15), ListGroups (16), DeleteGroups (42).

DescribeGroups: v3 authorized operations (KIP-430), v6 GROUP_ID_NOT_FOUND (KIP-1043). ListGroups: v4 states (KIP-518),
v5 types (KIP-848).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.broker.apis.access import check_group
from barnabas.broker.apis.authorized_operations import group_operations
from barnabas.broker.apis.parts import Parts, distinct_names
from barnabas.broker.apis.registry import api
from barnabas.broker.event_loop.waiting import Future, pause
from barnabas.coord.security.acls import Operation, ResourceType
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.groups.classic_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    DescribeGroupsResponseDescribedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.broker.coordinators.groups import GroupEvent


def _none_described(request: DescribeGroupsRequest, error: KafkaError) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(
        groups=[
            DescribeGroupsResponseDescribedGroup(group_id=group_id, error_code=int(error.code))
            for group_id in request.groups
        ]
    )


@api(DescribeGroupsRequest, on_error=_none_described, parts=Parts("groups", distinct=distinct_names))
def describe_groups(ctx: RequestContext, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    """State, members and assignments of each group."""
    response = DescribeGroupsResponse(groups=[_describe(ctx, group_id) for group_id in request.groups])
    if request.include_authorized_operations:
        for group in response.groups:
            if not group.error_code:
                group.authorized_operations = group_operations(ctx, group.group_id)
    return response


def _describe(ctx: RequestContext, group_id: str) -> DescribeGroupsResponseDescribedGroup:
    try:
        check_group(ctx, Operation.DESCRIBE, group_id)
        return ctx.broker.group_coordinators.coordinator_of(group_id).describe(group_id, ctx.api_version)
    except KafkaError as error:
        return DescribeGroupsResponseDescribedGroup(group_id=group_id, error_code=int(error.code))


GROUPS_OF_A_STEP = 500


@api(ListGroupsRequest)
async def list_groups(ctx: RequestContext, request: ListGroupsRequest) -> ListGroupsResponse:
    """The groups of all types with one of the requested states and types; KafkaError while any coordinator is loading.

    A client that may not describe the cluster gets the groups that it may describe. Others are served between two
    groups: each is listed, or not, with its state and the client's access when its turn comes.
    """
    ctx.broker.group_coordinators.check_loaded()
    states = {name.strip().lower() for name in request.states_filter}
    types = {name.strip().lower() for name in request.types_filter}
    response = ListGroupsResponse()
    may_all = ctx.is_allowed_on_cluster(Operation.DESCRIBE, logs_denied=False)
    listed = 0
    for coordinator in list(ctx.broker.group_coordinators):
        for group in coordinator.listed(states, types):
            if listed == GROUPS_OF_A_STEP:
                listed = 0
                await pause()
            listed += 1
            if may_all or ctx.is_allowed(Operation.DESCRIBE, ResourceType.GROUP, group.group_id, logs_denied=False):
                response.groups.append(group)
    return response


def _none_deleted(request: DeleteGroupsRequest, error: KafkaError) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(results=[_not_deleted(group_id, error) for group_id in request.groups_names])


def _not_deleted(group_id: str, error: KafkaError) -> DeletableGroupResult:
    return DeletableGroupResult(group_id=group_id, error_code=int(error.code), error_message=error.message)


@api(
    DeleteGroupsRequest,
    on_error=_none_deleted,
    parts=Parts("groups_names", "results", distinct=distinct_names),
    send_before_close=True,
)
async def delete_groups(ctx: RequestContext, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
    """Delete empty groups with their offsets; answered when all deletions are committed, in that order."""
    response = DeleteGroupsResponse()
    group_ids = list(dict.fromkeys(request.groups_names))
    all_decided: Future[None] = Future()

    def decided(result: DeletableGroupResult) -> None:
        response.results.append(result)
        if len(response.results) == len(group_ids):
            all_decided.complete()

    for group_id in group_ids:
        try:
            check_group(ctx, Operation.DELETE, group_id)
            ctx.broker.group_coordinators.handle(group_id, _deletion(group_id, decided))
        except KafkaError as error:
            decided(_not_deleted(group_id, error))
    if group_ids:
        await all_decided
    return response


def _deletion(group_id: str, then: Callable[[DeletableGroupResult], None]) -> GroupEvent:
    return lambda groups, _: groups.delete_group(group_id, then)
