"""The states of a streams group and the transitions between them (KIP-1071).

The state is derived from topology, epochs and members and not stored. The table is data: tests compare every step of a
group with it. Source: Kafka 4.4 `StreamsGroupState`.
"""

from __future__ import annotations

from enum import Enum


class StreamsGroupState(Enum):
    """The state of a streams group. Values are the names in StreamsGroupDescribe and ListGroups.

    In every state a member id that the group does not know is answered UNKNOWN_MEMBER_ID (25), an instance id that
    belongs to another member FENCED_INSTANCE_ID (82), and a member epoch that is neither the member's nor, with no
    more tasks than it was given, its previous one FENCED_MEMBER_EPOCH (110).
    """

    EMPTY = "Empty"
    """No members; there may be epochs, a topology and offsets.

    A heartbeat with member epoch 0: the first member -> NotReady or Assigning.

    DeleteGroups, OffsetCommit with epoch -1: accepted. A JoinGroup of the classic protocol: the group becomes a
    classic one.
    """

    NOT_READY = "NotReady"
    """Topics are missing, or do not have the partitions that the topology needs: no member has tasks.

    Heartbeats get a status; the missing internal topics are created. When all topics exist, a heartbeat -> Assigning.
    """

    ASSIGNING = "Assigning"
    """The group epoch is ahead of the target assignment: members, topology or topics have changed.

    A heartbeat computes a new target assignment -> Reconciling or Stable, unless the initial rebalance delay
    (`streams.initial.rebalance.delay.ms`) is not over or the last one is younger than
    `streams.assignment.interval.ms`: then members keep the last one and get the status ASSIGNMENT_DELAYED.
    """

    RECONCILING = "Reconciling"
    """Members are not reconciled with the target assignment: they revoke tasks, or wait for others to do so.

    A heartbeat is a step of its member; when all are reconciled -> Stable. A change -> Assigning or NotReady. A member
    that does not revoke tasks within its rebalance timeout is removed -> Assigning.
    """

    STABLE = "Stable"
    """Every member has its target assignment. A change -> Assigning; the last member leaves -> Empty."""

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
"""For each state the states it may follow. One heartbeat may bump the group epoch and make an assignment, without the
state Assigning in between."""
