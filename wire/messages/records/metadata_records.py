"""Records of the cluster metadata log (KRaft) and of the remote-log metadata topic. KIP-405, KIP-631, KIP-746."""

from __future__ import annotations

from barnabas.wire.schema import (
    Bytes,
    Message,
    Struct,
    Uuid,
    array,
    boolean,
    byte_string,
    float64,
    int8,
    int16,
    int32,
    int64,
    message,
    nested,
    string,
    struct,
    uint16,
    uuid,
)


@struct
class RemoteLogSegmentMetadataRecordTopicIdPartitionEntry(Struct):
    name: str = string("0+")
    id: Uuid = uuid("0+")
    partition: int = int32("0+")


@struct
class RemoteLogSegmentMetadataRecordRemoteLogSegmentIdEntry(Struct):
    topic_id_partition: RemoteLogSegmentMetadataRecordTopicIdPartitionEntry = nested(
        RemoteLogSegmentMetadataRecordTopicIdPartitionEntry, "0+"
    )
    id: Uuid = uuid("0+")


@struct
class RemoteLogSegmentMetadataRecordSegmentLeaderEpochEntry(Struct):
    leader_epoch: int = int32("0+")
    offset: int = int64("0+")


@message("record", key=0, versions="0", flexible="0+")
class RemoteLogSegmentMetadataRecord(Message):
    remote_log_segment_id: RemoteLogSegmentMetadataRecordRemoteLogSegmentIdEntry = nested(
        RemoteLogSegmentMetadataRecordRemoteLogSegmentIdEntry, "0+"
    )
    start_offset: int = int64("0+")
    end_offset: int = int64("0+")
    broker_id: int = int32("0+")
    max_timestamp_ms: int = int64("0+")
    event_timestamp_ms: int = int64("0+")
    segment_leader_epochs: list[RemoteLogSegmentMetadataRecordSegmentLeaderEpochEntry] = array(
        RemoteLogSegmentMetadataRecordSegmentLeaderEpochEntry, "0+"
    )
    segment_size_in_bytes: int = int32("0+")
    custom_metadata: Bytes | None = byte_string("0+", nullable="0+", default=None)
    remote_log_segment_state: int = int8("0+")
    txn_index_empty: bool = boolean("0+", tag=0)


@struct
class RemoteLogSegmentMetadataSnapshotRecordSegmentLeaderEpochEntry(Struct):
    leader_epoch: int = int32("0+")
    offset: int = int64("0+")


@message("record", key=3, versions="0", flexible="0+")
class RemoteLogSegmentMetadataSnapshotRecord(Message):
    segment_id: Uuid = uuid("0+")
    start_offset: int = int64("0+")
    end_offset: int = int64("0+")
    broker_id: int = int32("0+")
    max_timestamp_ms: int = int64("0+")
    event_timestamp_ms: int = int64("0+")
    segment_leader_epochs: list[RemoteLogSegmentMetadataSnapshotRecordSegmentLeaderEpochEntry] = array(
        RemoteLogSegmentMetadataSnapshotRecordSegmentLeaderEpochEntry, "0+"
    )
    segment_size_in_bytes: int = int32("0+")
    custom_metadata: Bytes | None = byte_string("0+", nullable="0+", default=None)
    remote_log_segment_state: int = int8("0+")
    txn_index_empty: bool = boolean("0+", tag=0)


@struct
class RemoteLogSegmentMetadataUpdateRecordTopicIdPartitionEntry(Struct):
    name: str = string("0+")
    id: Uuid = uuid("0+")
    partition: int = int32("0+")


@struct
class RemoteLogSegmentMetadataUpdateRecordRemoteLogSegmentIdEntry(Struct):
    topic_id_partition: RemoteLogSegmentMetadataUpdateRecordTopicIdPartitionEntry = nested(
        RemoteLogSegmentMetadataUpdateRecordTopicIdPartitionEntry, "0+"
    )
    id: Uuid = uuid("0+")


@message("record", key=1, versions="0", flexible="0+")
class RemoteLogSegmentMetadataUpdateRecord(Message):
    remote_log_segment_id: RemoteLogSegmentMetadataUpdateRecordRemoteLogSegmentIdEntry = nested(
        RemoteLogSegmentMetadataUpdateRecordRemoteLogSegmentIdEntry, "0+"
    )
    broker_id: int = int32("0+")
    event_timestamp_ms: int = int64("0+")
    custom_metadata: Bytes | None = byte_string("0+", nullable="0+", default=None)
    remote_log_segment_state: int = int8("0+")


@struct
class RemotePartitionDeleteMetadataRecordTopicIdPartitionEntry(Struct):
    name: str = string("0+")
    id: Uuid = uuid("0+")
    partition: int = int32("0+")


@message("record", key=2, versions="0", flexible="0+")
class RemotePartitionDeleteMetadataRecord(Message):
    topic_id_partition: RemotePartitionDeleteMetadataRecordTopicIdPartitionEntry = nested(
        RemotePartitionDeleteMetadataRecordTopicIdPartitionEntry, "0+"
    )
    broker_id: int = int32("0+")
    event_timestamp_ms: int = int64("0+")
    remote_partition_delete_state: int = int8("0+")


@message("record", key=25, versions="0", flexible="0+")
class AbortTransactionRecord(Message):
    reason: str | None = string("0+", nullable="0+", tag=0, default=None)


@message("record", key=18, versions="0", flexible="0+")
class AccessControlEntryRecord(Message):
    id: Uuid = uuid("0+")
    resource_type: int = int8("0+")
    resource_name: str = string("0+")
    pattern_type: int = int8("0+")
    principal: str = string("0+")
    host: str = string("0+")
    operation: int = int8("0+")
    permission_type: int = int8("0+")


@message("record", key=23, versions="0", flexible="0+")
class BeginTransactionRecord(Message):
    name: str | None = string("0+", nullable="0+", tag=0, default=None)


@message("record", key=17, versions="0-3", flexible="0+")
class BrokerRegistrationChangeRecord(Message):
    broker_id: int = int32("0+", entity="brokerId")
    broker_epoch: int = int64("0+")
    fenced: int = int8("0+", tag=0)
    in_controlled_shutdown: int = int8("1+", tag=1)
    log_dirs: list[Uuid] = array(uuid, "2+", tag=2)
    cordoned_log_dirs: list[Uuid] | None = array(uuid, "3+", nullable="3+", tag=3, default=None)


@message("record", key=28, versions="0", flexible="0+")
class ClearElrRecord(Message):
    topic_name: str = string("0+", entity="topicName")


@struct
class ClientQuotaRecordEntityData(Struct):
    entity_type: str = string("0+")
    entity_name: str | None = string("0+", nullable="0+")


@message("record", key=14, versions="0", flexible="0+")
class ClientQuotaRecord(Message):
    entity: list[ClientQuotaRecordEntityData] = array(ClientQuotaRecordEntityData, "0+")
    key: str = string("0+")
    value: float = float64("0+")
    remove: bool = boolean("0+")


@message("record", key=4, versions="0", flexible="0+")
class ConfigRecord(Message):
    resource_type: int = int8("0+")
    resource_name: str = string("0+")
    name: str = string("0+")
    value: str | None = string("0+", nullable="0+")


@message("record", key=10, versions="0", flexible="0+")
class DelegationTokenRecord(Message):
    owner: str = string("0+")
    requester: str = string("0+")
    renewers: list[str] = array(string, "0+")
    issue_timestamp: int = int64("0+")
    max_timestamp: int = int64("0+")
    expiration_timestamp: int = int64("0+")
    token_id: str = string("0+")


@message("record", key=24, versions="0", flexible="0+")
class EndTransactionRecord(Message):
    """EndTransactionRecord carries no fields."""


@message("record", key=12, versions="0", flexible="0+")
class FeatureLevelRecord(Message):
    name: str = string("0+")
    feature_level: int = int16("0+")


@message("record", key=7, versions="0", flexible="0+")
class FenceBrokerRecord(Message):
    id: int = int32("0+", entity="brokerId")
    epoch: int = int64("0+")


@message("record", key=20, versions="0", flexible="0+")
class NoOpRecord(Message):
    """NoOpRecord carries no fields."""


@message("record", key=5, versions="0-2", flexible="0+")
class PartitionChangeRecord(Message):
    partition_id: int = int32("0+", default=-1)
    topic_id: Uuid = uuid("0+")
    isr: list[int] | None = array(int32, "0+", nullable="0+", tag=0, default=None, entity="brokerId")
    leader: int = int32("0+", tag=1, default=-2, entity="brokerId")
    replicas: list[int] | None = array(int32, "0+", nullable="0+", tag=2, default=None, entity="brokerId")
    removing_replicas: list[int] | None = array(int32, "0+", nullable="0+", tag=3, default=None, entity="brokerId")
    adding_replicas: list[int] | None = array(int32, "0+", nullable="0+", tag=4, default=None, entity="brokerId")
    leader_recovery_state: int = int8("0+", tag=5, default=-1)
    directories: list[Uuid] | None = array(uuid, "1+", nullable="1+", tag=8, default=None)
    eligible_leader_replicas: list[int] | None = array(
        int32, "2+", nullable="2+", tag=6, default=None, entity="brokerId"
    )
    last_known_elr: list[int] | None = array(int32, "2+", nullable="2+", tag=7, default=None, entity="brokerId")


@message("record", key=3, versions="0-2", flexible="0+")
class PartitionRecord(Message):
    partition_id: int = int32("0+", default=-1)
    topic_id: Uuid = uuid("0+")
    replicas: list[int] = array(int32, "0+", entity="brokerId")
    isr: list[int] = array(int32, "0+")
    removing_replicas: list[int] = array(int32, "0+", entity="brokerId")
    adding_replicas: list[int] = array(int32, "0+", entity="brokerId")
    leader: int = int32("0+", default=-1, entity="brokerId")
    leader_recovery_state: int = int8("0+", tag=0)
    leader_epoch: int = int32("0+", default=-1)
    partition_epoch: int = int32("0+", default=-1)
    directories: list[Uuid] = array(uuid, "1+")
    eligible_leader_replicas: list[int] | None = array(
        int32, "2+", nullable="2+", tag=1, default=None, entity="brokerId"
    )
    last_known_elr: list[int] | None = array(int32, "2+", nullable="2+", tag=2, default=None, entity="brokerId")


@message("record", key=15, versions="0", flexible="0+")
class ProducerIdsRecord(Message):
    broker_id: int = int32("0+", entity="brokerId")
    broker_epoch: int = int64("0+", default=-1)
    next_producer_id: int = int64("0+")


@struct
class BrokerEndpoint(Struct):
    name: str = string("0+")
    host: str = string("0+")
    port: int = uint16("0+")
    security_protocol: int = int16("0+")


@struct
class BrokerFeature(Struct):
    name: str = string("0+")
    min_supported_version: int = int16("0+")
    max_supported_version: int = int16("0+")


@message("record", key=0, versions="0-4", flexible="0+")
class RegisterBrokerRecord(Message):
    broker_id: int = int32("0+", entity="brokerId")
    is_migrating_zk_broker: bool = boolean("2+")
    incarnation_id: Uuid = uuid("0+")
    broker_epoch: int = int64("0+")
    end_points: list[BrokerEndpoint] = array(BrokerEndpoint, "0+")
    features: list[BrokerFeature] = array(BrokerFeature, "0+")
    rack: str | None = string("0+", nullable="0+")
    fenced: bool = boolean("0+", default=True)
    in_controlled_shutdown: bool = boolean("1+")
    log_dirs: list[Uuid] = array(uuid, "3+", tag=0)
    cordoned_log_dirs: list[Uuid] | None = array(uuid, "4+", nullable="4+", tag=1, default=None)


@struct
class ControllerEndpoint(Struct):
    name: str = string("0+")
    host: str = string("0+")
    port: int = uint16("0+")
    security_protocol: int = int16("0+")


@struct
class ControllerFeature(Struct):
    name: str = string("0+")
    min_supported_version: int = int16("0+")
    max_supported_version: int = int16("0+")


@message("record", key=27, versions="0", flexible="0+")
class RegisterControllerRecord(Message):
    controller_id: int = int32("0+")
    incarnation_id: Uuid = uuid("0+")
    zk_migration_ready: bool = boolean("0+")
    end_points: list[ControllerEndpoint] = array(ControllerEndpoint, "0+")
    features: list[ControllerFeature] = array(ControllerFeature, "0+")


@message("record", key=19, versions="0", flexible="0+")
class RemoveAccessControlEntryRecord(Message):
    id: Uuid = uuid("0+")


@message("record", key=26, versions="0", flexible="0+")
class RemoveDelegationTokenRecord(Message):
    token_id: str = string("0+")


@message("record", key=9, versions="0", flexible="0+")
class RemoveTopicRecord(Message):
    topic_id: Uuid = uuid("0+")


@message("record", key=22, versions="0", flexible="0+")
class RemoveUserScramCredentialRecord(Message):
    name: str = string("0+")
    mechanism: int = int8("0+")


@message("record", key=2, versions="0", flexible="0+")
class TopicRecord(Message):
    name: str = string("0+", entity="topicName")
    topic_id: Uuid = uuid("0+")


@message("record", key=8, versions="0", flexible="0+")
class UnfenceBrokerRecord(Message):
    id: int = int32("0+", entity="brokerId")
    epoch: int = int64("0+")


@message("record", key=1, versions="0", flexible="0+")
class UnregisterBrokerRecord(Message):
    broker_id: int = int32("0+", entity="brokerId")
    broker_epoch: int = int64("0+")


@message("record", key=29, versions="0", flexible="0+")
class UnregisterControllerRecord(Message):
    controller_id: int = int32("0+")


@message("record", key=11, versions="0", flexible="0+")
class UserScramCredentialRecord(Message):
    name: str = string("0+")
    mechanism: int = int8("0+")
    salt: Bytes = byte_string("0+")
    stored_key: Bytes = byte_string("0+")
    server_key: Bytes = byte_string("0+")
    iterations: int = int32("0+")


@message("record", key=21, versions="0", flexible="0+")
class ZkMigrationStateRecord(Message):
    zk_migration_state: int = int8("0+")
