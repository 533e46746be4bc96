"""Asks the transaction coordinators of other brokers to add or verify partitions (AddPartitionsToTxn v4, T7, KIP-890).

Items that wait for a broker are sent in one request, with one entry for a transactional id. If a connection fails, its
own error is the answer, and the client tries again. Source: Kafka 4.4 `AddPartitionsToTxnManager`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from barnabas.broker.coordinators.node_queues import NodeQueues
from barnabas.coord.transactions.responses import same_error
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

if TYPE_CHECKING:
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.net.client.network_client import NetworkClient
    from barnabas.coord.transactions.transaction import TopicPartition


class _Item(NamedTuple):
    transaction: AddPartitionsToTxnTransaction
    partitions: Sequence[TopicPartition]
    then: Callable[[AddPartitionsToTxnResult], None]


class TransactionRequests:
    """The requests to transaction coordinators of other brokers."""

    def __init__(self, loop: Loop, client: Callable[[int], NetworkClient], timeout_s: float) -> None:
        """`client` returns the connection to a broker."""
        self._queues: NodeQueues[_Item] = NodeQueues(
            loop,
            client,
            timeout_s,
            build=_request,
            on_response=_finish,
            key=lambda item: item.transaction.transactional_id,
        )

    def send(
        self,
        node_id: int,
        transactional_id: str,
        producer: tuple[int, int],
        partitions: Sequence[TopicPartition],
        then: Callable[[AddPartitionsToTxnResult], None],
        *,
        adds: bool,
    ) -> None:
        """Add partitions to a transaction whose coordinator is another broker, or verify that it has them."""
        topics: dict[str, list[int]] = {}
        for name, index in partitions:
            topics.setdefault(name, []).append(index)
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=transactional_id,
            producer_id=producer[0],
            producer_epoch=producer[1],
            verify_only=not adds,
            topics=[AddPartitionsToTxnTopic(name=name, partitions=indexes) for name, indexes in topics.items()],
        )
        self._queues.add(node_id, _Item(transaction, partitions, then))


def _request(items: Sequence[_Item]) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(transactions=[item.transaction for item in items])


def _finish(items: Sequence[_Item], response: AddPartitionsToTxnResponse | KafkaError) -> None:
    results: dict[str, AddPartitionsToTxnResult] = {}
    error = ErrorCode.UNKNOWN_SERVER_ERROR  # for partitions that the response omits
    if isinstance(response, KafkaError):
        error = response.code
    elif response.error_code:
        error = ErrorCode(response.error_code)
    else:
        results = {result.transactional_id: result for result in response.results_by_transaction}
    for item in items:
        transactional_id = item.transaction.transactional_id
        result = results.get(transactional_id)
        item.then(same_error(transactional_id, item.partitions, error) if result is None else result)
