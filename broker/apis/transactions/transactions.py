"""Transactions of producers: InitProducerId (22), AddPartitionsToTxn (24), AddOffsetsToTxn (25), EndTxn (26).

InitProducerId: v3 producer id and epoch of the client (KIP-360), v4 PRODUCER_FENCED (KIP-588), v6 two-phase commit
(KIP-939). AddPartitionsToTxn: up to v3 from clients, from v4 on from brokers, for several transactions, to add or only
to verify (KIP-890). EndTxn: v5 returns the next epoch (KIP-890). The events are handled in `coord.transactions`; a
coordinator replies when the records of an event are committed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.apis.access import check_group, check_transactional_id, refused_topics
from barnabas.broker.apis.parts import Parts
from barnabas.broker.apis.registry import api, check_cluster
from barnabas.broker.event_loop.waiting import Future
from barnabas.coord.security.acls import Operation, ResourceType
from barnabas.coord.topic_names import GROUP_METADATA_TOPIC
from barnabas.coord.transactions.responses import init_error, legacy_fence, same_error
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.produce import InitProducerIdRequest, InitProducerIdResponse
from barnabas.wire.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTransaction,
    EndTxnRequest,
    EndTxnResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.coord.machine import Moment, Result
    from barnabas.coord.transactions.coordinator import TransactionCoordinator

FIRST_ADD_OF_BROKERS = 4
_NO_PRODUCER = -1
"""The id and the epoch of a request without them."""
FIRST_ADD_WITH_PRODUCER_FENCED = 2
CLIENTS_VERSION, BROKERS_VERSION = 0, 2
"""`transaction.version` if a client adds partitions itself, and if a broker adds them for it (KIP-890)."""


@api(InitProducerIdRequest, on_error=lambda _, error: init_error(error.code), send_before_close=True)
async def init_producer_id(ctx: RequestContext, request: InitProducerIdRequest) -> InitProducerIdResponse:
    """Return a new producer id, or for a transactional id its producer id with the next epoch."""
    _check_init(ctx, request)
    producer_ids, coordinators = ctx.broker.producer_ids, ctx.broker.transaction_coordinators
    available: Future[None] = Future()
    producer_ids.when_available(available.complete)
    must_wait = not available.is_done
    await available
    if must_wait:
        _check_init(ctx, request)  # again: ACLs and the number of transactional ids may have changed
    transactional_id = request.transactional_id
    if transactional_id is None:
        return InitProducerIdResponse(producer_id=producer_ids.next(), producer_epoch=0)
    future: Future[InitProducerIdResponse] = Future()
    version = ctx.api_version
    coordinators.handle(
        transactional_id, lambda coordinator, at: coordinator.init_producer_id(request, future.complete, version, at)
    )
    return await future


def _check_init(ctx: RequestContext, request: InitProducerIdRequest) -> None:
    """KafkaError if the client may not have a producer id, or there is no room for its transactional id."""
    transactional_id = request.transactional_id
    if (request.producer_id == _NO_PRODUCER) != (request.producer_epoch == _NO_PRODUCER):
        raise KafkaError(ErrorCode.INVALID_REQUEST)  # both or none (KIP-360)
    if transactional_id is None:
        if not _may_write_idempotently(ctx):
            raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        return
    check_transactional_id(ctx, Operation.WRITE, transactional_id)
    if request.enable2_pc:
        check_transactional_id(ctx, Operation.TWO_PHASE_COMMIT, transactional_id)
    if transactional_id == "":
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    ctx.broker.transaction_coordinators.check_room(transactional_id)


def _may_write_idempotently(ctx: RequestContext) -> bool:
    """Whether the client may write to any topic, or has the operation IDEMPOTENT_WRITE (KIP-679)."""
    authorizer = ctx.broker.authorizer
    if authorizer is None or ctx.is_allowed_on_cluster(Operation.IDEMPOTENT_WRITE, logs_denied=False):
        return True
    if authorizer.is_any_allowed(ctx, Operation.WRITE, ResourceType.TOPIC):
        return True
    return ctx.is_allowed_on_cluster(Operation.IDEMPOTENT_WRITE)  # for the audit log, which Kafka leaves out here


# ---- AddPartitionsToTxn


def _none_added(request: AddPartitionsToTxnRequest, error: KafkaError) -> AddPartitionsToTxnResponse:
    """The error of the whole response (v4), and of each partition, up to v3."""
    partitions = [(topic.name, index) for topic in request.v3_and_below_topics for index in topic.partitions]
    failed = same_error(request.v3_and_below_transactional_id, partitions, error.code)
    return AddPartitionsToTxnResponse(error_code=int(error.code), results_by_topic_v3_and_below=failed.topic_results)


@api(
    AddPartitionsToTxnRequest,
    on_error=_none_added,
    parts=Parts("transactions", "results_by_transaction"),
    send_before_close=True,
)
async def add_partitions_to_txn(ctx: RequestContext, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
    """Add partitions to transactions, or verify that they were added."""
    version = ctx.api_version
    if version >= FIRST_ADD_OF_BROKERS:
        check_cluster(ctx, Operation.CLUSTER_ACTION)
        results = [_add(ctx, transaction, BROKERS_VERSION) for transaction in request.transactions]
        return AddPartitionsToTxnResponse(results_by_transaction=[await result for result in results])
    check_transactional_id(ctx, Operation.WRITE, request.v3_and_below_transactional_id)
    names = [topic.name for topic in request.v3_and_below_topics]
    ctx.refused_topics = refused_topics(ctx, Operation.WRITE, names)
    only = AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )
    topics = (await _add(ctx, only, CLIENTS_VERSION)).topic_results
    for topic in topics:
        for partition in topic.results_by_partition:
            error = ErrorCode(partition.partition_error_code)
            partition.partition_error_code = int(legacy_fence(error, version, since=FIRST_ADD_WITH_PRODUCER_FENCED))
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=topics)


def _add(
    ctx: RequestContext, requested: AddPartitionsToTxnTransaction, client_version: int
) -> Future[AddPartitionsToTxnResult]:
    """Give one transaction to its coordinator, unless a partition does not exist or may not be written to."""
    future: Future[AddPartitionsToTxnResult] = Future()
    transactional_id = requested.transactional_id
    partitions = [(topic.name, index) for topic in requested.topics for index in topic.partitions]
    errors = {partition: error for partition in partitions if (error := _partition_error(ctx, *partition))}
    if errors:
        result = same_error(transactional_id, partitions, ErrorCode.OPERATION_NOT_ATTEMPTED)
        for topic in result.topic_results:
            for partition in topic.results_by_partition:
                error = errors.get((topic.name, partition.partition_index))
                if error is not None:
                    partition.partition_error_code = int(error)
        future.complete(result)
        return future
    producer = (requested.producer_id, requested.producer_epoch)

    def event(coordinator: TransactionCoordinator, at: Moment) -> Result:
        if requested.verify_only:
            return coordinator.verify_partitions(transactional_id, *producer, partitions, future.complete)
        return coordinator.add_partitions(transactional_id, *producer, partitions, client_version, future.complete, at)

    try:
        ctx.broker.transaction_coordinators.handle(transactional_id, event)
    except KafkaError as error:
        future.complete(same_error(transactional_id, partitions, error.code))
    return future


def _partition_error(ctx: RequestContext, name: str, index: int) -> ErrorCode | None:
    """Why a partition cannot be added to a transaction."""
    if name in ctx.refused_topics:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    topic = ctx.broker.image.topic(name)
    if topic is None or index not in topic.partitions:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return None


@api(AddOffsetsToTxnRequest, send_before_close=True)
async def add_offsets_to_txn(ctx: RequestContext, request: AddOffsetsToTxnRequest) -> AddOffsetsToTxnResponse:
    """Add the `__consumer_offsets` partition of a group to a transaction."""
    _check_offsets(ctx, request)
    groups = ctx.broker.group_coordinators
    exists: Future[None] = Future()
    groups.ensure_topic(exists.complete)
    must_wait = not exists.is_done
    await exists
    if must_wait:
        _check_offsets(ctx, request)  # again: ACLs may have changed
    offsets_partition = (GROUP_METADATA_TOPIC, groups.partition_of(request.group_id))
    transactional_id, producer = request.transactional_id, (request.producer_id, request.producer_epoch)
    future: Future[AddPartitionsToTxnResult] = Future()
    ctx.broker.transaction_coordinators.handle(
        transactional_id,
        lambda coordinator, at: coordinator.add_partitions(
            transactional_id, *producer, [offsets_partition], CLIENTS_VERSION, future.complete, at
        ),
    )
    result = await future
    error = ErrorCode(result.topic_results[0].results_by_partition[0].partition_error_code)
    error = legacy_fence(error, ctx.api_version, since=FIRST_ADD_WITH_PRODUCER_FENCED)
    return AddOffsetsToTxnResponse(error_code=int(error))


def _check_offsets(ctx: RequestContext, request: AddOffsetsToTxnRequest) -> None:
    check_transactional_id(ctx, Operation.WRITE, request.transactional_id)
    check_group(ctx, Operation.READ, request.group_id)


@api(EndTxnRequest, send_before_close=True)
async def end_txn(ctx: RequestContext, request: EndTxnRequest) -> EndTxnResponse:
    """Commit or abort a transaction; answered when the outcome is committed, before markers are written."""
    check_transactional_id(ctx, Operation.WRITE, request.transactional_id)
    future: Future[EndTxnResponse] = Future()
    version = ctx.api_version
    ctx.broker.transaction_coordinators.handle(
        request.transactional_id, lambda coordinator, at: coordinator.end(request, future.complete, version, at)
    )
    return await future
