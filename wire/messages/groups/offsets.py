"""Offsets of a group: commit, fetch, delete. KIP-98, KIP-447, KIP-496, KIP-709, KIP-848."""

from __future__ import annotations

from barnabas.wire.schema import (
    Message,
    Struct,
    Uuid,
    array,
    boolean,
    int16,
    int32,
    int64,
    message,
    string,
    struct,
    uuid,
)


@struct
class OffsetCommitRequestPartition(Struct):
    partition_index: int = int32("0+")
    committed_offset: int = int64("0+")
    committed_leader_epoch: int = int32("6+", default=-1, ignorable=True)
    committed_metadata: str | None = string("0+", nullable="0+")


@struct
class OffsetCommitRequestTopic(Struct):
    name: str = string("0-9", ignorable=True, entity="topicName")
    topic_id: Uuid = uuid("10+", ignorable=True)
    partitions: list[OffsetCommitRequestPartition] = array(OffsetCommitRequestPartition, "0+")


@message("request", key=8, versions="2-10", flexible="8+", listeners=("broker",))
class OffsetCommitRequest(Message):
    group_id: str = string("0+", entity="groupId")
    generation_id_or_member_epoch: int = int32("1+", default=-1, ignorable=True)
    member_id: str = string("1+", ignorable=True)
    group_instance_id: str | None = string("7+", nullable="7+", default=None)
    retention_time_ms: int = int64("2-4", default=-1, ignorable=True)
    topics: list[OffsetCommitRequestTopic] = array(OffsetCommitRequestTopic, "0+")


@struct
class OffsetCommitResponsePartition(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")


@struct
class OffsetCommitResponseTopic(Struct):
    name: str = string("0-9", ignorable=True, entity="topicName")
    topic_id: Uuid = uuid("10+", ignorable=True)
    partitions: list[OffsetCommitResponsePartition] = array(OffsetCommitResponsePartition, "0+")


@message("response", key=8, versions="2-10", flexible="8+")
class OffsetCommitResponse(Message):
    throttle_time_ms: int = int32("3+", ignorable=True)
    topics: list[OffsetCommitResponseTopic] = array(OffsetCommitResponseTopic, "0+")


@struct
class OffsetFetchRequestTopic(Struct):
    name: str = string("0-7", entity="topicName")
    partition_indexes: list[int] = array(int32, "0-7")


@struct
class OffsetFetchRequestTopics(Struct):
    name: str = string("8-9", ignorable=True, entity="topicName")
    topic_id: Uuid = uuid("10+", ignorable=True)
    partition_indexes: list[int] = array(int32, "8+")


@struct
class OffsetFetchRequestGroup(Struct):
    group_id: str = string("8+", entity="groupId")
    member_id: str | None = string("9+", nullable="9+", default=None, ignorable=True)
    member_epoch: int = int32("9+", default=-1, ignorable=True)
    topics: list[OffsetFetchRequestTopics] | None = array(OffsetFetchRequestTopics, "8+", nullable="8+")


@message("request", key=9, versions="1-10", flexible="6+", listeners=("broker",))
class OffsetFetchRequest(Message):
    group_id: str = string("0-7", entity="groupId")
    topics: list[OffsetFetchRequestTopic] | None = array(OffsetFetchRequestTopic, "0-7", nullable="2-7")
    groups: list[OffsetFetchRequestGroup] = array(OffsetFetchRequestGroup, "8+")
    require_stable: bool = boolean("7+")


@struct
class OffsetFetchResponsePartition(Struct):
    partition_index: int = int32("0-7")
    committed_offset: int = int64("0-7")
    committed_leader_epoch: int = int32("5-7", default=-1, ignorable=True)
    metadata: str | None = string("0-7", nullable="0-7")
    error_code: int = int16("0-7")


@struct
class OffsetFetchResponseTopic(Struct):
    name: str = string("0-7", entity="topicName")
    partitions: list[OffsetFetchResponsePartition] = array(OffsetFetchResponsePartition, "0-7")


@struct
class OffsetFetchResponsePartitions(Struct):
    partition_index: int = int32("8+")
    committed_offset: int = int64("8+")
    committed_leader_epoch: int = int32("8+", default=-1, ignorable=True)
    metadata: str | None = string("8+", nullable="8+")
    error_code: int = int16("8+")


@struct
class OffsetFetchResponseTopics(Struct):
    name: str = string("8-9", ignorable=True, entity="topicName")
    topic_id: Uuid = uuid("10+", ignorable=True)
    partitions: list[OffsetFetchResponsePartitions] = array(OffsetFetchResponsePartitions, "8+")


@struct
class OffsetFetchResponseGroup(Struct):
    group_id: str = string("8+", entity="groupId")
    topics: list[OffsetFetchResponseTopics] = array(OffsetFetchResponseTopics, "8+")
    error_code: int = int16("8+")


@message("response", key=9, versions="1-10", flexible="6+")
class OffsetFetchResponse(Message):
    throttle_time_ms: int = int32("3+", ignorable=True)
    topics: list[OffsetFetchResponseTopic] = array(OffsetFetchResponseTopic, "0-7")
    error_code: int = int16("2-7", ignorable=True)
    groups: list[OffsetFetchResponseGroup] = array(OffsetFetchResponseGroup, "8+")


@struct
class OffsetDeleteRequestPartition(Struct):
    partition_index: int = int32("0+")


@struct
class OffsetDeleteRequestTopic(Struct):
    name: str = string("0+", entity="topicName")
    partitions: list[OffsetDeleteRequestPartition] = array(OffsetDeleteRequestPartition, "0+")


@message("request", key=47, versions="0", listeners=("broker",))
class OffsetDeleteRequest(Message):
    group_id: str = string("0+", entity="groupId")
    topics: list[OffsetDeleteRequestTopic] = array(OffsetDeleteRequestTopic, "0+")


@struct
class OffsetDeleteResponsePartition(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")


@struct
class OffsetDeleteResponseTopic(Struct):
    name: str = string("0+", entity="topicName")
    partitions: list[OffsetDeleteResponsePartition] = array(OffsetDeleteResponsePartition, "0+")


@message("response", key=47, versions="0")
class OffsetDeleteResponse(Message):
    error_code: int = int16("0+")
    throttle_time_ms: int = int32("0+", ignorable=True)
    topics: list[OffsetDeleteResponseTopic] = array(OffsetDeleteResponseTopic, "0+")
