"""Streams groups: assignment of Kafka Streams tasks by the broker. KIP-1071."""

from __future__ import annotations

from barnabas.wire.schema import (
    Message,
    Struct,
    array,
    boolean,
    int8,
    int16,
    int32,
    int64,
    message,
    nested,
    string,
    struct,
    uint16,
)


@struct
class StreamsGroupHeartbeatRequestKeyValue(Struct):
    key: str = string("0+")
    value: str = string("0+")


@struct
class StreamsGroupHeartbeatRequestTopicInfo(Struct):
    name: str = string("0+", entity="topicName")
    partitions: int = int32("0+")
    replication_factor: int = int16("0+")
    topic_configs: list[StreamsGroupHeartbeatRequestKeyValue] = array(StreamsGroupHeartbeatRequestKeyValue, "0+")


@struct
class StreamsGroupHeartbeatRequestEndpoint(Struct):
    host: str = string("0+")
    port: int = uint16("0+")


@struct
class StreamsGroupHeartbeatRequestTaskOffset(Struct):
    subtopology_id: str = string("0+")
    partition: int = int32("0+")
    offset: int = int64("0+")


@struct
class StreamsGroupHeartbeatRequestTaskIds(Struct):
    subtopology_id: str = string("0+")
    partitions: list[int] = array(int32, "0+")


@struct
class StreamsGroupHeartbeatRequestCopartitionGroup(Struct):
    source_topics: list[int] = array(int16, "0+")
    source_topic_regex: list[int] = array(int16, "0+")
    repartition_source_topics: list[int] = array(int16, "0+")


@struct
class StreamsGroupHeartbeatRequestSubtopology(Struct):
    subtopology_id: str = string("0+")
    source_topics: list[str] = array(string, "0+", entity="topicName")
    source_topic_regex: list[str] = array(string, "0+")
    state_changelog_topics: list[StreamsGroupHeartbeatRequestTopicInfo] = array(
        StreamsGroupHeartbeatRequestTopicInfo, "0+"
    )
    repartition_sink_topics: list[str] = array(string, "0+", entity="topicName")
    repartition_source_topics: list[StreamsGroupHeartbeatRequestTopicInfo] = array(
        StreamsGroupHeartbeatRequestTopicInfo, "0+"
    )
    copartition_groups: list[StreamsGroupHeartbeatRequestCopartitionGroup] = array(
        StreamsGroupHeartbeatRequestCopartitionGroup, "0+"
    )


@struct
class StreamsGroupHeartbeatRequestTopology(Struct):
    epoch: int = int32("0+")
    subtopologies: list[StreamsGroupHeartbeatRequestSubtopology] = array(StreamsGroupHeartbeatRequestSubtopology, "0+")


@message("request", key=88, versions="0-1", flexible="0+", listeners=("broker",))
class StreamsGroupHeartbeatRequest(Message):
    group_id: str = string("0+", entity="groupId")
    member_id: str = string("0+")
    member_epoch: int = int32("0+")
    endpoint_information_epoch: int = int32("0+")
    instance_id: str | None = string("0+", nullable="0+", default=None)
    rack_id: str | None = string("0+", nullable="0+", default=None)
    rebalance_timeout_ms: int = int32("0+", default=-1)
    topology: StreamsGroupHeartbeatRequestTopology | None = nested(
        StreamsGroupHeartbeatRequestTopology, "0+", nullable="0+", default=None
    )
    active_tasks: list[StreamsGroupHeartbeatRequestTaskIds] | None = array(
        StreamsGroupHeartbeatRequestTaskIds, "0+", nullable="0+", default=None
    )
    standby_tasks: list[StreamsGroupHeartbeatRequestTaskIds] | None = array(
        StreamsGroupHeartbeatRequestTaskIds, "0+", nullable="0+", default=None
    )
    warmup_tasks: list[StreamsGroupHeartbeatRequestTaskIds] | None = array(
        StreamsGroupHeartbeatRequestTaskIds, "0+", nullable="0+", default=None
    )
    process_id: str | None = string("0+", nullable="0+", default=None)
    user_endpoint: StreamsGroupHeartbeatRequestEndpoint | None = nested(
        StreamsGroupHeartbeatRequestEndpoint, "0+", nullable="0+", default=None
    )
    client_tags: list[StreamsGroupHeartbeatRequestKeyValue] | None = array(
        StreamsGroupHeartbeatRequestKeyValue, "0+", nullable="0+", default=None
    )
    task_offsets: list[StreamsGroupHeartbeatRequestTaskOffset] | None = array(
        StreamsGroupHeartbeatRequestTaskOffset, "0+", nullable="0+", default=None
    )
    task_end_offsets: list[StreamsGroupHeartbeatRequestTaskOffset] | None = array(
        StreamsGroupHeartbeatRequestTaskOffset, "0+", nullable="0+", default=None
    )
    shutdown_application: bool = boolean("0+")


@struct
class Status(Struct):
    status_code: int = int8("0+")
    status_detail: str = string("0+")


@struct
class StreamsGroupHeartbeatResponseTopicPartition(Struct):
    topic: str = string("0+", entity="topicName")
    partitions: list[int] = array(int32, "0+")


@struct
class StreamsGroupHeartbeatResponseTaskIds(Struct):
    subtopology_id: str = string("0+")
    partitions: list[int] = array(int32, "0+")


@struct
class StreamsGroupHeartbeatResponseEndpoint(Struct):
    host: str = string("0+")
    port: int = uint16("0+")


@struct
class EndpointToPartitions(Struct):
    user_endpoint: StreamsGroupHeartbeatResponseEndpoint = nested(StreamsGroupHeartbeatResponseEndpoint, "0+")
    active_partitions: list[StreamsGroupHeartbeatResponseTopicPartition] = array(
        StreamsGroupHeartbeatResponseTopicPartition, "0+"
    )
    standby_partitions: list[StreamsGroupHeartbeatResponseTopicPartition] = array(
        StreamsGroupHeartbeatResponseTopicPartition, "0+"
    )


@message("response", key=88, versions="0-1", flexible="0+")
class StreamsGroupHeartbeatResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    member_id: str = string("0+")
    member_epoch: int = int32("0+")
    heartbeat_interval_ms: int = int32("0+")
    acceptable_recovery_lag_legacy: int = int32("0")
    task_offset_interval_ms: int = int32("0+")
    acceptable_recovery_lag: int = int64("1+", default=-1, ignorable=True)
    status: list[Status] | None = array(Status, "0+", nullable="0+")
    active_tasks: list[StreamsGroupHeartbeatResponseTaskIds] | None = array(
        StreamsGroupHeartbeatResponseTaskIds, "0+", nullable="0+", default=None
    )
    standby_tasks: list[StreamsGroupHeartbeatResponseTaskIds] | None = array(
        StreamsGroupHeartbeatResponseTaskIds, "0+", nullable="0+", default=None
    )
    warmup_tasks: list[StreamsGroupHeartbeatResponseTaskIds] | None = array(
        StreamsGroupHeartbeatResponseTaskIds, "0+", nullable="0+", default=None
    )
    topology_description_required: bool = boolean("1+")
    endpoint_information_epoch: int = int32("0+")
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = array(
        EndpointToPartitions, "0+", nullable="0+", default=None
    )


@message("request", key=89, versions="0-1", flexible="0+", listeners=("broker",))
class StreamsGroupDescribeRequest(Message):
    group_ids: list[str] = array(string, "0+", entity="groupId")
    include_authorized_operations: bool = boolean("0+")
    include_topology_description: bool = boolean("1+")


@struct
class StreamsGroupDescribeResponseEndpoint(Struct):
    host: str = string("0+")
    port: int = uint16("0+")


@struct
class StreamsGroupDescribeResponseTaskOffset(Struct):
    subtopology_id: str = string("0+")
    partition: int = int32("0+")
    offset: int = int64("0+")


@struct
class StreamsGroupDescribeResponseTaskIds(Struct):
    subtopology_id: str = string("0+")
    partitions: list[int] = array(int32, "0+")


@struct
class StreamsGroupDescribeResponseAssignment(Struct):
    active_tasks: list[StreamsGroupDescribeResponseTaskIds] = array(StreamsGroupDescribeResponseTaskIds, "0+")
    standby_tasks: list[StreamsGroupDescribeResponseTaskIds] = array(StreamsGroupDescribeResponseTaskIds, "0+")
    warmup_tasks: list[StreamsGroupDescribeResponseTaskIds] = array(StreamsGroupDescribeResponseTaskIds, "0+")


@struct
class StreamsGroupDescribeResponseKeyValue(Struct):
    key: str = string("0+")
    value: str = string("0+")


@struct
class StreamsGroupDescribeResponseTopicInfo(Struct):
    name: str = string("0+", entity="topicName")
    partitions: int = int32("0+")
    replication_factor: int = int16("0+")
    topic_configs: list[StreamsGroupDescribeResponseKeyValue] = array(StreamsGroupDescribeResponseKeyValue, "0+")


@struct
class StreamsGroupDescribeResponseTopologyDescriptionNode(Struct):
    name: str = string("1+")
    node_type: int = int8("1+")
    source_topics: list[str] = array(string, "1+", entity="topicName")
    sink_topic: str | None = string("1+", nullable="1+", default=None, entity="topicName")
    stores: list[str] = array(string, "1+")
    successors: list[str] = array(string, "1+")


@struct
class StreamsGroupDescribeResponseTopologyDescriptionSubtopology(Struct):
    subtopology_id: str = string("1+")
    nodes: list[StreamsGroupDescribeResponseTopologyDescriptionNode] = array(
        StreamsGroupDescribeResponseTopologyDescriptionNode, "1+"
    )


@struct
class StreamsGroupDescribeResponseTopologyDescriptionGlobalStore(Struct):
    source: StreamsGroupDescribeResponseTopologyDescriptionNode = nested(
        StreamsGroupDescribeResponseTopologyDescriptionNode, "1+"
    )
    processor: StreamsGroupDescribeResponseTopologyDescriptionNode = nested(
        StreamsGroupDescribeResponseTopologyDescriptionNode, "1+"
    )


@struct
class StreamsGroupDescribeResponseTopologyDescription(Struct):
    subtopologies: list[StreamsGroupDescribeResponseTopologyDescriptionSubtopology] = array(
        StreamsGroupDescribeResponseTopologyDescriptionSubtopology, "1+"
    )
    global_stores: list[StreamsGroupDescribeResponseTopologyDescriptionGlobalStore] = array(
        StreamsGroupDescribeResponseTopologyDescriptionGlobalStore, "1+"
    )


@struct
class StreamsGroupDescribeResponseSubtopology(Struct):
    subtopology_id: str = string("0+")
    source_topics: list[str] = array(string, "0+", entity="topicName")
    repartition_sink_topics: list[str] = array(string, "0+", entity="topicName")
    state_changelog_topics: list[StreamsGroupDescribeResponseTopicInfo] = array(
        StreamsGroupDescribeResponseTopicInfo, "0+"
    )
    repartition_source_topics: list[StreamsGroupDescribeResponseTopicInfo] = array(
        StreamsGroupDescribeResponseTopicInfo, "0+"
    )


@struct
class StreamsGroupDescribeResponseTopology(Struct):
    epoch: int = int32("0+")
    subtopologies: list[StreamsGroupDescribeResponseSubtopology] | None = array(
        StreamsGroupDescribeResponseSubtopology, "0+", nullable="0+", default=None
    )


@struct
class StreamsGroupDescribeResponseMember(Struct):
    member_id: str = string("0+")
    member_epoch: int = int32("0+")
    instance_id: str | None = string("0+", nullable="0+", default=None)
    rack_id: str | None = string("0+", nullable="0+", default=None)
    client_id: str = string("0+")
    client_host: str = string("0+")
    topology_epoch: int = int32("0+")
    process_id: str = string("0+")
    user_endpoint: StreamsGroupDescribeResponseEndpoint | None = nested(
        StreamsGroupDescribeResponseEndpoint, "0+", nullable="0+", default=None
    )
    client_tags: list[StreamsGroupDescribeResponseKeyValue] = array(StreamsGroupDescribeResponseKeyValue, "0+")
    task_offsets: list[StreamsGroupDescribeResponseTaskOffset] = array(StreamsGroupDescribeResponseTaskOffset, "0+")
    task_end_offsets: list[StreamsGroupDescribeResponseTaskOffset] = array(StreamsGroupDescribeResponseTaskOffset, "0+")
    assignment: StreamsGroupDescribeResponseAssignment = nested(StreamsGroupDescribeResponseAssignment, "0+")
    target_assignment: StreamsGroupDescribeResponseAssignment = nested(StreamsGroupDescribeResponseAssignment, "0+")
    is_classic: bool = boolean("0+")


@struct
class StreamsGroupDescribeResponseDescribedGroup(Struct):
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    group_id: str = string("0+", entity="groupId")
    group_state: str = string("0+")
    group_epoch: int = int32("0+")
    assignment_epoch: int = int32("0+")
    topology: StreamsGroupDescribeResponseTopology | None = nested(
        StreamsGroupDescribeResponseTopology, "0+", nullable="0+", default=None
    )
    members: list[StreamsGroupDescribeResponseMember] = array(StreamsGroupDescribeResponseMember, "0+")
    authorized_operations: int = int32("0+", default=-(2**31))
    topology_description: StreamsGroupDescribeResponseTopologyDescription | None = nested(
        StreamsGroupDescribeResponseTopologyDescription, "1+", nullable="1+", default=None
    )
    topology_description_status: int = int8("1+")
    assignor_name: str | None = string("1+", nullable="1+", default=None, ignorable=True)


@message("response", key=89, versions="0-1", flexible="0+")
class StreamsGroupDescribeResponse(Message):
    throttle_time_ms: int = int32("0+")
    groups: list[StreamsGroupDescribeResponseDescribedGroup] = array(StreamsGroupDescribeResponseDescribedGroup, "0+")


@struct
class StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionNode(Struct):
    name: str = string("0+")
    node_type: int = int8("0+")
    source_topics: list[str] = array(string, "0+", entity="topicName")
    sink_topic: str | None = string("0+", nullable="0+", default=None, entity="topicName")
    stores: list[str] = array(string, "0+")
    successors: list[str] = array(string, "0+")


@struct
class StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionSubtopology(Struct):
    subtopology_id: str = string("0+")
    nodes: list[StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionNode] = array(
        StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionNode, "0+"
    )


@struct
class StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionGlobalStore(Struct):
    source: StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionNode = nested(
        StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionNode, "0+"
    )
    processor: StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionNode = nested(
        StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionNode, "0+"
    )


@struct
class StreamsGroupTopologyDescriptionUpdateRequestTopologyDescription(Struct):
    subtopologies: list[StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionSubtopology] = array(
        StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionSubtopology, "0+"
    )
    global_stores: list[StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionGlobalStore] = array(
        StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionGlobalStore, "0+"
    )


@message("request", key=93, versions="0", flexible="0+", listeners=("broker",))
class StreamsGroupTopologyDescriptionUpdateRequest(Message):
    group_id: str = string("0+", entity="groupId")
    member_id: str = string("0+")
    topology_epoch: int = int32("0+")
    topology_description: StreamsGroupTopologyDescriptionUpdateRequestTopologyDescription = nested(
        StreamsGroupTopologyDescriptionUpdateRequestTopologyDescription, "0+"
    )


@message("response", key=93, versions="0", flexible="0+")
class StreamsGroupTopologyDescriptionUpdateResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
