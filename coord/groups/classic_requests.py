"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup: to a classic group, or to a consumer group with members (KIP-848).

An empty consumer group is replaced by a classic group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from barnabas.coord.groups.classic.responses import UNKNOWN_MEMBER_ID, join_error, sync_error
from barnabas.coord.groups.group import CONSUMER
from barnabas.coord.machine import Moment, Result
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.groups.classic_groups import HeartbeatResponse, LeaveGroupResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from barnabas.coord.groups.classic.membership import Membership
    from barnabas.coord.groups.consumer.classic_members import ClassicMembers
    from barnabas.coord.groups.consumer.group import ConsumerGroup
    from barnabas.coord.groups.context import ClientContext
    from barnabas.coord.groups.group import Group
    from barnabas.coord.machine import Ticket
    from barnabas.wire.messages.groups.classic_groups import (
        HeartbeatRequest,
        JoinGroupRequest,
        LeaveGroupRequest,
        SyncGroupRequest,
    )


class ClassicRequests:
    """The requests of the classic protocol to the groups of one coordinator."""

    def __init__(
        self, groups: dict[str, Group], membership: Membership, classic_members: Callable[[], ClassicMembers]
    ) -> None:
        """`membership` serves classic groups, `classic_members` consumer groups."""
        self._groups = groups
        self._membership = membership
        self._classic_members = classic_members

    def join(self, request: JoinGroupRequest, ticket: Ticket, context: ClientContext, at: Moment) -> Result:
        """JoinGroup. The reply is in this result, or in the result of the event that ends the join phase."""
        result = Result()
        group = self._consumer_group(request.group_id)
        try:
            if group is None:
                response = self._membership.join(request, ticket, context, at, result)
            else:
                self._membership.check_join(request)
                response = self._classic_members().join(group, request, context, at, result)
        except KafkaError as refused:
            if group is not None:
                result = Result()
            response = join_error(request.member_id, refused.code)
        if response is not None:
            result.reply(ticket, response, lambda error: join_error(UNKNOWN_MEMBER_ID, error))
        return result

    def sync(self, request: SyncGroupRequest, ticket: Ticket, at: Moment) -> Result:
        """SyncGroup. The reply is in this result, or in the result of the leader's SyncGroup."""
        result = Result()
        try:
            check_group_id(request.group_id)
            group = self._consumer_group(request.group_id)
            if group is None:
                response = self._membership.sync(request, ticket, at, result)
            else:
                response = self._classic_members().sync(group, request, at)
        except KafkaError as refused:
            response = sync_error(refused.code)
        if response is not None:
            result.reply(ticket, response, sync_error)  # what it says may be in a record that is not committed
        return result

    def heartbeat(self, request: HeartbeatRequest, ticket: Ticket, at: Moment) -> Result:
        """Heartbeat."""
        result = Result()
        try:
            check_group_id(request.group_id)
            group = self._consumer_group(request.group_id)
            if group is None:
                response = self._membership.heartbeat(request, at)
            else:
                response = self._classic_members().heartbeat(group, request, at)
        except KafkaError as refused:
            response = HeartbeatResponse(error_code=int(refused.code))
        result.reply(ticket, response)
        return result

    def leave(self, request: LeaveGroupRequest, ticket: Ticket, at: Moment) -> Result:
        """LeaveGroup; the one member of v0-2 is the only entry of `members`."""
        result = Result()
        try:
            check_group_id(request.group_id)
            group = self._consumer_group(request.group_id)
            if group is None:
                response = self._membership.leave(request, at, result)
            else:
                response = self._classic_members().leave(group, request, at, result)
        except KafkaError as refused:
            response = LeaveGroupResponse(error_code=int(refused.code))
        result.reply(ticket, response)
        return result

    def _consumer_group(self, group_id: str) -> ConsumerGroup | None:
        """The group if it is a consumer group with members."""
        group = self._groups.get(group_id)
        if group is None or group.group_type != CONSUMER or group.is_empty:
            return None
        return cast("ConsumerGroup", group)


def check_group_id(group_id: str) -> None:
    """KafkaError INVALID_GROUP_ID for an empty id."""
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
