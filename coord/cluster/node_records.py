"""Records that a node writes without a client's request: features, registration, leader epochs, producer id blocks.

Separate from `LocalController`, which a start does not need. Source: Kafka 4.4 `ClusterControlManager`,
`ProducerIdControlManager`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from barnabas.coord.cluster.broker_image import BrokerImage
from barnabas.coord.cluster.image import ELR_FEATURE as ELR_FEATURE
from barnabas.coord.cluster.image import (
    FIRST_METADATA_VERSION,
    KRAFT_VERSION_FEATURE,
    LATEST_METADATA_VERSION,
    METADATA_VERSION_FEATURE,
    ClusterImage,
)
from barnabas.coord.cluster.resources import BROKER
from barnabas.coord.cluster.topic_image import NO_LEADER, PartitionImage, TopicImage
from barnabas.coord.topic_names import INTERNAL_TOPICS
from barnabas.wire.messages.records.metadata_records import (
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
)
from barnabas.wire.schema import Message
from barnabas.wire.types import Uuid

FENCED: Final = 1
IN_CONTROLLED_SHUTDOWN: Final = 1
PRODUCER_ID_BLOCK: Final = 1000
"""Producer ids allocated at a time."""

TRANSACTION_VERSION_FEATURE: Final = "transaction.version"
LATEST_TRANSACTION_VERSION: Final = 2

GROUP_VERSION_FEATURE: Final = "group.version"
SHARE_VERSION_FEATURE: Final = "share.version"
STREAMS_VERSION_FEATURE: Final = "streams.version"

SUPPORTED_FEATURES: Final = {
    METADATA_VERSION_FEATURE: (FIRST_METADATA_VERSION, LATEST_METADATA_VERSION),
    TRANSACTION_VERSION_FEATURE: (0, LATEST_TRANSACTION_VERSION),
    GROUP_VERSION_FEATURE: (0, 1),
    SHARE_VERSION_FEATURE: (0, 2),
    STREAMS_VERSION_FEATURE: (0, 1),
    ELR_FEATURE: (0, 1),
    KRAFT_VERSION_FEATURE: (0, 1),
}
"""Minimum and maximum supported level by feature."""

BOOTSTRAP_FEATURES: Final = (
    METADATA_VERSION_FEATURE,
    TRANSACTION_VERSION_FEATURE,
    GROUP_VERSION_FEATURE,
    SHARE_VERSION_FEATURE,
    STREAMS_VERSION_FEATURE,
)
"""The features that a new single node finalizes.

Kafka's format also finalizes eligible.leader.replicas.version, with min.insync.replicas as a config of the cluster. A
single node has no replicas that could be eligible: there the feature only lets the static min.insync.replicas have no
effect, so it is left to clusters and to the profile `kafka`, where a single node looks like Kafka's.
"""


def bootstrap_records() -> list[Message]:
    """The first records of a new metadata log of a single node: the newest level of its features."""
    return [FeatureLevelRecord(name=name, feature_level=SUPPORTED_FEATURES[name][1]) for name in BOOTSTRAP_FEATURES]


def cluster_bootstrap_records(min_insync_replicas: str) -> list[Message]:
    """The first records of a new cluster, or single node like Kafka's: as Kafka's format writes them, ELR included.

    With ELR all brokers have one default of min.insync.replicas, so it is a record (KIP-966).
    """
    return [
        *bootstrap_records(),
        ConfigRecord(resource_type=BROKER, resource_name="", name="min.insync.replicas", value=min_insync_replicas),
        FeatureLevelRecord(name=ELR_FEATURE, feature_level=SUPPORTED_FEATURES[ELR_FEATURE][1]),
    ]


def registration_records(
    broker_id: int,
    *,
    incarnation_id: Uuid,
    endpoints: Sequence[BrokerEndpoint],
    directories: Sequence[Uuid],
    rack: str | None,
    epoch: int,
) -> list[Message]:
    """Records that register a node as a live broker; `epoch` is the offset that the first one will have."""
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


def shutdown_records(image: ClusterImage, broker: BrokerImage) -> list[Message]:
    """Records that fence a node that stops, so that its id can be registered again before its session ends.

    The coordinators' partitions lose their leader, because Kafka would otherwise load them twice at its start. The
    other partitions keep theirs: a record for each of them at every stop and start would make the log long.
    """
    records: list[Message] = [
        PartitionChangeRecord(partition_id=index, topic_id=topic.topic_id, leader=NO_LEADER)
        for topic in (image.topics.get(name) for name in sorted(INTERNAL_TOPICS))
        if topic is not None
        for index, partition in topic.partitions.items()
        if partition.leader == broker.id
    ]
    change = BrokerRegistrationChangeRecord(
        broker_id=broker.id, broker_epoch=broker.epoch, fenced=FENCED, in_controlled_shutdown=IN_CONTROLLED_SHUTDOWN
    )
    return [*records, change]


def election_records(image: ClusterImage, broker_id: int, *, after_crash: bool) -> list[Message]:
    """Records that make the only node the leader of every partition it has a replica of.

    Kafka removes the leaders when it stops. After a crash the end of a log may be lost: a new leader epoch lets
    consumers detect that (KIP-320).
    """
    return [
        _lead(topic, index, partition, broker_id)
        for topic in image.topics.values()
        for index, partition in topic.partitions.items()
        if broker_id in partition.replicas
        and (partition.leader == NO_LEADER or (after_crash and partition.leader == broker_id))
    ]


def _lead(topic: TopicImage, index: int, partition: PartitionImage, broker_id: int) -> Message:
    record = PartitionChangeRecord(partition_id=index, topic_id=topic.topic_id, leader=broker_id)
    if broker_id not in partition.isr:
        record.isr = [broker_id]
    if partition.elr:
        record.eligible_leader_replicas = []
    if partition.last_known_elr:
        record.last_known_elr = []
    return record


def allocate_producer_ids(image: ClusterImage, broker_id: int) -> tuple[list[Message], range]:
    """Records that allocate a block of producer ids to a broker, and the block (KIP-730)."""
    start = max(image.next_producer_id, 0)
    end = start + PRODUCER_ID_BLOCK
    registered = image.brokers.get(broker_id)
    record = ProducerIdsRecord(
        broker_id=broker_id, broker_epoch=-1 if registered is None else registered.epoch, next_producer_id=end
    )
    return [record], range(start, end)
