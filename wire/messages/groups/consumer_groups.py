"""The consumer group protocol with assignment by the broker. KIP-848."""

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
class ConsumerGroupHeartbeatRequestTopicPartitions(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[int] = array(int32, "0+")


@message("request", key=68, versions="0-1", flexible="0+", listeners=("broker",))
class ConsumerGroupHeartbeatRequest(Message):
    group_id: str = string("0+", entity="groupId")
    member_id: str = string("0+")
    member_epoch: int = int32("0+")
    instance_id: str | None = string("0+", nullable="0+", default=None)
    rack_id: str | None = string("0+", nullable="0+", default=None)
    rebalance_timeout_ms: int = int32("0+", default=-1)
    subscribed_topic_names: list[str] | None = array(string, "0+", nullable="0+", default=None, entity="topicName")
    subscribed_topic_regex: str | None = string("1+", nullable="1+", default=None)
    server_assignor: str | None = string("0+", nullable="0+", default=None)
    topic_partitions: list[ConsumerGroupHeartbeatRequestTopicPartitions] | None = array(
        ConsumerGroupHeartbeatRequestTopicPartitions, "0+", nullable="0+", default=None
    )


@struct
class ConsumerGroupHeartbeatResponseTopicPartitions(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[int] = array(int32, "0+")


@struct
class ConsumerGroupHeartbeatResponseAssignment(Struct):
    topic_partitions: list[ConsumerGroupHeartbeatResponseTopicPartitions] = array(
        ConsumerGroupHeartbeatResponseTopicPartitions, "0+"
    )


@message("response", key=68, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    member_id: str | None = string("0+", nullable="0+", default=None)
    member_epoch: int = int32("0+")
    heartbeat_interval_ms: int = int32("0+")
    assignment: ConsumerGroupHeartbeatResponseAssignment | None = nested(
        ConsumerGroupHeartbeatResponseAssignment, "0+", nullable="0+", default=None
    )


@message("request", key=69, versions="0-1", flexible="0+", listeners=("broker",))
class ConsumerGroupDescribeRequest(Message):
    group_ids: list[str] = array(string, "0+", entity="groupId")
    include_authorized_operations: bool = boolean("0+")


@struct
class ConsumerGroupDescribeResponseTopicPartitions(Struct):
    topic_id: Uuid = uuid("0+")
    topic_name: str = string("0+", entity="topicName")
    partitions: list[int] = array(int32, "0+")


@struct
class ConsumerGroupDescribeResponseAssignment(Struct):
    topic_partitions: list[ConsumerGroupDescribeResponseTopicPartitions] = array(
        ConsumerGroupDescribeResponseTopicPartitions, "0+"
    )


@struct
class ConsumerGroupDescribeResponseMember(Struct):
    member_id: str = string("0+")
    instance_id: str | None = string("0+", nullable="0+", default=None)
    rack_id: str | None = string("0+", nullable="0+", default=None)
    member_epoch: int = int32("0+")
    client_id: str = string("0+")
    client_host: str = string("0+")
    subscribed_topic_names: list[str] = array(string, "0+", entity="topicName")
    subscribed_topic_regex: str | None = string("0+", nullable="0+", default=None)
    assignment: ConsumerGroupDescribeResponseAssignment = nested(ConsumerGroupDescribeResponseAssignment, "0+")
    target_assignment: ConsumerGroupDescribeResponseAssignment = nested(ConsumerGroupDescribeResponseAssignment, "0+")
    member_type: int = int8("1+", default=-1, ignorable=True)


@struct
class ConsumerGroupDescribeResponseDescribedGroup(Struct):
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    group_id: str = string("0+", entity="groupId")
    group_state: str = string("0+")
    group_epoch: int = int32("0+")
    assignment_epoch: int = int32("0+")
    assignor_name: str = string("0+")
    members: list[ConsumerGroupDescribeResponseMember] = array(ConsumerGroupDescribeResponseMember, "0+")
    authorized_operations: int = int32("0+", default=-(2**31))


@message("response", key=69, versions="0-1", flexible="0+")
class ConsumerGroupDescribeResponse(Message):
    throttle_time_ms: int = int32("0+")
    groups: list[ConsumerGroupDescribeResponseDescribedGroup] = array(ConsumerGroupDescribeResponseDescribedGroup, "0+")
