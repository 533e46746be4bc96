"""Functions for ShareFetch and ShareAcknowledge: acknowledging records, closing sessions, naming leaders (KIP-932).

With NOT_LEADER_OR_FOLLOWER and FENCED_LEADER_EPOCH the client learns leader, epoch and address of a partition that this
broker does not lead, and need not ask for metadata first (as KIP-951 for Fetch).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from barnabas.broker.apis.access import check_group, refused_as_named
from barnabas.broker.apis.groups.group_requests import MAX_MEMBER_ID_LENGTH
from barnabas.broker.event_loop.waiting import Future
from barnabas.broker.sharing.share_sessions import SharedPartition, ShareSession
from barnabas.coord.security.acls import Operation
from barnabas.coord.share_partitions.acknowledgement import BatchFields, acknowledgements
from barnabas.coord.share_state.key import SharePartitionKey
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.context import Broker, RequestContext
    from barnabas.wire.messages.groups.share_groups import ShareAcknowledgeRequest, ShareFetchRequest

FIRST_VERSION_WITH_RENEWAL = 2
MOVED: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})

Acknowledged = tuple[SharedPartition, Sequence[BatchFields]]


class AcknowledgeError(NamedTuple):
    """Why acknowledgements of a partition are refused; the code is NONE if they are not."""

    code: ErrorCode
    message: str | None = None


Errors = dict[SharedPartition, AcknowledgeError]


def checked_ids(request: ShareFetchRequest | ShareAcknowledgeRequest) -> tuple[str, str]:
    """The group id and the member id of a request. KafkaError INVALID_REQUEST if one is missing."""
    if request.group_id is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if not request.member_id or len(request.member_id) > MAX_MEMBER_ID_LENGTH:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    return request.group_id, request.member_id


def check_access(ctx: RequestContext, group_id: str, partitions: Iterable[SharedPartition]) -> None:
    """KafkaError if the member may not read in the group; sets `ctx.refused_topics` to topics that it may not read."""
    if ctx.broker.authorizer is not None:
        check_group(ctx, Operation.READ, group_id)
        ctx.refused_topics = refused_as_named(ctx, Operation.READ, [shared.topic_id for shared in partitions])


def acknowledge(
    broker: Broker,
    session: ShareSession,
    acknowledged: Sequence[Acknowledged],
    *,
    may_renew: bool,
    refused: Collection[bytes | str] = (),
) -> Future[Errors]:
    """Apply a member's acknowledgements; the result is the error of each partition, once all are committed.

    Nothing is applied to the topics in `refused`, which the member may not read.
    """
    all_settled: Future[Errors] = Future()
    errors: Errors = {}
    open_count = 1  # for this call, so that the result has all partitions

    def settled(partition: SharedPartition, error: ErrorCode, message: str | None = None) -> None:
        nonlocal open_count
        errors[partition] = AcknowledgeError(error, message)
        open_count -= 1
        if not open_count:
            all_settled.complete(errors)

    for partition, batches in acknowledged:
        settle = partial(settled, partition)
        open_count += 1
        try:
            if partition.topic_id in refused:
                raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            applied = acknowledgements(batches, may_renew=may_renew)
            live = broker.share_partitions.find(SharePartitionKey(session.group_id, *partition))
            if live is None:
                raise _not_served(broker, partition)
            live.acknowledge(session.member_id, applied, settle)
        except KafkaError as error:
            settle(error.code, message=error.message)
    open_count -= 1
    if not open_count:
        all_settled.complete(errors)
    return all_settled


def _not_served(broker: Broker, partition: SharedPartition) -> KafkaError:
    """Why a share partition is not here: no such topic, another broker leads it, or no member has fetched from it."""
    try:
        broker.partitions.get_leader(partition.topic_id, partition.partition)
    except KafkaError as error:
        if error.code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_ID):
            return error
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


async def end_session(broker: Broker, session: ShareSession) -> None:
    """Close a session and release the member's records; wait until that is written."""
    broker.share_partitions.sessions.close(session)
    released: Future[None] = Future()
    broker.share_partitions.release(session, released.complete)
    await released


def lock_timeout_ms(broker: Broker, session: ShareSession) -> int:
    """The duration of the acquisition locks of a session's group."""
    return broker.group_configs(session.group_id).share_record_lock_duration_ms


def name_leaders(
    ctx: RequestContext,
    moved: Iterable[tuple[SharedPartition, Any]],
    node_endpoint: Callable[..., Any],
) -> list[Any]:
    """Set the current leader of the results in `moved`; returns the addresses of these leaders."""
    leaders = set()
    for (topic_id, index), result in moved:
        topic = ctx.broker.image.topic_by_id(topic_id)
        partition = None if topic is None else topic.partitions.get(index)
        if partition is not None and partition.leader >= 0:
            result.current_leader.leader_id = partition.leader
            result.current_leader.leader_epoch = partition.leader_epoch
            leaders.add(partition.leader)
    if not leaders:
        return []
    return [
        node_endpoint(node_id=node_id, host=host, port=port, rack=rack)
        for node_id, host, port, rack in ctx.broker.endpoints(ctx)
        if node_id in leaders
    ]
