"""The states of a classic group and which may follow which (rule G1; Kafka's `ClassicGroupState`).

The table is data: `ClassicGroup.become` compares every step with it, tests try all 25 pairs.
"""

from __future__ import annotations

from enum import Enum


class GroupState(Enum):
    """The state of a classic group. Values are the names in DescribeGroups and ListGroups.

    In every state a member id or instance id that the group does not know answers UNKNOWN_MEMBER_ID (25), a member id
    that lost its instance id to another member FENCED_INSTANCE_ID (82), another generation than the group's
    ILLEGAL_GENERATION (22), and a JoinGroup that shares no protocol with the members
    INCONSISTENT_GROUP_PROTOCOL (23). The text of each state is about requests that pass these checks.
    """

    EMPTY = "Empty"
    """No members; there may be offsets. Simple groups, which only commit offsets, never leave this state.

    JoinGroup: starts the first rebalance, which waits `group.initial.rebalance.delay.ms` -> PreparingRebalance.
    SyncGroup, Heartbeat, LeaveGroup: UNKNOWN_MEMBER_ID. OffsetCommit: accepted with generation -1.
    DeleteGroups: removes group and offsets -> Dead. OffsetDelete: accepted.
    """

    PREPARING_REBALANCE = "PreparingRebalance"
    """Waits until every member has joined again, at most the largest rebalance timeout of the members.

    JoinGroup: parked until all have joined or the time is over; then the next generation -> CompletingRebalance, or
    -> Empty when there are no members. SyncGroup: REBALANCE_IN_PROGRESS (27). Heartbeat: REBALANCE_IN_PROGRESS, and the
    session is renewed. LeaveGroup: removes the member. OffsetCommit: accepted for the generation that is ending, and
    the session is renewed. DeleteGroups: NON_EMPTY_GROUP (68).
    """

    COMPLETING_REBALANCE = "CompletingRebalance"
    """The members of the generation are fixed; waits for the leader's assignment.

    SyncGroup of a follower: parked. SyncGroup of the leader: its assignment is written to the log, all parked
    SyncGroups are answered -> Stable. JoinGroup of a member that changes nothing: the current generation again (the
    response was lost); with new metadata, or of a new member: parked SyncGroups get REBALANCE_IN_PROGRESS
    -> PreparingRebalance. Heartbeat: accepted. LeaveGroup: -> PreparingRebalance. OffsetCommit:
    REBALANCE_IN_PROGRESS. A member that does not sync within the rebalance timeout is removed
    -> PreparingRebalance. DeleteGroups: NON_EMPTY_GROUP.
    """

    STABLE = "Stable"
    """The assignment of this generation is in the log.

    JoinGroup of a follower that changed nothing: the current generation; of the leader, with new metadata, or of a
    new member: -> PreparingRebalance; of a static member that joins again with a new member id and changes no
    protocol: the same generation, without a rebalance. SyncGroup: the member's assignment. Heartbeat and
    OffsetCommit: accepted, the session is renewed. LeaveGroup or an expired session: -> PreparingRebalance.
    DeleteGroups: NON_EMPTY_GROUP.
    """

    DEAD = "Dead"
    """Deleted, or the coordinator was unloaded; the last state.

    JoinGroup, SyncGroup, Heartbeat, LeaveGroup, OffsetCommit: COORDINATOR_NOT_AVAILABLE (15). OffsetFetch: no
    offsets. OffsetDelete, DeleteGroups: GROUP_ID_NOT_FOUND (69).
    """

    def __str__(self) -> str:
        return self.value


PREDECESSORS: dict[GroupState, frozenset[GroupState]] = {
    GroupState.EMPTY: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.PREPARING_REBALANCE: frozenset({GroupState.EMPTY, GroupState.COMPLETING_REBALANCE, GroupState.STABLE}),
    GroupState.COMPLETING_REBALANCE: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.STABLE: frozenset({GroupState.COMPLETING_REBALANCE}),
    GroupState.DEAD: frozenset(GroupState),
}
"""For each state the states it may follow."""
