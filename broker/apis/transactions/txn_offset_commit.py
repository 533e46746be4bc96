"""TxnOffsetCommit (28): offsets of a consumer group that take effect when the producer's transaction commits.

v3 group members (KIP-447); v4 TRANSACTION_ABORTABLE; v5 the broker adds the group's partition to the transaction
(KIP-890); v6 topic ids. Rules T7, T11.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.apis.access import check_group, check_transactional_id
from barnabas.broker.apis.groups.group_requests import client_of
from barnabas.broker.apis.groups.offset_commit import joined, refuse_missing
from barnabas.broker.apis.parts import Parts
from barnabas.broker.apis.registry import api
from barnabas.broker.apis.transactions.verification import (
    add_or_verify,
    client_error,
    has_open_transaction,
)
from barnabas.broker.config.keys.transactions import TRANSACTION_PARTITION_VERIFICATION_ENABLE
from barnabas.broker.event_loop.waiting import Future
from barnabas.coord.groups.offsets import commit_error
from barnabas.coord.security.acls import Operation
from barnabas.coord.topic_names import GROUP_METADATA_TOPIC
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.groups.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from barnabas.wire.messages.transactions import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.coord.transactions.transaction import TopicPartition

FIRST_OFFSETS_THAT_ADD = 5
FIRST_OFFSETS_WITH_TOPIC_IDS = 6
FIRST_OFFSETS_WITH_ABORTABLE = 4


def _offsets_failed(request: TxnOffsetCommitRequest, error: KafkaError) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=partition.partition_index, error_code=int(error.code)
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


@api(TxnOffsetCommitRequest, on_error=_offsets_failed, parts=Parts("topics.partitions"), send_before_close=True)
async def txn_offset_commit(ctx: RequestContext, request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
    """Commit offsets that take effect when the transaction commits."""
    commit = _as_commit(request)
    refused = _refuse(ctx, request, commit)
    if not commit.topics and refused is not None:
        return _as_response(refused)
    if not request.group_id:  # only OffsetCommit may have none
        return _as_response(joined(refused, commit_error(commit, ErrorCode.INVALID_GROUP_ID)))
    producer = (request.producer_id, request.producer_epoch)
    deleted = None
    if partitions := _unverified(ctx, request, producer):
        adds = ctx.api_version >= FIRST_OFFSETS_THAT_ADD
        errors = await add_or_verify(ctx.broker, request.transactional_id, producer, partitions, adds=adds)
        for code in errors.values():
            # The error is about the transaction's coordinator, to which the client has sent nothing.
            retriable, knows = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ctx.api_version >= FIRST_OFFSETS_WITH_ABORTABLE
            raise KafkaError(client_error(code, retriable, adds=adds, knows_abortable=knows))
        deleted = _refuse(ctx, request, commit)  # again: topics may have been deleted, ACLs may have changed
        if not commit.topics and deleted is not None:
            return _as_response(joined(refused, deleted))
    future: Future[OffsetCommitResponse] = Future()
    client = client_of(ctx)
    ctx.broker.group_coordinators.handle(
        request.group_id, lambda groups, at: groups.offsets.commit(commit, future.complete, client, at, producer)
    )
    return _as_response(joined(refused, joined(deleted, await future)))


def _refuse(
    ctx: RequestContext, request: TxnOffsetCommitRequest, commit: OffsetCommitRequest
) -> OffsetCommitResponse | None:
    """Refuse partitions that may not be committed, as `refuse_missing`. KafkaError for the id or the group."""
    check_transactional_id(ctx, Operation.WRITE, request.transactional_id)
    check_group(ctx, Operation.READ, request.group_id)
    return refuse_missing(ctx, commit, by_id=ctx.api_version >= FIRST_OFFSETS_WITH_TOPIC_IDS)


def _unverified(
    ctx: RequestContext, request: TxnOffsetCommitRequest, producer: tuple[int, int]
) -> list[TopicPartition]:
    """The group's partition, unless it is known to be in the transaction, or need not be checked."""
    broker = ctx.broker
    index = broker.group_coordinators.partition_of(request.group_id)
    try:
        partition = broker.partitions.get_leader(GROUP_METADATA_TOPIC, index)
    except KafkaError:
        raise KafkaError(ErrorCode.NOT_COORDINATOR) from None
    adds = ctx.api_version >= FIRST_OFFSETS_THAT_ADD
    must_check = adds or broker.config[TRANSACTION_PARTITION_VERIFICATION_ENABLE]
    return [(GROUP_METADATA_TOPIC, index)] if must_check and not has_open_transaction(partition, *producer) else []


def _as_commit(request: TxnOffsetCommitRequest) -> OffsetCommitRequest:
    """The request as an OffsetCommit."""
    return OffsetCommitRequest(
        group_id=request.group_id,
        generation_id_or_member_epoch=request.generation_id_or_member_epoch,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        topics=[
            OffsetCommitRequestTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=partition.partition_index,
                        committed_offset=partition.committed_offset,
                        committed_leader_epoch=partition.committed_leader_epoch,
                        committed_metadata=partition.committed_metadata,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


def _as_response(decided: OffsetCommitResponse) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=partition.partition_index, error_code=partition.error_code
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in decided.topics
        ]
    )
