"""Validation of InitProducerId with a transactional id (KIP-98, KIP-360, KIP-588, rule T3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.coord.transactions.config import TWO_PHASE_COMMIT_TIMEOUT_MS
from barnabas.coord.transactions.transaction import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, is_exhausted
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.coord.transactions.config import TransactionConfig
    from barnabas.coord.transactions.transaction import Transaction
    from barnabas.wire.messages.produce import InitProducerIdRequest


def effective_timeout_ms(request: InitProducerIdRequest, config: TransactionConfig) -> int:
    """The transaction timeout to apply; two-phase commit has none. KafkaError when the request is invalid.

    `keep_prepared_txn` is refused, as in Kafka 4.4.
    """
    if not request.transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if request.enable2_pc and not config.is_two_phase_commit_enabled:
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if request.keep_prepared_txn:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    if request.enable2_pc:
        return TWO_PHASE_COMMIT_TIMEOUT_MS
    if not 0 < request.transaction_timeout_ms <= config.max_timeout_ms:
        raise KafkaError(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
    return request.transaction_timeout_ms


def expected_producer(request: InitProducerIdRequest) -> tuple[int, int] | None:
    """The producer id and epoch that the client has, or None; KafkaError(INVALID_REQUEST) when only one is set."""
    if request.producer_id == NO_PRODUCER_ID and request.producer_epoch == NO_PRODUCER_EPOCH:
        return None
    if request.producer_id == NO_PRODUCER_ID or request.producer_epoch == NO_PRODUCER_EPOCH:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    return request.producer_id, request.producer_epoch


def is_known_producer(transaction: Transaction, producer_id: int, producer_epoch: int) -> bool:
    """Whether the producer id is the current one, or the previous one with its epochs used up.

    The epoch itself is compared later. Any producer id is accepted for a transactional id without an epoch.
    """
    return (
        transaction.producer_epoch == NO_PRODUCER_EPOCH
        or producer_id == transaction.producer_id
        or (producer_id == transaction.previous_producer_id and is_exhausted(producer_epoch))
    )
