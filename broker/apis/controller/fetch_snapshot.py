"""FetchSnapshot (59): a part of a snapshot of the metadata, read by a thread. KIP-630.

Source: Kafka 4.4 `KafkaRaftClient.handleFetchSnapshotRequest`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.apis.registry import CONTROLLER, api
from barnabas.broker.config.keys.controller import CONTROLLER_QUORUM_FETCH_SNAPSHOT_MAX_BYTES
from barnabas.broker.event_loop.waiting import in_thread
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

FIRST_VERSION_WITH_ENDPOINTS: Final = 1


@api(FetchSnapshotRequest, listener=CONTROLLER, requires=Operation.CLUSTER_ACTION)
async def fetch_snapshot(ctx: RequestContext, request: FetchSnapshotRequest) -> FetchSnapshotResponse:
    """Return the bytes of a snapshot from a position on."""
    quorum = ctx.broker.controller.quorum
    if not quorum.is_cluster(request.cluster_id):
        return FetchSnapshotResponse(error_code=int(ErrorCode.INCONSISTENT_CLUSTER_ID))
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        return FetchSnapshotResponse(error_code=int(ErrorCode.INVALID_REQUEST))
    (topic,) = request.topics
    (requested,) = topic.partitions
    if topic.name != CLUSTER_METADATA_TOPIC or requested.partition != 0:
        unknown = FetchSnapshotResponsePartitionSnapshot(
            index=requested.partition, error_code=int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        )
        return _response(ctx, topic.name, unknown, with_leader=False)
    error = quorum.epoch_error(requested.current_leader_epoch)
    if error:
        return _response(ctx, topic.name, FetchSnapshotResponsePartitionSnapshot(error_code=int(error)))
    snapshot = await _read(ctx, request.max_bytes, requested)
    return _response(ctx, topic.name, snapshot)  # with the epoch as it is now


async def _read(
    ctx: RequestContext, max_bytes: int, requested: FetchSnapshotRequestPartitionSnapshot
) -> FetchSnapshotResponsePartitionSnapshot:
    """Read a part of a snapshot in a thread, or return the error."""
    quorum = ctx.broker.controller.quorum
    end_offset, epoch = requested.snapshot_id.end_offset, requested.snapshot_id.epoch
    if not quorum.has_snapshot((end_offset, epoch)):
        return FetchSnapshotResponsePartitionSnapshot(error_code=int(ErrorCode.SNAPSHOT_NOT_FOUND))
    limit = min(max(max_bytes, 0), ctx.broker.config[CONTROLLER_QUORUM_FETCH_SNAPSHOT_MAX_BYTES])
    snapshot = FetchSnapshotResponsePartitionSnapshot(
        snapshot_id=FetchSnapshotResponseSnapshotId(end_offset=end_offset, epoch=epoch), position=requested.position
    )
    try:
        snapshot.size, snapshot.unaligned_records = await in_thread(
            ctx.broker.runner, lambda: quorum.read_snapshot((end_offset, epoch), requested.position, limit)
        )
    except FileNotFoundError:  # a newer one has replaced it meanwhile
        return FetchSnapshotResponsePartitionSnapshot(error_code=int(ErrorCode.SNAPSHOT_NOT_FOUND))
    if not 0 <= requested.position < snapshot.size:
        return FetchSnapshotResponsePartitionSnapshot(error_code=int(ErrorCode.POSITION_OUT_OF_RANGE))
    return snapshot


def _response(
    ctx: RequestContext, topic: str, snapshot: FetchSnapshotResponsePartitionSnapshot, *, with_leader: bool = True
) -> FetchSnapshotResponse:
    quorum = ctx.broker.controller.quorum
    endpoint = quorum.endpoint(ctx.listener)
    if with_leader:
        snapshot.current_leader = FetchSnapshotResponseLeaderIdAndEpoch(
            leader_id=quorum.node_id, leader_epoch=quorum.epoch
        )
    return FetchSnapshotResponse(
        topics=[FetchSnapshotResponseTopicSnapshot(name=topic, partitions=[snapshot])],
        node_endpoints=[]
        if endpoint is None or ctx.api_version < FIRST_VERSION_WITH_ENDPOINTS
        else [FetchSnapshotResponseNodeEndpoint(node_id=quorum.node_id, host=endpoint.host, port=endpoint.port)],
    )
