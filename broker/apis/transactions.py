"""Transactions of producers: InitProducerId (22), AddPartitionsToTxn (24), AddOffsetsToTxn (25), EndTxn (26).

InitProducerId: v3 producer id and epoch of the client (KIP-360), v4 PRODUCER_FENCED (KIP-588), v6 two-phase commit
(KIP-939). AddPartitionsToTxn: up to v3 from clients, from v4 on several transactions from brokers, which may only
verify (KIP-890). EndTxn: from v5 on the epoch grows and is answered (KIP-890). What the requests mean is in
`coord.transactions`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.apis.registry import api
from barnabas.broker.net.delayed_response import DelayedResponse
from barnabas.coord.cluster.topic_names import GROUP_METADATA_TOPIC
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
    from barnabas.coord.transactions.transaction import TopicPartition

FIRST_ADD_OF_BROKERS = 4
FIRST_ADD_WITH_PRODUCER_FENCED = 2
CLIENTS_VERSION, BROKERS_VERSION = 0, 2
"""`transaction.version` of whoever adds partitions by requests of its own, and of a broker for a client of KIP-890."""


@api(InitProducerIdRequest, on_error=lambda _, error: init_error(error.code))
def init_producer_id(ctx: RequestContext, request: InitProducerIdRequest) -> InitProducerIdResponse | DelayedResponse:
    """A new producer id, or for a transactional id the next epoch."""
    transactional_id = request.transactional_id
    if transactional_id is None:
        return InitProducerIdResponse(producer_id=ctx.broker.producer_ids.next(), producer_epoch=0)
    if not transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    delayed = DelayedResponse(send_before_close=True)
    version = ctx.api_version
    ctx.broker.transactions.handle(
        transactional_id, lambda them, at: them.init_producer_id(request, delayed.resolve, version, at)
    )
    return delayed


# ---- AddPartitionsToTxn


@api(AddPartitionsToTxnRequest)
def add_partitions_to_txn(ctx: RequestContext, request: AddPartitionsToTxnRequest) -> DelayedResponse:
    """Puts partitions into transactions, or looks whether they are in."""
    if ctx.api_version >= FIRST_ADD_OF_BROKERS:
        return _add_for_brokers(ctx, request)
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
    _add(ctx, only, CLIENTS_VERSION, answer)
    return delayed


def _add_for_brokers(ctx: RequestContext, request: AddPartitionsToTxnRequest) -> DelayedResponse:
    """Several transactions, each with its own coordinator; answered together."""
    delayed = DelayedResponse(send_before_close=True)
    results: list[AddPartitionsToTxnResult | None] = [None] * len(request.transactions)

    def answer_of(place: int) -> Callable[[AddPartitionsToTxnResult], None]:
        def answer(result: AddPartitionsToTxnResult) -> None:
            results[place] = result
            finished = [one for one in results if one is not None]
            if len(finished) == len(results):
                delayed.resolve(AddPartitionsToTxnResponse(results_by_transaction=finished))

        return answer

    for place, transaction in enumerate(request.transactions):
        _add(ctx, transaction, BROKERS_VERSION, answer_of(place))
    if not results:
        delayed.resolve(AddPartitionsToTxnResponse())
    return delayed


def _add(
    ctx: RequestContext,
    asked: AddPartitionsToTxnTransaction,
    client_version: int,
    answer: Callable[[AddPartitionsToTxnResult], None],
) -> None:
    """Let the coordinator decide about one transaction, unless one of its partitions does not exist."""
    transactional_id = asked.transactional_id
    wanted = [(topic.name, partition) for topic in asked.topics for partition in topic.partitions]
    missing = {place for place in wanted if not _exists(ctx, place)}
    if missing:
        result = same_error(transactional_id, wanted, ErrorCode.OPERATION_NOT_ATTEMPTED)
        for topic in result.topic_results:
            for partition in topic.results_by_partition:
                if (topic.name, partition.partition_index) in missing:
                    partition.partition_error_code = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        answer(result)
        return
    producer = (asked.producer_id, asked.producer_epoch)

    def event(them: TransactionCoordinator, at: Moment) -> Result:
        if asked.verify_only:
            return them.verify_partitions(transactional_id, *producer, wanted, answer)
        return them.add_partitions(transactional_id, *producer, wanted, client_version, answer, at)

    try:
        ctx.broker.transactions.handle(transactional_id, event)
    except KafkaError as error:
        answer(same_error(transactional_id, wanted, error.code))


def _exists(ctx: RequestContext, place: TopicPartition) -> bool:
    topic = ctx.broker.image.topic(place[0])
    return topic is not None and place[1] in topic.partitions


@api(AddOffsetsToTxnRequest)
def add_offsets_to_txn(ctx: RequestContext, request: AddOffsetsToTxnRequest) -> DelayedResponse:
    """Puts the partition that a group's offsets are kept in into the transaction."""
    delayed = DelayedResponse(send_before_close=True)
    groups = ctx.broker.coordinators
    groups.ensure_topic()
    place = (GROUP_METADATA_TOPIC, groups.partition_of(request.group_id))
    version = ctx.api_version

    def answer(result: AddPartitionsToTxnResult) -> None:
        error = ErrorCode(result.topic_results[0].results_by_partition[0].partition_error_code)
        error = legacy_fence(error, version, since=FIRST_ADD_WITH_PRODUCER_FENCED)
        delayed.resolve(AddOffsetsToTxnResponse(error_code=int(error)))

    transactional_id, producer = request.transactional_id, (request.producer_id, request.producer_epoch)
    ctx.broker.transactions.handle(
        transactional_id,
        lambda them, at: them.add_partitions(transactional_id, *producer, [place], CLIENTS_VERSION, answer, at),
    )
    return delayed


@api(EndTxnRequest)
def end_txn(ctx: RequestContext, request: EndTxnRequest) -> DelayedResponse:
    """Commits or aborts; answered once the outcome is safe, before the markers are written."""
    delayed = DelayedResponse(send_before_close=True)
    version = ctx.api_version
    ctx.broker.transactions.handle(
        request.transactional_id, lambda them, at: them.end(request, delayed.resolve, version, at)
    )
    return delayed
