"""One registered broker in the image. Source: Kafka 4.4 `BrokerRegistration`."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple, Protocol, TypeVar

from barnabas.wire.messages.records.metadata_records import BrokerEndpoint, BrokerFeature, RegisterBrokerRecord
from barnabas.wire.types import Uuid


class Named(Protocol):
    """An endpoint, or the levels of a feature."""

    name: str


N = TypeVar("N", bound=Named)


def last_by_name(named: Iterable[N]) -> list[N]:
    """One for each name: the last."""
    return list({item.name: item for item in named}.values())


def in_order(directories: Iterable[Uuid]) -> tuple[Uuid, ...]:
    """Log directories in the order of Kafka's `Uuid.compareTo`: as two signed numbers of 64 bits."""
    return tuple(sorted(directories, key=lambda directory: struct.unpack(">qq", directory)))


class BrokerImage(NamedTuple):
    """A registered broker. `epoch` is the offset of its registration; a fenced broker serves no clients."""

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
    is_migrating_zk_broker: bool = False
    """A field of registrations by Kafka 3; nothing depends on it, it is kept in snapshots."""

    @classmethod
    def from_record(cls, record: RegisterBrokerRecord) -> BrokerImage:
        """The broker of a RegisterBrokerRecord."""
        cordoned = record.cordoned_log_dirs
        return cls(
            id=record.broker_id,
            incarnation_id=record.incarnation_id,
            epoch=record.broker_epoch,
            endpoints=tuple(last_by_name(record.end_points)),
            features=tuple(last_by_name(record.features)),
            rack=record.rack,
            fenced=record.fenced,
            in_controlled_shutdown=record.in_controlled_shutdown,
            directories=in_order(record.log_dirs),
            cordoned_directories=None if cordoned is None else tuple(cordoned),
            is_migrating_zk_broker=record.is_migrating_zk_broker,
        )

    @property
    def has_uncordoned_directories(self) -> bool:
        """Whether new replicas may be placed on this broker (KIP-1066)."""
        cordoned = self.cordoned_directories
        return not cordoned or not self.directories or not set(self.directories) <= set(cordoned)

    def to_record(self) -> RegisterBrokerRecord:
        """The RegisterBrokerRecord of this broker."""
        cordoned = self.cordoned_directories
        return RegisterBrokerRecord(
            broker_id=self.id,
            is_migrating_zk_broker=self.is_migrating_zk_broker,
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
