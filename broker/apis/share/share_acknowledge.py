"""ShareAcknowledge (79): acknowledgements of the records of a share group (KIP-932). v2 renewal of locks (KIP-1222).

Answered once the acknowledgements are committed; the last request of a session then also releases its records. The
leaders that are named to the client, and the lock duration of the group, are looked up after that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.apis.groups.group_protocols import needs_share_groups
from barnabas.broker.apis.registry import api
from barnabas.broker.apis.share.acknowledgements import (
    FIRST_VERSION_WITH_RENEWAL,
    MOVED,
    acknowledge,
    check_access,
    checked_ids,
    end_session,
    lock_timeout_ms,
    name_leaders,
)
from barnabas.broker.sharing.share_sessions import FINAL_EPOCH, INITIAL_EPOCH, SharedPartition
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.groups.share_groups import (
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeResponseNodeEndpoint,
    ShareAcknowledgeResponsePartitionData,
    ShareAcknowledgeTopicResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext


@api(ShareAcknowledgeRequest, needs=needs_share_groups, send_before_close=True)
async def share_acknowledge(ctx: RequestContext, request: ShareAcknowledgeRequest) -> ShareAcknowledgeResponse:
    """Apply acknowledgements; answered once they are committed."""
    group_id, member_id = checked_ids(request)
    check_access(ctx, group_id, ())
    if request.share_session_epoch == INITIAL_EPOCH:
        raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
    broker = ctx.broker
    session = broker.share_partitions.sessions.resume(group_id, member_id, request.share_session_epoch)
    acknowledgements = [
        (SharedPartition(topic.topic_id, partition.partition_index), partition.acknowledgement_batches)
        for topic in request.topics
        for partition in topic.partitions
        if partition.acknowledgement_batches  # as Kafka, which does not answer for the others
    ]
    check_access(ctx, group_id, (partition for partition, _ in acknowledgements))
    may_renew = ctx.api_version >= FIRST_VERSION_WITH_RENEWAL and request.is_renew_ack
    errors = await acknowledge(broker, session, acknowledgements, may_renew=may_renew, refused=ctx.refused_topics)
    if request.share_session_epoch == FINAL_EPOCH:
        await end_session(broker, session)
    topics: dict[bytes, ShareAcknowledgeTopicResponse] = {}
    moved = []
    for shared, error in errors.items():
        topic_id, index = shared
        topic = topics.setdefault(topic_id, ShareAcknowledgeTopicResponse(topic_id=topic_id, partitions=[]))
        data = ShareAcknowledgeResponsePartitionData(
            partition_index=index, error_code=int(error.code), error_message=error.message
        )
        topic.partitions.append(data)
        if error.code in MOVED:
            moved.append((shared, data))
    return ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=lock_timeout_ms(broker, session),
        responses=list(topics.values()),
        node_endpoints=name_leaders(ctx, moved, ShareAcknowledgeResponseNodeEndpoint),
    )
