"""The cluster's metadata as of one offset of the metadata log, and the only way it changes: `replay`.

Every record of the log goes through `replay`, whether it was read from disk at start, written a moment ago
by our own controller, or fetched from another. A record kind that is not understood stops the process
(`UnknownMetadataError`): guessing would mean serving a cluster that is not the one described. Records
between BeginTransaction and EndTransaction take effect together (KIP-868). What Barnabas does not act on
yet (ACLs, SCRAM users, quotas, tokens) is kept, so that a snapshot loses nothing. Source: Kafka 4.4
`org.apache.kafka.image`. Rules R16, R17, R22.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

from barnabas.coord.cluster.partition_image import BrokerImage, PartitionImage, TopicImage
from barnabas.coord.cluster.quorum import Quorum
from barnabas.wire.messages import metadata_records as m
from barnabas.wire.schema import Message
from barnabas.wire.types import Uuid

ConfigResource = tuple[int, str]
"""A resource type of Kafka's (2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group) and a name."""

TOPIC: Final = 2
BROKER: Final = 4
BROKER_LOGGER: Final = 8
CLIENT_METRICS: Final = 16
GROUP: Final = 32

FEATURES: Final = "features"
"""How `ClusterDelta.other_changes` names a change of feature levels."""

METADATA_VERSION_FEATURE: Final = "metadata.version"
LATEST_METADATA_VERSION: Final = 33
"""4.4-IV2: the newest format of metadata records that is known here."""

Entity = tuple[tuple[str, str | None], ...]


class UnknownMetadataError(Exception):
    """The metadata log holds something this broker does not understand, or that contradicts itself."""


class ClusterDelta:
    """What a run of records changed, for those who act on it."""

    __slots__ = (
        "changed_brokers",
        "changed_configs",
        "changed_partitions",
        "created_topics",
        "deleted_topics",
        "new_partitions",
        "other_changes",
    )

    def __init__(self) -> None:
        self.created_topics: dict[Uuid, TopicImage] = {}
        self.deleted_topics: dict[Uuid, TopicImage] = {}
        self.new_partitions: dict[tuple[Uuid, int], TopicImage] = {}
        """Every partition that is new, those of created topics included."""
        self.changed_partitions: dict[tuple[Uuid, int], TopicImage] = {}
        """Partitions that were there and have another leader, ISR, replicas ... now."""
        self.changed_configs: set[ConfigResource] = set()
        self.changed_brokers: set[int] = set()
        self.other_changes: set[str] = set()
        """Names of the kinds of records that changed anything else."""

    def forget_topic(self, topic: TopicImage) -> None:
        """A topic that was created and deleted within one delta never was."""
        if self.created_topics.pop(topic.topic_id, None) is None:
            self.deleted_topics[topic.topic_id] = topic
        for changes in (self.new_partitions, self.changed_partitions):
            for key in [key for key in changes if key[0] == topic.topic_id]:
                del changes[key]


class ClusterImage:
    """The metadata in force. Read its attributes freely; change it through `replay` only."""

    def __init__(self) -> None:
        self.offset = -1
        """Offset of the last record replayed."""
        self.epoch = 0
        """Epoch of the controller that wrote it."""
        self.quorum = Quorum()
        """Who votes in the metadata quorum, as control records say; they do not go through `replay`."""
        self.topics: dict[str, TopicImage] = {}
        self.topics_by_id: dict[Uuid, TopicImage] = {}
        self.configs: dict[ConfigResource, dict[str, str]] = {}
        self.brokers: dict[int, BrokerImage] = {}
        self.controllers: dict[int, m.RegisterControllerRecord] = {}
        self.features: dict[str, int] = {}
        self.next_producer_id = 0
        self.acls: dict[Uuid, m.AccessControlEntryRecord] = {}
        self.scram: dict[tuple[str, int], m.UserScramCredentialRecord] = {}
        self.quotas: dict[Entity, dict[str, float]] = {}
        self.tokens: dict[str, m.DelegationTokenRecord] = {}
        self.zk_migration_state: int | None = None
        self._transaction: list[Message] | None = None

    def topic(self, name: str) -> TopicImage | None:
        """The topic of this name."""
        return self.topics.get(name)

    def topic_by_id(self, topic_id: Uuid) -> TopicImage | None:
        """The topic of this id."""
        return self.topics_by_id.get(topic_id)

    def partition(self, topic: str, index: int) -> PartitionImage | None:
        """One partition."""
        found = self.topics.get(topic)
        return None if found is None else found.partitions.get(index)

    def config(self, resource_type: int, name: str) -> dict[str, str]:
        """The configs set on a resource, as text by key; not to be changed."""
        return self.configs.get((resource_type, name), {})

    def live_brokers(self) -> list[BrokerImage]:
        """The brokers that clients may be told of, by id (R16)."""
        return [broker for _, broker in sorted(self.brokers.items()) if not broker.fenced]

    @property
    def metadata_version(self) -> int:
        """The format that records are to be written in: the finalized level, or the newest while there is none."""
        return self.features.get(METADATA_VERSION_FEATURE, LATEST_METADATA_VERSION)

    @property
    def is_in_transaction(self) -> bool:
        """Whether records are held back until the metadata transaction ends."""
        return self._transaction is not None

    def replay(self, record: Message, delta: ClusterDelta) -> None:
        """Apply one record. UnknownMetadataError when it is not understood or does not fit what is there."""
        if self._transaction is not None:
            if isinstance(record, m.AbortTransactionRecord):
                self._transaction = None
            elif isinstance(record, m.EndTransactionRecord):
                held, self._transaction = self._transaction, None
                for earlier in held:
                    self._apply(earlier, delta)
            elif isinstance(record, m.BeginTransactionRecord):
                raise UnknownMetadataError("A metadata transaction begins inside another")
            else:
                self._transaction.append(record)
        elif isinstance(record, m.BeginTransactionRecord):
            self._transaction = []
        else:
            self._apply(record, delta)

    def _apply(self, record: Message, delta: ClusterDelta) -> None:
        action = _ACTIONS.get(type(record))
        if action is None:
            raise UnknownMetadataError(f"Metadata record {type(record).__name__} is not understood here")
        action(self, record, delta)

    def existing_topic(self, topic_id: Uuid, kind: str) -> TopicImage:
        """The topic a record speaks of, which must be there."""
        topic = self.topics_by_id.get(topic_id)
        if topic is None:
            raise UnknownMetadataError(f"A {kind} speaks of topic id {topic_id.hex()}, which does not exist")
        return topic

    def existing_broker(self, broker_id: int, epoch: int, kind: str) -> BrokerImage:
        """The broker a record speaks of, which must be registered with this epoch."""
        broker = self.brokers.get(broker_id)
        if broker is None or broker.epoch != epoch:
            raise UnknownMetadataError(f"A {kind} speaks of broker {broker_id} epoch {epoch}, which is not registered")
        return broker


def _topic(image: ClusterImage, record: m.TopicRecord, delta: ClusterDelta) -> None:
    if record.name in image.topics or record.topic_id in image.topics_by_id:
        raise UnknownMetadataError(f"Topic {record.name} is created although it exists")
    topic = TopicImage(record.name, record.topic_id)
    image.topics[record.name] = image.topics_by_id[record.topic_id] = topic
    delta.created_topics[record.topic_id] = topic


def _remove_topic(image: ClusterImage, record: m.RemoveTopicRecord, delta: ClusterDelta) -> None:
    topic = image.existing_topic(record.topic_id, "RemoveTopicRecord")
    del image.topics[topic.name]
    del image.topics_by_id[topic.topic_id]
    if image.configs.pop((TOPIC, topic.name), None) is not None:
        delta.changed_configs.add((TOPIC, topic.name))
    delta.forget_topic(topic)


def _partition(image: ClusterImage, record: m.PartitionRecord, delta: ClusterDelta) -> None:
    topic = image.existing_topic(record.topic_id, "PartitionRecord")
    key = (topic.topic_id, record.partition_id)
    if record.partition_id not in topic.partitions:
        delta.new_partitions[key] = topic
    elif key not in delta.new_partitions:
        delta.changed_partitions[key] = topic
    topic.partitions[record.partition_id] = PartitionImage.from_record(record)


def _partition_change(image: ClusterImage, record: m.PartitionChangeRecord, delta: ClusterDelta) -> None:
    topic = image.existing_topic(record.topic_id, "PartitionChangeRecord")
    partition = topic.partitions.get(record.partition_id)
    if partition is None:
        raise UnknownMetadataError(f"Partition {topic.name}-{record.partition_id} changes, but does not exist")
    topic.partitions[record.partition_id] = partition.changed(record)
    key = (topic.topic_id, record.partition_id)
    if key not in delta.new_partitions:
        delta.changed_partitions[key] = topic


def _clear_elr(image: ClusterImage, record: m.ClearElrRecord, delta: ClusterDelta) -> None:
    if record.topic_name and record.topic_name not in image.topics:
        raise UnknownMetadataError(f"The ELR of topic {record.topic_name} is cleared, but the topic does not exist")
    topics = [image.topics[record.topic_name]] if record.topic_name else list(image.topics.values())
    for topic in topics:
        for index, partition in topic.partitions.items():
            if partition.elr or partition.last_known_elr:
                topic.partitions[index] = partition._replace(elr=(), last_known_elr=())
                delta.changed_partitions[(topic.topic_id, index)] = topic


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
    image.brokers[record.broker_id] = BrokerImage.from_record(record)
    delta.changed_brokers.add(record.broker_id)


def _unregister_broker(image: ClusterImage, record: m.UnregisterBrokerRecord, delta: ClusterDelta) -> None:
    image.existing_broker(record.broker_id, record.broker_epoch, "UnregisterBrokerRecord")
    del image.brokers[record.broker_id]
    delta.changed_brokers.add(record.broker_id)


def _fence_broker(image: ClusterImage, record: m.FenceBrokerRecord, delta: ClusterDelta) -> None:
    broker = image.existing_broker(record.id, record.epoch, "FenceBrokerRecord")
    image.brokers[record.id] = broker._replace(fenced=True)
    delta.changed_brokers.add(record.id)


def _unfence_broker(image: ClusterImage, record: m.UnfenceBrokerRecord, delta: ClusterDelta) -> None:
    broker = image.existing_broker(record.id, record.epoch, "UnfenceBrokerRecord")
    image.brokers[record.id] = broker._replace(fenced=False)
    delta.changed_brokers.add(record.id)


def _broker_change(image: ClusterImage, record: m.BrokerRegistrationChangeRecord, delta: ClusterDelta) -> None:
    broker = image.existing_broker(record.broker_id, record.broker_epoch, "BrokerRegistrationChangeRecord")
    if record.fenced:  # 1 fences, -1 unfences, 0 leaves it
        broker = broker._replace(fenced=record.fenced > 0)
    if record.in_controlled_shutdown:
        broker = broker._replace(in_controlled_shutdown=True)
    if record.log_dirs:
        broker = broker._replace(directories=tuple(record.log_dirs))
    if record.cordoned_log_dirs is not None:
        broker = broker._replace(cordoned_directories=tuple(record.cordoned_log_dirs))
    image.brokers[record.broker_id] = broker
    delta.changed_brokers.add(record.broker_id)


def _feature_level(image: ClusterImage, record: m.FeatureLevelRecord, delta: ClusterDelta) -> None:
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
    delta.other_changes.add("acls")


def _remove_acl(image: ClusterImage, record: m.RemoveAccessControlEntryRecord, delta: ClusterDelta) -> None:
    if image.acls.pop(record.id, None) is None:
        raise UnknownMetadataError(f"ACL {record.id.hex()} is removed, but does not exist")
    delta.other_changes.add("acls")


def _scram(image: ClusterImage, record: m.UserScramCredentialRecord, delta: ClusterDelta) -> None:
    image.scram[record.name, record.mechanism] = record
    delta.other_changes.add("scram")


def _remove_scram(image: ClusterImage, record: m.RemoveUserScramCredentialRecord, delta: ClusterDelta) -> None:
    if image.scram.pop((record.name, record.mechanism), None) is None:
        raise UnknownMetadataError(f"The SCRAM credential of {record.name} is removed, but does not exist")
    delta.other_changes.add("scram")


def _quota(image: ClusterImage, record: m.ClientQuotaRecord, delta: ClusterDelta) -> None:
    entity: Entity = tuple(sorted(((e.entity_type, e.entity_name) for e in record.entity), key=lambda pair: pair[0]))
    quotas = image.quotas.setdefault(entity, {})
    if record.remove:
        quotas.pop(record.key, None)
    else:
        quotas[record.key] = record.value
    if not quotas:
        del image.quotas[entity]
    delta.other_changes.add("quotas")


def _token(image: ClusterImage, record: m.DelegationTokenRecord, delta: ClusterDelta) -> None:
    image.tokens[record.token_id] = record
    delta.other_changes.add("tokens")


def _remove_token(image: ClusterImage, record: m.RemoveDelegationTokenRecord, delta: ClusterDelta) -> None:
    image.tokens.pop(record.token_id, None)
    delta.other_changes.add("tokens")


def _register_controller(image: ClusterImage, record: m.RegisterControllerRecord, delta: ClusterDelta) -> None:
    image.controllers[record.controller_id] = record
    delta.other_changes.add("controllers")


def _unregister_controller(image: ClusterImage, record: m.UnregisterControllerRecord, delta: ClusterDelta) -> None:
    image.controllers.pop(record.controller_id, None)
    delta.other_changes.add("controllers")


def _zk_migration_state(image: ClusterImage, record: m.ZkMigrationStateRecord, delta: ClusterDelta) -> None:
    image.zk_migration_state = record.zk_migration_state
    delta.other_changes.add("zk migration state")


def _nothing(image: ClusterImage, record: m.NoOpRecord, delta: ClusterDelta) -> None:
    """NoOpRecord only moves the offset."""


_Action = Callable[[ClusterImage, Any, ClusterDelta], None]
_ACTIONS: Final = cast(
    "dict[type[Message], _Action]",
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
        m.ZkMigrationStateRecord: _zk_migration_state,
        m.NoOpRecord: _nothing,
    },
)
