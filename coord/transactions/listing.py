"""The results of DescribeTransactions and ListTransactions (KIP-664, KIP-994, KIP-1152, rule T13)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.coord.transactions.states import TransactionState
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.transactions import (
    DescribeTransactionsResponseTopicData,
    DescribeTransactionsResponseTransactionState,
    ListTransactionsResponseTransactionState,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from barnabas.coord.transactions.transaction import Transaction

STATE_NAMES = frozenset(str(state) for state in TransactionState)
ANY_DURATION_MS = -1


def describe_transaction(
    transaction: Transaction | None, transactional_id: str
) -> DescribeTransactionsResponseTransactionState:
    """Describe one transactional id; TRANSACTIONAL_ID_NOT_FOUND when `transaction` is None."""
    if transaction is None:
        error = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND if transactional_id else ErrorCode.INVALID_REQUEST
        return DescribeTransactionsResponseTransactionState(error_code=int(error), transactional_id=transactional_id)
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(transaction.partitions):
        topics.setdefault(topic, []).append(partition)
    return DescribeTransactionsResponseTransactionState(
        transactional_id=transactional_id,
        transaction_state=str(transaction.state),
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.start_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        topics=[
            DescribeTransactionsResponseTopicData(topic=topic, partitions=partitions)
            for topic, partitions in topics.items()
        ],
    )


def list_transactions(
    transactions: dict[str, Transaction],
    states: Collection[str],
    producer_ids: Collection[int],
    duration_ms: int,
    matches: Callable[[str], bool],
    now_ms: int,
) -> Iterator[ListTransactionsResponseTransactionState]:
    """The transactional ids that match every filter; an empty filter matches all.

    `duration_ms` selects transactions that started longer ago, or all with -1; `matches` is called with the id.
    """
    for transactional_id, transaction in transactions.items():
        if producer_ids and transaction.producer_id not in producer_ids:
            continue
        if states and str(transaction.state) not in states:
            continue
        if duration_ms > ANY_DURATION_MS and now_ms - transaction.start_ms <= duration_ms:
            continue
        if not matches(transactional_id):
            continue
        yield ListTransactionsResponseTransactionState(
            transactional_id=transactional_id,
            producer_id=transaction.producer_id,
            transaction_state=str(transaction.state),
        )
