"""A cluster of many brokers in memory: a `ClusterController`, a mock clock, and requests as brokers send them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count

from barnabas.coord.cluster.changes.config_schema import ConfigSchema
from barnabas.coord.cluster.changes.topic_changes import TopicDefaults
from barnabas.coord.cluster.cluster_controller import ClusterController, ControllerSettings
from barnabas.coord.cluster.delta import ClusterDelta
from barnabas.coord.cluster.image import LATEST_METADATA_VERSION, METADATA_VERSION_FEATURE, ClusterImage
from barnabas.coord.cluster.local_controller import Outcome
from barnabas.coord.cluster.metadata_log.replay import replay_record
from barnabas.coord.cluster.node_records import ELR_FEATURE, SUPPORTED_FEATURES, bootstrap_records
from barnabas.coord.cluster.topic_image import PartitionImage
from barnabas.coord.machine import Moment
from barnabas.storage.log_config import check_topic_configs
from barnabas.storage.topic_keys import SYNONYMS, TOPIC_KEYS
from barnabas.wire.messages.cluster import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationRequestFeature,
    BrokerRegistrationRequestListener,
    BrokerRegistrationResponse,
)
from barnabas.wire.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from barnabas.wire.messages.log_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsRequestDirectoryData,
    AssignReplicasToDirsRequestPartitionData,
    AssignReplicasToDirsRequestTopicData,
)
from barnabas.wire.messages.records.metadata_records import FeatureLevelRecord
from barnabas.wire.messages.replication import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    AlterPartitionResponsePartitionData,
    BrokerState,
)
from barnabas.wire.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from barnabas.wire.schema import Message
from tests.support.controller.worlds import BROKER_KEYS, R, Settings
from tests.support.steps import AtOnce

SESSION_S = 9.0
CLUSTER_ID = "a-cluster"


class Brokers:
    """Some brokers, their controller, and the offset and time of the metadata log."""

    def __init__(
        self,
        *ids: int,
        elr: bool = True,
        settings: Mapping[str, str] | None = None,
        racks: Mapping[int, str] | None = None,
        metadata_version: int = LATEST_METADATA_VERSION,
    ) -> None:
        """`ids` are registered and unfenced."""
        self.image = ClusterImage()
        self.now = 1000.0
        self.offset = 0
        self.incarnations = count(1)
        self.records: list[Message] = []
        """The records of the last change."""
        self.message: str | None = None
        """The error message of the last change of configs."""
        self.uuids = count(1)
        schema = ConfigSchema(
            topic_keys=TOPIC_KEYS,
            broker_keys=BROKER_KEYS,
            group_keys={},
            client_metrics_keys={},
            topic_synonyms=SYNONYMS,
            check_topic=check_topic_configs,
        )
        self._schema, self._settings = schema, Settings(settings)
        self.controller = self.new_controller()
        level = FeatureLevelRecord(name=METADATA_VERSION_FEATURE, feature_level=metadata_version)
        features = [level, *bootstrap_records()[1:]]
        self.apply([*features, FeatureLevelRecord(name=ELR_FEATURE, feature_level=int(elr))])
        for broker in ids:
            self.start(broker, rack=(racks or {}).get(broker))

    def new_controller(self, *, rebalances_leaders: bool = True) -> AtOnce:
        """A controller that begins with this image, and knows nothing else."""
        settings = ControllerSettings(SESSION_S, rebalances_leaders, cluster_id=CLUSTER_ID)
        controller = ClusterController(
            self.image, self._schema, self._settings, 3000, lambda: next(self.uuids).to_bytes(16, "big"), settings
        )
        self.controller = AtOnce(controller)
        return self.controller

    @property
    def at(self) -> Moment:
        """Now."""
        return Moment(self.now, int(self.now * 1000))

    def apply(self, records: Iterable[Message]) -> ClusterDelta:
        """Write records to the log and replay them."""
        delta = ClusterDelta()
        self.records = list(records)
        for record in self.records:
            replay_record(self.image, record, delta)
            self.offset += 1
        self.image.offset = self.offset - 1
        return delta

    def commit(self, outcome: Outcome[R]) -> R:
        """Write and replay the records of an outcome; its response."""
        self.apply(outcome.records)
        return outcome.response

    # Brokers

    def register(
        self,
        broker: int,
        *,
        incarnation: int | None = None,
        previous_epoch: int = -1,
        rack: str | None = None,
        directories: Sequence[bytes] | None = None,
        features: Mapping[str, tuple[int, int]] = SUPPORTED_FEATURES,
        cluster_id: str = CLUSTER_ID,
    ) -> BrokerRegistrationResponse:
        """Register a new incarnation, or a named one again."""
        request = BrokerRegistrationRequest(
            broker_id=broker,
            cluster_id=cluster_id,
            incarnation_id=(incarnation or 1000 + next(self.incarnations)).to_bytes(16, "big"),
            listeners=[BrokerRegistrationRequestListener(name="PLAINTEXT", host="localhost", port=9000 + broker)],
            features=[
                BrokerRegistrationRequestFeature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in features.items()
            ],
            rack=rack,
            log_dirs=[bytes([broker]) * 16] if directories is None else list(directories),
            previous_broker_epoch=previous_epoch,
        )
        return self.commit(self.controller.register_broker(request, self.at, next_offset=self.offset))

    def heartbeat(
        self,
        broker: int,
        *,
        fence: bool = False,
        shut_down: bool = False,
        behind: int = 0,
        offline: Sequence[bytes] = (),
        cordoned: Sequence[bytes] | None = None,
        epoch: int | None = None,
    ) -> BrokerHeartbeatResponse:
        """A heartbeat of a broker that has read the log up to `behind` records before its end."""
        request = BrokerHeartbeatRequest(
            broker_id=broker,
            broker_epoch=self.image.brokers[broker].epoch if epoch is None else epoch,
            current_metadata_offset=self.image.offset - behind,
            want_fence=fence,
            want_shut_down=shut_down,
            offline_log_dirs=list(offline),
            cordoned_log_dirs=None if cordoned is None else list(cordoned),
        )
        return self.commit(self.controller.heartbeat(request, self.at, committed_offset=self.image.offset))

    def assign(self, broker: int, directory: bytes, *partitions: tuple[str, int]) -> list[int]:
        """AssignReplicasToDirs for replicas of a broker in one directory; the error codes."""
        topics = [
            AssignReplicasToDirsRequestTopicData(
                topic_id=self.image.topics[name].topic_id if name in self.image.topics else bytes(16),
                partitions=[AssignReplicasToDirsRequestPartitionData(partition_index=index)],
            )
            for name, index in partitions
        ]
        request = AssignReplicasToDirsRequest(
            broker_id=broker,
            broker_epoch=self.image.brokers[broker].epoch,
            directories=[AssignReplicasToDirsRequestDirectoryData(id=directory, topics=topics)],
        )
        response = self.commit(self.controller.assign_replicas_to_dirs(request))
        return [part.error_code for topic in response.directories[0].topics for part in topic.partitions]

    def start(self, broker: int, *, previous_epoch: int = -1, rack: str | None = None) -> None:
        """Register and unfence a broker."""
        self.register(broker, previous_epoch=previous_epoch, rack=rack)
        assert not self.heartbeat(broker).is_fenced

    def fence(self, *brokers: int) -> None:
        """Let the sessions of these brokers end, while the others send heartbeats."""
        alive = [broker.id for broker in self.image.live_brokers() if broker.id not in brokers]
        for broker in alive:
            self.heartbeat(broker)
        self.pass_time(SESSION_S / 2)
        for broker in alive:
            self.heartbeat(broker)
        self.pass_time(SESSION_S / 2 + 0.1)
        assert all(self.image.brokers[broker].fenced for broker in brokers)

    def pass_time(self, seconds: float) -> None:
        """Let time pass, and the controller handle its deadlines within half a second."""
        end = self.now + seconds
        while True:
            while (due := self.controller.next_deadline()) is not None and due <= self.now:
                self.commit(self.controller.tick(self.at))
            if self.now >= end:
                return
            self.now = min(self.now + 0.5, end)

    def keep_alive(self, seconds: float) -> None:
        """Let time pass while every live broker sends heartbeats."""
        end = self.now + seconds
        while self.now < end:
            for broker in self.image.live_brokers():
                self.heartbeat(broker.id)
            self.pass_time(SESSION_S / 2)

    def configure(self, kind: int, name: str, **configs: str | None) -> int:
        """IncrementalAlterConfigs of one resource: keys have `_` for dots, None deletes; the error code."""
        changes = [
            IncrementalAlterConfigsRequestAlterableConfig(
                name=key.replace("_", "."), config_operation=0 if value is not None else 1, value=value
            )
            for key, value in configs.items()
        ]
        resource = IncrementalAlterConfigsRequestAlterConfigsResource(
            resource_type=kind, resource_name=name, configs=changes
        )
        request = IncrementalAlterConfigsRequest(resources=[resource])
        response = self.commit(self.controller.incremental_alter_configs(request)).responses[0]
        self.message = response.error_message
        return response.error_code

    # Topics

    def create(self, name: str, *assignments: Sequence[int], **configs: str) -> CreatableTopicResult:
        """Create a topic with these replicas by partition; configs have `_` for dots."""
        return self.create_topic(
            CreatableTopic(
                name=name,
                num_partitions=-1,
                replication_factor=-1,
                assignments=[
                    CreatableReplicaAssignment(partition_index=index, broker_ids=list(replicas))
                    for index, replicas in enumerate(assignments)
                ],
                configs=[
                    CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()
                ],
            )
        )

    def place(self, name: str, partitions: int, replicas: int) -> CreatableTopicResult:
        """Create a topic whose replicas the controller places."""
        return self.create_topic(CreatableTopic(name=name, num_partitions=partitions, replication_factor=replicas))

    def create_topic(self, topic: CreatableTopic) -> CreatableTopicResult:
        """One CreateTopics request."""
        request = CreateTopicsRequest(topics=[topic])
        return self.commit(self.controller.create_topics(request, TopicDefaults(1, 1))).topics[0]

    def partition(self, topic: str, index: int = 0) -> PartitionImage:
        """A partition, which exists."""
        partition = self.image.partition(topic, index)
        assert partition is not None
        return partition

    def state(self, topic: str, index: int = 0) -> tuple[int, list[int], list[int]]:
        """(leader, ISR, ELR)."""
        partition = self.partition(topic, index)
        return partition.leader, list(partition.isr), list(partition.elr)

    def alter(
        self,
        topic: str,
        isr: Iterable[int],
        *,
        index: int = 0,
        broker: int | None = None,
        leader_epoch: int = 0,
        partition_epoch: int = 0,
        epochs: Mapping[int, int] | None = None,
        recovery: int = 0,
        version: int = 3,
    ) -> AlterPartitionResponsePartitionData:
        """AlterPartition by the leader, or by `broker`; the epochs are relative to the present ones."""
        partition = self.partition(topic, index)
        sender = partition.leader if broker is None else broker
        known = {broker.id: broker.epoch for broker in self.image.brokers.values()} | dict(epochs or {})
        data = AlterPartitionRequestPartitionData(
            partition_index=index,
            leader_epoch=partition.leader_epoch + leader_epoch,
            new_isr=list(isr),
            new_isr_with_epochs=[
                BrokerState(broker_id=replica, broker_epoch=known.get(replica, -1)) for replica in isr
            ],
            leader_recovery_state=recovery,
            partition_epoch=partition.partition_epoch + partition_epoch,
        )
        topic_data = AlterPartitionRequestTopicData(topic_id=self.image.topics[topic].topic_id, partitions=[data])
        request = AlterPartitionRequest(
            broker_id=sender, broker_epoch=self.image.brokers[sender].epoch, topics=[topic_data]
        )
        return self.commit(self.controller.alter_partition(request, version)).topics[0].partitions[0]
