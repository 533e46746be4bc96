"""One topic and its partitions in the image.

Partitions are immutable; a change replaces the partition by a new one. Source: Kafka 4.4 `TopicImage`,
`PartitionRegistration`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from barnabas.wire.messages.records.metadata_records import (
    PartitionChangeRecord,
    PartitionRecord,
)
from barnabas.wire.types import Uuid

NO_LEADER: Final = -1
NO_LEADER_CHANGE: Final = -2
NO_RECOVERY_CHANGE: Final = -1
RECOVERY_STATES: Final = frozenset({0, 1})
"""RECOVERED and RECOVERING."""
MIGRATING_DIRECTORY: Final = Uuid(16)
"""Kafka's `DirectoryId.MIGRATING`: the record is older than directory assignment."""
UNASSIGNED_DIRECTORY: Final = Uuid(15) + b"\x01"
"""Kafka's `DirectoryId.UNASSIGNED`: the controller does not know which log directory holds the replica."""
LOST_DIRECTORY: Final = Uuid(15) + b"\x02"
"""Kafka's `DirectoryId.LOST`: the replica was in a directory that is gone."""
RESERVED_DIRECTORIES: Final = 100
"""Ids below this number are no directory's."""


def is_reserved_directory(directory: Uuid) -> bool:
    """Whether no log directory may have this id. Source: `DirectoryId.reserved`, where the low half has a sign."""
    return directory[:8] == bytes(8) and int.from_bytes(directory[8:], "big", signed=True) < RESERVED_DIRECTORIES


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
        """The partition of a PartitionRecord; ValueError if it is none."""
        if record.directories:
            _check_lengths(record.directories, len(record.replicas))
        return cls(
            replicas=tuple(record.replicas),
            directories=_directories(record.directories, len(record.replicas)),
            isr=tuple(record.isr),
            removing_replicas=tuple(record.removing_replicas),
            adding_replicas=tuple(record.adding_replicas),
            elr=tuple(record.eligible_leader_replicas or ()),
            last_known_elr=tuple(record.last_known_elr or ()),
            leader=record.leader,
            leader_recovery_state=_recovery_state(record.leader_recovery_state),
            leader_epoch=record.leader_epoch,
            partition_epoch=record.partition_epoch,
        )

    def changed(self, record: PartitionChangeRecord) -> PartitionImage:
        """The partition after a change. Absent fields stay; a record with a leader increments the leader epoch.

        ValueError if there is no such partition. Absent directories stay as they are, in their order: a record that
        changes replicas has to name them, unless all are MIGRATING.
        """
        has_leader = record.leader != NO_LEADER_CHANGE
        replicas = _changed_or(record.replicas, self.replicas)
        directories = self.directories if record.directories is None else record.directories
        if record.replicas is not None and record.directories:
            _check_lengths(record.directories, len(replicas))
        recovers = record.leader_recovery_state != NO_RECOVERY_CHANGE
        return PartitionImage(
            replicas=replicas,
            directories=_directories(directories, len(replicas)),
            isr=_changed_or(record.isr, self.isr),
            removing_replicas=_changed_or(record.removing_replicas, self.removing_replicas),
            adding_replicas=_changed_or(record.adding_replicas, self.adding_replicas),
            elr=_changed_or(record.eligible_leader_replicas, self.elr),
            last_known_elr=_changed_or(record.last_known_elr, self.last_known_elr),
            leader=record.leader if has_leader else self.leader,
            leader_recovery_state=(
                _recovery_state(record.leader_recovery_state) if recovers else self.leader_recovery_state
            ),
            leader_epoch=self.leader_epoch + has_leader,
            partition_epoch=self.partition_epoch + 1,
        )

    def without_elr(self) -> PartitionImage:
        """The partition without eligible leader replicas; the epochs are the same."""
        return self._replace(elr=(), last_known_elr=()) if self.elr or self.last_known_elr else self

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


def _directories(directories: Sequence[Uuid], replicas: int) -> tuple[Uuid, ...]:
    """The directory of each replica: MIGRATING where a record has none, or has only such."""
    if all(directory == MIGRATING_DIRECTORY for directory in directories):
        return (MIGRATING_DIRECTORY,) * replicas
    _check_lengths(directories, replicas)
    return tuple(directories)


def _check_lengths(directories: Sequence[Uuid], replicas: int) -> None:
    if len(directories) != replicas:
        raise ValueError(f"{len(directories)} directories for {replicas} replicas")


def _recovery_state(state: int) -> int:
    if state not in RECOVERY_STATES:
        raise ValueError(f"unknown leader recovery state {state}")
    return state


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
