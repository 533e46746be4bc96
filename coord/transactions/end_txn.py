"""What EndTxn does to a transaction, before and since KIP-890 (rules T7, T9). The tables are in `states`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.coord.transactions.states import (
    CURRENT,
    END_TXN,
    END_TXN_V2,
    EPOCHS_ACCEPTED_V2,
    PREPARED,
    RETRY,
    EndAction,
)
from barnabas.coord.transactions.transaction import MAX_EPOCH
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.coord.transactions.transaction import Transaction
    from barnabas.wire.messages.transactions import EndTxnRequest


def end_action_v1(transaction: Transaction | None, request: EndTxnRequest) -> EndAction:
    """PREPARE or REPEAT, for EndTxn up to version 4; KafkaError when the request is refused."""
    if transaction is None or transaction.producer_id != request.producer_id:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if transaction.producer_epoch != request.producer_epoch:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    return _accepted(END_TXN.get((transaction.state, request.committed), EndAction.REFUSE))


def end_action_v2(transaction: Transaction, request: EndTxnRequest) -> EndAction:
    """PREPARE or REPEAT, for EndTxn from version 5 on; KafkaError when the request is refused."""
    if transaction.state in PREPARED:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    has_new_producer_id = (
        transaction.previous_producer_id == request.producer_id
        and request.producer_epoch == MAX_EPOCH - 1
        and transaction.producer_epoch == 0
    )
    if transaction.producer_id != request.producer_id and not has_new_producer_id:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    is_previous_epoch = has_new_producer_id or transaction.producer_epoch == request.producer_epoch + 1
    epoch = RETRY if is_previous_epoch else CURRENT
    is_known_epoch = is_previous_epoch or transaction.producer_epoch == request.producer_epoch
    if not is_known_epoch or epoch not in EPOCHS_ACCEPTED_V2[transaction.state]:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    return _accepted(END_TXN_V2.get((transaction.state, request.committed, epoch), EndAction.REFUSE))


def _accepted(action: EndAction) -> EndAction:
    if action is EndAction.REFUSE:
        raise KafkaError(ErrorCode.INVALID_TXN_STATE)
    if action is EndAction.WAIT:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    return action
