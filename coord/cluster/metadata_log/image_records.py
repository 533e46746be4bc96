"""The records of an image, as in a snapshot. Replaying them gives an equal image.

Without its feature there is no ELR in a snapshot, as in Kafka's: disabling the feature ends every ELR. Source: the
order of Kafka 4.4 `MetadataImage.write`.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.coord.cluster.image import ELR_FEATURE, ClusterImage
from barnabas.wire.messages.records.metadata_records import (
    ClientQuotaRecord,
    ClientQuotaRecordEntityData,
    ConfigRecord,
    FeatureLevelRecord,
    ProducerIdsRecord,
    TopicRecord,
)
from barnabas.wire.schema import Message


def image_records(image: ClusterImage) -> Iterator[Message]:
    """The records of the image, in Kafka's order."""
    for name, level in sorted(image.features.items(), key=lambda item: (item[0] != "metadata.version", item[0])):
        yield FeatureLevelRecord(name=name, feature_level=level)
    for _, broker in sorted(image.brokers.items()):
        yield broker.to_record()
    for _, controller in sorted(image.controllers.items()):
        yield controller
    has_elr = bool(image.features.get(ELR_FEATURE))
    for topic in image.topics.values():
        yield TopicRecord(name=topic.name, topic_id=topic.topic_id)
        for index, partition in sorted(topic.partitions.items()):
            yield (partition if has_elr else partition.without_elr()).to_record(topic.topic_id, index)
    for (kind, name), configs in image.configs.items():
        for key, value in configs.items():
            yield ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value)
    yield from _other_records(image)


def _other_records(image: ClusterImage) -> Iterator[Message]:
    for entity, quotas in image.quotas.items():
        parts = [ClientQuotaRecordEntityData(entity_type=kind, entity_name=name) for kind, name in entity]
        for key, value in quotas.items():
            yield ClientQuotaRecord(entity=parts, key=key, value=value)
    if image.next_producer_id >= 0:
        yield ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=image.next_producer_id)
    yield from image.acls.values()
    yield from image.scram.values()
    yield from image.tokens.values()
