"""DescribeQuorum (55), and changes of its voters (80-82), which a quorum of one does not make.

KIP-595, KIP-836, KIP-853. Source: Kafka 4.4 `KafkaRaftClient.handleDescribeQuorumRequest`, `AddVoterHandler`,
`RemoveVoterHandler`, `UpdateVoterHandler`. Brokers without a controller in their process forward 55, 80 and 81; 82 is a
request of other controllers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.apis.registry import CONTROLLER, api
from barnabas.coord.security.acls import Operation
from barnabas.coord.topic_names import CLUSTER_METADATA_TOPIC
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.raft import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    CurrentLeader,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumResponseListener,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseReplicaState,
    DescribeQuorumResponseTopicData,
    Node,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)
from barnabas.wire.types import ZERO_UUID

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext

FIRST_VERSION_WITH_DIRECTORIES: Final = 2
_UNKNOWN = "This server does not host this topic-partition."


@api(DescribeQuorumRequest, requires=Operation.DESCRIBE)
def describe_quorum(ctx: RequestContext, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    """Describe the only voter, and the observers that read its log."""
    named = [(topic.topic_name, data.partition_index) for topic in request.topics for data in topic.partitions]
    if named != [(CLUSTER_METADATA_TOPIC, 0)]:
        return DescribeQuorumResponse(error_message=None, topics=_unknown(request))
    quorum, now_ms = ctx.broker.controller.quorum, ctx.broker.loop.now_ms()
    node_id, directory_id = quorum.voter_key()
    has_directories = ctx.api_version >= FIRST_VERSION_WITH_DIRECTORIES
    voter = DescribeQuorumResponseReplicaState(
        replica_id=node_id,
        replica_directory_id=directory_id if has_directories else ZERO_UUID,
        log_end_offset=quorum.high_watermark,
        last_fetch_timestamp=now_ms,
        last_caught_up_timestamp=now_ms,
    )
    observers = [
        DescribeQuorumResponseReplicaState(
            replica_id=replica_id,
            replica_directory_id=directory if has_directories else ZERO_UUID,
            log_end_offset=observer.end_offset,
            last_fetch_timestamp=observer.fetched_ms,
            last_caught_up_timestamp=observer.caught_up_ms,
        )
        for replica_id, directory, observer in quorum.observers()
    ]
    partition = DescribeQuorumResponsePartitionData(
        error_message=None,
        leader_id=node_id,
        leader_epoch=quorum.epoch,
        high_watermark=quorum.high_watermark,
        current_voters=[voter],
        observers=observers,
    )
    listeners = [
        DescribeQuorumResponseListener(name=endpoint.name, host=endpoint.host, port=endpoint.port)
        for endpoint in quorum.endpoints
    ]
    return DescribeQuorumResponse(
        error_message=None,
        topics=[DescribeQuorumResponseTopicData(topic_name=CLUSTER_METADATA_TOPIC, partitions=[partition])],
        nodes=[Node(node_id=node_id, listeners=listeners)] if has_directories else [],
    )


def _unknown(request: DescribeQuorumRequest) -> list[DescribeQuorumResponseTopicData]:
    """The results of partitions other than the metadata partition."""
    return [
        DescribeQuorumResponseTopicData(
            topic_name=topic.topic_name,
            partitions=[
                DescribeQuorumResponsePartitionData(
                    partition_index=data.partition_index,
                    error_code=int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
                    error_message=_UNKNOWN,
                )
                for data in topic.partitions
            ],
        )
        for topic in request.topics
    ]


def _check_cluster(ctx: RequestContext, cluster_id: str | None) -> None:
    if not ctx.broker.controller.quorum.is_cluster(cluster_id):
        raise KafkaError(ErrorCode.INCONSISTENT_CLUSTER_ID)


def _check_voters_can_change(ctx: RequestContext) -> None:
    """KafkaError(UNSUPPORTED_VERSION) where the voters are configured, as in Kafka."""
    if ctx.broker.image.quorum.voters is None:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            "Cluster doesn't support adding voter because the kraft.version feature is 0"
            if ctx.api_key == AddRaftVoterRequest.api_key
            else "Cluster doesn't support removing voter because the kraft.version feature is 0",
        )


@api(AddRaftVoterRequest, requires=Operation.ALTER)
def add_raft_voter(ctx: RequestContext, request: AddRaftVoterRequest) -> AddRaftVoterResponse:
    """Refuse another voter; the existing voter is a duplicate."""
    _check_cluster(ctx, request.cluster_id)
    _check_voters_can_change(ctx)
    node_id, _ = ctx.broker.controller.quorum.voter_key()
    if request.voter_id == node_id:
        raise KafkaError(
            ErrorCode.DUPLICATE_VOTER, f"The voter id for {node_id} is already part of the set of voters [{node_id}]."
        )
    raise KafkaError(
        ErrorCode.INVALID_REQUEST,
        "The controller of Barnabas is a quorum of one: use Apache Kafka's controllers for more voters.",
    )


@api(RemoveRaftVoterRequest, requires=Operation.ALTER)
def remove_raft_voter(ctx: RequestContext, request: RemoveRaftVoterRequest) -> RemoveRaftVoterResponse:
    """Refuse: the last voter cannot be removed, and there is no other."""
    _check_cluster(ctx, request.cluster_id)
    _check_voters_can_change(ctx)
    raise KafkaError(
        ErrorCode.VOTER_NOT_FOUND,
        f"Cannot remove voter {request.voter_id} from the set of voters [{ctx.broker.node_id}]",
    )


@api(UpdateRaftVoterRequest, listener=CONTROLLER, requires=Operation.CLUSTER_ACTION)
def update_raft_voter(ctx: RequestContext, request: UpdateRaftVoterRequest) -> UpdateRaftVoterResponse:
    """Answer as to a voter that this quorum does not have: its own address is updated at its start."""
    quorum = ctx.broker.controller.quorum
    if not quorum.is_cluster(request.cluster_id):
        return UpdateRaftVoterResponse(error_code=int(ErrorCode.INCONSISTENT_CLUSTER_ID))
    error = quorum.epoch_error(request.current_leader_epoch)
    if error == ErrorCode.NONE:
        error = ErrorCode.VOTER_NOT_FOUND
    endpoint = quorum.endpoint(ctx.listener)
    leader = CurrentLeader(leader_id=quorum.node_id, leader_epoch=quorum.epoch)
    if endpoint is not None:
        leader.host, leader.port = endpoint.host, endpoint.port
    return UpdateRaftVoterResponse(error_code=int(error), current_leader=leader)
