"""Replays the log of a coordinator's partition into the coordinator, from the first record to the last.

Offsets that were committed in a transaction take effect at its commit marker. Those of a transaction that is still
open stay pending in the coordinator until its marker is written (T5).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

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

Replay: TypeAlias = "Callable[[BatchView, Record], None]"
"""Applies one record of a log, given with its batch, to a coordinator."""

READ_BYTES: Final = 512 * 1024
"""How much of a log is read at a time."""
STEP_RECORDS: Final = 50
"""How many records are replayed in a step: about a millisecond."""


def replay_log(partition: Partition, replay: Replay) -> Iterator[int]:
    """Call `replay` with each record of a partition's log; yields the number of records so far after each step.

    Includes records that are appended while this runs. Records that cannot be parsed are skipped with an error in the
    log.
    """
    offset, count = partition.log.log_start_offset, 0
    while offset < partition.log.log_end_offset:
        log = partition.log  # it may move to another log directory meanwhile
        slice_ = log.read(offset, READ_BYTES, limit_offset=log.log_end_offset, min_one_batch=True).slice
        if slice_ is None:
            break
        for batch in iter_batches(slice_.read(), partial_ok=True):
            offset = batch.next_offset
            for record in iter_records(batch):
                count += 1
                try:
                    replay(batch, record)
                except ProtocolError as error:
                    logger.error("Skipping the record at offset %d of %r: %s", record.offset, partition, error)
                if count % STEP_RECORDS == 0:
                    yield count
            yield count


def group_replay(coordinator: GroupCoordinator, at: Moment) -> Replay:
    """Replays records of `__consumer_offsets`."""

    def replay(batch: BatchView, record: Record) -> None:
        if batch.is_control:
            is_commit = control_record_type(record) == ControlRecordType.COMMIT
            coordinator.replay_end(batch.producer_id, at, commit=is_commit)
        elif batch.is_transactional:
            coordinator.replay_pending(batch.producer_id, record.key or b"", record.value, record.offset)
        else:
            coordinator.replay(record.key or b"", record.value, at, record.offset)

    return replay


def transaction_replay(coordinator: TransactionCoordinator, at: Moment) -> Replay:
    """Replays records of `__transaction_state`. Markers, which WriteTxnMarkers appends anywhere, mean nothing there."""

    def replay(batch: BatchView, record: Record) -> None:
        if not batch.is_control:
            coordinator.replay(record.key or b"", record.value, at)

    return replay


def share_replay(coordinator: ShareCoordinator, at: Moment) -> Replay:
    """Replays records of `__share_group_state`. Markers, which WriteTxnMarkers appends anywhere, mean nothing there."""

    def replay(batch: BatchView, record: Record) -> None:
        if not batch.is_control:
            coordinator.replay(record.key or b"", record.value, at, record.offset)

    return replay
