"""Reading a coordinator's partition back into it, from the first record to the last.

Offsets that were committed in a transaction count from its commit marker on. Those of a transaction that is still open
stay pending in the coordinator, until whoever ends it writes the marker.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeAlias

from barnabas.wire.errors import ProtocolError
from barnabas.wire.records import ControlRecordType, control_record_type, iter_batches, iter_records

if TYPE_CHECKING:
    from barnabas.broker.replicas.partition import Partition
    from barnabas.coord.groups.coordinator import GroupCoordinator
    from barnabas.coord.machine import Moment
    from barnabas.coord.share_state.coordinator import ShareCoordinator
    from barnabas.coord.transactions.coordinator import TransactionCoordinator
    from barnabas.wire.records import BatchView, Record

logger = logging.getLogger("kafka.coordinator.Runtime")

Take: TypeAlias = "Callable[[BatchView, Record], None]"

LOAD_BYTES = 5 * 1024 * 1024
"""Read at a time when a log is replayed."""


def replay_log(partition: Partition, take: Take) -> Iterator[int]:
    """Give each record of a partition's whole log, with its batch, to `take`; the number of records after each batch.

    What is written while this goes on belongs to it.
    """
    log = partition.log
    offset, count = log.log_start_offset, 0
    while offset < log.log_end_offset:
        slice_ = log.read(offset, LOAD_BYTES, limit_offset=log.log_end_offset, min_one_batch=True).slice
        if slice_ is None:
            break
        for batch in iter_batches(slice_.read(), partial_ok=True):
            offset = batch.next_offset
            for record in iter_records(batch):
                count += 1
                try:
                    take(batch, record)
                except ProtocolError as error:
                    logger.error("Skipping the record at offset %d of %r: %s", record.offset, partition, error)
            yield count


def into_groups(coordinator: GroupCoordinator, at: Moment) -> Take:
    """Replays `__consumer_offsets`: what is committed in a transaction counts from its marker on (T5)."""

    def take(batch: BatchView, record: Record) -> None:
        if batch.is_control:
            is_commit = control_record_type(record) == ControlRecordType.COMMIT
            coordinator.replay_end(batch.producer_id, at, commit=is_commit)
        elif batch.is_transactional:
            coordinator.replay_pending(batch.producer_id, record.key or b"", record.value, record.offset)
        else:
            coordinator.replay(record.key or b"", record.value, at, record.offset)

    return take


def into_transactions(coordinator: TransactionCoordinator, at: Moment) -> Take:
    """Replays `__transaction_state`."""

    def take(_batch: BatchView, record: Record) -> None:
        coordinator.replay(record.key or b"", record.value, at)

    return take


def into_shares(coordinator: ShareCoordinator, at: Moment) -> Take:
    """Replays `__share_group_state`."""

    def take(_batch: BatchView, record: Record) -> None:
        coordinator.replay(record.key or b"", record.value, at, record.offset)

    return take
