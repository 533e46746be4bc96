"""The states of a consumer group and of its members, and which may follow which (rule G3; KIP-848).

The group's state is derived from its epochs and members and never stored; a member's is part of its record. The tables
are data: tests hold every step that a group takes to them. Source: Kafka 4.4 `ConsumerGroupState`, `MemberState`.
"""

from __future__ import annotations

from enum import Enum


class ConsumerGroupState(Enum):
    """Where a consumer group stands. Values are the names that ConsumerGroupDescribe and ListGroups show.

    In every state a member id that the group does not know is answered UNKNOWN_MEMBER_ID (25), an instance id that
    belongs to another member FENCED_INSTANCE_ID (82), and a member epoch that is neither the member's nor, with no
    more partitions than it was given, its previous one FENCED_MEMBER_EPOCH (110).
    """

    EMPTY = "Empty"
    """No members; epochs and offsets may be there. A heartbeat with member epoch 0: the first member -> Assigning.

    DeleteGroups, OffsetDelete, OffsetCommit with epoch -1: accepted. A JoinGroup of the classic protocol: the group
    becomes a classic one -> Dead.
    """

    ASSIGNING = "Assigning"
    """The group epoch is ahead of the target assignment: subscriptions, members or topics have changed.

    A heartbeat computes a new target assignment -> Reconciling or Stable, unless the last one is younger than
    `consumer.assignment.interval.ms`: then members go on with the last one.
    """

    RECONCILING = "Reconciling"
    """Members are on their way to the target assignment: they give up partitions, or wait for others to do so.

    A heartbeat moves its member on; when the last one is there -> Stable. A change of members, subscriptions or topics
    -> Assigning. A member that does not give up partitions within its rebalance timeout is removed -> Assigning.
    """

    STABLE = "Stable"
    """Every member has what the target assignment gives it. A change -> Assigning; the last member leaves -> Empty."""

    DEAD = "Dead"
    """Deleted, or a classic group now that its last member of the consumer protocol is gone; the last state."""

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
"""For each state the states it may follow. One heartbeat may bump the group epoch and assign at once, so that Assigning
is passed over; a static member that comes back under a new id makes a Stable group Reconciling."""
