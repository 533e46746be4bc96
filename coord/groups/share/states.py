"""The states of a share group, and of the state of each of its partitions (KIP-932).

Both follow from records and are not stored. The tables are data: tests compare every step with them. Source:
Kafka 4.4 `ShareGroup.ShareGroupState`, `ShareGroupStatePartitionMetadataValue`.
"""

from __future__ import annotations

from enum import Enum


class ShareGroupState(Enum):
    """The state of a share group. An assignment takes effect without members' agreement, so no states are in between.

    In every state a member id that the group does not know is answered UNKNOWN_MEMBER_ID (25) unless it joins, and a
    member epoch that is neither the member's nor its previous one FENCED_MEMBER_EPOCH (110). OffsetCommit, OffsetFetch
    and OffsetDelete are answered GROUP_ID_NOT_FOUND (69).
    """

    EMPTY = "Empty"
    """No members; epochs and offsets are kept until they are deleted.

    A heartbeat with member epoch 0: the first member -> Stable. AlterShareGroupOffsets, also of a group that does
    not exist, and DeleteShareGroupOffsets: accepted. DeleteGroups: deletes states, then the group -> Dead.
    """

    STABLE = "Stable"
    """There are members. Each gets a new assignment with its next heartbeat.

    AlterShareGroupOffsets, DeleteShareGroupOffsets, DeleteGroups: NON_EMPTY_GROUP (68). The last member leaves, or its
    session expires -> Empty.
    """

    DEAD = "Dead"
    """Deleted. The next heartbeat with this group id creates a new group."""

    def __str__(self) -> str:
        return self.value


class KeptState(Enum):
    """Whether the share coordinator has the state of a partition for a group. Only Initialized ones are assigned."""

    NONE = "None"
    """No state. A member subscribes to the topic, or AlterShareGroupOffsets -> Initializing."""

    INITIALIZING = "Initializing"
    """Recorded; the share coordinator has been asked. Heartbeats that need the partition are parked.

    It succeeds -> Initialized. It fails -> None, and parked heartbeats get its error. The topic is deleted -> None.
    """

    INITIALIZED = "Initialized"
    """Can be assigned. AlterShareGroupOffsets -> Initializing as well, until the share coordinator has written it.

    DeleteShareGroupOffsets, DeleteGroups -> Deleting. The topic is deleted -> None.
    """

    DELETING = "Deleting"
    """Recorded; the share coordinator has been asked to delete it. It succeeds -> None.

    It fails: stays Deleting, and a repeated deletion tries again. A member subscribes to the topic -> Initializing.
    """

    def __str__(self) -> str:
        return self.value


PREDECESSORS: dict[ShareGroupState, frozenset[ShareGroupState]] = {
    ShareGroupState.EMPTY: frozenset({ShareGroupState.STABLE}),
    ShareGroupState.STABLE: frozenset({ShareGroupState.EMPTY}),
    ShareGroupState.DEAD: frozenset({ShareGroupState.EMPTY}),
}
"""For each state the states it may follow. A group that its first member creates begins Stable."""

KEPT_PREDECESSORS: dict[KeptState, frozenset[KeptState]] = {
    KeptState.NONE: frozenset({KeptState.INITIALIZING, KeptState.INITIALIZED, KeptState.DELETING}),
    KeptState.INITIALIZING: frozenset({KeptState.NONE, KeptState.INITIALIZED, KeptState.DELETING}),
    KeptState.INITIALIZED: frozenset({KeptState.INITIALIZING}),
    KeptState.DELETING: frozenset({KeptState.INITIALIZING, KeptState.INITIALIZED}),
}
"""For each state the states it may follow; a partition in two lists of the record is Initializing."""
