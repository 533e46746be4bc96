"""Administration of transactions: WriteTxnMarkers (27), DescribeTransactions (65), ListTransactions (66).

KIP-98, KIP-664. WriteTxnMarkers: v2 transaction version (KIP-1228). ListTransactions: v1 duration (KIP-994), v2 pattern
(KIP-1152), matched by RE2 in linear time, as Kafka's re2j does.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.broker.apis.access import check_transactional_id, refused_topics
from barnabas.broker.apis.groups.committed_reads import all_committed
from barnabas.broker.apis.parts import Parts, distinct_names
from barnabas.broker.apis.registry import api, check_cluster
from barnabas.broker.coordinators.markers import Marker
from barnabas.broker.event_loop.waiting import Future, pause
from barnabas.coord.security.acls import Operation, ResourceType
from barnabas.coord.transactions.listing import STATE_NAMES, describe_transaction, list_transactions
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    DescribeTransactionsResponseTransactionState,
    ListTransactionsRequest,
    ListTransactionsResponse,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext

logger = logging.getLogger("kafka.server.KafkaApis")

# ---- WriteTxnMarkers


def _none_written(request: WriteTxnMarkersRequest, error: KafkaError) -> WriteTxnMarkersResponse:
    """The error in each partition. Markers are repeated until they are written."""
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=requested.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(partition_index=index, error_code=int(error.code))
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in requested.topics
                ],
            )
            for requested in request.markers
        ]
    )


@api(
    WriteTxnMarkersRequest,
    on_error=_none_written,
    parts=Parts("markers.topics.partition_indexes", "markers.topics.partitions", size=30),
    send_before_close=True,
)
async def write_txn_markers(ctx: RequestContext, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
    """Write markers for another broker or `kafka-transactions abort`; answered when they are committed."""
    if not ctx.is_allowed_on_cluster(Operation.ALTER, logs_denied=False):
        check_cluster(ctx, Operation.CLUSTER_ACTION)
    if any(requested.producer_id < 0 or requested.producer_epoch < 0 for requested in request.markers):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A marker needs a producer id and an epoch")  # Kafka throws here
    response = WriteTxnMarkersResponse()
    uncommitted: list[tuple[WritableTxnMarkerPartitionResult, Future[ErrorCode]]] = []
    for requested in request.markers:
        marker = Marker(
            requested.producer_id,
            requested.producer_epoch,
            requested.transaction_result,
            requested.coordinator_epoch,
            requested.transaction_version,
        )
        result = WritableTxnMarkerResult(producer_id=requested.producer_id)
        response.markers.append(result)
        for topic in requested.topics:
            topic_result = WritableTxnMarkerTopicResult(name=topic.name)
            result.topics.append(topic_result)
            for index in topic.partition_indexes:
                partition_result = WritableTxnMarkerPartitionResult(partition_index=index)
                topic_result.partitions.append(partition_result)
                try:
                    uncommitted.append((partition_result, _write(ctx, topic.name, index, marker)))
                except KafkaError as error:
                    partition_result.error_code = int(error.code)
    for partition_result, commit in uncommitted:
        partition_result.error_code = int(await commit)
    return response


def _write(ctx: RequestContext, topic: str, index: int, marker: Marker) -> Future[ErrorCode]:
    """Write a marker; the result is NONE when it is committed, or the error if it never will be."""
    partition = ctx.broker.partitions.get_leader(topic, index)
    offset = ctx.broker.transaction_coordinators.markers.write(partition, marker)
    commit: Future[ErrorCode] = Future()
    partition.when_committed(offset, commit.complete)  # now: when it is awaited, another may lead the partition
    return commit


# ---- DescribeTransactions, ListTransactions


def _none_described(request: DescribeTransactionsRequest, error: KafkaError) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=[
            DescribeTransactionsResponseTransactionState(transactional_id=transactional_id, error_code=int(error.code))
            for transactional_id in request.transactional_ids
        ]
    )


@api(
    DescribeTransactionsRequest,
    on_error=_none_described,
    parts=Parts("transactional_ids", "transaction_states", distinct=distinct_names),
    send_before_close=True,
)
async def describe_transactions(
    ctx: RequestContext, request: DescribeTransactionsRequest
) -> DescribeTransactionsResponse:
    """Describe the transaction of each transactional id, answered when its state is committed."""
    ids = request.transactional_ids
    states = [_describe(ctx, transactional_id) for transactional_id in ids]
    coordinators = ctx.broker.transaction_coordinators
    await all_committed(coordinators.uncommitted(ids), ctx.broker.loop, coordinators.write_timeout_s)
    return DescribeTransactionsResponse(transaction_states=states)


def _describe(ctx: RequestContext, transactional_id: str) -> DescribeTransactionsResponseTransactionState:
    try:
        check_transactional_id(ctx, Operation.DESCRIBE, transactional_id)
        coordinator = ctx.broker.transaction_coordinators.coordinator_of(transactional_id)
    except KafkaError as error:
        return DescribeTransactionsResponseTransactionState(
            transactional_id=transactional_id, error_code=int(error.code)
        )
    described = describe_transaction(coordinator.transactions.get(transactional_id), transactional_id)
    hidden = refused_topics(ctx, Operation.DESCRIBE, (topic.topic for topic in described.topics))
    if hidden:
        described.topics = [topic for topic in described.topics if topic.topic not in hidden]
    return described


TRANSACTIONS_OF_A_STEP = 500


@api(ListTransactionsRequest, send_before_close=True)
async def list_all_transactions(ctx: RequestContext, request: ListTransactionsRequest) -> ListTransactionsResponse:
    """List the transactional ids that match the filters, answered when their states are committed.

    KafkaError while any coordinator is loading. Unknown names of states are returned.
    """
    coordinators = ctx.broker.transaction_coordinators
    coordinators.check_loaded()
    response = ListTransactionsResponse()
    response.unknown_state_filters = [name for name in request.state_filters if name not in STATE_NAMES]
    matches = _matcher(request.transactional_id_pattern)
    now_ms = ctx.broker.loop.now_ms()
    states, producers = frozenset(request.state_filters), frozenset(request.producer_id_filters)
    budget = TRANSACTIONS_OF_A_STEP
    listed_coordinators = list(coordinators)
    for coordinator in listed_coordinators:
        ids = list(coordinator.transactions)
        for start in range(0, len(ids), TRANSACTIONS_OF_A_STEP):
            if budget <= 0:
                budget = TRANSACTIONS_OF_A_STEP
                await pause()
            transactions = coordinator.transactions  # as they are after the pause
            step = ids[start : start + TRANSACTIONS_OF_A_STEP]
            some = {key: transactions[key] for key in step if key in transactions}
            budget -= len(step)
            response.transaction_states += [
                listed
                for listed in list_transactions(some, states, producers, request.duration_filter, matches, now_ms)
                if ctx.is_allowed(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, listed.transactional_id)
            ]
    if not set(map(id, listed_coordinators)) <= set(map(id, coordinators)):
        raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)  # one has moved: its uncommitted records may be lost
    await all_committed(coordinators.all_uncommitted(), ctx.broker.loop, coordinators.write_timeout_s)
    return response


def _matcher(pattern: str | None) -> Callable[[str], bool]:
    """Match a whole transactional id by an RE2 pattern. KafkaError INVALID_REGULAR_EXPRESSION if it is not valid."""
    if not pattern:
        return lambda _: True
    from barnabas.coord.re2_patterns import compile_re2

    try:
        compiled = compile_re2(pattern)
    except ValueError as error:
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, f"Invalid pattern {pattern!r}: {error}") from error
    return lambda text: compiled.fullmatch(text) is not None
