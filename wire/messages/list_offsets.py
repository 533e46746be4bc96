"""ListOffsets (2) and OffsetForLeaderEpoch (23): offsets by timestamp and by leader epoch.

KIP-79, KIP-101, KIP-320, KIP-734.
"""

from __future__ import annotations

from barnabas.wire.schema import (
    Message,
    Struct,
    array,
    int8,
    int16,
    int32,
    int64,
    message,
    string,
    struct,
)


@struct
class ListOffsetsPartition(Struct):
    partition_index: int = int32("0+")
    current_leader_epoch: int = int32("4+", default=-1, ignorable=True)
    timestamp: int = int64("0+")


@struct
class ListOffsetsTopic(Struct):
    name: str = string("0+", entity="topicName")
    partitions: list[ListOffsetsPartition] = array(ListOffsetsPartition, "0+")


@message("request", key=2, versions="1-11", flexible="6+", listeners=("broker",))
class ListOffsetsRequest(Message):
    replica_id: int = int32("0+", entity="brokerId")
    isolation_level: int = int8("2+")
    topics: list[ListOffsetsTopic] = array(ListOffsetsTopic, "0+")
    timeout_ms: int = int32("10+", ignorable=True)


@struct
class ListOffsetsPartitionResponse(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    timestamp: int = int64("1+", default=-1)
    offset: int = int64("1+", default=-1)
    leader_epoch: int = int32("4+", default=-1)


@struct
class ListOffsetsTopicResponse(Struct):
    name: str = string("0+", entity="topicName")
    partitions: list[ListOffsetsPartitionResponse] = array(ListOffsetsPartitionResponse, "0+")


@message("response", key=2, versions="1-11", flexible="6+")
class ListOffsetsResponse(Message):
    throttle_time_ms: int = int32("2+", ignorable=True)
    topics: list[ListOffsetsTopicResponse] = array(ListOffsetsTopicResponse, "0+")


@struct
class OffsetForLeaderPartition(Struct):
    partition: int = int32("0+")
    current_leader_epoch: int = int32("2+", default=-1, ignorable=True)
    leader_epoch: int = int32("0+")


@struct
class OffsetForLeaderTopic(Struct):
    topic: str = string("0+", entity="topicName")
    partitions: list[OffsetForLeaderPartition] = array(OffsetForLeaderPartition, "0+")


@message("request", key=23, versions="2-4", flexible="4+", listeners=("broker",))
class OffsetForLeaderEpochRequest(Message):
    replica_id: int = int32("3+", default=-2, ignorable=True, entity="brokerId")
    topics: list[OffsetForLeaderTopic] = array(OffsetForLeaderTopic, "0+")


@struct
class OffsetForLeaderEpochResponseEpochEndOffset(Struct):
    error_code: int = int16("0+")
    partition: int = int32("0+")
    leader_epoch: int = int32("1+", default=-1, ignorable=True)
    end_offset: int = int64("0+", default=-1)


@struct
class OffsetForLeaderTopicResult(Struct):
    topic: str = string("0+", entity="topicName")
    partitions: list[OffsetForLeaderEpochResponseEpochEndOffset] = array(
        OffsetForLeaderEpochResponseEpochEndOffset, "0+"
    )


@message("response", key=23, versions="2-4", flexible="4+")
class OffsetForLeaderEpochResponse(Message):
    throttle_time_ms: int = int32("2+", ignorable=True)
    topics: list[OffsetForLeaderTopicResult] = array(OffsetForLeaderTopicResult, "0+")
