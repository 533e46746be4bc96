"""The states of a consumer group and the transitions between them (rule G3; KIP-848).

The state is derived from epochs and members and not stored. The table is data: tests compare every step of a group with
it. Source: Kafka 4.4 `ConsumerGroupState`.
"""

from __future__ import annotations

from enum import Enum


class ConsumerGroupState(Enum):
    """The state of a consumer group. Values are the names in ConsumerGroupDescribe and ListGroups.

    In every state a member id that the group does not know is answered UNKNOWN_MEMBER_ID (25), an instance id that
    belongs to another member FENCED_INSTANCE_ID (82), and a member epoch that is neither the member's nor, with no
    more partitions than it was given, its previous one FENCED_MEMBER_EPOCH (110).
    """

    EMPTY = "Empty"
    """No members; there may be epochs and offsets. A heartbeat with member epoch 0: the first member -> Assigning.

    DeleteGroups, OffsetDelete, OffsetCommit with epoch -1: accepted. A JoinGroup of the classic protocol: the group
    becomes a classic one -> Dead.
    """

    ASSIGNING = "Assigning"
    """The group epoch is ahead of the target assignment: subscriptions, members or topics have changed.

    A heartbeat computes a new target assignment -> Reconciling or Stable, unless the last one is younger than
    `consumer.assignment.interval.ms`: then members keep the last one.
    """

    RECONCILING = "Reconciling"
    """Members are not reconciled with the target assignment: they revoke partitions, or wait for others to do so.

    A heartbeat is a step of its member; when all are reconciled -> Stable. A change of members, subscriptions or topics
    -> Assigning. A member that does not revoke partitions within its rebalance timeout is removed -> Assigning.
    """

    STABLE = "Stable"
    """Every member has its target assignment. A change -> Assigning; the last member leaves -> Empty."""

    DEAD = "Dead"
    """Deleted, or converted to a classic group; the last state."""

    def __str__(self) -> str:
        return self.value


PREDECESSORS: dict[ConsumerGroupState, frozenset[ConsumerGroupState]] = {
    ConsumerGroupState.EMPTY: frozenset(
        {ConsumerGroupState.ASSIGNING, ConsumerGroupState.RECONCILING, ConsumerGroupState.STABLE}
    ),
    ConsumerGroupState.ASSIGNING: frozenset(
        {ConsumerGroupState.EMPTY, ConsumerGroupState.RECONCILING, ConsumerGroupState.STABLE}
    ),
    ConsumerGroupState.RECONCILING: frozenset({ConsumerGroupState.ASSIGNING, ConsumerGroupState.STABLE}),
    ConsumerGroupState.STABLE: frozenset(
        {ConsumerGroupState.EMPTY, ConsumerGroupState.ASSIGNING, ConsumerGroupState.RECONCILING}
    ),
    ConsumerGroupState.DEAD: frozenset(set(ConsumerGroupState) - {ConsumerGroupState.DEAD}),
}
"""For each state the states it may follow. One heartbeat may bump the group epoch and make an assignment, without the
state Assigning in between; a static member that returns with a new member id makes a Stable group Reconciling."""
