"""One partition's, one topic's and one broker's place in the image.

Partitions are immutable: a change makes a new one, so that whoever holds an old one sees the partition as it
was. Source: Kafka 4.4 `PartitionRegistration`, `BrokerRegistration`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from barnabas.wire.messages.metadata_records import (
    BrokerEndpoint,
    BrokerFeature,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
)
from barnabas.wire.types import Uuid

NO_LEADER: Final = -1
NO_LEADER_CHANGE: Final = -2
NO_RECOVERY_CHANGE: Final = -1
UNASSIGNED_DIRECTORY: Final = Uuid(16)
"""Directory.UNASSIGNED: which log directory holds the replica is not known to the controller."""


class PartitionImage(NamedTuple):
    """Who holds a partition and who leads it; epochs count leaders and changes."""

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
        """The partition as a PartitionRecord states it."""
        return cls(
            replicas=tuple(record.replicas),
            directories=tuple(record.directories) or (UNASSIGNED_DIRECTORY,) * len(record.replicas),
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
        """The partition after a change: what the record leaves out stays; a leader named anew counts an epoch."""
        names_leader = record.leader != NO_LEADER_CHANGE
        replicas = _or(record.replicas, self.replicas)
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
            isr=_or(record.isr, self.isr),
            removing_replicas=_or(record.removing_replicas, self.removing_replicas),
            adding_replicas=_or(record.adding_replicas, self.adding_replicas),
            elr=_or(record.eligible_leader_replicas, self.elr),
            last_known_elr=_or(record.last_known_elr, self.last_known_elr),
            leader=record.leader if names_leader else self.leader,
            leader_recovery_state=record.leader_recovery_state if recovers else self.leader_recovery_state,
            leader_epoch=self.leader_epoch + names_leader,
            partition_epoch=self.partition_epoch + 1,
        )

    def to_record(self, topic_id: Uuid, partition: int) -> PartitionRecord:
        """The record that states this partition."""
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


def _or(changed: list[int] | None, old: tuple[int, ...]) -> tuple[int, ...]:
    return old if changed is None else tuple(changed)


class TopicImage:
    """A topic: its name, its id, its partitions by index."""

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


class BrokerImage(NamedTuple):
    """A registered broker. A fenced one serves nobody; its epoch is the offset of its registration."""

    id: int
    incarnation_id: Uuid
    epoch: int
    endpoints: tuple[BrokerEndpoint, ...]
    features: tuple[BrokerFeature, ...]
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool
    directories: tuple[Uuid, ...]
    cordoned_directories: tuple[Uuid, ...] | None

    @classmethod
    def from_record(cls, record: RegisterBrokerRecord) -> BrokerImage:
        """The broker as it registered."""
        cordoned = record.cordoned_log_dirs
        return cls(
            id=record.broker_id,
            incarnation_id=record.incarnation_id,
            epoch=record.broker_epoch,
            endpoints=tuple(record.end_points),
            features=tuple(record.features),
            rack=record.rack,
            fenced=record.fenced,
            in_controlled_shutdown=record.in_controlled_shutdown,
            directories=tuple(record.log_dirs),
            cordoned_directories=None if cordoned is None else tuple(cordoned),
        )

    def to_record(self) -> RegisterBrokerRecord:
        """The record that states this broker."""
        cordoned = self.cordoned_directories
        return RegisterBrokerRecord(
            broker_id=self.id,
            incarnation_id=self.incarnation_id,
            broker_epoch=self.epoch,
            end_points=list(self.endpoints),
            features=list(self.features),
            rack=self.rack,
            fenced=self.fenced,
            in_controlled_shutdown=self.in_controlled_shutdown,
            log_dirs=list(self.directories),
            cordoned_log_dirs=None if cordoned is None else list(cordoned),
        )
