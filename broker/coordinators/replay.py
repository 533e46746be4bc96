"""Replays the log of a coordinator's partition into the coordinator, from the first record to the last.

Offsets that were committed in a transaction take effect at its commit marker. Those of a transaction that is still
open stay pending in the coordinator until its marker is written (T5).

It is done in steps of about a millisecond (G7): each record has a cost, since most records of `__consumer_offsets` take
a tenth of what others take.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from barnabas.wire.batches.records import (
    ControlRecordType,
    Record,
    control_record_type,
    iter_batches,
    iter_record_fields,
)
from barnabas.wire.errors import ProtocolError

if TYPE_CHECKING:
    from barnabas.broker.replicas.partition import Partition
    from barnabas.coord.groups.coordinator import GroupCoordinator
    from barnabas.coord.machine import Moment
    from barnabas.coord.share_state.coordinator import ShareCoordinator
    from barnabas.coord.transactions.coordinator import TransactionCoordinator
    from barnabas.wire.batches.records import BatchView, RecordFields

logger = logging.getLogger("kafka.coordinator.Runtime")

RecordReplay: TypeAlias = "Callable[[RecordFields], int]"
"""Applies one record to a coordinator; returns its cost, about the microseconds that it has taken."""
Replay: TypeAlias = "Callable[[BatchView], RecordReplay]"
"""Returns, for a batch, the function that applies its records."""

READ_BYTES: Final = 512 * 1024
"""How much of a log is read at a time."""
STEP_COST: Final = 1000
"""The cost of the records and batches that are replayed in a step: about a millisecond."""
RECORD_COST: Final = 20
SHORT_RECORD_COST: Final = 2
BATCH_COST: Final = 5


def replay_log(partition: Partition, replay: Replay) -> Iterator[int]:
    """Replay each record of a partition's log; yields the number of records so far after each step.

    Includes records that are appended while this runs. Records that cannot be parsed are skipped with an error in the
    log.
    """
    offset, count, cost = partition.log.log_start_offset, 0, 0
    while offset < partition.log.log_end_offset:
        log = partition.log  # it may move to another log directory meanwhile
        slice_ = log.read(offset, READ_BYTES, limit_offset=log.log_end_offset, min_one_batch=True).slice
        if slice_ is None:
            break
        for batch in iter_batches(slice_.read(), partial_ok=True):
            offset = batch.next_offset
            replay_record = replay(batch)
            cost += BATCH_COST
            for record in iter_record_fields(batch):
                count += 1
                try:
                    cost += replay_record(record)
                except ProtocolError as error:
                    cost += RECORD_COST
                    logger.error("Skipping the record at offset %d of %r: %s", record[0], partition, error)
                if cost >= STEP_COST:
                    cost = 0
                    yield count
        yield count  # here, since records may be appended until the next step


def group_replay(coordinator: GroupCoordinator, at: Moment) -> Replay:
    """Replays records of `__consumer_offsets`."""
    replay_known = coordinator.replay_known

    def replay_plain(record: RecordFields) -> int:
        offset, _, key, value, _, _ = record
        if key and value and replay_known(key, value):
            return SHORT_RECORD_COST
        coordinator.replay(key or b"", value, at, offset)
        return RECORD_COST

    def replay(batch: BatchView) -> RecordReplay:
        if batch.is_control:
            return partial(_replay_end, coordinator, batch.producer_id, at)
        if batch.is_transactional:
            return partial(_replay_pending, coordinator, batch.producer_id, at)
        return replay_plain

    return replay


def _replay_end(coordinator: GroupCoordinator, producer_id: int, at: Moment, record: RecordFields) -> int:
    is_commit = control_record_type(Record(*record)) == ControlRecordType.COMMIT
    coordinator.replay_end(producer_id, at, commit=is_commit)
    return RECORD_COST


def _replay_pending(coordinator: GroupCoordinator, producer_id: int, at: Moment, record: RecordFields) -> int:
    offset, _, key, value, _, _ = record
    coordinator.replay_pending(producer_id, key or b"", value, at, offset)
    return RECORD_COST


def transaction_replay(coordinator: TransactionCoordinator, at: Moment) -> Replay:
    """Replays records of `__transaction_state`. Markers, which WriteTxnMarkers may append, have no effect there."""

    def replay_record(record: RecordFields) -> int:
        _, _, key, value, _, _ = record
        coordinator.replay(key or b"", value, at)
        return RECORD_COST

    return lambda batch: _ignore if batch.is_control else replay_record


def share_replay(coordinator: ShareCoordinator, at: Moment) -> Replay:
    """Replays records of `__share_group_state`. Markers, which WriteTxnMarkers may append, have no effect there."""

    def replay_record(record: RecordFields) -> int:
        offset, _, key, value, _, _ = record
        coordinator.replay(key or b"", value, at, offset)
        return RECORD_COST

    return lambda batch: _ignore if batch.is_control else replay_record


def _ignore(_: RecordFields) -> int:
    return SHORT_RECORD_COST
