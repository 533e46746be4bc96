"""One topic and its partitions in the image.

Partitions are immutable; a change replaces the partition by a new one. Source: Kafka 4.4 `TopicImage`,
`PartitionRegistration`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from barnabas.wire.messages.metadata_records import (
    PartitionChangeRecord,
    PartitionRecord,
)
from barnabas.wire.types import Uuid

NO_LEADER: Final = -1
NO_LEADER_CHANGE: Final = -2
NO_RECOVERY_CHANGE: Final = -1
MIGRATING_DIRECTORY: Final = Uuid(16)
"""Kafka's `DirectoryId.MIGRATING`: the broker, or the record, is older than directory assignment."""
UNASSIGNED_DIRECTORY: Final = Uuid(bytes(15) + b"\x01")
"""Kafka's `DirectoryId.UNASSIGNED`: the controller does not know which log directory holds the replica."""
LOST_DIRECTORY: Final = Uuid(bytes(15) + b"\x02")
"""Kafka's `DirectoryId.LOST`: the replica is in no directory that is online, so it may not lead."""


def default_directory(directories: tuple[Uuid, ...]) -> Uuid:
    """The log directory of a new replica of a broker with these (Kafka's `ClusterControlManager.defaultDir`)."""
    if not directories:
        return MIGRATING_DIRECTORY
    return directories[0] if len(directories) == 1 else UNASSIGNED_DIRECTORY


class PartitionImage(NamedTuple):
    """Replicas and leader of a partition. `leader_epoch` counts leaders, `partition_epoch` counts changes."""

    replicas: tuple[int, ...]
    directories: tuple[Uuid, ...]
    isr: tuple[int, ...]
    removing_replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    elr: tuple[int, ...]
    last_known_elr: tuple[int, ...]
    leader: int
    leader_recovery_state: int
    leader_epoch: int
    partition_epoch: int

    @classmethod
    def from_record(cls, record: PartitionRecord) -> PartitionImage:
        """The partition of a PartitionRecord."""
        return cls(
            replicas=tuple(record.replicas),
            directories=tuple(record.directories) or (MIGRATING_DIRECTORY,) * len(record.replicas),
            isr=tuple(record.isr),
            removing_replicas=tuple(record.removing_replicas),
            adding_replicas=tuple(record.adding_replicas),
            elr=tuple(record.eligible_leader_replicas or ()),
            last_known_elr=tuple(record.last_known_elr or ()),
            leader=record.leader,
            leader_recovery_state=record.leader_recovery_state,
            leader_epoch=record.leader_epoch,
            partition_epoch=record.partition_epoch,
        )

    def changed(self, record: PartitionChangeRecord) -> PartitionImage:
        """The partition after a change. Absent fields stay; a record with a leader increments the leader epoch."""
        has_leader = record.leader != NO_LEADER_CHANGE
        replicas = _changed_or(record.replicas, self.replicas)
        directories = self.directories
        if record.directories is not None:
            directories = tuple(record.directories)
        elif replicas != self.replicas:
            known = dict(zip(self.replicas, self.directories, strict=True))
            directories = tuple(known.get(replica, UNASSIGNED_DIRECTORY) for replica in replicas)
        recovers = record.leader_recovery_state != NO_RECOVERY_CHANGE
        return PartitionImage(
            replicas=replicas,
            directories=directories,
            isr=_changed_or(record.isr, self.isr),
            removing_replicas=_changed_or(record.removing_replicas, self.removing_replicas),
            adding_replicas=_changed_or(record.adding_replicas, self.adding_replicas),
            elr=_changed_or(record.eligible_leader_replicas, self.elr),
            last_known_elr=_changed_or(record.last_known_elr, self.last_known_elr),
            leader=record.leader if has_leader else self.leader,
            leader_recovery_state=record.leader_recovery_state if recovers else self.leader_recovery_state,
            leader_epoch=self.leader_epoch + has_leader,
            partition_epoch=self.partition_epoch + 1,
        )

    def to_record(self, topic_id: Uuid, partition: int) -> PartitionRecord:
        """The PartitionRecord of this partition."""
        return PartitionRecord(
            partition_id=partition,
            topic_id=topic_id,
            replicas=list(self.replicas),
            isr=list(self.isr),
            removing_replicas=list(self.removing_replicas),
            adding_replicas=list(self.adding_replicas),
            leader=self.leader,
            leader_recovery_state=self.leader_recovery_state,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
            directories=list(self.directories),
            eligible_leader_replicas=list(self.elr) or None,
            last_known_elr=list(self.last_known_elr) or None,
        )


def _changed_or(changed: list[int] | None, old: tuple[int, ...]) -> tuple[int, ...]:
    return old if changed is None else tuple(changed)


class TopicImage:
    """A topic: name, id, and partitions by index."""

    __slots__ = ("name", "partitions", "topic_id")

    def __init__(self, name: str, topic_id: Uuid) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions: dict[int, PartitionImage] = {}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TopicImage):
            return NotImplemented
        return (self.name, self.topic_id, self.partitions) == (other.name, other.topic_id, other.partitions)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"TopicImage({self.name}, {len(self.partitions)} partitions)"
