"""The rebalance of a classic group: the steps to the next generation, and their timers (rule G1; KIP-62, KIP-134).

A rebalance has two phases. Join: every member has to send JoinGroup again; the phase ends when all have, or after the
largest rebalance timeout of the members. The first rebalance of an empty group waits for a fixed delay instead, which
is extended while new members join, up to the rebalance timeout. Sync: every member has to send SyncGroup within the
rebalance timeout; the leader's has the assignment.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple

from barnabas.coord.groups import records
from barnabas.coord.groups.classic.member import NO_ASSIGNMENT, ClassicMember
from barnabas.coord.groups.classic.responses import (
    UNKNOWN_MEMBER_ID,
    join_error,
    joined_responses,
    sync_error,
    synced_responses,
)
from barnabas.coord.groups.classic.states import GroupState
from barnabas.coord.machine import Moment, Result
from barnabas.coord.timers import Timers
from barnabas.wire.errors import ErrorCode

if TYPE_CHECKING:
    from barnabas.coord.groups.classic.group import ClassicGroup
    from barnabas.coord.groups.classic.responses import Response
    from barnabas.coord.groups.config import GroupConfig
    from barnabas.coord.machine import Ticket
    from barnabas.wire.messages.groups.classic_groups import JoinGroupResponse, SyncGroupResponse


class TimerKey(NamedTuple):
    """The key of a timer: the session of a member (or of a pending member id), or a phase of a group."""

    kind: Literal["session", "initial", "join", "sync"]
    group_id: str
    member_id: str = ""


class Rebalance:
    """The steps of a rebalance, for all groups of one coordinator."""

    def __init__(self, timers: Timers, config: GroupConfig) -> None:
        self._timers = timers
        self._config = config

    def due(self, key: TimerKey, group: ClassicGroup, at: Moment, result: Result) -> None:
        """A timer has expired."""
        if key.kind == "session":
            self.session_over(group, key.member_id, at, result)
        elif key.kind == "initial":
            self.initial_delay_over(group, at, result)
        elif key.kind == "join":
            self.complete_join(group, at, result)
        else:
            self.sync_timed_out(group, at, result)

    # ---- join phase

    def prepare_or_complete(self, group: ClassicGroup, at: Moment, result: Result) -> None:
        """Members have changed: start a rebalance, or continue the one in progress."""
        if group.can_rebalance:
            self.prepare(group, at, result)
        else:
            self.complete_join_if_all_are_there(group, at, result)

    def prepare(self, group: ClassicGroup, at: Moment, result: Result) -> None:
        """Start a rebalance. Members with a parked SyncGroup have to join again."""
        if group.state is GroupState.COMPLETING_REBALANCE:
            refused = partial(sync_error, ErrorCode.REBALANCE_IN_PROGRESS)
            for member in group.members.values():
                member.assignment = NO_ASSIGNMENT
                if member.sync_ticket is not None:
                    self.answer_sync(member, refused, result)
                    self.renew_session(group, member, at)
        group.pending_syncs.clear()
        self._timers.cancel(TimerKey("sync", group.group_id))
        is_first = group.state is GroupState.EMPTY
        group.become(GroupState.PREPARING_REBALANCE, at)
        if is_first:
            delay_ms = self._config.initial_rebalance_delay_ms
            group.initial_delay_left_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
            group.member_came_during_delay = False
            self._timers.set(TimerKey("initial", group.group_id), at.now + delay_ms / 1000)
        elif group.all_have_joined:
            self.complete_join(group, at, result)
        else:
            self._await_joins(group, at)

    def complete_join_if_all_are_there(self, group: ClassicGroup, at: Moment, result: Result) -> None:
        """End the join phase if all members have joined. The first rebalance of a group ends only by its timer."""
        if (
            group.state is GroupState.PREPARING_REBALANCE
            and group.previous_state is not GroupState.EMPTY
            and group.all_have_joined
        ):
            self.complete_join(group, at, result)

    def complete_join(self, group: ClassicGroup, at: Moment, result: Result) -> None:
        """End the join phase: remove dynamic members that have not joined, and start the next generation."""
        self._timers.cancel(TimerKey("join", group.group_id))
        self._timers.cancel(TimerKey("initial", group.group_id))
        for member in list(group.members.values()):
            if member.join_ticket is None and not member.is_static:
                self.drop(group, member.member_id)
        if not group.elect_joined_leader() and group.members:
            # Only static members are left and none has joined: wait until their sessions expire.
            self._await_joins(group, at)
            return
        group.next_generation(at)
        if group.state is GroupState.EMPTY:
            result.records.append(records.group_metadata(group.group_id, group.to_record({})))
            return
        response_for = joined_responses(group)
        for member in group.members.values():
            self.answer_join(member, response_for(member.member_id), result)
            self.renew_session(group, member, at)
            member.is_new = False
            group.pending_syncs[member.member_id] = None
        self._timers.set(TimerKey("sync", group.group_id), at.now + group.rebalance_timeout_ms / 1000)

    def initial_delay_over(self, group: ClassicGroup, at: Moment, result: Result) -> None:
        """End the first rebalance, unless a member has joined during the delay and it may be extended."""
        if group.state is not GroupState.PREPARING_REBALANCE:
            return
        left_ms = group.initial_delay_left_ms
        if not group.member_came_during_delay or left_ms == 0:
            self.complete_join(group, at, result)
            return
        delay_ms = self._config.initial_rebalance_delay_ms
        group.member_came_during_delay = False
        group.initial_delay_left_ms = max(left_ms - delay_ms, 0)
        self._timers.set(TimerKey("initial", group.group_id), at.now + min(delay_ms, left_ms) / 1000)

    def _await_joins(self, group: ClassicGroup, at: Moment) -> None:
        self._timers.set(TimerKey("join", group.group_id), at.now + group.rebalance_timeout_ms / 1000)

    # ---- sync phase

    def synced(self, group: ClassicGroup, member: ClassicMember) -> None:
        """A member has sent its SyncGroup."""
        group.pending_syncs.pop(member.member_id, None)
        if not group.pending_syncs:
            self._timers.cancel(TimerKey("sync", group.group_id))

    def store_assignment(self, group: ClassicGroup, assignments: dict[str, bytes], at: Moment, result: Result) -> None:
        """Write the leader's assignment. Once it is in the log, the group is Stable and SyncGroups are answered."""
        result.records.append(records.group_metadata(group.group_id, group.to_record(assignments)))
        response_for = synced_responses(group)
        for member in group.members.values():
            if member.sync_ticket is not None:
                result.reply(
                    member.sync_ticket, response_for(assignments.get(member.member_id, NO_ASSIGNMENT)), sync_error
                )
                member.sync_ticket = None
                # The session could not expire while the SyncGroup was parked; it starts again now.
                self.renew_session(group, member, at)

        def retry(later: Moment) -> Result:
            again = Result()
            self.prepare_or_complete(group, later, again)
            return again

        result.on_failure(retry)

    def sync_timed_out(self, group: ClassicGroup, at: Moment, result: Result) -> None:
        """Remove the members that have not sent SyncGroup, and start another rebalance."""
        if group.state not in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE) or not group.pending_syncs:
            return
        for member_id in list(group.pending_syncs):
            self.drop(group, member_id)
        self.prepare(group, at, result)

    # ---- members

    def renew_session(self, group: ClassicGroup, member: ClassicMember, at: Moment) -> None:
        """Start the session timeout of a member again."""
        key = TimerKey("session", group.group_id, member.member_id)
        self._timers.set(key, at.now + member.session_timeout_ms / 1000)

    def session_over(self, group: ClassicGroup, member_id: str, at: Moment, result: Result) -> None:
        """The session of a member, or of a pending member id, has expired."""
        if member_id in group.pending_joins:
            group.remove(member_id)
            self._complete_if_joined(group, at, result)
            return
        member = group.members.get(member_id)
        if member is not None and not member.has_satisfied_heartbeat:
            self.dismiss(group, member, result)
            if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
                self.prepare_or_complete(group, at, result)
            else:
                self._complete_if_joined(group, at, result)

    def dismiss(self, group: ClassicGroup, member: ClassicMember, result: Result) -> None:
        """Remove a member. Its parked requests get UNKNOWN_MEMBER_ID, so that it joins again."""
        error = ErrorCode.UNKNOWN_MEMBER_ID
        self.answer_join(member, join_error(UNKNOWN_MEMBER_ID, error), result)
        self.answer_sync(member, sync_error(error), result)
        self.drop(group, member.member_id)

    def drop(self, group: ClassicGroup, member_id: str) -> None:
        """Remove a member or pending member id, with its session."""
        group.remove(member_id)
        self._timers.cancel(TimerKey("session", group.group_id, member_id))

    def forget(self, group: ClassicGroup) -> None:
        """Cancel every timer of a group that is removed."""
        for kind in ("initial", "join", "sync"):
            self._timers.cancel(TimerKey(kind, group.group_id))
        for member_id in (*group.members, *group.pending_joins):
            self._timers.cancel(TimerKey("session", group.group_id, member_id))

    def _complete_if_joined(self, group: ClassicGroup, at: Moment, result: Result) -> None:
        if group.state is GroupState.PREPARING_REBALANCE and group.all_have_joined:
            self.complete_join(group, at, result)

    # ---- parked requests

    @staticmethod
    def park_join(member: ClassicMember, ticket: Ticket, result: Result) -> None:
        """Park a JoinGroup until the join phase ends; an earlier one, of a broken connection, is answered."""
        Rebalance.answer_join(member, join_error(member.member_id, ErrorCode.REBALANCE_IN_PROGRESS), result)
        member.join_ticket = ticket

    @staticmethod
    def park_sync(member: ClassicMember, ticket: Ticket, result: Result) -> None:
        """Park a SyncGroup until the leader has sent the assignment; an earlier one is answered."""
        Rebalance.answer_sync(member, sync_error(ErrorCode.REBALANCE_IN_PROGRESS), result)
        member.sync_ticket = ticket

    @staticmethod
    def answer_join(member: ClassicMember, response: Response[JoinGroupResponse], result: Result) -> None:
        """Answer the member's parked JoinGroup, if there is one."""
        if member.join_ticket is not None:
            result.reply(member.join_ticket, response)
            member.join_ticket = None

    @staticmethod
    def answer_sync(member: ClassicMember, response: Response[SyncGroupResponse], result: Result) -> None:
        """Answer the member's parked SyncGroup, if there is one."""
        if member.sync_ticket is not None:
            result.reply(member.sync_ticket, response)
            member.sync_ticket = None
