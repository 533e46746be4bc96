"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup of classic groups (rule G1).

The responses of each state are listed in `states.py`; the steps of a rebalance are in `rebalance.py`. Static members:
KIP-345; member ids required before the first join: KIP-394; leaving in batches: KIP-345.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from barnabas.coord.groups import records
from barnabas.coord.groups.classic.group import ClassicGroup
from barnabas.coord.groups.classic.member import (
    MEMBER_ID_REQUIRED_SINCE,
    ClassicMember,
    protocol_list,
    rebalance_timeout_ms,
)
from barnabas.coord.groups.classic.rebalance import Rebalance, TimerKey
from barnabas.coord.groups.classic.responses import (
    UNKNOWN_MEMBER_ID,
    join_error,
    joined,
    member_response,
    static_rejoined,
    sync_error,
    synced,
)
from barnabas.coord.groups.classic.states import GroupState
from barnabas.coord.groups.group import SHARE
from barnabas.coord.machine import Moment, Result
from barnabas.coord.timers import Timers
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.groups.classic_groups import HeartbeatResponse, LeaveGroupResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from barnabas.coord.groups.config import GroupConfig
    from barnabas.coord.groups.context import ClientContext
    from barnabas.coord.groups.group import Group
    from barnabas.coord.machine import Ticket
    from barnabas.wire.messages.groups.classic_groups import (
        HeartbeatRequest,
        JoinGroupRequest,
        JoinGroupResponse,
        LeaveGroupRequest,
        MemberIdentity,
        SyncGroupRequest,
        SyncGroupResponse,
    )

SKIP_ASSIGNMENT_SINCE = 9

_MAX_PREFIX = 1000
"""How much of a client id or instance id a member id has, characters: the longest ones fill a string field alone."""
_JOINED_STATES = (GroupState.COMPLETING_REBALANCE, GroupState.STABLE)


class _Join(NamedTuple):
    """One JoinGroup, and the result of its handling."""

    request: JoinGroupRequest
    ticket: Ticket
    context: ClientContext
    at: Moment
    result: Result


class Membership:
    """Handles the requests of members of all classic groups of one coordinator."""

    def __init__(
        self,
        groups: dict[str, Group],
        timers: Timers,
        rebalance: Rebalance,
        config: GroupConfig,
        new_id: Callable[[], str],
    ) -> None:
        self._groups = groups
        self._timers = timers
        self._rebalance = rebalance
        self._config = config
        self._new_id = new_id

    # ---- JoinGroup

    def join(
        self, request: JoinGroupRequest, ticket: Ticket, context: ClientContext, at: Moment, result: Result
    ) -> JoinGroupResponse | None:
        """The response, or None when the request is parked or `result` has the reply. KafkaError if it is refused."""
        self.check_join(request)
        protocols = protocol_list(request.protocols)
        group = self._joinable(request.group_id, result)
        is_new_group = group is None
        if group is None:
            if request.member_id != UNKNOWN_MEMBER_ID:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
            group = ClassicGroup(request.group_id, at)
        if group.state is GroupState.DEAD:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if not self._has_room(group, request.member_id):
            self._rebalance.drop(group, request.member_id)
            return join_error(UNKNOWN_MEMBER_ID, ErrorCode.GROUP_MAX_SIZE_REACHED)
        if not group.supports(request.protocol_type, protocols):
            if is_new_group and not result.records:
                self._groups[group.group_id] = group  # as in Kafka, without a record: an empty group until a restart
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if is_new_group:
            self._create(group, result)
        accepted = _Join(request, ticket, context, at, result)
        if request.member_id == UNKNOWN_MEMBER_ID:
            return self._join_new(group, accepted)
        return self._join_existing(group, accepted)

    def _joinable(self, group_id: str, result: Result) -> ClassicGroup | None:
        """The classic group, or None when it is to be created; an empty group of another type is removed for it."""
        group = self._groups.get(group_id)
        if group is None or isinstance(group, ClassicGroup):
            return group
        if group.group_type == SHARE or not group.is_empty:
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        result.records += group.tombstones()
        return None

    def _create(self, group: ClassicGroup, result: Result) -> None:
        """Create a group and its record; if that cannot be written, the group is removed."""
        before = self._groups.get(group.group_id)
        self._groups[group.group_id] = group
        result.records.append(records.group_metadata(group.group_id, group.to_record({})))

        def undo(at: Moment) -> Result:
            result_of_undo = Result()
            for member in group.members.values():
                error = join_error(UNKNOWN_MEMBER_ID, ErrorCode.COORDINATOR_NOT_AVAILABLE)
                self._rebalance.answer_join(member, error, result_of_undo)
            self._rebalance.forget(group)
            if before is None:
                del self._groups[group.group_id]
            else:
                self._groups[group.group_id] = before
            group.become(GroupState.DEAD, at)
            return result_of_undo

        result.on_failure(undo)

    def check_join(self, request: JoinGroupRequest) -> None:
        """KafkaError INVALID_GROUP_ID or INVALID_SESSION_TIMEOUT for an invalid request to any group."""
        config = self._config
        if not request.group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        if not config.min_session_timeout_ms <= request.session_timeout_ms <= config.max_session_timeout_ms:
            raise KafkaError(ErrorCode.INVALID_SESSION_TIMEOUT)

    def _has_room(self, group: ClassicGroup, member_id: str) -> bool:
        """Whether `group.max.size` allows this member to join.

        During a rebalance only members that have joined again count, so that if the limit was lowered, the last ones to
        join are refused.
        """
        member = group.members.get(member_id)
        if group.state is GroupState.PREPARING_REBALANCE:
            is_there = member is not None and member.join_ticket is not None
            return is_there or sum(1 for _ in group.awaiting_join()) < self._config.max_size
        if group.state in _JOINED_STATES:
            return member is not None or len(group.members) < self._config.max_size
        return True

    def _join_new(self, group: ClassicGroup, join: _Join) -> JoinGroupResponse | None:
        request = join.request
        instance_id = request.group_instance_id
        prefix = instance_id if instance_id is not None else join.context.client_id
        member_id = f"{prefix[:_MAX_PREFIX]}-{self._new_id()}"
        if instance_id is not None and instance_id in group.static_members:
            self._replace_static(group, join, member_id)
            return None
        if instance_id is None and join.context.api_version >= MEMBER_ID_REQUIRED_SINCE:
            group.pending_joins.add(member_id)
            key = TimerKey("session", group.group_id, member_id)
            self._timers.set(key, join.at.now + request.session_timeout_ms / 1000)
            return join_error(member_id, ErrorCode.MEMBER_ID_REQUIRED)
        self._add(group, join, member_id)
        return None

    def _join_existing(self, group: ClassicGroup, join: _Join) -> JoinGroupResponse | None:
        request = join.request
        if request.member_id in group.pending_joins and request.group_instance_id is None:
            self._add(group, join, request.member_id)
            return None
        member = group.validate(request.member_id, request.group_instance_id)
        has_changed = not member.matches(protocol_list(request.protocols))
        # In Stable the leader joins again when the partitions that it assigns have changed.
        leads_stable = group.state is GroupState.STABLE and member.member_id == group.leader
        if group.state in _JOINED_STATES and not has_changed and not leads_stable:
            # The response was lost, for example: the generation is still the current one.
            return joined(group, member.member_id)
        if group.state is GroupState.EMPTY:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        self._update(group, member, join)
        self._rebalance.prepare_or_complete(group, join.at, join.result)
        return None

    def _add(self, group: ClassicGroup, join: _Join, member_id: str) -> None:
        request, context, at = join.request, join.context, join.at
        member = ClassicMember(
            member_id,
            request.group_instance_id,
            client_id=context.client_id,
            client_host=context.client_host,
            rebalance_timeout_ms=rebalance_timeout_ms(request),
            session_timeout_ms=request.session_timeout_ms,
            protocols=protocol_list(request.protocols),
        )
        member.is_new = True
        if not group.members:
            group.protocol_type = request.protocol_type
        if group.state is GroupState.PREPARING_REBALANCE and group.previous_state is GroupState.EMPTY:
            group.member_came_during_delay = True
        group.add(member, join.ticket)
        # A new member cannot send heartbeats, and one that retries would be in the group twice: so its parked JoinGroup
        # has its own time limit.
        key = TimerKey("session", group.group_id, member_id)
        self._timers.set(key, at.now + self._config.new_member_join_timeout_ms / 1000)
        self._rebalance.prepare_or_complete(group, at, join.result)

    def _update(self, group: ClassicGroup, member: ClassicMember, join: _Join) -> None:
        request = join.request
        timeout_ms = rebalance_timeout_ms(request)
        group.update(member, protocol_list(request.protocols), timeout_ms, request.session_timeout_ms)
        self._rebalance.park_join(member, join.ticket, join.result)

    def _replace_static(self, group: ClassicGroup, join: _Join, member_id: str) -> None:
        """A static member joins again, after a restart of its process: it continues with a new member id."""
        request, ticket, context, at, result = join
        old_id = group.static_members[request.group_instance_id or ""]
        leader_before = group.leader or ""
        old = group.members[old_id]
        fenced = ErrorCode.FENCED_INSTANCE_ID
        self._rebalance.answer_join(old, join_error(old_id, fenced), result)
        self._rebalance.answer_sync(old, sync_error(fenced), result)
        self._timers.cancel(TimerKey("session", group.group_id, old_id))
        member = group.replace_static(old_id, member_id)
        self._rebalance.renew_session(group, member, at)
        before = (member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms)
        self._update(group, member, join)
        if group.state is GroupState.COMPLETING_REBALANCE:
            # The leader may be making an assignment for the old member id.
            self._rebalance.prepare(group, at, result)
        elif group.state is not GroupState.STABLE or group.select_protocol() != group.protocol:
            self._rebalance.prepare_or_complete(group, at, result)
        else:
            member.join_ticket = None
            knows_skip = context.api_version >= SKIP_ASSIGNMENT_SINCE
            response = static_rejoined(group, member, leader_before=leader_before, knows_skip=knows_skip)
            result.reply(ticket, response, lambda error: join_error(UNKNOWN_MEMBER_ID, error))
            assignments = {key: current.assignment for key, current in group.members.items()}
            result.records.append(records.group_metadata(group.group_id, group.to_record(assignments)))

            def undo(later: Moment) -> Result:
                group.update(member, *before)
                self._timers.cancel(TimerKey("session", group.group_id, member_id))
                self._rebalance.renew_session(group, group.replace_static(member_id, old_id), later)
                return Result()

            result.on_failure(undo)

    # ---- SyncGroup

    def sync(self, request: SyncGroupRequest, ticket: Ticket, at: Moment, result: Result) -> SyncGroupResponse | None:
        """The response, or None when the request is parked or `result` has the reply. KafkaError if it is refused."""
        group = self._group(request.group_id)
        if group.state is GroupState.EMPTY:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        member = group.validate(request.member_id, request.group_instance_id)
        if request.generation_id != group.generation:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        if _differs(request.protocol_type, group.protocol_type) or _differs(request.protocol_name, group.protocol):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if group.state is GroupState.PREPARING_REBALANCE:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        self._rebalance.synced(group, member)
        if group.state is GroupState.STABLE:
            return synced(group, member.assignment)
        self._rebalance.park_sync(member, ticket, result)
        if member.member_id == group.leader:
            assignments = {entry.member_id: bytes(entry.assignment) for entry in request.assignments}
            self._rebalance.store_assignment(group, assignments, at, result)
        return None

    # ---- Heartbeat

    def heartbeat(self, request: HeartbeatRequest, at: Moment) -> HeartbeatResponse:
        """Renew the session; REBALANCE_IN_PROGRESS during the join phase. KafkaError if the request is refused."""
        group = self._group(request.group_id)
        member = group.validate(request.member_id, request.group_instance_id)
        if request.generation_id != group.generation:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        self._rebalance.renew_session(group, member, at)
        rebalancing = group.state is GroupState.PREPARING_REBALANCE
        return HeartbeatResponse(error_code=int(ErrorCode.REBALANCE_IN_PROGRESS if rebalancing else ErrorCode.NONE))

    # ---- LeaveGroup

    def leave(self, request: LeaveGroupRequest, at: Moment, result: Result) -> LeaveGroupResponse:
        """Remove the members of the request. KafkaError if the whole request is refused."""
        group = self._groups.get(request.group_id)
        if not isinstance(group, ClassicGroup):
            error = ErrorCode.UNKNOWN_MEMBER_ID
            return LeaveGroupResponse(members=[member_response(identity, error) for identity in request.members])
        if group.state is GroupState.DEAD:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        responses = [
            member_response(identity, self._leave_one(group, identity, result)) for identity in request.members
        ]
        if any(response.error_code == 0 for response in responses):
            if group.state in _JOINED_STATES:
                self._rebalance.prepare_or_complete(group, at, result)
            else:
                self._rebalance.complete_join_if_all_are_there(group, at, result)
        return LeaveGroupResponse(members=responses)

    def _leave_one(self, group: ClassicGroup, identity: MemberIdentity, result: Result) -> ErrorCode:
        member_id = identity.member_id
        if member_id in group.pending_joins:
            self._rebalance.drop(group, member_id)
            return ErrorCode.NONE
        if member_id == UNKNOWN_MEMBER_ID:
            # Administrators remove a static member by its instance id alone.
            member_id = group.static_members.get(identity.group_instance_id or "", UNKNOWN_MEMBER_ID)
        try:
            member = group.validate(member_id, identity.group_instance_id)
        except KafkaError as refused:
            return refused.code
        self._rebalance.dismiss(group, member, result)
        return ErrorCode.NONE

    def _group(self, group_id: str) -> ClassicGroup:
        group = self._groups.get(group_id)
        if not isinstance(group, ClassicGroup):
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        if group.state is GroupState.DEAD:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return group


def _differs(requested: str | None, actual: str | None) -> bool:
    return requested is not None and actual is not None and requested != actual
