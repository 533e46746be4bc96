"""Log directories: describe, move replicas between them, assign. KIP-113, KIP-827, KIP-858."""

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
class DescribableLogDirTopic(Struct):
    topic: str = string("0+", entity="topicName")
    partitions: list[int] = array(int32, "0+")


@message("request", key=35, versions="1-5", flexible="2+", listeners=("broker",))
class DescribeLogDirsRequest(Message):
    topics: list[DescribableLogDirTopic] | None = array(DescribableLogDirTopic, "0+", nullable="0+")


@struct
class DescribeLogDirsPartition(Struct):
    partition_index: int = int32("0+")
    partition_size: int = int64("0+")
    offset_lag: int = int64("0+")
    is_future_key: bool = boolean("0+")


@struct
class DescribeLogDirsTopic(Struct):
    name: str = string("0+", entity="topicName")
    partitions: list[DescribeLogDirsPartition] = array(DescribeLogDirsPartition, "0+")


@struct
class DescribeLogDirsResult(Struct):
    error_code: int = int16("0+")
    log_dir: str = string("0+")
    topics: list[DescribeLogDirsTopic] = array(DescribeLogDirsTopic, "0+")
    total_bytes: int = int64("4+", default=-1, ignorable=True)
    usable_bytes: int = int64("4+", default=-1, ignorable=True)
    is_cordoned: bool = boolean("5+", ignorable=True)


@message("response", key=35, versions="1-5", flexible="2+")
class DescribeLogDirsResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("3+", ignorable=True)
    results: list[DescribeLogDirsResult] = array(DescribeLogDirsResult, "0+")


@struct
class AlterReplicaLogDirTopic(Struct):
    name: str = string("0+", entity="topicName")
    partitions: list[int] = array(int32, "0+")


@struct
class AlterReplicaLogDir(Struct):
    path: str = string("0+")
    topics: list[AlterReplicaLogDirTopic] = array(AlterReplicaLogDirTopic, "0+")


@message("request", key=34, versions="1-2", flexible="2+", listeners=("broker",))
class AlterReplicaLogDirsRequest(Message):
    dirs: list[AlterReplicaLogDir] = array(AlterReplicaLogDir, "0+")


@struct
class AlterReplicaLogDirPartitionResult(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")


@struct
class AlterReplicaLogDirTopicResult(Struct):
    topic_name: str = string("0+", entity="topicName")
    partitions: list[AlterReplicaLogDirPartitionResult] = array(AlterReplicaLogDirPartitionResult, "0+")


@message("response", key=34, versions="1-2", flexible="2+")
class AlterReplicaLogDirsResponse(Message):
    throttle_time_ms: int = int32("0+")
    results: list[AlterReplicaLogDirTopicResult] = array(AlterReplicaLogDirTopicResult, "0+")


@struct
class AssignReplicasToDirsRequestPartitionData(Struct):
    partition_index: int = int32("0+")


@struct
class AssignReplicasToDirsRequestTopicData(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[AssignReplicasToDirsRequestPartitionData] = array(AssignReplicasToDirsRequestPartitionData, "0+")


@struct
class AssignReplicasToDirsRequestDirectoryData(Struct):
    id: Uuid = uuid("0+")
    topics: list[AssignReplicasToDirsRequestTopicData] = array(AssignReplicasToDirsRequestTopicData, "0+")


@message("request", key=73, versions="0", flexible="0+", listeners=("controller",))
class AssignReplicasToDirsRequest(Message):
    broker_id: int = int32("0+", entity="brokerId")
    broker_epoch: int = int64("0+", default=-1)
    directories: list[AssignReplicasToDirsRequestDirectoryData] = array(AssignReplicasToDirsRequestDirectoryData, "0+")


@struct
class AssignReplicasToDirsResponsePartitionData(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")


@struct
class AssignReplicasToDirsResponseTopicData(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[AssignReplicasToDirsResponsePartitionData] = array(AssignReplicasToDirsResponsePartitionData, "0+")


@struct
class AssignReplicasToDirsResponseDirectoryData(Struct):
    id: Uuid = uuid("0+")
    topics: list[AssignReplicasToDirsResponseTopicData] = array(AssignReplicasToDirsResponseTopicData, "0+")


@message("response", key=73, versions="0", flexible="0+")
class AssignReplicasToDirsResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    directories: list[AssignReplicasToDirsResponseDirectoryData] = array(
        AssignReplicasToDirsResponseDirectoryData, "0+"
    )
