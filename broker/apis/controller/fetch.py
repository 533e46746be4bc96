"""Fetch (1) of `__cluster_metadata`, by brokers and other observers. KIP-595, KIP-630.

v12 diverging epochs and snapshots, v13 topic ids, v15 the replica's state, v17 its directory, v18 its high watermark.
Only committed records are sent. A reader that has them all waits until there are more, or until `max_wait_ms`; then the
log, its leader and its epoch are read again. Source: Kafka 4.4 `KafkaRaftClient.handleFetchRequest`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.apis.registry import CONTROLLER, api
from barnabas.broker.config.keys.controller import CONTROLLER_QUORUM_FETCH_MAX_BYTES
from barnabas.broker.event_loop.waiting import Future, until
from barnabas.coord.security.acls import Operation
from barnabas.coord.topic_names import CLUSTER_METADATA_TOPIC
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    FetchResponseEpochEndOffset,
    FetchResponseLeaderIdAndEpoch,
    FetchResponseNodeEndpoint,
    FetchResponsePartitionData,
    FetchResponseSnapshotId,
)
from barnabas.wire.types import ONE_UUID

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.broker.event_loop.waiting import Waiting
    from barnabas.broker.metadata.controller_quorum import ControllerQuorum
    from barnabas.wire.messages.fetch import FetchRequestFetchPartition

FIRST_VERSION: Final = 12
"""The first with diverging epochs, without which a follower of a quorum cannot truncate."""
FIRST_VERSION_WITH_TOPIC_IDS: Final = 13
FIRST_VERSION_WITH_REPLICA_STATE: Final = 15
FIRST_VERSION_WITH_ENDPOINTS: Final = 16


@api(FetchRequest, listener=CONTROLLER, requires=Operation.CLUSTER_ACTION)
def fetch(ctx: RequestContext, request: FetchRequest) -> FetchResponse | Waiting[FetchResponse]:
    """Read committed records of the metadata, now or when there are some; `min_bytes` is ignored, as in Kafka."""
    if ctx.usage is not None:
        ctx.usage.is_exempt = True
    quorum = ctx.broker.controller.quorum
    if ctx.api_version < FIRST_VERSION:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "The metadata log is read with version 12 or later.")
    if not quorum.is_cluster(request.cluster_id):
        return FetchResponse(error_code=int(ErrorCode.INCONSISTENT_CLUSTER_ID))
    requested = _metadata_partition(ctx, request)
    if requested is None or request.max_wait_ms < 0:
        return FetchResponse(error_code=int(ErrorCode.INVALID_REQUEST))
    if requested.fetch_offset < 0 or requested.last_fetched_epoch < 0 or requested.current_leader_epoch < 0:
        return _response(ctx, FetchResponsePartitionData(error_code=int(ErrorCode.INVALID_REQUEST)))
    data = _read(ctx, request, requested)
    if _is_final(data, requested) or request.max_wait_ms == 0 or ctx.broker.is_stopping:
        return _response(ctx, data)
    return _read_later(ctx, request, requested)


def _metadata_partition(ctx: RequestContext, request: FetchRequest) -> FetchRequestFetchPartition | None:
    """The only partition of a valid request."""
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        return None
    (topic,) = request.topics
    is_metadata = (
        topic.topic_id == ONE_UUID
        if ctx.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
        else topic.topic == CLUSTER_METADATA_TOPIC
    )
    (partition,) = topic.partitions
    return partition if is_metadata and partition.partition == 0 else None


def _read(
    ctx: RequestContext, request: FetchRequest, requested: FetchRequestFetchPartition
) -> FetchResponsePartitionData:
    """The answer for the reader from the current log."""
    quorum = ctx.broker.controller.quorum
    data = FetchResponsePartitionData(error_code=int(quorum.epoch_error(requested.current_leader_epoch)), records=b"")
    if data.error_code:
        data.high_watermark = -1
        return data
    data.high_watermark = quorum.high_watermark
    data.log_start_offset = quorum.log_start_offset
    position = quorum.position(requested.fetch_offset, requested.last_fetched_epoch)
    if position.snapshot is not None:
        end_offset, epoch = position.snapshot
        data.snapshot_id = FetchResponseSnapshotId(end_offset=end_offset, epoch=epoch)
    elif position.diverging is not None:
        end_offset, epoch = position.diverging
        data.diverging_epoch = FetchResponseEpochEndOffset(end_offset=end_offset, epoch=epoch)
    else:
        has_state = ctx.api_version >= FIRST_VERSION_WITH_REPLICA_STATE
        replica_id = request.replica_state.replica_id if has_state else request.replica_id
        quorum.fetched(replica_id, requested.replica_directory_id, requested.fetch_offset)
        ctx.broker.active_controller.local.metadata_fetched(replica_id, requested.fetch_offset)
        limit = min(max(request.max_bytes, 0), ctx.broker.config[CONTROLLER_QUORUM_FETCH_MAX_BYTES])
        batches = quorum.read(requested.fetch_offset, limit)
        if batches is not None and batches.slice is not None:
            data.records = batches.slice
    return data


def _is_final(data: FetchResponsePartitionData, requested: FetchRequestFetchPartition) -> bool:
    """Whether this answer is sent at once."""
    return bool(
        data.error_code
        or data.records
        or data.snapshot_id.epoch >= 0
        or data.diverging_epoch.epoch >= 0
        or data.high_watermark > requested.high_watermark
    )


async def _read_later(
    ctx: RequestContext, request: FetchRequest, requested: FetchRequestFetchPartition
) -> FetchResponse:
    """Read when something is committed, or at the deadline."""
    quorum = ctx.broker.controller.quorum
    future: Future[None] = Future()
    quorum.wait(future, future.complete)
    try:
        await until(ctx.broker.loop.timers, ctx.now + request.max_wait_ms / 1000, future, None)
    finally:
        quorum.forget(future)
    return _response(ctx, _read(ctx, request, requested))  # the epoch is checked again


def _response(ctx: RequestContext, data: FetchResponsePartitionData) -> FetchResponse:
    """The response with one partition, and its leader."""
    quorum = ctx.broker.controller.quorum
    data.current_leader = FetchResponseLeaderIdAndEpoch(leader_id=quorum.node_id, leader_epoch=quorum.epoch)
    topic = FetchableTopicResponse(topic=CLUSTER_METADATA_TOPIC, topic_id=ONE_UUID, partitions=[data])
    return FetchResponse(responses=[topic], node_endpoints=_endpoints(quorum, ctx))


def _endpoints(quorum: ControllerQuorum, ctx: RequestContext) -> list[FetchResponseNodeEndpoint]:
    endpoint = quorum.endpoint(ctx.listener)
    if endpoint is None or ctx.api_version < FIRST_VERSION_WITH_ENDPOINTS:
        return []
    return [FetchResponseNodeEndpoint(node_id=quorum.node_id, host=endpoint.host, port=endpoint.port)]
