"""The state of one transactional id, as an immutable value (Kafka's `TransactionMetadata`).

A `Transaction` is the content of one record of `__transaction_state`. Its methods return the next value; it takes
effect when its record is in the log and replayed. The epoch 32767 is never assigned to a client: it is reserved for
fencing the producer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from barnabas.coord.transactions.states import TransactionState

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
