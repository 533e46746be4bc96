"""Share groups (queues): membership, fetch, acknowledge, offsets. KIP-932."""

from __future__ import annotations

from barnabas.wire.schema import (
    Message,
    Records,
    Struct,
    Uuid,
    array,
    boolean,
    int8,
    int16,
    int32,
    int64,
    message,
    nested,
    records,
    string,
    struct,
    uuid,
)


@message("request", key=76, versions="1", flexible="0+", listeners=("broker",))
class ShareGroupHeartbeatRequest(Message):
    group_id: str = string("0+", entity="groupId")
    member_id: str = string("0+")
    member_epoch: int = int32("0+")
    rack_id: str | None = string("0+", nullable="0+", default=None)
    subscribed_topic_names: list[str] | None = array(string, "0+", nullable="0+", default=None, entity="topicName")


@struct
class ShareGroupHeartbeatResponseTopicPartitions(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[int] = array(int32, "0+")


@struct
class ShareGroupHeartbeatResponseAssignment(Struct):
    topic_partitions: list[ShareGroupHeartbeatResponseTopicPartitions] = array(
        ShareGroupHeartbeatResponseTopicPartitions, "0+"
    )


@message("response", key=76, versions="1", flexible="0+")
class ShareGroupHeartbeatResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    member_id: str | None = string("0+", nullable="0+", default=None)
    member_epoch: int = int32("0+")
    heartbeat_interval_ms: int = int32("0+")
    assignment: ShareGroupHeartbeatResponseAssignment | None = nested(
        ShareGroupHeartbeatResponseAssignment, "0+", nullable="0+", default=None
    )


@message("request", key=77, versions="1", flexible="0+", listeners=("broker",))
class ShareGroupDescribeRequest(Message):
    group_ids: list[str] = array(string, "0+", entity="groupId")
    include_authorized_operations: bool = boolean("0+")


@struct
class ShareGroupDescribeResponseTopicPartitions(Struct):
    topic_id: Uuid = uuid("0+")
    topic_name: str = string("0+", entity="topicName")
    partitions: list[int] = array(int32, "0+")


@struct
class ShareGroupDescribeResponseAssignment(Struct):
    topic_partitions: list[ShareGroupDescribeResponseTopicPartitions] = array(
        ShareGroupDescribeResponseTopicPartitions, "0+"
    )


@struct
class ShareGroupDescribeResponseMember(Struct):
    member_id: str = string("0+")
    rack_id: str | None = string("0+", nullable="0+", default=None)
    member_epoch: int = int32("0+")
    client_id: str = string("0+")
    client_host: str = string("0+")
    subscribed_topic_names: list[str] = array(string, "0+", entity="topicName")
    assignment: ShareGroupDescribeResponseAssignment = nested(ShareGroupDescribeResponseAssignment, "0+")


@struct
class ShareGroupDescribeResponseDescribedGroup(Struct):
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    group_id: str = string("0+", entity="groupId")
    group_state: str = string("0+")
    group_epoch: int = int32("0+")
    assignment_epoch: int = int32("0+")
    assignor_name: str = string("0+")
    members: list[ShareGroupDescribeResponseMember] = array(ShareGroupDescribeResponseMember, "0+")
    authorized_operations: int = int32("0+", default=-(2**31))


@message("response", key=77, versions="1", flexible="0+")
class ShareGroupDescribeResponse(Message):
    throttle_time_ms: int = int32("0+")
    groups: list[ShareGroupDescribeResponseDescribedGroup] = array(ShareGroupDescribeResponseDescribedGroup, "0+")


@struct
class ShareFetchRequestAcknowledgementBatch(Struct):
    first_offset: int = int64("0+")
    last_offset: int = int64("0+")
    acknowledge_types: list[int] = array(int8, "0+")


@struct
class ShareFetchRequestFetchPartition(Struct):
    partition_index: int = int32("0+")
    partition_max_bytes: int = int32("0")
    acknowledgement_batches: list[ShareFetchRequestAcknowledgementBatch] = array(
        ShareFetchRequestAcknowledgementBatch, "0+"
    )


@struct
class ShareFetchRequestFetchTopic(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[ShareFetchRequestFetchPartition] = array(ShareFetchRequestFetchPartition, "0+")


@struct
class ShareFetchRequestForgottenTopic(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[int] = array(int32, "0+")


@message("request", key=78, versions="1-2", flexible="0+", listeners=("broker",))
class ShareFetchRequest(Message):
    group_id: str | None = string("0+", nullable="0+", default=None, entity="groupId")
    member_id: str | None = string("0+", nullable="0+")
    share_session_epoch: int = int32("0+")
    max_wait_ms: int = int32("0+")
    min_bytes: int = int32("0+")
    max_bytes: int = int32("0+", default=0x7FFFFFFF)
    max_records: int = int32("1+")
    batch_size: int = int32("1+")
    share_acquire_mode: int = int8("2+", ignorable=True)
    is_renew_ack: bool = boolean("2+")
    topics: list[ShareFetchRequestFetchTopic] = array(ShareFetchRequestFetchTopic, "0+")
    forgotten_topics_data: list[ShareFetchRequestForgottenTopic] = array(ShareFetchRequestForgottenTopic, "0+")


@struct
class ShareFetchResponseLeaderIdAndEpoch(Struct):
    leader_id: int = int32("0+")
    leader_epoch: int = int32("0+")


@struct
class AcquiredRecords(Struct):
    first_offset: int = int64("0+")
    last_offset: int = int64("0+")
    delivery_count: int = int16("0+")


@struct
class ShareFetchResponsePartitionData(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    acknowledge_error_code: int = int16("0+")
    acknowledge_error_message: str | None = string("0+", nullable="0+", default=None)
    current_leader: ShareFetchResponseLeaderIdAndEpoch = nested(ShareFetchResponseLeaderIdAndEpoch, "0+")
    records: Records | None = records("0+", nullable="0")
    acquired_records: list[AcquiredRecords] = array(AcquiredRecords, "0+")


@struct
class ShareFetchableTopicResponse(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[ShareFetchResponsePartitionData] = array(ShareFetchResponsePartitionData, "0+")


@struct
class ShareFetchResponseNodeEndpoint(Struct):
    node_id: int = int32("0+", entity="brokerId")
    host: str = string("0+")
    port: int = int32("0+")
    rack: str | None = string("0+", nullable="0+", default=None)


@message("response", key=78, versions="1-2", flexible="0+")
class ShareFetchResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    acquisition_lock_timeout_ms: int = int32("1+")
    responses: list[ShareFetchableTopicResponse] = array(ShareFetchableTopicResponse, "0+")
    node_endpoints: list[ShareFetchResponseNodeEndpoint] = array(ShareFetchResponseNodeEndpoint, "0+")


@struct
class ShareAcknowledgeRequestAcknowledgementBatch(Struct):
    first_offset: int = int64("0+")
    last_offset: int = int64("0+")
    acknowledge_types: list[int] = array(int8, "0+")


@struct
class AcknowledgePartition(Struct):
    partition_index: int = int32("0+")
    acknowledgement_batches: list[ShareAcknowledgeRequestAcknowledgementBatch] = array(
        ShareAcknowledgeRequestAcknowledgementBatch, "0+"
    )


@struct
class AcknowledgeTopic(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[AcknowledgePartition] = array(AcknowledgePartition, "0+")


@message("request", key=79, versions="1-2", flexible="0+", listeners=("broker",))
class ShareAcknowledgeRequest(Message):
    group_id: str | None = string("0+", nullable="0+", default=None, entity="groupId")
    member_id: str | None = string("0+", nullable="0+")
    share_session_epoch: int = int32("0+")
    is_renew_ack: bool = boolean("2+")
    topics: list[AcknowledgeTopic] = array(AcknowledgeTopic, "0+")


@struct
class ShareAcknowledgeResponseLeaderIdAndEpoch(Struct):
    leader_id: int = int32("0+")
    leader_epoch: int = int32("0+")


@struct
class ShareAcknowledgeResponsePartitionData(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    current_leader: ShareAcknowledgeResponseLeaderIdAndEpoch = nested(ShareAcknowledgeResponseLeaderIdAndEpoch, "0+")


@struct
class ShareAcknowledgeTopicResponse(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[ShareAcknowledgeResponsePartitionData] = array(ShareAcknowledgeResponsePartitionData, "0+")


@struct
class ShareAcknowledgeResponseNodeEndpoint(Struct):
    node_id: int = int32("0+", entity="brokerId")
    host: str = string("0+")
    port: int = int32("0+")
    rack: str | None = string("0+", nullable="0+", default=None)


@message("response", key=79, versions="1-2", flexible="0+")
class ShareAcknowledgeResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    acquisition_lock_timeout_ms: int = int32("2+", ignorable=True)
    responses: list[ShareAcknowledgeTopicResponse] = array(ShareAcknowledgeTopicResponse, "0+")
    node_endpoints: list[ShareAcknowledgeResponseNodeEndpoint] = array(ShareAcknowledgeResponseNodeEndpoint, "0+")


@struct
class DescribeShareGroupOffsetsRequestTopic(Struct):
    topic_name: str = string("0+", entity="topicName")
    partitions: list[int] = array(int32, "0+")


@struct
class DescribeShareGroupOffsetsRequestGroup(Struct):
    group_id: str = string("0+", entity="groupId")
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = array(
        DescribeShareGroupOffsetsRequestTopic, "0+", nullable="0+"
    )


@message("request", key=90, versions="0-1", flexible="0+", listeners=("broker",))
class DescribeShareGroupOffsetsRequest(Message):
    groups: list[DescribeShareGroupOffsetsRequestGroup] = array(DescribeShareGroupOffsetsRequestGroup, "0+")


@struct
class DescribeShareGroupOffsetsResponsePartition(Struct):
    partition_index: int = int32("0+")
    start_offset: int = int64("0+")
    leader_epoch: int = int32("0+")
    lag: int = int64("1+", default=-1, ignorable=True)
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)


@struct
class DescribeShareGroupOffsetsResponseTopic(Struct):
    topic_name: str = string("0+", entity="topicName")
    topic_id: Uuid = uuid("0+")
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = array(
        DescribeShareGroupOffsetsResponsePartition, "0+"
    )


@struct
class DescribeShareGroupOffsetsResponseGroup(Struct):
    group_id: str = string("0+", entity="groupId")
    topics: list[DescribeShareGroupOffsetsResponseTopic] = array(DescribeShareGroupOffsetsResponseTopic, "0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)


@message("response", key=90, versions="0-1", flexible="0+")
class DescribeShareGroupOffsetsResponse(Message):
    throttle_time_ms: int = int32("0+")
    groups: list[DescribeShareGroupOffsetsResponseGroup] = array(DescribeShareGroupOffsetsResponseGroup, "0+")


@struct
class AlterShareGroupOffsetsRequestPartition(Struct):
    partition_index: int = int32("0+")
    start_offset: int = int64("0+")


@struct
class AlterShareGroupOffsetsRequestTopic(Struct):
    topic_name: str = string("0+", entity="topicName")
    partitions: list[AlterShareGroupOffsetsRequestPartition] = array(AlterShareGroupOffsetsRequestPartition, "0+")


@message("request", key=91, versions="0", flexible="0+", listeners=("broker",))
class AlterShareGroupOffsetsRequest(Message):
    group_id: str = string("0+", entity="groupId")
    topics: list[AlterShareGroupOffsetsRequestTopic] = array(AlterShareGroupOffsetsRequestTopic, "0+")


@struct
class AlterShareGroupOffsetsResponsePartition(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)


@struct
class AlterShareGroupOffsetsResponseTopic(Struct):
    topic_name: str = string("0+", entity="topicName")
    topic_id: Uuid = uuid("0+")
    partitions: list[AlterShareGroupOffsetsResponsePartition] = array(AlterShareGroupOffsetsResponsePartition, "0+")


@message("response", key=91, versions="0", flexible="0+")
class AlterShareGroupOffsetsResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    responses: list[AlterShareGroupOffsetsResponseTopic] = array(AlterShareGroupOffsetsResponseTopic, "0+")


@struct
class DeleteShareGroupOffsetsRequestTopic(Struct):
    topic_name: str = string("0+", entity="topicName")


@message("request", key=92, versions="0", flexible="0+", listeners=("broker",))
class DeleteShareGroupOffsetsRequest(Message):
    group_id: str = string("0+", entity="groupId")
    topics: list[DeleteShareGroupOffsetsRequestTopic] = array(DeleteShareGroupOffsetsRequestTopic, "0+")


@struct
class DeleteShareGroupOffsetsResponseTopic(Struct):
    topic_name: str = string("0+", entity="topicName")
    topic_id: Uuid = uuid("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)


@message("response", key=92, versions="0", flexible="0+")
class DeleteShareGroupOffsetsResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    responses: list[DeleteShareGroupOffsetsResponseTopic] = array(DeleteShareGroupOffsetsResponseTopic, "0+")
