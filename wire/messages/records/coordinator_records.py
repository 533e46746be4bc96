"""Keys and values of `__consumer_offsets`, `__transaction_state` and `__share_group_state`.

KIP-98, KIP-848, KIP-932, KIP-1071.
"""

from __future__ import annotations

from barnabas.wire.schema import (
    Bytes,
    Message,
    Struct,
    Uuid,
    array,
    byte_string,
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


@message("key", key=8, versions="0")
class ConsumerGroupCurrentMemberAssignmentKey(Message):
    group_id: str = string("0")
    member_id: str = string("0")


@struct
class ConsumerGroupCurrentMemberAssignmentValueTopicPartitions(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[int] = array(int32, "0+")
    assignment_epochs: list[int] | None = array(int32, "0+", nullable="0+", tag=0)


@message("value", key=8, versions="0", flexible="0+")
class ConsumerGroupCurrentMemberAssignmentValue(Message):
    member_epoch: int = int32("0+")
    previous_member_epoch: int = int32("0+")
    state: int = int8("0+")
    assigned_partitions: list[ConsumerGroupCurrentMemberAssignmentValueTopicPartitions] = array(
        ConsumerGroupCurrentMemberAssignmentValueTopicPartitions, "0+"
    )
    partitions_pending_revocation: list[ConsumerGroupCurrentMemberAssignmentValueTopicPartitions] = array(
        ConsumerGroupCurrentMemberAssignmentValueTopicPartitions, "0+"
    )


@message("key", key=5, versions="0")
class ConsumerGroupMemberMetadataKey(Message):
    group_id: str = string("0")
    member_id: str = string("0")


@struct
class ClassicProtocol(Struct):
    name: str = string("0+")
    metadata: Bytes = byte_string("0+")


@struct
class ClassicMemberMetadata(Struct):
    session_timeout_ms: int = int32("0+")
    supported_protocols: list[ClassicProtocol] = array(ClassicProtocol, "0+")


@message("value", key=5, versions="0", flexible="0+")
class ConsumerGroupMemberMetadataValue(Message):
    instance_id: str | None = string("0+", nullable="0+")
    rack_id: str | None = string("0+", nullable="0+")
    client_id: str = string("0+")
    client_host: str = string("0+")
    subscribed_topic_names: list[str] = array(string, "0+")
    subscribed_topic_regex: str | None = string("0+", nullable="0+")
    rebalance_timeout_ms: int = int32("0+", default=-1)
    server_assignor: str | None = string("0+", nullable="0+")
    classic_member_metadata: ClassicMemberMetadata | None = nested(ClassicMemberMetadata, "0+", nullable="0+", tag=0)


@message("key", key=3, versions="0")
class ConsumerGroupMetadataKey(Message):
    group_id: str = string("0")


@message("value", key=3, versions="0", flexible="0+")
class ConsumerGroupMetadataValue(Message):
    epoch: int = int32("0+")
    metadata_hash: int = int64("0+", tag=0)


@message("key", key=4, versions="0")
class ConsumerGroupPartitionMetadataKey(Message):
    group_id: str = string("0")


@struct
class PartitionMetadata(Struct):
    partition: int = int32("0+")
    racks: list[str] = array(string, "0+")


@struct
class TopicMetadata(Struct):
    topic_id: Uuid = uuid("0+")
    topic_name: str = string("0+")
    num_partitions: int = int32("0+")
    partition_metadata: list[PartitionMetadata] = array(PartitionMetadata, "0+")


@message("value", key=4, versions="0", flexible="0+")
class ConsumerGroupPartitionMetadataValue(Message):
    topics: list[TopicMetadata] = array(TopicMetadata, "0+")


@message("key", key=16, versions="0")
class ConsumerGroupRegularExpressionKey(Message):
    group_id: str = string("0")
    regular_expression: str = string("0")


@message("value", key=16, versions="0", flexible="0+")
class ConsumerGroupRegularExpressionValue(Message):
    topics: list[str] = array(string, "0+")
    version: int = int64("0+")
    timestamp: int = int64("0+")


@message("key", key=7, versions="0")
class ConsumerGroupTargetAssignmentMemberKey(Message):
    group_id: str = string("0")
    member_id: str = string("0")


@struct
class ConsumerGroupTargetAssignmentMemberValueTopicPartition(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[int] = array(int32, "0+")


@message("value", key=7, versions="0", flexible="0+")
class ConsumerGroupTargetAssignmentMemberValue(Message):
    topic_partitions: list[ConsumerGroupTargetAssignmentMemberValueTopicPartition] = array(
        ConsumerGroupTargetAssignmentMemberValueTopicPartition, "0+"
    )


@message("key", key=6, versions="0")
class ConsumerGroupTargetAssignmentMetadataKey(Message):
    group_id: str = string("0")


@message("value", key=6, versions="0", flexible="0+")
class ConsumerGroupTargetAssignmentMetadataValue(Message):
    assignment_epoch: int = int32("0+")
    assignment_timestamp: int = int64("0+", tag=0, ignorable=True)


@message("key", key=2, versions="0")
class GroupMetadataKey(Message):
    group: str = string("0")


@struct
class MemberMetadata(Struct):
    member_id: str = string("0+")
    group_instance_id: str | None = string("3+", nullable="3+", default=None, ignorable=True)
    client_id: str = string("0+")
    client_host: str = string("0+")
    rebalance_timeout: int = int32("1+", default=-1, ignorable=True)
    session_timeout: int = int32("0+")
    subscription: Bytes = byte_string("0+")
    assignment: Bytes = byte_string("0+")


@message("value", key=2, versions="0-4", flexible="4+")
class GroupMetadataValue(Message):
    protocol_type: str = string("0+")
    generation: int = int32("0+")
    protocol: str | None = string("0+", nullable="0+")
    leader: str | None = string("0+", nullable="0+")
    current_state_timestamp: int = int64("2+", default=-1, ignorable=True)
    members: list[MemberMetadata] = array(MemberMetadata, "0+")


@message("key", key=0, versions="0")
class LegacyOffsetCommitKey(Message):
    group: str = string("0")
    topic: str = string("0")
    partition: int = int32("0")


@message("value", key=0, versions="0")
class LegacyOffsetCommitValue(Message):
    offset: int = int64("0")
    metadata: str = string("0")
    commit_timestamp: int = int64("0")


@message("key", key=1, versions="0")
class OffsetCommitKey(Message):
    group: str = string("0")
    topic: str = string("0")
    partition: int = int32("0")


@message("value", key=1, versions="0-4", flexible="4+")
class OffsetCommitValue(Message):
    offset: int = int64("0+")
    leader_epoch: int = int32("3+", default=-1, ignorable=True)
    metadata: str = string("0+")
    commit_timestamp: int = int64("0+")
    expire_timestamp: int = int64("1", default=-1, ignorable=True)
    topic_id: Uuid = uuid("4+", tag=0, ignorable=True)


@message("key", key=14, versions="0")
class ShareGroupCurrentMemberAssignmentKey(Message):
    group_id: str = string("0")
    member_id: str = string("0")


@struct
class ShareGroupCurrentMemberAssignmentValueTopicPartitions(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[int] = array(int32, "0+")


@message("value", key=14, versions="0", flexible="0+")
class ShareGroupCurrentMemberAssignmentValue(Message):
    member_epoch: int = int32("0+")
    previous_member_epoch: int = int32("0+")
    state: int = int8("0+")
    assigned_partitions: list[ShareGroupCurrentMemberAssignmentValueTopicPartitions] = array(
        ShareGroupCurrentMemberAssignmentValueTopicPartitions, "0+"
    )


@message("key", key=10, versions="0")
class ShareGroupMemberMetadataKey(Message):
    group_id: str = string("0")
    member_id: str = string("0")


@message("value", key=10, versions="0", flexible="0+")
class ShareGroupMemberMetadataValue(Message):
    rack_id: str | None = string("0+", nullable="0+")
    client_id: str = string("0+")
    client_host: str = string("0+")
    subscribed_topic_names: list[str] = array(string, "0+")


@message("key", key=11, versions="0")
class ShareGroupMetadataKey(Message):
    group_id: str = string("0")


@message("value", key=11, versions="0", flexible="0+")
class ShareGroupMetadataValue(Message):
    epoch: int = int32("0+")
    metadata_hash: int = int64("0+")


@message("key", key=15, versions="0")
class ShareGroupStatePartitionMetadataKey(Message):
    group_id: str = string("0")


@struct
class TopicPartitionsInfo(Struct):
    topic_id: Uuid = uuid("0+")
    topic_name: str = string("0+")
    partitions: list[int] = array(int32, "0+")


@struct
class ShareGroupStatePartitionMetadataValueTopicInfo(Struct):
    topic_id: Uuid = uuid("0+")
    topic_name: str = string("0+")


@message("value", key=15, versions="0", flexible="0+")
class ShareGroupStatePartitionMetadataValue(Message):
    initializing_topics: list[TopicPartitionsInfo] = array(TopicPartitionsInfo, "0+")
    initialized_topics: list[TopicPartitionsInfo] = array(TopicPartitionsInfo, "0+")
    deleting_topics: list[ShareGroupStatePartitionMetadataValueTopicInfo] = array(
        ShareGroupStatePartitionMetadataValueTopicInfo, "0+"
    )


@message("key", key=13, versions="0")
class ShareGroupTargetAssignmentMemberKey(Message):
    group_id: str = string("0")
    member_id: str = string("0")


@struct
class ShareGroupTargetAssignmentMemberValueTopicPartition(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[int] = array(int32, "0+")


@message("value", key=13, versions="0", flexible="0+")
class ShareGroupTargetAssignmentMemberValue(Message):
    topic_partitions: list[ShareGroupTargetAssignmentMemberValueTopicPartition] = array(
        ShareGroupTargetAssignmentMemberValueTopicPartition, "0+"
    )


@message("key", key=12, versions="0")
class ShareGroupTargetAssignmentMetadataKey(Message):
    group_id: str = string("0")


@message("value", key=12, versions="0", flexible="0+")
class ShareGroupTargetAssignmentMetadataValue(Message):
    assignment_epoch: int = int32("0+")
    assignment_timestamp: int = int64("0+", tag=0, ignorable=True)


@message("key", key=22, versions="0")
class StreamsGroupCurrentMemberAssignmentKey(Message):
    group_id: str = string("0")
    member_id: str = string("0")


@struct
class StreamsGroupCurrentMemberAssignmentValueTaskIds(Struct):
    subtopology_id: str = string("0+")
    partitions: list[int] = array(int32, "0+")
    assignment_epochs: list[int] | None = array(int32, "0+", nullable="0+", tag=0)


@message("value", key=22, versions="0", flexible="0+")
class StreamsGroupCurrentMemberAssignmentValue(Message):
    member_epoch: int = int32("0+")
    previous_member_epoch: int = int32("0+")
    state: int = int8("0+")
    active_tasks: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = array(
        StreamsGroupCurrentMemberAssignmentValueTaskIds, "0+"
    )
    standby_tasks: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = array(
        StreamsGroupCurrentMemberAssignmentValueTaskIds, "0+"
    )
    warmup_tasks: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = array(
        StreamsGroupCurrentMemberAssignmentValueTaskIds, "0+"
    )
    active_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = array(
        StreamsGroupCurrentMemberAssignmentValueTaskIds, "0+"
    )
    standby_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = array(
        StreamsGroupCurrentMemberAssignmentValueTaskIds, "0+"
    )
    warmup_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = array(
        StreamsGroupCurrentMemberAssignmentValueTaskIds, "0+"
    )


@message("key", key=19, versions="0")
class StreamsGroupMemberMetadataKey(Message):
    group_id: str = string("0")
    member_id: str = string("0")


@struct
class StreamsGroupMemberMetadataValueEndpoint(Struct):
    host: str = string("0+")
    port: int = uint16("0+")


@struct
class StreamsGroupMemberMetadataValueKeyValue(Struct):
    key: str = string("0+")
    value: str = string("0+")


@message("value", key=19, versions="0", flexible="0+")
class StreamsGroupMemberMetadataValue(Message):
    instance_id: str | None = string("0+", nullable="0+")
    rack_id: str | None = string("0+", nullable="0+")
    client_id: str = string("0+")
    client_host: str = string("0+")
    rebalance_timeout_ms: int = int32("0+", default=-1)
    topology_epoch: int = int32("0+")
    process_id: str = string("0+")
    user_endpoint: StreamsGroupMemberMetadataValueEndpoint | None = nested(
        StreamsGroupMemberMetadataValueEndpoint, "0+", nullable="0+", default=None
    )
    client_tags: list[StreamsGroupMemberMetadataValueKeyValue] = array(StreamsGroupMemberMetadataValueKeyValue, "0+")


@message("key", key=17, versions="0")
class StreamsGroupMetadataKey(Message):
    group_id: str = string("0")


@struct
class LastAssignmentConfig(Struct):
    key: str = string("0+")
    value: str = string("0+")


@message("value", key=17, versions="0", flexible="0+")
class StreamsGroupMetadataValue(Message):
    epoch: int = int32("0+")
    metadata_hash: int = int64("0+")
    validated_topology_epoch: int = int32("0+", tag=0, default=-1)
    last_assignment_configs: list[LastAssignmentConfig] | None = array(LastAssignmentConfig, "0+", nullable="0+", tag=1)
    stored_description_topology_epoch: int = int32("0+", tag=2, default=-1)
    failed_description_topology_epoch: int = int32("0+", tag=3, default=-1)


@message("key", key=21, versions="0")
class StreamsGroupTargetAssignmentMemberKey(Message):
    group_id: str = string("0")
    member_id: str = string("0")


@struct
class StreamsGroupTargetAssignmentMemberValueTaskIds(Struct):
    subtopology_id: str = string("0+")
    partitions: list[int] = array(int32, "0+")


@message("value", key=21, versions="0", flexible="0+")
class StreamsGroupTargetAssignmentMemberValue(Message):
    active_tasks: list[StreamsGroupTargetAssignmentMemberValueTaskIds] = array(
        StreamsGroupTargetAssignmentMemberValueTaskIds, "0+"
    )
    standby_tasks: list[StreamsGroupTargetAssignmentMemberValueTaskIds] = array(
        StreamsGroupTargetAssignmentMemberValueTaskIds, "0+"
    )
    warmup_tasks: list[StreamsGroupTargetAssignmentMemberValueTaskIds] = array(
        StreamsGroupTargetAssignmentMemberValueTaskIds, "0+"
    )


@message("key", key=20, versions="0")
class StreamsGroupTargetAssignmentMetadataKey(Message):
    group_id: str = string("0")


@message("value", key=20, versions="0", flexible="0+")
class StreamsGroupTargetAssignmentMetadataValue(Message):
    assignment_epoch: int = int32("0+")
    assignment_timestamp: int = int64("0+", tag=0, ignorable=True)


@message("key", key=23, versions="0")
class StreamsGroupTopologyKey(Message):
    group_id: str = string("0")


@struct
class TopicConfig(Struct):
    key: str = string("0+")
    value: str = string("0+")


@struct
class StreamsGroupTopologyValueTopicInfo(Struct):
    name: str = string("0+")
    partitions: int = int32("0+")
    replication_factor: int = int16("0+")
    topic_configs: list[TopicConfig] = array(TopicConfig, "0+")


@struct
class StreamsGroupTopologyValueCopartitionGroup(Struct):
    source_topics: list[int] = array(int16, "0+")
    source_topic_regex: list[int] = array(int16, "0+")
    repartition_source_topics: list[int] = array(int16, "0+")


@struct
class StreamsGroupTopologyValueSubtopology(Struct):
    subtopology_id: str = string("0+")
    source_topics: list[str] = array(string, "0+")
    source_topic_regex: list[str] = array(string, "0+")
    state_changelog_topics: list[StreamsGroupTopologyValueTopicInfo] = array(StreamsGroupTopologyValueTopicInfo, "0+")
    repartition_sink_topics: list[str] = array(string, "0+")
    repartition_source_topics: list[StreamsGroupTopologyValueTopicInfo] = array(
        StreamsGroupTopologyValueTopicInfo, "0+"
    )
    copartition_groups: list[StreamsGroupTopologyValueCopartitionGroup] = array(
        StreamsGroupTopologyValueCopartitionGroup, "0+"
    )


@message("value", key=23, versions="0", flexible="0+")
class StreamsGroupTopologyValue(Message):
    epoch: int = int32("0+")
    subtopologies: list[StreamsGroupTopologyValueSubtopology] = array(StreamsGroupTopologyValueSubtopology, "0+")


@message("key", key=0, versions="0")
class TransactionLogKey(Message):
    transactional_id: str = string("0")


@struct
class PartitionsSchema(Struct):
    topic: str = string("0+")
    partition_ids: list[int] = array(int32, "0+")


@message("value", key=0, versions="0-1", flexible="1+")
class TransactionLogValue(Message):
    producer_id: int = int64("0+")
    previous_producer_id: int = int64("1+", tag=0, default=-1)
    next_producer_id: int = int64("1+", tag=1, default=-1)
    producer_epoch: int = int16("0+")
    next_producer_epoch: int = int16("1+", tag=3, default=-1)
    transaction_timeout_ms: int = int32("0+")
    transaction_status: int = int8("0+")
    transaction_partitions: list[PartitionsSchema] | None = array(PartitionsSchema, "0+", nullable="0+")
    transaction_last_update_timestamp_ms: int = int64("0+")
    transaction_start_timestamp_ms: int = int64("0+")
    client_transaction_version: int = int16("1+", tag=2)


@message("key", key=0, versions="0")
class ShareSnapshotKey(Message):
    group_id: str = string("0")
    topic_id: Uuid = uuid("0")
    partition: int = int32("0")


@struct
class ShareSnapshotValueStateBatch(Struct):
    first_offset: int = int64("0+")
    last_offset: int = int64("0+")
    delivery_state: int = int8("0+")
    delivery_count: int = int16("0+")


@message("value", key=0, versions="0", flexible="0+")
class ShareSnapshotValue(Message):
    snapshot_epoch: int = int32("0+")
    state_epoch: int = int32("0+")
    leader_epoch: int = int32("0+")
    start_offset: int = int64("0+")
    delivery_complete_count: int = int32("0+", tag=0, default=-1)
    create_timestamp: int = int64("0+")
    write_timestamp: int = int64("0+")
    state_batches: list[ShareSnapshotValueStateBatch] = array(ShareSnapshotValueStateBatch, "0+")


@message("key", key=1, versions="0")
class ShareUpdateKey(Message):
    group_id: str = string("0")
    topic_id: Uuid = uuid("0")
    partition: int = int32("0")


@struct
class ShareUpdateValueStateBatch(Struct):
    first_offset: int = int64("0+")
    last_offset: int = int64("0+")
    delivery_state: int = int8("0+")
    delivery_count: int = int16("0+")


@message("value", key=1, versions="0", flexible="0+")
class ShareUpdateValue(Message):
    snapshot_epoch: int = int32("0+")
    leader_epoch: int = int32("0+")
    start_offset: int = int64("0+")
    delivery_complete_count: int = int32("0+", tag=0, default=-1)
    state_batches: list[ShareUpdateValueStateBatch] = array(ShareUpdateValueStateBatch, "0+")
