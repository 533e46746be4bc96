"""APIs of the KRaft quorum: votes, epochs, snapshots, voters. KIP-595, KIP-630, KIP-853."""

from __future__ import annotations

from barnabas.wire.schema import (
    Message,
    Records,
    Struct,
    Uuid,
    array,
    boolean,
    int16,
    int32,
    int64,
    message,
    nested,
    records,
    string,
    struct,
    uint16,
    uuid,
)


@struct
class VoteRequestPartitionData(Struct):
    partition_index: int = int32("0+")
    replica_epoch: int = int32("0+")
    replica_id: int = int32("0+", entity="brokerId")
    replica_directory_id: Uuid = uuid("1+", ignorable=True)
    voter_directory_id: Uuid = uuid("1+", ignorable=True)
    last_offset_epoch: int = int32("0+")
    last_offset: int = int64("0+")
    pre_vote: bool = boolean("2+")


@struct
class VoteRequestTopicData(Struct):
    topic_name: str = string("0+", entity="topicName")
    partitions: list[VoteRequestPartitionData] = array(VoteRequestPartitionData, "0+")


@message("request", key=52, versions="0-2", flexible="0+", listeners=("controller",))
class VoteRequest(Message):
    cluster_id: str | None = string("0+", nullable="0+", default=None)
    voter_id: int = int32("1+", default=-1, ignorable=True, entity="brokerId")
    topics: list[VoteRequestTopicData] = array(VoteRequestTopicData, "0+")


@struct
class VoteResponsePartitionData(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    leader_id: int = int32("0+", entity="brokerId")
    leader_epoch: int = int32("0+")
    vote_granted: bool = boolean("0+")


@struct
class VoteResponseTopicData(Struct):
    topic_name: str = string("0+", entity="topicName")
    partitions: list[VoteResponsePartitionData] = array(VoteResponsePartitionData, "0+")


@struct
class VoteResponseNodeEndpoint(Struct):
    node_id: int = int32("1+", entity="brokerId")
    host: str = string("1+")
    port: int = uint16("1+")


@message("response", key=52, versions="0-2", flexible="0+")
class VoteResponse(Message):
    error_code: int = int16("0+")
    topics: list[VoteResponseTopicData] = array(VoteResponseTopicData, "0+")
    node_endpoints: list[VoteResponseNodeEndpoint] = array(VoteResponseNodeEndpoint, "1+", tag=0)


@struct
class BeginQuorumEpochRequestPartitionData(Struct):
    partition_index: int = int32("0+")
    voter_directory_id: Uuid = uuid("1+", ignorable=True)
    leader_id: int = int32("0+", entity="brokerId")
    leader_epoch: int = int32("0+")


@struct
class BeginQuorumEpochRequestTopicData(Struct):
    topic_name: str = string("0+", entity="topicName")
    partitions: list[BeginQuorumEpochRequestPartitionData] = array(BeginQuorumEpochRequestPartitionData, "0+")


@struct
class BeginQuorumEpochRequestLeaderEndpoint(Struct):
    name: str = string("1+")
    host: str = string("1+")
    port: int = uint16("1+")


@message("request", key=53, versions="0-1", flexible="1+", listeners=("controller",))
class BeginQuorumEpochRequest(Message):
    cluster_id: str | None = string("0+", nullable="0+", default=None)
    voter_id: int = int32("1+", default=-1, ignorable=True, entity="brokerId")
    topics: list[BeginQuorumEpochRequestTopicData] = array(BeginQuorumEpochRequestTopicData, "0+")
    leader_endpoints: list[BeginQuorumEpochRequestLeaderEndpoint] = array(
        BeginQuorumEpochRequestLeaderEndpoint, "1+", ignorable=True
    )


@struct
class BeginQuorumEpochResponsePartitionData(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    leader_id: int = int32("0+", entity="brokerId")
    leader_epoch: int = int32("0+")


@struct
class BeginQuorumEpochResponseTopicData(Struct):
    topic_name: str = string("0+", entity="topicName")
    partitions: list[BeginQuorumEpochResponsePartitionData] = array(BeginQuorumEpochResponsePartitionData, "0+")


@struct
class BeginQuorumEpochResponseNodeEndpoint(Struct):
    node_id: int = int32("1+", entity="brokerId")
    host: str = string("1+")
    port: int = uint16("1+")


@message("response", key=53, versions="0-1", flexible="1+")
class BeginQuorumEpochResponse(Message):
    error_code: int = int16("0+")
    topics: list[BeginQuorumEpochResponseTopicData] = array(BeginQuorumEpochResponseTopicData, "0+")
    node_endpoints: list[BeginQuorumEpochResponseNodeEndpoint] = array(
        BeginQuorumEpochResponseNodeEndpoint, "1+", tag=0
    )


@struct
class ReplicaInfo(Struct):
    candidate_id: int = int32("1+", entity="brokerId")
    candidate_directory_id: Uuid = uuid("1+")


@struct
class EndQuorumEpochRequestPartitionData(Struct):
    partition_index: int = int32("0+")
    leader_id: int = int32("0+", entity="brokerId")
    leader_epoch: int = int32("0+")
    preferred_successors: list[int] = array(int32, "0", ignorable=True)
    preferred_candidates: list[ReplicaInfo] = array(ReplicaInfo, "1+", ignorable=True)


@struct
class EndQuorumEpochRequestTopicData(Struct):
    topic_name: str = string("0+", entity="topicName")
    partitions: list[EndQuorumEpochRequestPartitionData] = array(EndQuorumEpochRequestPartitionData, "0+")


@struct
class EndQuorumEpochRequestLeaderEndpoint(Struct):
    name: str = string("1+")
    host: str = string("1+")
    port: int = uint16("1+")


@message("request", key=54, versions="0-1", flexible="1+", listeners=("controller",))
class EndQuorumEpochRequest(Message):
    cluster_id: str | None = string("0+", nullable="0+", default=None)
    topics: list[EndQuorumEpochRequestTopicData] = array(EndQuorumEpochRequestTopicData, "0+")
    leader_endpoints: list[EndQuorumEpochRequestLeaderEndpoint] = array(
        EndQuorumEpochRequestLeaderEndpoint, "1+", ignorable=True
    )


@struct
class EndQuorumEpochResponsePartitionData(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    leader_id: int = int32("0+", entity="brokerId")
    leader_epoch: int = int32("0+")


@struct
class EndQuorumEpochResponseTopicData(Struct):
    topic_name: str = string("0+", entity="topicName")
    partitions: list[EndQuorumEpochResponsePartitionData] = array(EndQuorumEpochResponsePartitionData, "0+")


@struct
class EndQuorumEpochResponseNodeEndpoint(Struct):
    node_id: int = int32("1+", entity="brokerId")
    host: str = string("1+")
    port: int = uint16("1+")


@message("response", key=54, versions="0-1", flexible="1+")
class EndQuorumEpochResponse(Message):
    error_code: int = int16("0+")
    topics: list[EndQuorumEpochResponseTopicData] = array(EndQuorumEpochResponseTopicData, "0+")
    node_endpoints: list[EndQuorumEpochResponseNodeEndpoint] = array(EndQuorumEpochResponseNodeEndpoint, "1+", tag=0)


@struct
class DescribeQuorumRequestPartitionData(Struct):
    partition_index: int = int32("0+")


@struct
class DescribeQuorumRequestTopicData(Struct):
    topic_name: str = string("0+", entity="topicName")
    partitions: list[DescribeQuorumRequestPartitionData] = array(DescribeQuorumRequestPartitionData, "0+")


@message(
    "request",
    key=55,
    versions="0-2",
    flexible="0+",
    listeners=(
        "broker",
        "controller",
    ),
)
class DescribeQuorumRequest(Message):
    topics: list[DescribeQuorumRequestTopicData] = array(DescribeQuorumRequestTopicData, "0+")


@struct
class DescribeQuorumResponseReplicaState(Struct):
    replica_id: int = int32("0+", entity="brokerId")
    replica_directory_id: Uuid = uuid("2+")
    log_end_offset: int = int64("0+")
    last_fetch_timestamp: int = int64("1+", default=-1, ignorable=True)
    last_caught_up_timestamp: int = int64("1+", default=-1, ignorable=True)


@struct
class DescribeQuorumResponsePartitionData(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("2+", nullable="2+", ignorable=True)
    leader_id: int = int32("0+", entity="brokerId")
    leader_epoch: int = int32("0+")
    high_watermark: int = int64("0+")
    current_voters: list[DescribeQuorumResponseReplicaState] = array(DescribeQuorumResponseReplicaState, "0+")
    observers: list[DescribeQuorumResponseReplicaState] = array(DescribeQuorumResponseReplicaState, "0+")


@struct
class DescribeQuorumResponseTopicData(Struct):
    topic_name: str = string("0+", entity="topicName")
    partitions: list[DescribeQuorumResponsePartitionData] = array(DescribeQuorumResponsePartitionData, "0+")


@struct
class DescribeQuorumResponseListener(Struct):
    name: str = string("2+")
    host: str = string("2+")
    port: int = uint16("2+")


@struct
class Node(Struct):
    node_id: int = int32("2+", entity="brokerId")
    listeners: list[DescribeQuorumResponseListener] = array(DescribeQuorumResponseListener, "2+")


@message("response", key=55, versions="0-2", flexible="0+")
class DescribeQuorumResponse(Message):
    error_code: int = int16("0+")
    error_message: str | None = string("2+", nullable="2+", ignorable=True)
    topics: list[DescribeQuorumResponseTopicData] = array(DescribeQuorumResponseTopicData, "0+")
    nodes: list[Node] = array(Node, "2+")


@struct
class FetchSnapshotRequestSnapshotId(Struct):
    end_offset: int = int64("0+")
    epoch: int = int32("0+")


@struct
class FetchSnapshotRequestPartitionSnapshot(Struct):
    partition: int = int32("0+")
    current_leader_epoch: int = int32("0+")
    snapshot_id: FetchSnapshotRequestSnapshotId = nested(FetchSnapshotRequestSnapshotId, "0+")
    position: int = int64("0+")
    replica_directory_id: Uuid = uuid("1+", tag=0, ignorable=True)


@struct
class FetchSnapshotRequestTopicSnapshot(Struct):
    name: str = string("0+", entity="topicName")
    partitions: list[FetchSnapshotRequestPartitionSnapshot] = array(FetchSnapshotRequestPartitionSnapshot, "0+")


@message("request", key=59, versions="0-1", flexible="0+", listeners=("controller",))
class FetchSnapshotRequest(Message):
    cluster_id: str | None = string("0+", nullable="0+", tag=0, default=None)
    replica_id: int = int32("0+", default=-1, entity="brokerId")
    max_bytes: int = int32("0+", default=0x7FFFFFFF)
    topics: list[FetchSnapshotRequestTopicSnapshot] = array(FetchSnapshotRequestTopicSnapshot, "0+")


@struct
class FetchSnapshotResponseSnapshotId(Struct):
    end_offset: int = int64("0+")
    epoch: int = int32("0+")


@struct
class FetchSnapshotResponseLeaderIdAndEpoch(Struct):
    leader_id: int = int32("0+", entity="brokerId")
    leader_epoch: int = int32("0+")


@struct
class FetchSnapshotResponsePartitionSnapshot(Struct):
    index: int = int32("0+")
    error_code: int = int16("0+")
    snapshot_id: FetchSnapshotResponseSnapshotId = nested(FetchSnapshotResponseSnapshotId, "0+")
    current_leader: FetchSnapshotResponseLeaderIdAndEpoch = nested(FetchSnapshotResponseLeaderIdAndEpoch, "0+", tag=0)
    size: int = int64("0+")
    position: int = int64("0+")
    unaligned_records: Records = records("0+")


@struct
class FetchSnapshotResponseTopicSnapshot(Struct):
    name: str = string("0+", entity="topicName")
    partitions: list[FetchSnapshotResponsePartitionSnapshot] = array(FetchSnapshotResponsePartitionSnapshot, "0+")


@struct
class FetchSnapshotResponseNodeEndpoint(Struct):
    node_id: int = int32("1+", entity="brokerId")
    host: str = string("1+")
    port: int = uint16("1+")


@message("response", key=59, versions="0-1", flexible="0+")
class FetchSnapshotResponse(Message):
    throttle_time_ms: int = int32("0+", ignorable=True)
    error_code: int = int16("0+")
    topics: list[FetchSnapshotResponseTopicSnapshot] = array(FetchSnapshotResponseTopicSnapshot, "0+")
    node_endpoints: list[FetchSnapshotResponseNodeEndpoint] = array(FetchSnapshotResponseNodeEndpoint, "1+", tag=0)


@struct
class AddRaftVoterRequestListener(Struct):
    name: str = string("0+")
    host: str = string("0+")
    port: int = uint16("0+")


@message(
    "request",
    key=80,
    versions="0-1",
    flexible="0+",
    listeners=(
        "controller",
        "broker",
    ),
)
class AddRaftVoterRequest(Message):
    cluster_id: str | None = string("0+", nullable="0+")
    timeout_ms: int = int32("0+")
    voter_id: int = int32("0+")
    voter_directory_id: Uuid = uuid("0+")
    listeners: list[AddRaftVoterRequestListener] = array(AddRaftVoterRequestListener, "0+")
    ack_when_committed: bool = boolean("1+", default=True)


@message("response", key=80, versions="0-1", flexible="0+")
class AddRaftVoterResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", ignorable=True)


@message(
    "request",
    key=81,
    versions="0",
    flexible="0+",
    listeners=(
        "controller",
        "broker",
    ),
)
class RemoveRaftVoterRequest(Message):
    cluster_id: str | None = string("0+", nullable="0+")
    voter_id: int = int32("0+")
    voter_directory_id: Uuid = uuid("0+")


@message("response", key=81, versions="0", flexible="0+")
class RemoveRaftVoterResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", ignorable=True)


@struct
class UpdateRaftVoterRequestListener(Struct):
    name: str = string("0+")
    host: str = string("0+")
    port: int = uint16("0+")


@struct
class UpdateRaftVoterRequestKRaftVersionFeature(Struct):
    min_supported_version: int = int16("0+")
    max_supported_version: int = int16("0+")


@message("request", key=82, versions="0", flexible="0+", listeners=("controller",))
class UpdateRaftVoterRequest(Message):
    cluster_id: str | None = string("0+", nullable="0+")
    current_leader_epoch: int = int32("0+")
    voter_id: int = int32("0+")
    voter_directory_id: Uuid = uuid("0+")
    listeners: list[UpdateRaftVoterRequestListener] = array(UpdateRaftVoterRequestListener, "0+")
    k_raft_version_feature: UpdateRaftVoterRequestKRaftVersionFeature = nested(
        UpdateRaftVoterRequestKRaftVersionFeature, "0+"
    )


@struct
class CurrentLeader(Struct):
    leader_id: int = int32("0+", default=-1, entity="brokerId")
    leader_epoch: int = int32("0+", default=-1)
    host: str = string("0+")
    port: int = int32("0+")


@message("response", key=82, versions="0", flexible="0+")
class UpdateRaftVoterResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    current_leader: CurrentLeader = nested(CurrentLeader, "0+", tag=0)
