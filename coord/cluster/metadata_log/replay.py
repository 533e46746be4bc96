"""How metadata records change the image.

Every record of the metadata log is replayed, whether it was read from disk at start or has just been written by the
local controller. A record type that is unknown stops the process (`UnknownMetadataError`), because the image would
differ from the metadata. Records between BeginTransaction and EndTransaction are applied together (KIP-868). The image
is Kafka's, field by field, epochs included: brokers and controllers may be Kafka's (`compat.kafka.metadata_images`
compares them). Source: Kafka 4.4 `MetadataDelta.replay`. Rules R16, R17, R22.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, Final, cast

from barnabas.coord.cluster.broker_image import BrokerImage, in_order, last_by_name
from barnabas.coord.cluster.delta import FEATURES, QUOTAS, ClusterDelta
from barnabas.coord.cluster.image import (
    FIRST_METADATA_VERSION,
    KRAFT_VERSION_FEATURE,
    LATEST_METADATA_VERSION,
    METADATA_VERSION_FEATURE,
    ClusterImage,
    Entity,
    UnknownMetadataError,
)
from barnabas.coord.cluster.resources import TOPIC
from barnabas.coord.cluster.topic_image import PartitionImage, TopicImage
from barnabas.wire.messages.records import metadata_records as m
from barnabas.wire.schema import Message
from barnabas.wire.types import Uuid

SECURITY_PROTOCOL_IDS: Final = frozenset(range(4))
RECORDS_PER_STEP: Final = 100
"""The number of records that are applied in one step."""


def replay_record(image: ClusterImage, record: Message, delta: ClusterDelta) -> None:
    """Apply one record to the image; UnknownMetadataError when its type is unknown or it contradicts the image."""
    held = image.transaction
    if held is not None:
        if isinstance(record, m.AbortTransactionRecord):
            image.transaction = None
        elif isinstance(record, m.EndTransactionRecord):
            image.transaction = None
            for earlier in held:
                _apply(image, earlier, delta)
        elif isinstance(record, m.BeginTransactionRecord):
            raise UnknownMetadataError("BeginTransactionRecord inside a metadata transaction")
        else:
            held.append(record)
    elif isinstance(record, m.BeginTransactionRecord):
        image.transaction = []
    else:
        _apply(image, record, delta)


def replay_in_steps(
    image: ClusterImage, records: Sequence[Message], delta: ClusterDelta
) -> Generator[None, None, None]:
    """Apply the records of one change in their order; yields after each `RECORDS_PER_STEP` records.

    A new topic appears in the image when all records are applied, so a part of its partitions is never seen. Records
    of a metadata transaction take effect together, in one step.
    """
    staged = _staged(image)
    for count, record in enumerate(records, 1):
        if image.transaction is not None or isinstance(record, m.BeginTransactionRecord):
            _publish(staged, image)
            replay_record(image, record, delta)
        else:
            for target in _targets(record, image, staged):
                _apply(target, record, delta)
        if count % RECORDS_PER_STEP == 0 and count < len(records):
            yield
    _publish(staged, image)


def _staged(image: ClusterImage) -> ClusterImage:
    """An image for new topics, which shares the configs of `image`."""
    staged = ClusterImage()
    staged.configs = image.configs
    return staged


def _publish(staged: ClusterImage, image: ClusterImage) -> None:
    image.topics.update(staged.topics)
    image.topics_by_id.update(staged.topics_by_id)
    staged.topics, staged.topics_by_id = {}, {}


def _targets(record: Message, image: ClusterImage, staged: ClusterImage) -> tuple[ClusterImage, ...]:
    """Where a record is applied: new topics and what changes them in `staged`."""
    if isinstance(record, m.TopicRecord):
        is_new = record.name not in image.topics and record.topic_id not in image.topics_by_id
    elif isinstance(record, (m.PartitionRecord, m.PartitionChangeRecord, m.RemoveTopicRecord)):
        is_new = record.topic_id in staged.topics_by_id
    elif isinstance(record, m.ClearElrRecord):
        if not record.topic_name:
            return image, staged
        is_new = record.topic_name in staged.topics
    else:
        is_new = False
    return (staged,) if is_new else (image,)


def _apply(image: ClusterImage, record: Message, delta: ClusterDelta) -> None:
    handler = _HANDLERS.get(type(record))
    if handler is None:
        raise UnknownMetadataError(f"Unknown metadata record {type(record).__name__}")
    handler(image, record, delta)


def _existing_topic(image: ClusterImage, topic_id: Uuid, kind: str) -> TopicImage:
    topic = image.topics_by_id.get(topic_id)
    if topic is None:
        raise UnknownMetadataError(f"{kind} for topic id {topic_id.hex()}, which does not exist")
    return topic


def _existing_broker(image: ClusterImage, broker_id: int, epoch: int, kind: str) -> BrokerImage:
    broker = image.brokers.get(broker_id)
    if broker is None or broker.epoch != epoch:
        raise UnknownMetadataError(f"{kind} for broker {broker_id} epoch {epoch}, which is not registered")
    return broker


def _topic(image: ClusterImage, record: m.TopicRecord, delta: ClusterDelta) -> None:
    if record.name in image.topics or record.topic_id in image.topics_by_id:
        raise UnknownMetadataError(f"TopicRecord for topic {record.name}, which exists already")
    topic = TopicImage(record.name, record.topic_id)
    image.topics[record.name] = image.topics_by_id[record.topic_id] = topic
    delta.created_topics[record.topic_id] = topic


def _remove_topic(image: ClusterImage, record: m.RemoveTopicRecord, delta: ClusterDelta) -> None:
    topic = _existing_topic(image, record.topic_id, "RemoveTopicRecord")
    del image.topics[topic.name]
    del image.topics_by_id[topic.topic_id]
    if image.configs.pop((TOPIC, topic.name), None) is not None:
        delta.changed_configs.add((TOPIC, topic.name))
    delta.delete_topic(topic)


def _partition(image: ClusterImage, record: m.PartitionRecord, delta: ClusterDelta) -> None:
    topic = _existing_topic(image, record.topic_id, "PartitionRecord")
    key = (topic.topic_id, record.partition_id)
    if record.partition_id not in topic.partitions:
        delta.new_partitions[key] = topic
    elif key not in delta.new_partitions:
        delta.changed_partitions[key] = topic
    try:
        topic.partitions[record.partition_id] = PartitionImage.from_record(record)
    except ValueError as error:
        raise UnknownMetadataError(f"PartitionRecord for {topic.name}-{record.partition_id}: {error}") from error


def _partition_change(image: ClusterImage, record: m.PartitionChangeRecord, delta: ClusterDelta) -> None:
    topic = _existing_topic(image, record.topic_id, "PartitionChangeRecord")
    partition = topic.partitions.get(record.partition_id)
    if partition is None:
        raise UnknownMetadataError(
            f"PartitionChangeRecord for partition {topic.name}-{record.partition_id}, which does not exist"
        )
    _change(topic, partition, record, delta)


def _change(topic: TopicImage, partition: PartitionImage, record: m.PartitionChangeRecord, delta: ClusterDelta) -> None:
    try:
        topic.partitions[record.partition_id] = partition.changed(record)
    except ValueError as error:
        raise UnknownMetadataError(f"PartitionChangeRecord for {topic.name}-{record.partition_id}: {error}") from error
    key = (topic.topic_id, record.partition_id)
    if key not in delta.new_partitions:
        delta.changed_partitions[key] = topic


def _clear_elr(image: ClusterImage, record: m.ClearElrRecord, delta: ClusterDelta) -> None:
    if record.topic_name and record.topic_name not in image.topics:
        raise UnknownMetadataError(f"ClearElrRecord for topic {record.topic_name}, which does not exist")
    topics = [image.topics[record.topic_name]] if record.topic_name else list(image.topics.values())
    for topic in topics:
        for index, partition in topic.partitions.items():
            if partition.elr or partition.last_known_elr:
                _change(topic, partition, _no_elr(topic.topic_id, index), delta)


def _no_elr(topic_id: Uuid, index: int) -> m.PartitionChangeRecord:
    """What a ClearElrRecord does to one partition: a change as any other, which the partition epoch counts."""
    return m.PartitionChangeRecord(
        partition_id=index, topic_id=topic_id, eligible_leader_replicas=[], last_known_elr=[]
    )


def _config(image: ClusterImage, record: m.ConfigRecord, delta: ClusterDelta) -> None:
    resource = (record.resource_type, record.resource_name)
    configs = image.configs.setdefault(resource, {})
    if record.value is None:
        configs.pop(record.name, None)
    else:
        configs[record.name] = record.value
    if not configs:
        del image.configs[resource]
    delta.changed_configs.add(resource)


def _register_broker(image: ClusterImage, record: m.RegisterBrokerRecord, delta: ClusterDelta) -> None:
    if not all(endpoint.name for endpoint in record.end_points):
        raise UnknownMetadataError(f"RegisterBrokerRecord for broker {record.broker_id} with a listener without a name")
    image.brokers[record.broker_id] = BrokerImage.from_record(record)
    delta.changed_brokers.add(record.broker_id)


def _unregister_broker(image: ClusterImage, record: m.UnregisterBrokerRecord, delta: ClusterDelta) -> None:
    """Whether it is registered, and with which epoch, is asked by Kafka's controllers only."""
    image.brokers.pop(record.broker_id, None)
    delta.changed_brokers.add(record.broker_id)


def _fence_broker(image: ClusterImage, record: m.FenceBrokerRecord, delta: ClusterDelta) -> None:
    broker = _existing_broker(image, record.id, record.epoch, "FenceBrokerRecord")
    image.brokers[record.id] = broker._replace(fenced=True)
    delta.changed_brokers.add(record.id)


def _unfence_broker(image: ClusterImage, record: m.UnfenceBrokerRecord, delta: ClusterDelta) -> None:
    broker = _existing_broker(image, record.id, record.epoch, "UnfenceBrokerRecord")
    image.brokers[record.id] = broker._replace(fenced=False)
    delta.changed_brokers.add(record.id)


def _broker_change(image: ClusterImage, record: m.BrokerRegistrationChangeRecord, delta: ClusterDelta) -> None:
    broker = _existing_broker(image, record.broker_id, record.broker_epoch, "BrokerRegistrationChangeRecord")
    if record.fenced not in {-1, 0, 1} or record.in_controlled_shutdown not in {0, 1}:
        raise UnknownMetadataError(f"BrokerRegistrationChangeRecord for broker {record.broker_id} with unknown values")
    if record.fenced:  # 1: fence, -1: unfence, 0: no change
        broker = broker._replace(fenced=record.fenced > 0)
    if record.in_controlled_shutdown:
        broker = broker._replace(in_controlled_shutdown=True)
    if record.log_dirs:
        broker = broker._replace(directories=in_order(record.log_dirs))
    if record.cordoned_log_dirs is not None:
        broker = broker._replace(cordoned_directories=tuple(record.cordoned_log_dirs))
    image.brokers[record.broker_id] = broker
    delta.changed_brokers.add(record.broker_id)


def _feature_level(image: ClusterImage, record: m.FeatureLevelRecord, delta: ClusterDelta) -> None:
    if record.name == KRAFT_VERSION_FEATURE:
        return  # the control records have its level
    lowest, highest = FIRST_METADATA_VERSION, LATEST_METADATA_VERSION
    if record.name == METADATA_VERSION_FEATURE and not lowest <= record.feature_level <= highest:
        raise UnknownMetadataError(
            f"The metadata has {METADATA_VERSION_FEATURE} {record.feature_level}, but this broker supports {lowest} to "
            f"{highest}"
        )
    if record.feature_level:
        image.features[record.name] = record.feature_level
    else:
        image.features.pop(record.name, None)
    delta.other_changes.add(FEATURES)


def _producer_ids(image: ClusterImage, record: m.ProducerIdsRecord, delta: ClusterDelta) -> None:
    image.next_producer_id = record.next_producer_id
    delta.other_changes.add("producer ids")


def _acl(image: ClusterImage, record: m.AccessControlEntryRecord, delta: ClusterDelta) -> None:
    image.acls[record.id] = record
    delta.changed_acls.add(record.id)
    delta.other_changes.add("acls")


def _remove_acl(image: ClusterImage, record: m.RemoveAccessControlEntryRecord, delta: ClusterDelta) -> None:
    if image.acls.pop(record.id, None) is None:
        raise UnknownMetadataError(f"RemoveAccessControlEntryRecord for ACL {record.id.hex()}, which does not exist")
    delta.changed_acls.add(record.id)
    delta.other_changes.add("acls")


def _scram(image: ClusterImage, record: m.UserScramCredentialRecord, delta: ClusterDelta) -> None:
    image.scram[record.name, record.mechanism] = record
    delta.other_changes.add("scram")


def _remove_scram(image: ClusterImage, record: m.RemoveUserScramCredentialRecord, delta: ClusterDelta) -> None:
    """Whether there is one is asked by Kafka's controllers only."""
    image.scram.pop((record.name, record.mechanism), None)
    delta.other_changes.add("scram")


def _quota(image: ClusterImage, record: m.ClientQuotaRecord, delta: ClusterDelta) -> None:
    parts = {part.entity_type: part.entity_name for part in record.entity}
    entity: Entity = tuple(sorted(parts.items(), key=lambda pair: pair[0]))
    quotas = image.quotas.setdefault(entity, {})
    if record.remove:
        quotas.pop(record.key, None)
    else:
        quotas[record.key] = record.value
    if not quotas:
        del image.quotas[entity]
    delta.other_changes.add(QUOTAS)


def _token(image: ClusterImage, record: m.DelegationTokenRecord, delta: ClusterDelta) -> None:
    image.tokens[record.token_id] = record
    delta.other_changes.add("tokens")


def _remove_token(image: ClusterImage, record: m.RemoveDelegationTokenRecord, delta: ClusterDelta) -> None:
    image.tokens.pop(record.token_id, None)
    delta.other_changes.add("tokens")


def _register_controller(image: ClusterImage, record: m.RegisterControllerRecord, delta: ClusterDelta) -> None:
    unknown = {endpoint.security_protocol for endpoint in record.end_points} - SECURITY_PROTOCOL_IDS
    if unknown:
        raise UnknownMetadataError(
            f"RegisterControllerRecord for controller {record.controller_id} with security protocol {min(unknown)}"
        )
    image.controllers[record.controller_id] = m.RegisterControllerRecord(
        controller_id=record.controller_id,
        incarnation_id=record.incarnation_id,
        zk_migration_ready=record.zk_migration_ready,
        end_points=last_by_name(record.end_points),
        features=last_by_name(record.features),
    )
    delta.other_changes.add("controllers")


def _unregister_controller(image: ClusterImage, record: m.UnregisterControllerRecord, delta: ClusterDelta) -> None:
    image.controllers.pop(record.controller_id, None)
    delta.other_changes.add("controllers")


def _nothing(image: ClusterImage, record: Message, delta: ClusterDelta) -> None:
    """NoOpRecord changes nothing but the offset; of ZooKeeper, Kafka 4 keeps nothing."""


_Handler = Callable[[ClusterImage, Any, ClusterDelta], None]
_HANDLERS: Final = cast(
    "dict[type[Message], _Handler]",
    {
        m.TopicRecord: _topic,
        m.RemoveTopicRecord: _remove_topic,
        m.PartitionRecord: _partition,
        m.PartitionChangeRecord: _partition_change,
        m.ClearElrRecord: _clear_elr,
        m.ConfigRecord: _config,
        m.RegisterBrokerRecord: _register_broker,
        m.UnregisterBrokerRecord: _unregister_broker,
        m.FenceBrokerRecord: _fence_broker,
        m.UnfenceBrokerRecord: _unfence_broker,
        m.BrokerRegistrationChangeRecord: _broker_change,
        m.FeatureLevelRecord: _feature_level,
        m.ProducerIdsRecord: _producer_ids,
        m.AccessControlEntryRecord: _acl,
        m.RemoveAccessControlEntryRecord: _remove_acl,
        m.UserScramCredentialRecord: _scram,
        m.RemoveUserScramCredentialRecord: _remove_scram,
        m.ClientQuotaRecord: _quota,
        m.DelegationTokenRecord: _token,
        m.RemoveDelegationTokenRecord: _remove_token,
        m.RegisterControllerRecord: _register_controller,
        m.UnregisterControllerRecord: _unregister_controller,
        m.ZkMigrationStateRecord: _nothing,
        m.NoOpRecord: _nothing,
    },
)
