"""What a node writes about itself: features of a new cluster, its registration, new leader epochs, producer id blocks.

Apart from `LocalController`, since a start needs these and no request. Source: Kafka 4.4 `ClusterControlManager`,
`ProducerIdControlManager`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from coord.cluster.image import ClusterImage
from wire.messages.metadata_records import (
    BrokerEndpoint,
    BrokerFeature,
    FeatureLevelRecord,
    PartitionChangeRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
)
from wire.schema import Message
from wire.types import Uuid

PRODUCER_ID_BLOCK: Final = 1000
"""Producer ids handed out at a time."""

METADATA_VERSION: Final = 33
"""4.4-IV2: the newest format of metadata records, in which ours are written."""

SUPPORTED_FEATURES: Final = {"metadata.version": (7, METADATA_VERSION)}
"""Feature levels this broker can work with. A feature is added once its behaviour exists."""


def bootstrap_records() -> list[Message]:
    """What a new metadata log begins with: the level of every feature, as a formatted Kafka has it."""
    return [FeatureLevelRecord(name="metadata.version", feature_level=METADATA_VERSION)]


def registration_records(
    broker_id: int,
    *,
    incarnation_id: Uuid,
    endpoints: Sequence[BrokerEndpoint],
    directories: Sequence[Uuid],
    rack: str | None,
    epoch: int,
) -> list[Message]:
    """Records that register a node as a live broker; `epoch` is the offset that the first will have."""
    features = [
        BrokerFeature(name=name, min_supported_version=low, max_supported_version=high)
        for name, (low, high) in SUPPORTED_FEATURES.items()
    ]
    return [
        RegisterBrokerRecord(
            broker_id=broker_id,
            incarnation_id=incarnation_id,
            broker_epoch=epoch,
            end_points=list(endpoints),
            features=features,
            rack=rack,
            fenced=False,
            log_dirs=list(directories),
        )
    ]


def new_leader_epochs(image: ClusterImage, broker_id: int) -> list[Message]:
    """Records that make a node leader anew of everything it leads.

    After a crash the end of a log may be gone; a new epoch lets readers notice (KIP-320).
    """
    return [
        PartitionChangeRecord(partition_id=index, topic_id=topic.topic_id, leader=broker_id)
        for topic in image.topics.values()
        for index, partition in topic.partitions.items()
        if partition.leader == broker_id
    ]


def allocate_producer_ids(image: ClusterImage, broker_id: int) -> tuple[list[Message], range]:
    """Records that hand a block of producer ids to a broker, and the block (KIP-730)."""
    start = image.next_producer_id
    end = start + PRODUCER_ID_BLOCK
    registered = image.brokers.get(broker_id)
    record = ProducerIdsRecord(
        broker_id=broker_id, broker_epoch=-1 if registered is None else registered.epoch, next_producer_id=end
    )
    return [record], range(start, end)
