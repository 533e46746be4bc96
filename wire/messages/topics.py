"""Topics and partitions: creation, deletion, DeleteRecords, reassignment, leader election.

KIP-4, KIP-107, KIP-195, KIP-455, KIP-460, KIP-516.
"""

from __future__ import annotations

from barnabas.wire.schema import (
    Message,
    Struct,
    Uuid,
    array,
    boolean,
    int8,
    int16,
    int32,
    int64,
    message,
    string,
    struct,
    uuid,
)


@struct
class CreatableReplicaAssignment(Struct):
    partition_index: int = int32("0+")
    broker_ids: list[int] = array(int32, "0+", entity="brokerId")


@struct
class CreatableTopicConfig(Struct):
    name: str = string("0+")
    value: str | None = string("0+", nullable="0+")


@struct
class CreatableTopic(Struct):
    name: str = string("0+", entity="topicName")
    num_partitions: int = int32("0+")
    replication_factor: int = int16("0+")
    assignments: list[CreatableReplicaAssignment] = array(CreatableReplicaAssignment, "0+")
    configs: list[CreatableTopicConfig] = array(CreatableTopicConfig, "0+")


@message(
    "request",
    key=19,
    versions="2-7",
    flexible="5+",
    listeners=(
        "broker",
        "controller",
    ),
)
class CreateTopicsRequest(Message):
    topics: list[CreatableTopic] = array(CreatableTopic, "0+")
    timeout_ms: int = int32("0+", default=60000)
    validate_only: bool = boolean("1+")


@struct
class CreatableTopicConfigs(Struct):
    name: str = string("5+")
    value: str | None = string("5+", nullable="5+")
    read_only: bool = boolean("5+")
    config_source: int = int8("5+", default=-1, ignorable=True)
    is_sensitive: bool = boolean("5+")


@struct
class CreatableTopicResult(Struct):
    name: str = string("0+", entity="topicName")
    topic_id: Uuid = uuid("7+", ignorable=True)
    error_code: int = int16("0+")
    error_message: str | None = string("1+", nullable="0+", ignorable=True)
    topic_config_error_code: int = int16("5+", tag=0, ignorable=True)
    num_partitions: int = int32("5+", default=-1, ignorable=True)
    replication_factor: int = int16("5+", default=-1, ignorable=True)
    configs: list[CreatableTopicConfigs] | None = array(CreatableTopicConfigs, "5+", nullable="5+", ignorable=True)


@message("response", key=19, versions="2-7", flexible="5+")
class CreateTopicsResponse(Message):
    throttle_time_ms: int = int32("2+", ignorable=True)
    topics: list[CreatableTopicResult] = array(CreatableTopicResult, "0+")


@struct
class DeleteTopicState(Struct):
    name: str | None = string("6+", nullable="6+", default=None, entity="topicName")
    topic_id: Uuid = uuid("6+")


@message(
    "request",
    key=20,
    versions="1-6",
    flexible="4+",
    listeners=(
        "broker",
        "controller",
    ),
)
class DeleteTopicsRequest(Message):
    topics: list[DeleteTopicState] = array(DeleteTopicState, "6+")
    topic_names: list[str] = array(string, "0-5", ignorable=True, entity="topicName")
    timeout_ms: int = int32("0+")


@struct
class DeletableTopicResult(Struct):
    name: str | None = string("0+", nullable="6+", entity="topicName")
    topic_id: Uuid = uuid("6+", ignorable=True)
    error_code: int = int16("0+")
    error_message: str | None = string("5+", nullable="5+", default=None, ignorable=True)


@message("response", key=20, versions="1-6", flexible="4+")
class DeleteTopicsResponse(Message):
    throttle_time_ms: int = int32("1+", ignorable=True)
    responses: list[DeletableTopicResult] = array(DeletableTopicResult, "0+")


@struct
class CreatePartitionsAssignment(Struct):
    broker_ids: list[int] = array(int32, "0+", entity="brokerId")


@struct
class CreatePartitionsTopic(Struct):
    name: str = string("0+", entity="topicName")
    count: int = int32("0+")
    assignments: list[CreatePartitionsAssignment] | None = array(CreatePartitionsAssignment, "0+", nullable="0+")


@message(
    "request",
    key=37,
    versions="0-3",
    flexible="2+",
    listeners=(
        "broker",
        "controller",
    ),
)
class CreatePartitionsRequest(Message):
    topics: list[CreatePartitionsTopic] = array(CreatePartitionsTopic, "0+")
    timeout_ms: int = int32("0+")
    validate_only: bool = boolean("0+")


@struct
class CreatePartitionsTopicResult(Struct):
    name: str = string("0+", entity="topicName")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)


@message("response", key=37, versions="0-3", flexible="2+")
class CreatePartitionsResponse(Message):
    throttle_time_ms: int = int32("0+")
    results: list[CreatePartitionsTopicResult] = array(CreatePartitionsTopicResult, "0+")


@struct
class DeleteRecordsPartition(Struct):
    partition_index: int = int32("0+")
    offset: int = int64("0+")


@struct
class DeleteRecordsTopic(Struct):
    name: str = string("0+", entity="topicName")
    partitions: list[DeleteRecordsPartition] = array(DeleteRecordsPartition, "0+")


@message("request", key=21, versions="0-2", flexible="2+", listeners=("broker",))
class DeleteRecordsRequest(Message):
    topics: list[DeleteRecordsTopic] = array(DeleteRecordsTopic, "0+")
    timeout_ms: int = int32("0+")


@struct
class DeleteRecordsPartitionResult(Struct):
    partition_index: int = int32("0+")
    low_watermark: int = int64("0+")
    error_code: int = int16("0+")


@struct
class DeleteRecordsTopicResult(Struct):
    name: str = string("0+", entity="topicName")
    partitions: list[DeleteRecordsPartitionResult] = array(DeleteRecordsPartitionResult, "0+")


@message("response", key=21, versions="0-2", flexible="2+")
class DeleteRecordsResponse(Message):
    throttle_time_ms: int = int32("0+")
    topics: list[DeleteRecordsTopicResult] = array(DeleteRecordsTopicResult, "0+")


@struct
class ElectLeadersRequestTopicPartitions(Struct):
    topic: str = string("0+", entity="topicName")
    partitions: list[int] = array(int32, "0+")


@message(
    "request",
    key=43,
    versions="0-2",
    flexible="2+",
    listeners=(
        "broker",
        "controller",
    ),
)
class ElectLeadersRequest(Message):
    election_type: int = int8("1+")
    topic_partitions: list[ElectLeadersRequestTopicPartitions] | None = array(
        ElectLeadersRequestTopicPartitions, "0+", nullable="0+"
    )
    timeout_ms: int = int32("0+", default=60000)


@struct
class ElectLeadersResponsePartitionResult(Struct):
    partition_id: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")


@struct
class ReplicaElectionResult(Struct):
    topic: str = string("0+", entity="topicName")
    partition_result: list[ElectLeadersResponsePartitionResult] = array(ElectLeadersResponsePartitionResult, "0+")


@message("response", key=43, versions="0-2", flexible="2+")
class ElectLeadersResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("1+")
    replica_election_results: list[ReplicaElectionResult] = array(ReplicaElectionResult, "0+")


@struct
class ReassignablePartition(Struct):
    partition_index: int = int32("0+")
    replicas: list[int] | None = array(int32, "0+", nullable="0+", default=None, entity="brokerId")


@struct
class ReassignableTopic(Struct):
    name: str = string("0+", entity="topicName")
    partitions: list[ReassignablePartition] = array(ReassignablePartition, "0+")


@message(
    "request",
    key=45,
    versions="0-1",
    flexible="0+",
    listeners=(
        "broker",
        "controller",
    ),
)
class AlterPartitionReassignmentsRequest(Message):
    timeout_ms: int = int32("0+", default=60000)
    allow_replication_factor_change: bool = boolean("1+", default=True)
    topics: list[ReassignableTopic] = array(ReassignableTopic, "0+")


@struct
class ReassignablePartitionResponse(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")


@struct
class ReassignableTopicResponse(Struct):
    name: str = string("0+", entity="topicName")
    partitions: list[ReassignablePartitionResponse] = array(ReassignablePartitionResponse, "0+")


@message("response", key=45, versions="0-1", flexible="0+")
class AlterPartitionReassignmentsResponse(Message):
    throttle_time_ms: int = int32("0+")
    allow_replication_factor_change: bool = boolean("1+", default=True, ignorable=True)
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    responses: list[ReassignableTopicResponse] = array(ReassignableTopicResponse, "0+")


@struct
class ListPartitionReassignmentsTopics(Struct):
    name: str = string("0+", entity="topicName")
    partition_indexes: list[int] = array(int32, "0+")


@message(
    "request",
    key=46,
    versions="0",
    flexible="0+",
    listeners=(
        "broker",
        "controller",
    ),
)
class ListPartitionReassignmentsRequest(Message):
    timeout_ms: int = int32("0+", default=60000)
    topics: list[ListPartitionReassignmentsTopics] | None = array(
        ListPartitionReassignmentsTopics, "0+", nullable="0+", default=None
    )


@struct
class OngoingPartitionReassignment(Struct):
    partition_index: int = int32("0+")
    replicas: list[int] = array(int32, "0+", entity="brokerId")
    adding_replicas: list[int] = array(int32, "0+", entity="brokerId")
    removing_replicas: list[int] = array(int32, "0+", entity="brokerId")


@struct
class OngoingTopicReassignment(Struct):
    name: str = string("0+", entity="topicName")
    partitions: list[OngoingPartitionReassignment] = array(OngoingPartitionReassignment, "0+")


@message("response", key=46, versions="0", flexible="0+")
class ListPartitionReassignmentsResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    topics: list[OngoingTopicReassignment] = array(OngoingTopicReassignment, "0+")
