"""Adds the partitions of a write to its transaction, or verifies that the transaction has them (T7, T11; KIP-890).

A partition must belong to the transaction before it gets the first data of it: otherwise it would never get a marker.
For clients with Produce v12 and TxnOffsetCommit v5 or later the broker adds the partition; older clients have added it
themselves, which is verified. The coordinator may be another broker (`coordinators.transaction_requests`). No check is
needed once a partition has data of the transaction: its end is the marker.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from barnabas.broker.config.keys.general import (
    ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MAX_MS,
    ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MS,
)
from barnabas.broker.event_loop.waiting import Future, sleep_until
from barnabas.storage.producers.producer_entry import NO_OFFSET
from barnabas.wire.batches.batch_header import BatchHeader
from barnabas.wire.batches.records import HEADER_SIZE, MAGIC, TRANSACTIONAL_BIT
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.context import Broker
    from barnabas.broker.replicas.partition import Partition
    from barnabas.coord.machine import Moment, Result
    from barnabas.coord.transactions.coordinator import TransactionCoordinator
    from barnabas.coord.transactions.transaction import TopicPartition
    from barnabas.wire.messages.transactions import AddPartitionsToTxnResult

Errors: TypeAlias = "Mapping[TopicPartition, ErrorCode]"
"""The partitions that were not added or found, with the coordinator's error."""

TRANSACTION_VERSION = 2
"""The transaction.version of clients for which the broker adds partitions."""

NO_COORDINATOR = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)
"""The coordinator could not be asked; another attempt may succeed."""


async def add_or_verify(
    broker: Broker,
    transactional_id: str,
    producer: tuple[int, int],
    partitions: Collection[TopicPartition],
    *,
    adds: bool,
) -> Errors:
    """Add partitions to a transaction, or verify that it has them; the errors by partition.

    While the previous transaction is being completed, adding is retried every add.partitions.to.txn.retry.backoff.ms:
    a client would wait longer. `producer` is the producer id and epoch.
    """
    loop, config = broker.loop, broker.config
    deadline = loop.now() + config[ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MAX_MS] / 1000
    while True:
        try:
            result = await _ask_coordinator(broker, transactional_id, producer, partitions, adds=adds)
        except KafkaError as error:
            return dict.fromkeys(partitions, error.code)
        errors = {
            (topic.name, partition.partition_index): ErrorCode(partition.partition_error_code)
            for topic in result.topic_results
            for partition in topic.results_by_partition
            if partition.partition_error_code
        }
        retry_at = loop.now() + config[ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MS] / 1000
        if not adds or retry_at > deadline or ErrorCode.CONCURRENT_TRANSACTIONS not in errors.values():
            return errors
        await sleep_until(loop.timers, retry_at)  # the markers of the previous transaction are being flushed


def _ask_coordinator(
    broker: Broker,
    transactional_id: str,
    producer: tuple[int, int],
    partitions: Collection[TopicPartition],
    *,
    adds: bool,
) -> Future[AddPartitionsToTxnResult]:
    future: Future[AddPartitionsToTxnResult] = Future()
    coordinators = broker.transaction_coordinators
    leader = coordinators.leader_of(transactional_id)
    if leader >= 0 and leader != broker.node_id:
        coordinators.requests.send(leader, transactional_id, producer, list(partitions), future.complete, adds=adds)
        return future

    def event(coordinator: TransactionCoordinator, at: Moment) -> Result:
        if adds:
            return coordinator.add_partitions(
                transactional_id, *producer, partitions, TRANSACTION_VERSION, future.complete, at
            )
        return coordinator.verify_partitions(transactional_id, *producer, partitions, future.complete)

    coordinators.handle(transactional_id, event)
    return future


def unverified(batches: Iterable[tuple[Partition, memoryview | None]]) -> dict[TopicPartition, tuple[int, int]]:
    """The partitions of transactional batches without data of the transaction: the producer id and epoch of each.

    As in Kafka a batch without a producer id is not verified: it belongs to no transaction.
    """
    producers: dict[TopicPartition, tuple[int, int]] = {}
    for partition, records in batches:
        if records is not None and len(records) >= HEADER_SIZE:
            header = BatchHeader(records, 0, 0)
            if header.attributes & TRANSACTIONAL_BIT:
                producer_id, epoch = header.producer_id, header.producer_epoch
                if not has_open_transaction(partition, producer_id, epoch):
                    if producer_id < 0 or header.magic != MAGIC:
                        continue
                    producers[partition.topic, partition.index] = (producer_id, epoch)
    return producers


def has_open_transaction(partition: Partition, producer_id: int, producer_epoch: int) -> bool:
    """Whether the partition already has data of the producer's current transaction."""
    entry = partition.log.producers.producers.get(producer_id)
    return entry is not None and entry.current_txn_first_offset != NO_OFFSET and entry.producer_epoch == producer_epoch


def is_fenced(broker: Broker, place: TopicPartition, producer: tuple[int, int]) -> bool:
    """Whether a partition knows a later epoch of the producer: Kafka refuses that before it asks the coordinator.

    The coordinator may know only another producer id, by which it has replaced this one (KIP-360).
    """
    partition = broker.partitions.find(*place)
    entry = None if partition is None else partition.log.producers.producers.get(producer[0])
    return entry is not None and entry.producer_epoch > producer[1]


def client_error(code: ErrorCode, retriable: ErrorCode, *, adds: bool, knows_abortable: bool) -> ErrorCode:
    """The error in a form that the client knows: `knows_abortable` if its version has TRANSACTION_ABORTABLE.

    `retriable` is returned if another attempt may succeed: clients of older versions, for which partitions are only
    verified, do not know CONCURRENT_TRANSACTIONS here.
    """
    if code in NO_COORDINATOR or (code == ErrorCode.CONCURRENT_TRANSACTIONS and not adds):
        return retriable
    if code == ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code == ErrorCode.TRANSACTION_ABORTABLE and not knows_abortable:
        return ErrorCode.INVALID_TXN_STATE
    return code
