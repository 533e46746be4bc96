"""Metadata (3), DescribeCluster (60), DescribeTopicPartitions (75): brokers and leaders. KIP-516, KIP-700, KIP-966."""

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
    message,
    nested,
    string,
    struct,
    uuid,
)


@struct
class MetadataRequestTopic(Struct):
    topic_id: Uuid = uuid("10+", ignorable=True)
    name: str | None = string("0+", nullable="10+", entity="topicName")


@message("request", key=3, versions="0-13", flexible="9+", listeners=("broker",))
class MetadataRequest(Message):
    topics: list[MetadataRequestTopic] | None = array(MetadataRequestTopic, "0+", nullable="1+")
    allow_auto_topic_creation: bool = boolean("4+", default=True)
    include_cluster_authorized_operations: bool = boolean("8-10")
    include_topic_authorized_operations: bool = boolean("8+")


@struct
class MetadataResponseBroker(Struct):
    node_id: int = int32("0+", entity="brokerId")
    host: str = string("0+")
    port: int = int32("0+")
    rack: str | None = string("1+", nullable="1+", default=None, ignorable=True)


@struct
class MetadataResponsePartition(Struct):
    error_code: int = int16("0+")
    partition_index: int = int32("0+")
    leader_id: int = int32("0+", entity="brokerId")
    leader_epoch: int = int32("7+", default=-1, ignorable=True)
    replica_nodes: list[int] = array(int32, "0+", entity="brokerId")
    isr_nodes: list[int] = array(int32, "0+", entity="brokerId")
    offline_replicas: list[int] = array(int32, "5+", ignorable=True, entity="brokerId")


@struct
class MetadataResponseTopic(Struct):
    error_code: int = int16("0+")
    name: str | None = string("0+", nullable="12+", entity="topicName")
    topic_id: Uuid = uuid("10+", ignorable=True)
    is_internal: bool = boolean("1+", ignorable=True)
    partitions: list[MetadataResponsePartition] = array(MetadataResponsePartition, "0+")
    topic_authorized_operations: int = int32("8+", default=-(2**31))


@message("response", key=3, versions="0-13", flexible="9+")
class MetadataResponse(Message):
    throttle_time_ms: int = int32("3+", ignorable=True)
    brokers: list[MetadataResponseBroker] = array(MetadataResponseBroker, "0+")
    cluster_id: str | None = string("2+", nullable="2+", default=None, ignorable=True)
    controller_id: int = int32("1+", default=-1, ignorable=True, entity="brokerId")
    topics: list[MetadataResponseTopic] = array(MetadataResponseTopic, "0+")
    cluster_authorized_operations: int = int32("8-10", default=-(2**31))
    error_code: int = int16("13+", ignorable=True)


@message(
    "request",
    key=60,
    versions="0-2",
    flexible="0+",
    listeners=(
        "broker",
        "controller",
    ),
)
class DescribeClusterRequest(Message):
    include_cluster_authorized_operations: bool = boolean("0+")
    endpoint_type: int = int8("1+", default=1)
    include_fenced_brokers: bool = boolean("2+")


@struct
class DescribeClusterBroker(Struct):
    broker_id: int = int32("0+", entity="brokerId")
    host: str = string("0+")
    port: int = int32("0+")
    rack: str | None = string("0+", nullable="0+", default=None)
    is_fenced: bool = boolean("2+")


@message("response", key=60, versions="0-2", flexible="0+")
class DescribeClusterResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    endpoint_type: int = int8("1+", default=1)
    cluster_id: str = string("0+")
    controller_id: int = int32("0+", default=-1, entity="brokerId")
    brokers: list[DescribeClusterBroker] = array(DescribeClusterBroker, "0+")
    cluster_authorized_operations: int = int32("0+", default=-(2**31))


@struct
class DescribeTopicPartitionsRequestTopicRequest(Struct):
    name: str = string("0+", entity="topicName")


@struct
class DescribeTopicPartitionsRequestCursor(Struct):
    topic_name: str = string("0+", entity="topicName")
    partition_index: int = int32("0+")


@message("request", key=75, versions="0", flexible="0+", listeners=("broker",))
class DescribeTopicPartitionsRequest(Message):
    topics: list[DescribeTopicPartitionsRequestTopicRequest] = array(DescribeTopicPartitionsRequestTopicRequest, "0+")
    response_partition_limit: int = int32("0+", default=2000)
    cursor: DescribeTopicPartitionsRequestCursor | None = nested(
        DescribeTopicPartitionsRequestCursor, "0+", nullable="0+", default=None
    )


@struct
class DescribeTopicPartitionsResponsePartition(Struct):
    error_code: int = int16("0+")
    partition_index: int = int32("0+")
    leader_id: int = int32("0+", entity="brokerId")
    leader_epoch: int = int32("0+", default=-1, ignorable=True)
    replica_nodes: list[int] = array(int32, "0+", entity="brokerId")
    isr_nodes: list[int] = array(int32, "0+", entity="brokerId")
    eligible_leader_replicas: list[int] | None = array(int32, "0+", nullable="0+", default=None, entity="brokerId")
    last_known_elr: list[int] | None = array(int32, "0+", nullable="0+", default=None, entity="brokerId")
    offline_replicas: list[int] = array(int32, "0+", ignorable=True, entity="brokerId")


@struct
class DescribeTopicPartitionsResponseTopic(Struct):
    error_code: int = int16("0+")
    name: str | None = string("0+", nullable="0+", entity="topicName")
    topic_id: Uuid = uuid("0+", ignorable=True)
    is_internal: bool = boolean("0+", ignorable=True)
    partitions: list[DescribeTopicPartitionsResponsePartition] = array(DescribeTopicPartitionsResponsePartition, "0+")
    topic_authorized_operations: int = int32("0+", default=-(2**31))


@struct
class DescribeTopicPartitionsResponseCursor(Struct):
    topic_name: str = string("0+", entity="topicName")
    partition_index: int = int32("0+")


@message("response", key=75, versions="0", flexible="0+")
class DescribeTopicPartitionsResponse(Message):
    throttle_time_ms: int = int32("0+", ignorable=True)
    topics: list[DescribeTopicPartitionsResponseTopic] = array(DescribeTopicPartitionsResponseTopic, "0+")
    next_cursor: DescribeTopicPartitionsResponseCursor | None = nested(
        DescribeTopicPartitionsResponseCursor, "0+", nullable="0+", default=None
    )
