"""The states of a streams group and of its members, and which may follow which (KIP-1071).

The group's state is derived from its topology, epochs and members and never stored; a member's is part of its record.
The tables are data: tests hold every step that a group takes to them. Source: Kafka 4.4 `StreamsGroupState`,
`MemberState`.
"""

from __future__ import annotations

from enum import Enum


class StreamsGroupState(Enum):
    """Where a streams group stands. Values are the names that StreamsGroupDescribe and ListGroups show.

    In every state a member id that the group does not know is answered UNKNOWN_MEMBER_ID (25), an instance id that
    belongs to another member FENCED_INSTANCE_ID (82), and a member epoch that is neither the member's nor, with no
    more tasks than it was given, its previous one FENCED_MEMBER_EPOCH (110).
    """

    EMPTY = "Empty"
    """No members; epochs, topology and offsets may be there.

    A heartbeat with member epoch 0: the first member -> NotReady or Assigning.

    DeleteGroups, OffsetCommit with epoch -1: accepted. A JoinGroup of the classic protocol: the group becomes a
    classic one.
    """

    NOT_READY = "NotReady"
    """Topics are missing, or do not have the partitions that the topology needs: nobody has tasks.

    Heartbeats are told so; the missing internal topics are created. Once all is there, a heartbeat -> Assigning.
    """

    ASSIGNING = "Assigning"
    """The group epoch is ahead of the target assignment: members, topology or topics have changed.

    A heartbeat computes a new target assignment -> Reconciling or Stable, unless the first members still gather
    (`streams.initial.rebalance.delay.ms`) or the last one is younger than `streams.assignment.interval.ms`: then
    members go on with the last one, and are told ASSIGNMENT_DELAYED.
    """

    RECONCILING = "Reconciling"
    """Members are on their way to the target assignment: they give up tasks, or wait for others to do so.

    A heartbeat moves its member on; when the last one is there -> Stable. A change -> Assigning or NotReady. A member
    that does not give up tasks within its rebalance timeout is removed -> Assigning.
    """

    STABLE = "Stable"
    """Every member has what the target assignment gives it. A change -> Assigning; the last member leaves -> Empty."""

    DEAD = "Dead"
    """Deleted; the last state."""

    def __str__(self) -> str:
        return self.value


_S = StreamsGroupState
PREDECESSORS: dict[StreamsGroupState, frozenset[StreamsGroupState]] = {
    _S.EMPTY: frozenset({_S.NOT_READY, _S.ASSIGNING, _S.RECONCILING, _S.STABLE}),
    _S.NOT_READY: frozenset({_S.EMPTY, _S.ASSIGNING, _S.RECONCILING, _S.STABLE}),
    _S.ASSIGNING: frozenset({_S.EMPTY, _S.NOT_READY, _S.RECONCILING, _S.STABLE}),
    _S.RECONCILING: frozenset({_S.EMPTY, _S.NOT_READY, _S.ASSIGNING, _S.STABLE}),
    _S.STABLE: frozenset({_S.EMPTY, _S.NOT_READY, _S.ASSIGNING, _S.RECONCILING}),
    _S.DEAD: frozenset({_S.EMPTY}),
}
"""For each state the states it may follow. One heartbeat may bump the group epoch and assign at once, so that Assigning
is passed over."""
