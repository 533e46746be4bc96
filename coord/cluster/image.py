"""The cluster's metadata as of one offset of the metadata log; only `replay` changes it (rules R16, R17, R22).

Source: Kafka 4.4 `MetadataImage`.
"""

from __future__ import annotations

from typing import Final

from barnabas.coord.cluster.broker_image import BrokerImage
from barnabas.coord.cluster.quorum import Quorum
from barnabas.coord.cluster.resources import ConfigResource
from barnabas.coord.cluster.topic_image import PartitionImage, TopicImage
from barnabas.wire.messages.records import metadata_records as m
from barnabas.wire.schema import Message
from barnabas.wire.types import Uuid

METADATA_VERSION_FEATURE: Final = "metadata.version"
KRAFT_VERSION_FEATURE: Final = "kraft.version"
ELR_FEATURE: Final = "eligible.leader.replicas.version"
FIRST_METADATA_VERSION: Final = 7
"""3.3-IV3, the first one of clusters without ZooKeeper."""
LATEST_METADATA_VERSION: Final = 33
"""4.4-IV2, the newest format of metadata records that Barnabas supports."""

Entity = tuple[tuple[str, str | None], ...]


class UnknownMetadataError(Exception):
    """The metadata log contains something unknown or contradictory."""


class ClusterImage:
    """The current metadata. Its attributes may be read freely; only `replay_record` changes them."""

    def __init__(self) -> None:
        self.offset = -1
        """Offset of the last record replayed."""
        self.epoch = 0
        """Epoch of the controller that wrote it."""
        self.quorum = Quorum()
        """The voters of the metadata quorum, from the control records."""
        self.topics: dict[str, TopicImage] = {}
        self.topics_by_id: dict[Uuid, TopicImage] = {}
        self.configs: dict[ConfigResource, dict[str, str]] = {}
        self.brokers: dict[int, BrokerImage] = {}
        self.controllers: dict[int, m.RegisterControllerRecord] = {}
        self.features: dict[str, int] = {}
        self.next_producer_id = -1
        """The first producer id that is not allocated; -1 before the first block."""
        self.acls: dict[Uuid, m.AccessControlEntryRecord] = {}
        self.scram: dict[tuple[str, int], m.UserScramCredentialRecord] = {}
        self.quotas: dict[Entity, dict[str, float]] = {}
        self.tokens: dict[str, m.DelegationTokenRecord] = {}
        self.transaction: list[Message] | None = None
        """The records of the open metadata transaction (KIP-868)."""

    def topic(self, name: str) -> TopicImage | None:
        """The topic with this name, or None."""
        return self.topics.get(name)

    def topic_by_id(self, topic_id: Uuid) -> TopicImage | None:
        """The topic with this id, or None."""
        return self.topics_by_id.get(topic_id)

    def partition(self, topic: str, index: int) -> PartitionImage | None:
        """One partition, or None."""
        topic_image = self.topics.get(topic)
        return None if topic_image is None else topic_image.partitions.get(index)

    def config(self, resource_type: int, name: str) -> dict[str, str]:
        """The configs set on a resource, as text by key. The caller must not change it."""
        return self.configs.get((resource_type, name), {})

    def live_brokers(self) -> list[BrokerImage]:
        """The brokers that are not fenced, by id; clients see only these (R16)."""
        return [broker for _, broker in sorted(self.brokers.items()) if not broker.fenced]

    @property
    def metadata_version(self) -> int:
        """The format to write records in: the finalized level, or the newest if none is finalized."""
        return self.features.get(METADATA_VERSION_FEATURE, LATEST_METADATA_VERSION)

    @property
    def finalized_features(self) -> dict[str, int]:
        """The level of every feature that is not 0, kraft.version included."""
        kraft_version = self.quorum.kraft_version
        return {**self.features, KRAFT_VERSION_FEATURE: kraft_version} if kraft_version else dict(self.features)

    @property
    def is_in_transaction(self) -> bool:
        """Whether a metadata transaction is open, so that records are not applied yet."""
        return self.transaction is not None
