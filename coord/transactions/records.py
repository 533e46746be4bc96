"""Records of `__transaction_state` in Kafka's bytes: a 2-byte schema version, then the message (rule T1).

`transaction.version` 0 writes value version 0; 1 and 2 write value version 1, which has tagged fields.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.coord.machine import CoordinatorRecord
from barnabas.coord.short_key_cache import cached_if_short
from barnabas.coord.transactions.states import BY_LOG_ID, TransactionState
from barnabas.coord.transactions.transaction import NO_PRODUCER_ID, Transaction
from barnabas.wire.errors import ProtocolError
from barnabas.wire.messages.records.coordinator_records import PartitionsSchema, TransactionLogKey, TransactionLogValue

if TYPE_CHECKING:
    from collections.abc import Iterable

    from barnabas.coord.transactions.transaction import TopicPartition

TRANSACTION_LOG = 0
FLEXIBLE_VALUE_VERSION = 1


def transaction_record(transactional_id: str, transaction: Transaction, version: int) -> CoordinatorRecord:
    """The record of a transaction, in value version 0 or 1."""
    is_empty = transaction.state is TransactionState.EMPTY
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state.log_id,
        transaction_partitions=None if is_empty else _by_topic(transaction.partitions),
        transaction_last_update_timestamp_ms=transaction.last_update_ms,
        transaction_start_timestamp_ms=transaction.start_ms,
    )
    if version >= FLEXIBLE_VALUE_VERSION:
        value.previous_producer_id = transaction.previous_producer_id
        value.next_producer_id = transaction.next_producer_id
        value.client_transaction_version = transaction.client_version
    return CoordinatorRecord(_key(transactional_id), version.to_bytes(2, "big") + value.encode(version))


def transaction_tombstone(transactional_id: str) -> CoordinatorRecord:
    """The tombstone that removes a transactional id."""
    return CoordinatorRecord(_key(transactional_id), None)


@cached_if_short(4096)
def read_key(key: bytes) -> str | None:
    """The transactional id of a record; None for record types that Kafka 4.4 does not know.

    Raises ProtocolError for bytes that are not a key.
    """
    if int.from_bytes(key[:2], "big") != TRANSACTION_LOG:
        return None
    return TransactionLogKey.decode(key[2:], 0).transactional_id


def read_transaction(value: bytes) -> Transaction:
    """The transaction in a record. Raises ProtocolError for invalid bytes, an unknown version or an unknown state."""
    version = int.from_bytes(value[:2], "big")
    if not TransactionLogValue.min_version <= version <= TransactionLogValue.max_version:
        raise ProtocolError(f"Unknown version {version} of TransactionLogValue")
    read = TransactionLogValue.decode(value[2:], version)
    state = BY_LOG_ID.get(read.transaction_status)
    if state is None:
        raise ProtocolError(f"Unknown transaction state {read.transaction_status} in TransactionLogValue")
    return Transaction(
        producer_id=read.producer_id,
        producer_epoch=read.producer_epoch,
        timeout_ms=read.transaction_timeout_ms,
        state=state,
        last_update_ms=read.transaction_last_update_timestamp_ms,
        partitions=frozenset(
            (topic.topic, partition) for topic in read.transaction_partitions or () for partition in topic.partition_ids
        ),
        start_ms=read.transaction_start_timestamp_ms,
        previous_producer_id=read.previous_producer_id if version else NO_PRODUCER_ID,
        next_producer_id=read.next_producer_id if version else NO_PRODUCER_ID,
        client_version=read.client_transaction_version if version else 0,
    )


@cached_if_short(4096)
def _key(transactional_id: str) -> bytes:
    key = TransactionLogKey(transactional_id=transactional_id)
    return TRANSACTION_LOG.to_bytes(2, "big") + key.encode(0)


def _by_topic(partitions: Iterable[TopicPartition]) -> list[PartitionsSchema]:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return [PartitionsSchema(topic=topic, partition_ids=ids) for topic, ids in topics.items()]
