"""Transactions and producers: list, describe, abort, find hanging transactions (KIP-664, KIP-360).

A transaction hangs when a partition has it open and its coordinator does not know it: nothing will ever end it, and
readers with read_committed wait behind it. Errors: `KafkaError` from the broker, `NotFound`, `TimedOut`, `Unreachable`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.client.cluster import TRANSACTION, Cluster
from barnabas.client.errors import ClientError, NotFound, no_such, raise_for
from barnabas.client.offsets import TopicPartition
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.produce import InitProducerIdRequest, InitProducerIdResponse
from barnabas.wire.messages.transactions import (
    DescribeProducersRequest,
    DescribeProducersRequestTopicRequest,
    DescribeProducersResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    DescribeTransactionsResponseTransactionState,
    ListTransactionsRequest,
    ListTransactionsResponse,
    ProducerState,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

FENCING_TIMEOUT_MS = 1
"""The transaction timeout of a producer that only fences others, as in Kafka's `FenceProducersHandler`."""


class ListedTransaction(NamedTuple):
    """A transactional id in the list of its coordinator."""

    transactional_id: str
    coordinator: int
    producer_id: int
    state: str


class OpenTransaction(NamedTuple):
    """A transaction that is open in a partition."""

    topic: str
    partition: int
    producer: ProducerState
    transactional_id: str | None = None


def list_transactions(
    cluster: Cluster, *, states: Sequence[str] = (), producer_ids: Sequence[int] = (), older_than_ms: int | None = None
) -> list[ListedTransaction]:
    """The transactional ids of all coordinators, by id; only those with these states, producers and age."""

    def attempt(deadline: float) -> list[ListedTransaction]:
        cluster.metadata([], deadline)
        transactions: list[ListedTransaction] = []
        for node_id in sorted(cluster.nodes):
            request = ListTransactionsRequest(state_filters=list(states), producer_id_filters=list(producer_ids))
            if older_than_ms is not None:
                request.duration_filter = older_than_ms
            response = cluster.node(node_id, deadline).call(request, ListTransactionsResponse, deadline)
            raise_for(response.error_code, f"transactions of broker {node_id}")
            if response.unknown_state_filters:
                raise NotFound(
                    f"broker {node_id} knows no transaction state {', '.join(response.unknown_state_filters)}"
                )
            transactions += [
                ListedTransaction(state.transactional_id, node_id, state.producer_id, state.transaction_state)
                for state in response.transaction_states
            ]
        return sorted(transactions)

    return cluster.retry(attempt)


def describe_transaction(
    cluster: Cluster, transactional_id: str
) -> tuple[int, DescribeTransactionsResponseTransactionState]:
    """The coordinator's node id, and the state of a transactional id. `NotFound` if there is none."""

    def attempt(deadline: float) -> tuple[int, DescribeTransactionsResponseTransactionState]:
        node_id = cluster.coordinator_id(transactional_id, deadline, TRANSACTION)
        request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
        response = cluster.node(node_id, deadline).call(request, DescribeTransactionsResponse, deadline)
        (state,) = response.transaction_states
        if state.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            raise no_such("transactional id", transactional_id)
        raise_for(state.error_code, f"transactional id {transactional_id!r}")
        return node_id, state

    return cluster.retry(attempt)


def fence_producer(cluster: Cluster, transactional_id: str) -> InitProducerIdResponse:
    """Fence the producer of a transactional id, and abort its open transaction; returns when it is aborted."""
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=FENCING_TIMEOUT_MS)

    def attempt(deadline: float) -> InitProducerIdResponse:
        node_id = cluster.coordinator_id(transactional_id, deadline, TRANSACTION)
        response = cluster.node(node_id, deadline).call(request, InitProducerIdResponse, deadline)
        raise_for(response.error_code, f"transactional id {transactional_id!r}")
        return response

    return cluster.retry(attempt)


def describe_producers(
    cluster: Cluster, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, list[ProducerState]]:
    """The active producers of each partition, as its leader has them, by producer id."""

    def attempt(deadline: float) -> dict[TopicPartition, list[ProducerState]]:
        by_leader: dict[int, dict[str, list[int]]] = {}
        for name, index in partitions:
            leader = cluster.leader(name, index, deadline)
            by_leader.setdefault(leader, {}).setdefault(name, []).append(index)
        by_partition: dict[TopicPartition, list[ProducerState]] = {}
        for leader, topics in by_leader.items():
            request = DescribeProducersRequest(
                topics=[
                    DescribeProducersRequestTopicRequest(name=name, partition_indexes=indexes)
                    for name, indexes in topics.items()
                ]
            )
            response = cluster.node(leader, deadline).call(request, DescribeProducersResponse, deadline)
            for topic in response.topics:
                for partition in topic.partitions:
                    raise_for(
                        partition.error_code, f"{topic.name}-{partition.partition_index}", partition.error_message
                    )
                    producers = sorted(partition.active_producers, key=lambda producer: producer.producer_id)
                    by_partition[topic.name, partition.partition_index] = producers
        return by_partition

    return cluster.retry(attempt)


def open_transactions(cluster: Cluster, partitions: Sequence[TopicPartition]) -> list[OpenTransaction]:
    """The transactions that are open in these partitions."""
    return [
        OpenTransaction(name, index, producer)
        for (name, index), producers in sorted(describe_producers(cluster, partitions).items())
        for producer in producers
        if producer.current_txn_start_offset >= 0
    ]


def hanging_transactions(
    cluster: Cluster, partitions: Sequence[TopicPartition], *, idle_since_ms: int
) -> list[OpenTransaction]:
    """Open transactions without a record since a time in ms, which their coordinator does not have.

    Their producer has no transactional id any more, or its transaction does not have the partition. Source: KIP-664.
    """
    idle = [
        transaction
        for transaction in open_transactions(cluster, partitions)
        if transaction.producer.last_timestamp < idle_since_ms
    ]
    if not idle:
        return []
    producer_ids = sorted({transaction.producer.producer_id for transaction in idle})
    names = {
        transaction.producer_id: transaction.transactional_id
        for transaction in list_transactions(cluster, producer_ids=producer_ids)
    }
    held = {name: transaction_partitions(cluster, name) for name in set(names.values())}
    transactions = [
        transaction._replace(transactional_id=names.get(transaction.producer.producer_id)) for transaction in idle
    ]
    return [
        transaction
        for transaction in transactions
        if (transaction.topic, transaction.partition) not in held.get(transaction.transactional_id or "", ())
    ]


def transaction_partitions(cluster: Cluster, transactional_id: str) -> set[TopicPartition]:
    """The partitions of the transaction that a transactional id has open; none if there is no such id."""
    try:
        _, state = describe_transaction(cluster, transactional_id)
    except NotFound:
        return set()  # it has ended since it was listed
    return {(topic.topic, index) for topic in state.topics for index in topic.partitions}


def hanging_producer(cluster: Cluster, which: TopicPartition, start_offset: int) -> ProducerState:
    """The producer whose transaction hangs in a partition since an offset.

    `NotFound` if none is open since then; ClientError if its coordinator has it: there it must be aborted, or it would
    stay open in its other partitions.
    """
    producers = describe_producers(cluster, [which])[which]
    matches = [producer for producer in producers if producer.current_txn_start_offset == start_offset]
    if not matches:
        starts = sorted(
            producer.current_txn_start_offset for producer in producers if producer.current_txn_start_offset >= 0
        )
        others = f"; there are open ones since {', '.join(map(str, starts))}" if starts else ""
        raise NotFound(f"no transaction is open in {which[0]}-{which[1]} since offset {start_offset}{others}")
    producer_id = matches[0].producer_id
    for transaction in list_transactions(cluster, producer_ids=[producer_id]):
        if which in transaction_partitions(cluster, transaction.transactional_id):
            raise ClientError(
                f"the transaction of producer {producer_id} does not hang, it belongs to "
                f"{transaction.transactional_id!r}; 'barnabas txn abort {transaction.transactional_id}' aborts it"
            )
    return matches[0]


def abort_in_partition(cluster: Cluster, topic: str, partition: int, producer: ProducerState) -> None:
    """Write an abort marker for a transaction that hangs in one partition, as Kafka's `AbortTransactionHandler`."""
    marker = WritableTxnMarker(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[partition])],
        coordinator_epoch=max(0, producer.coordinator_epoch),
    )

    def attempt(deadline: float) -> None:
        leader = cluster.leader(topic, partition, deadline)
        request = WriteTxnMarkersRequest(markers=[marker])
        response = cluster.node(leader, deadline).call(request, WriteTxnMarkersResponse, deadline)
        for result in response.markers[0].topics:
            for result_of_partition in result.partitions:
                raise_for(result_of_partition.error_code, f"cannot abort the transaction in {topic}-{partition}")

    cluster.retry(attempt)
