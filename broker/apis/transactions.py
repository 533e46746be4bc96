"""Transactions of producers: InitProducerId (22), AddPartitionsToTxn (24), AddOffsetsToTxn (25), EndTxn (26).

InitProducerId: v3 producer id and epoch of the client (KIP-360), v4 PRODUCER_FENCED (KIP-588), v6 two-phase commit
(KIP-939). AddPartitionsToTxn: up to v3 from clients, from v4 on from brokers, for several transactions, to add or only
to verify (KIP-890). EndTxn: v5 returns the next epoch (KIP-890). The events are handled in `coord.transactions`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.apis.access import check_group, check_transactional_id, refused_topics
from barnabas.broker.apis.parts import Parts
from barnabas.broker.apis.registry import api, check_cluster
from barnabas.broker.net.delayed_response import DelayedResponse
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
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from barnabas.broker.context import RequestContext
    from barnabas.coord.machine import Moment, Result
    from barnabas.coord.transactions.coordinator import TransactionCoordinator

FIRST_ADD_OF_BROKERS = 4
FIRST_ADD_WITH_PRODUCER_FENCED = 2
CLIENTS_VERSION, BROKERS_VERSION = 0, 2
"""`transaction.version` if a client adds partitions itself, and if a broker adds them for it (KIP-890)."""


@api(InitProducerIdRequest, on_error=lambda _, error: init_error(error.code))
def init_producer_id(ctx: RequestContext, request: InitProducerIdRequest) -> DelayedResponse:
    """Return a new producer id, or for a transactional id its producer id with the next epoch."""
    transactional_id = request.transactional_id
    if transactional_id is not None:
        check_transactional_id(ctx, Operation.WRITE, transactional_id)
        if request.enable2_pc:
            check_transactional_id(ctx, Operation.TWO_PHASE_COMMIT, transactional_id)
    elif not _may_write_idempotently(ctx):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if transactional_id == "":
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if transactional_id is not None:
        ctx.broker.transaction_coordinators.check_room(transactional_id)
    delayed = DelayedResponse(send_before_close=True)
    version = ctx.api_version
    producer_ids, coordinators = ctx.broker.producer_ids, ctx.broker.transaction_coordinators

    def with_id(missing: KafkaError | None) -> None:
        if missing is not None:
            raise missing
        if transactional_id is None:
            delayed.resolve(InitProducerIdResponse(producer_id=producer_ids.next(), producer_epoch=0))
            return
        coordinators.handle(
            transactional_id,
            lambda coordinator, at: coordinator.init_producer_id(request, delayed.resolve, version, at),
        )

    producer_ids.when_available(delayed.guard(with_id))
    return delayed


def _may_write_idempotently(ctx: RequestContext) -> bool:
    """Whether the client may write to some topic, or was allowed idempotence as such (KIP-679)."""
    authorizer = ctx.broker.authorizer
    if authorizer is None or ctx.is_allowed_on_cluster(Operation.IDEMPOTENT_WRITE, logs_denied=False):
        return True
    if authorizer.is_any_allowed(ctx, Operation.WRITE, ResourceType.TOPIC):
        return True
    return ctx.is_allowed_on_cluster(Operation.IDEMPOTENT_WRITE)  # for the audit log, which Kafka leaves out here


# ---- AddPartitionsToTxn


def _none_added(request: AddPartitionsToTxnRequest, error: KafkaError) -> AddPartitionsToTxnResponse:
    """The error of the whole response (v4), and of each partition, up to v3."""
    wanted = [(topic.name, partition) for topic in request.v3_and_below_topics for partition in topic.partitions]
    failed = same_error(request.v3_and_below_transactional_id, wanted, error.code)
    return AddPartitionsToTxnResponse(error_code=int(error.code), results_by_topic_v3_and_below=failed.topic_results)


@api(AddPartitionsToTxnRequest, on_error=_none_added, parts=Parts("transactions", "results_by_transaction"))
def add_partitions_to_txn(ctx: RequestContext, request: AddPartitionsToTxnRequest) -> DelayedResponse:
    """Add partitions to transactions, or verify that they were added."""
    if ctx.api_version >= FIRST_ADD_OF_BROKERS:
        check_cluster(ctx, Operation.CLUSTER_ACTION)
        return _add_for_brokers(ctx, request)
    check_transactional_id(ctx, Operation.WRITE, request.v3_and_below_transactional_id)
    names = [topic.name for topic in request.v3_and_below_topics]
    ctx.refused_topics = refused_topics(ctx, Operation.WRITE, names)
    delayed = DelayedResponse(send_before_close=True)
    version = ctx.api_version

    def answer(result: AddPartitionsToTxnResult) -> None:
        for topic in result.topic_results:
            for partition in topic.results_by_partition:
                error = ErrorCode(partition.partition_error_code)
                partition.partition_error_code = int(legacy_fence(error, version, since=FIRST_ADD_WITH_PRODUCER_FENCED))
        delayed.resolve(AddPartitionsToTxnResponse(results_by_topic_v3_and_below=result.topic_results))

    only = AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )
    _add(ctx, only, CLIENTS_VERSION, delayed.guard(answer))
    return delayed


def _add_for_brokers(ctx: RequestContext, request: AddPartitionsToTxnRequest) -> DelayedResponse:
    """Handle several transactions, each with its own coordinator, and answer them together."""
    delayed = DelayedResponse(send_before_close=True)
    results: list[AddPartitionsToTxnResult] = [AddPartitionsToTxnResult()] * len(request.transactions)
    missing = len(results)

    def answer_of(index: int) -> Callable[[AddPartitionsToTxnResult], None]:
        def answer(result: AddPartitionsToTxnResult) -> None:
            nonlocal missing
            results[index] = result
            missing -= 1
            if not missing:
                delayed.resolve(AddPartitionsToTxnResponse(results_by_transaction=results))

        return delayed.guard(answer)

    for index, transaction in enumerate(request.transactions):
        _add(ctx, transaction, BROKERS_VERSION, answer_of(index))
    if not results:
        delayed.resolve(AddPartitionsToTxnResponse())
    return delayed


def _add(
    ctx: RequestContext,
    requested: AddPartitionsToTxnTransaction,
    client_version: int,
    answer: Callable[[AddPartitionsToTxnResult], None],
) -> None:
    """Give one transaction to its coordinator, unless a partition does not exist or may not be written to."""
    transactional_id = requested.transactional_id
    wanted = [(topic.name, partition) for topic in requested.topics for partition in topic.partitions]
    errors = {one: error for one in wanted if (error := _partition_error(ctx, *one))}
    if errors:
        result = same_error(transactional_id, wanted, ErrorCode.OPERATION_NOT_ATTEMPTED)
        for topic in result.topic_results:
            for partition in topic.results_by_partition:
                error = errors.get((topic.name, partition.partition_index))
                if error is not None:
                    partition.partition_error_code = int(error)
        answer(result)
        return
    producer = (requested.producer_id, requested.producer_epoch)

    def event(coordinator: TransactionCoordinator, at: Moment) -> Result:
        if requested.verify_only:
            return coordinator.verify_partitions(transactional_id, *producer, wanted, answer)
        return coordinator.add_partitions(transactional_id, *producer, wanted, client_version, answer, at)

    try:
        ctx.broker.transaction_coordinators.handle(transactional_id, event)
    except KafkaError as error:
        answer(same_error(transactional_id, wanted, error.code))


def _partition_error(ctx: RequestContext, name: str, index: int) -> ErrorCode | None:
    """Why a partition cannot be added to a transaction."""
    if name in ctx.refused_topics:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    topic = ctx.broker.image.topic(name)
    if topic is None or index not in topic.partitions:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return None


@api(AddOffsetsToTxnRequest)
def add_offsets_to_txn(ctx: RequestContext, request: AddOffsetsToTxnRequest) -> DelayedResponse:
    """Add the `__consumer_offsets` partition of a group to a transaction."""
    check_transactional_id(ctx, Operation.WRITE, request.transactional_id)
    check_group(ctx, Operation.READ, request.group_id)
    delayed = DelayedResponse(send_before_close=True)
    groups = ctx.broker.group_coordinators
    version = ctx.api_version
    transactional_id, producer = request.transactional_id, (request.producer_id, request.producer_epoch)

    def answer(result: AddPartitionsToTxnResult) -> None:
        error = ErrorCode(result.topic_results[0].results_by_partition[0].partition_error_code)
        error = legacy_fence(error, version, since=FIRST_ADD_WITH_PRODUCER_FENCED)
        delayed.resolve(AddOffsetsToTxnResponse(error_code=int(error)))

    def ensured(missing: KafkaError | None) -> None:
        if missing is not None:
            raise missing
        offsets_partition = (GROUP_METADATA_TOPIC, groups.partition_of(request.group_id))
        ctx.broker.transaction_coordinators.handle(
            transactional_id,
            lambda coordinator, at: coordinator.add_partitions(
                transactional_id, *producer, [offsets_partition], CLIENTS_VERSION, delayed.guard(answer), at
            ),
        )

    groups.ensure_topic(delayed.guard(ensured))
    return delayed


@api(EndTxnRequest)
def end_txn(ctx: RequestContext, request: EndTxnRequest) -> DelayedResponse:
    """Commit or abort a transaction; answered when the outcome is committed, before markers are written."""
    check_transactional_id(ctx, Operation.WRITE, request.transactional_id)
    delayed = DelayedResponse(send_before_close=True)
    version = ctx.api_version
    ctx.broker.transaction_coordinators.handle(
        request.transactional_id, lambda coordinator, at: coordinator.end(request, delayed.resolve, version, at)
    )
    return delayed
