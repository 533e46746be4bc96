"""The states of a share group, and of what is kept of each partition for it (KIP-932).

Both follow from what records say and are never stored. The tables are data: tests hold every step to them. Source:
Kafka 4.4 `ShareGroup.ShareGroupState`, `ShareGroupStatePartitionMetadataValue`.
"""

from __future__ import annotations

from enum import Enum


class ShareGroupState(Enum):
    """Whether a share group has members. An assignment needs nobody's agreement, so there is nothing in between.

    In every state a member id that the group does not know is answered UNKNOWN_MEMBER_ID (25) unless it joins, and a
    member epoch that is neither the member's nor its previous one FENCED_MEMBER_EPOCH (110). OffsetCommit, OffsetFetch
    and OffsetDelete are answered GROUP_ID_NOT_FOUND (69).
    """

    EMPTY = "Empty"
    """No members; epochs and positions stay, for as long as nobody deletes them.

    A heartbeat with member epoch 0: the first member -> Stable. AlterShareGroupOffsets, also of a group that there is
    not yet, and DeleteShareGroupOffsets: accepted. DeleteGroups: positions, then the group -> Dead.
    """

    STABLE = "Stable"
    """There are members. Each learns of a new assignment with its next heartbeat.

    AlterShareGroupOffsets, DeleteShareGroupOffsets, DeleteGroups: NON_EMPTY_GROUP (68). The last member leaves, or its
    session ends -> Empty.
    """

    DEAD = "Dead"
    """Deleted. The next heartbeat of this id begins a new group."""

    def __str__(self) -> str:
        return self.value


class KeptState(Enum):
    """How far the share coordinator has the state of one partition for a group. Only Initialized ones are assigned."""

    NONE = "None"
    """Nobody has asked for it. A member subscribes to the topic, or the group is given a position -> Initializing."""

    INITIALIZING = "Initializing"
    """Written down, so that a crash does not forget it; the share coordinator is being asked. Heartbeats wait.

    It has it -> Initialized. It cannot -> None, and who waits is told its error. The topic is deleted -> None.
    """

    INITIALIZED = "Initialized"
    """Can be assigned. A position is set anew -> Initializing as well, until the share coordinator has that.

    DeleteShareGroupOffsets, DeleteGroups -> Deleting. The topic is deleted -> None.
    """

    DELETING = "Deleting"
    """Written down; the share coordinator is being asked to forget it. It has -> None.

    It cannot: stays so, and a repeated deletion tries again; a member that subscribes meanwhile -> Initializing.
    """

    def __str__(self) -> str:
        return self.value


PREDECESSORS: dict[ShareGroupState, frozenset[ShareGroupState]] = {
    ShareGroupState.EMPTY: frozenset({ShareGroupState.STABLE}),
    ShareGroupState.STABLE: frozenset({ShareGroupState.EMPTY}),
    ShareGroupState.DEAD: frozenset({ShareGroupState.EMPTY}),
}
"""For each state the states it may follow. A group that is there for its first member begins Stable."""

KEPT_PREDECESSORS: dict[KeptState, frozenset[KeptState]] = {
    KeptState.NONE: frozenset({KeptState.INITIALIZING, KeptState.INITIALIZED, KeptState.DELETING}),
    KeptState.INITIALIZING: frozenset({KeptState.NONE, KeptState.INITIALIZED, KeptState.DELETING}),
    KeptState.INITIALIZED: frozenset({KeptState.INITIALIZING}),
    KeptState.DELETING: frozenset({KeptState.INITIALIZING, KeptState.INITIALIZED}),
}
"""For each state the states it may follow; of a partition that is in two lists of the record Initializing counts."""
