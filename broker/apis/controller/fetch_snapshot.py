"""FetchSnapshot (59): a part of a snapshot of the metadata, read by a thread. KIP-630.

Source: Kafka 4.4 `KafkaRaftClient.handleFetchSnapshotRequest`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.apis.registry import CONTROLLER, api
from barnabas.broker.config.keys.controller import CONTROLLER_QUORUM_FETCH_SNAPSHOT_MAX_BYTES
from barnabas.broker.net.delayed_response import DelayedResponse
from barnabas.coord.security.acls import Operation
from barnabas.coord.topic_names import CLUSTER_METADATA_TOPIC
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.raft import (
    FetchSnapshotRequest,
    FetchSnapshotRequestPartitionSnapshot,
    FetchSnapshotResponse,
    FetchSnapshotResponseLeaderIdAndEpoch,
    FetchSnapshotResponseNodeEndpoint,
    FetchSnapshotResponsePartitionSnapshot,
    FetchSnapshotResponseSnapshotId,
    FetchSnapshotResponseTopicSnapshot,
)

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.broker.steps import Steps

FIRST_VERSION_WITH_ENDPOINTS: Final = 1


@api(FetchSnapshotRequest, listener=CONTROLLER, requires=Operation.CLUSTER_ACTION)
def fetch_snapshot(ctx: RequestContext, request: FetchSnapshotRequest) -> FetchSnapshotResponse | DelayedResponse:
    """Return the bytes of a snapshot from a position on."""
    quorum = ctx.broker.controller.quorum
    if not quorum.is_cluster(request.cluster_id):
        return FetchSnapshotResponse(error_code=int(ErrorCode.INCONSISTENT_CLUSTER_ID))
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        return FetchSnapshotResponse(error_code=int(ErrorCode.INVALID_REQUEST))
    (topic,) = request.topics
    (wanted,) = topic.partitions
    if topic.name != CLUSTER_METADATA_TOPIC or wanted.partition != 0:
        found = FetchSnapshotResponsePartitionSnapshot(
            index=wanted.partition, error_code=int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        )
        return _response(ctx, topic.name, found, with_leader=False)
    error = quorum.epoch_error(wanted.current_leader_epoch)
    snapshot_id = (wanted.snapshot_id.end_offset, wanted.snapshot_id.epoch)
    if error == ErrorCode.NONE and not quorum.has_snapshot(snapshot_id):
        error = ErrorCode.SNAPSHOT_NOT_FOUND
    if error != ErrorCode.NONE:
        return _response(ctx, topic.name, FetchSnapshotResponsePartitionSnapshot(error_code=int(error)))
    delayed = DelayedResponse()
    limit = min(max(request.max_bytes, 0), ctx.broker.config[CONTROLLER_QUORUM_FETCH_SNAPSHOT_MAX_BYTES])
    ctx.broker.runner.start(_steps(ctx, wanted, snapshot_id, limit), delayed.complete, delayed.complete)
    return delayed


def _steps(
    ctx: RequestContext, wanted: FetchSnapshotRequestPartitionSnapshot, snapshot_id: tuple[int, int], limit: int
) -> Steps[FetchSnapshotResponse]:
    quorum = ctx.broker.controller.quorum
    found = FetchSnapshotResponsePartitionSnapshot(
        snapshot_id=FetchSnapshotResponseSnapshotId(end_offset=snapshot_id[0], epoch=snapshot_id[1]),
        position=wanted.position,
        unaligned_records=b"",
    )

    def read() -> None:
        found.size, found.unaligned_records = quorum.read_snapshot(snapshot_id, wanted.position, limit)

    try:
        yield read
    except FileNotFoundError:  # a newer one has replaced it
        found = FetchSnapshotResponsePartitionSnapshot(error_code=int(ErrorCode.SNAPSHOT_NOT_FOUND))
    else:
        if not 0 <= wanted.position < found.size:
            found = FetchSnapshotResponsePartitionSnapshot(error_code=int(ErrorCode.POSITION_OUT_OF_RANGE))
    return _response(ctx, CLUSTER_METADATA_TOPIC, found)


def _response(
    ctx: RequestContext, topic: str, found: FetchSnapshotResponsePartitionSnapshot, *, with_leader: bool = True
) -> FetchSnapshotResponse:
    quorum = ctx.broker.controller.quorum
    endpoint = quorum.endpoint(ctx.listener)
    if with_leader:
        found.current_leader = FetchSnapshotResponseLeaderIdAndEpoch(
            leader_id=quorum.node_id, leader_epoch=quorum.epoch
        )
    return FetchSnapshotResponse(
        topics=[FetchSnapshotResponseTopicSnapshot(name=topic, partitions=[found])],
        node_endpoints=[]
        if endpoint is None or ctx.api_version < FIRST_VERSION_WITH_ENDPOINTS
        else [FetchSnapshotResponseNodeEndpoint(node_id=quorum.node_id, host=endpoint.host, port=endpoint.port)],
    )
