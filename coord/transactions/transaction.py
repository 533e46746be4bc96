"""The state of one transactional id, as an immutable value (Kafka's `TransactionMetadata`).

A `Transaction` is the content of one record of `__transaction_state`. Its methods return the next value; it takes
effect when its record is in the log and replayed. The epoch 32767 is never assigned to a client: it is reserved for
fencing the producer. What EndTxn does to a transaction, before and since KIP-890 (rules T7, T9), follows from the
tables in `states`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from barnabas.coord.machine import check_transition
from barnabas.coord.transactions.states import (
    CURRENT,
    END_TXN,
    END_TXN_V2,
    EPOCHS_ACCEPTED_V2,
    PREDECESSORS,
    PREPARED,
    RETRY,
    EndAction,
    TransactionState,
)
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.wire.messages.transactions import EndTxnRequest

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
MAX_EPOCH = 2**15 - 1
NEVER_MS = -1
EPOCH_BUMP_VERSION = 2
"""From this `transaction.version` on, the end of every transaction bumps the epoch (KIP-890)."""

TopicPartition = tuple[str, int]


class Transaction(NamedTuple):
    """The state of one transactional id."""

    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TransactionState
    last_update_ms: int
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = NEVER_MS
    previous_producer_id: int = NO_PRODUCER_ID
    """The producer id before the last record."""
    next_producer_id: int = NO_PRODUCER_ID
    """In a prepared state, when the epochs are used up: the producer id of the next transaction."""
    client_version: int = 0
    """The `transaction.version` of the client that caused this state: 0 (KIP-98) or 2 (KIP-890)."""

    @property
    def is_exhausted(self) -> bool:
        """Whether the producer id has no epoch left to assign."""
        return is_exhausted(self.producer_epoch)

    @property
    def bumps_epoch(self) -> bool:
        """Whether the client's epoch is bumped at the end of every transaction."""
        return self.client_version >= EPOCH_BUMP_VERSION

    def initialized(self, producer_id: int, producer_epoch: int, timeout_ms: int, now_ms: int) -> Transaction:
        """After InitProducerId has assigned this producer id and epoch."""
        return self._replace(
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            timeout_ms=timeout_ms,
            state=TransactionState.EMPTY,
            last_update_ms=now_ms,
            partitions=frozenset(),
            start_ms=NEVER_MS,
            previous_producer_id=self.producer_id,
        )

    def with_partitions(self, added: Iterable[TopicPartition], client_version: int, now_ms: int) -> Transaction:
        """With more partitions; the first of them starts the transaction."""
        return self._replace(
            state=TransactionState.ONGOING,
            last_update_ms=now_ms,
            partitions=self.partitions.union(added),
            start_ms=self.start_ms if self.state is TransactionState.ONGOING else now_ms,
            previous_producer_id=self.producer_id,
            client_version=client_version,
        )

    def prepared(self, *, commit: bool, client_version: int, next_producer_id: int, now_ms: int) -> Transaction:
        """With the outcome decided. KIP-890 bumps the epoch here: the markers carry the new one."""
        bumps = client_version >= EPOCH_BUMP_VERSION
        return self._replace(
            producer_epoch=min(self.producer_epoch + 1, MAX_EPOCH) if bumps else self.producer_epoch,
            state=TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT,
            last_update_ms=now_ms,
            start_ms=self.start_ms if self.state is TransactionState.ONGOING else now_ms,
            previous_producer_id=self.producer_id,
            next_producer_id=next_producer_id,
            client_version=client_version,
        )

    def fenced(self) -> Transaction:
        """With the epoch bumped, so that the producer is fenced; before KIP-890. The transaction is aborted next."""
        return self._replace(producer_epoch=min(self.producer_epoch + 1, MAX_EPOCH))

    def completed(self, now_ms: int) -> Transaction:
        """After every marker is written; a producer id whose epochs are used up is replaced by the next one."""
        rotates = self.bumps_epoch and self.next_producer_id != NO_PRODUCER_ID
        is_commit = self.state is TransactionState.PREPARE_COMMIT
        return self._replace(
            producer_id=self.next_producer_id if rotates else self.producer_id,
            producer_epoch=0 if rotates else self.producer_epoch,
            state=TransactionState.COMPLETE_COMMIT if is_commit else TransactionState.COMPLETE_ABORT,
            last_update_ms=now_ms,
            partitions=frozenset(),
            previous_producer_id=self.producer_id,
            next_producer_id=NO_PRODUCER_ID,
        )


def is_exhausted(producer_epoch: int) -> bool:
    """Whether an epoch is the greatest that a client may have."""
    return producer_epoch >= MAX_EPOCH - 1


def new_transaction(producer_id: int, timeout_ms: int, now_ms: int) -> Transaction:
    """An unknown transactional id; `initialized` makes its first record."""
    return Transaction(producer_id, NO_PRODUCER_EPOCH, timeout_ms, TransactionState.EMPTY, now_ms)


class TransactionTable:
    """Transactions by transactional id. Only `replay` of the coordinator changes them."""

    __slots__ = ("ongoing", "transactions", "unmarked")

    def __init__(self) -> None:
        self.transactions: dict[str, Transaction] = {}
        self.ongoing: set[str] = set()
        """Transactional ids with an open transaction."""
        self.unmarked: dict[str, set[TopicPartition]] = {}
        """By transactional id in a prepared state: the partitions whose marker is not written yet."""

    def apply(self, transactional_id: str, new: Transaction | None, *, is_checked: bool) -> TransactionState:
        """Replace a transaction, None removing it; the state it has now.

        AssertionError with `is_checked` when the state may not follow the one before.
        """
        old = self.transactions.get(transactional_id)
        if new is None:
            self.transactions.pop(transactional_id, None)
            state = TransactionState.DEAD
        else:
            self.transactions[transactional_id] = new
            state = new.state
        if is_checked and old is not None:
            check_transition(PREDECESSORS, old.state, state)
        if state is TransactionState.ONGOING:
            self.ongoing.add(transactional_id)
        else:
            self.ongoing.discard(transactional_id)
        if new is not None and state in PREPARED:
            self.unmarked[transactional_id] = set(new.partitions)
        else:
            self.unmarked.pop(transactional_id, None)
        return state

    def clear(self) -> None:
        """Remove everything."""
        self.transactions.clear()
        self.ongoing.clear()
        self.unmarked.clear()


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
