"""Fetch (1): reads records, for consumers and followers. KIP-227 (sessions), KIP-392, KIP-516 (topic ids), KIP-951."""

from __future__ import annotations

from barnabas.wire.schema import (
    Message,
    Records,
    Struct,
    Uuid,
    array,
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


@struct
class FetchRequestReplicaState(Struct):
    replica_id: int = int32("15+", default=-1, entity="brokerId")
    replica_epoch: int = int64("15+", default=-1)


@struct
class FetchRequestFetchPartition(Struct):
    partition: int = int32("0+")
    current_leader_epoch: int = int32("9+", default=-1, ignorable=True)
    fetch_offset: int = int64("0+")
    last_fetched_epoch: int = int32("12+", default=-1)
    log_start_offset: int = int64("5+", default=-1, ignorable=True)
    partition_max_bytes: int = int32("0+")
    replica_directory_id: Uuid = uuid("17+", tag=0, ignorable=True)
    high_watermark: int = int64("18+", tag=1, default=2**63 - 1, ignorable=True)


@struct
class FetchRequestFetchTopic(Struct):
    topic: str = string("0-12", ignorable=True, entity="topicName")
    topic_id: Uuid = uuid("13+", ignorable=True)
    partitions: list[FetchRequestFetchPartition] = array(FetchRequestFetchPartition, "0+")


@struct
class FetchRequestForgottenTopic(Struct):
    topic: str = string("7-12", ignorable=True, entity="topicName")
    topic_id: Uuid = uuid("13+", ignorable=True)
    partitions: list[int] = array(int32, "7+")


@message(
    "request",
    key=1,
    versions="4-18",
    flexible="12+",
    listeners=(
        "broker",
        "controller",
    ),
)
class FetchRequest(Message):
    cluster_id: str | None = string("12+", nullable="12+", tag=0, default=None, ignorable=True)
    replica_id: int = int32("0-14", default=-1, entity="brokerId")
    replica_state: FetchRequestReplicaState = nested(FetchRequestReplicaState, "15+", tag=1)
    max_wait_ms: int = int32("0+")
    min_bytes: int = int32("0+")
    max_bytes: int = int32("3+", default=0x7FFFFFFF, ignorable=True)
    isolation_level: int = int8("4+", ignorable=True)
    session_id: int = int32("7+", ignorable=True)
    session_epoch: int = int32("7+", default=-1, ignorable=True)
    topics: list[FetchRequestFetchTopic] = array(FetchRequestFetchTopic, "0+")
    forgotten_topics_data: list[FetchRequestForgottenTopic] = array(FetchRequestForgottenTopic, "7+")
    rack_id: str = string("11+", ignorable=True)


@struct
class FetchResponseEpochEndOffset(Struct):
    epoch: int = int32("12+", default=-1)
    end_offset: int = int64("12+", default=-1)


@struct
class FetchResponseLeaderIdAndEpoch(Struct):
    leader_id: int = int32("12+", default=-1, entity="brokerId")
    leader_epoch: int = int32("12+", default=-1)


@struct
class FetchResponseSnapshotId(Struct):
    end_offset: int = int64("0+", default=-1)
    epoch: int = int32("0+", default=-1)


@struct
class AbortedTransaction(Struct):
    producer_id: int = int64("4+", entity="producerId")
    first_offset: int = int64("4+")


@struct
class FetchResponsePartitionData(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    high_watermark: int = int64("0+")
    last_stable_offset: int = int64("4+", default=-1, ignorable=True)
    log_start_offset: int = int64("5+", default=-1, ignorable=True)
    diverging_epoch: FetchResponseEpochEndOffset = nested(FetchResponseEpochEndOffset, "12+", tag=0)
    current_leader: FetchResponseLeaderIdAndEpoch = nested(FetchResponseLeaderIdAndEpoch, "12+", tag=1)
    snapshot_id: FetchResponseSnapshotId = nested(FetchResponseSnapshotId, "12+", tag=2)
    aborted_transactions: list[AbortedTransaction] | None = array(
        AbortedTransaction, "4+", nullable="4+", ignorable=True
    )
    preferred_read_replica: int = int32("11+", default=-1, entity="brokerId")
    records: Records | None = records("0+", nullable="0+")


@struct
class FetchableTopicResponse(Struct):
    topic: str = string("0-12", ignorable=True, entity="topicName")
    topic_id: Uuid = uuid("13+", ignorable=True)
    partitions: list[FetchResponsePartitionData] = array(FetchResponsePartitionData, "0+")


@struct
class FetchResponseNodeEndpoint(Struct):
    node_id: int = int32("16+", entity="brokerId")
    host: str = string("16+")
    port: int = int32("16+")
    rack: str | None = string("16+", nullable="16+", default=None)


@message("response", key=1, versions="4-18", flexible="12+")
class FetchResponse(Message):
    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("7+", ignorable=True)
    session_id: int = int32("7+")
    responses: list[FetchableTopicResponse] = array(FetchableTopicResponse, "0+")
    node_endpoints: list[FetchResponseNodeEndpoint] = array(FetchResponseNodeEndpoint, "16+", tag=0)
