"""Reading a coordinator's partition back into it, from the first record to the last.

Offsets that were committed in a transaction count from its commit marker on. Those of a transaction that is still open
are left out, and stay in the log for whoever ends it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from coord.groups.pending_offsets import PendingOffsets
from coord.machine import CoordinatorRecord
from wire.errors import ProtocolError
from wire.records import ControlRecordType, control_record_type, iter_batches, iter_records

if TYPE_CHECKING:
    from broker.partition import Partition
    from coord.groups.coordinator import GroupCoordinator
    from coord.machine import Moment
    from wire.records import BatchView

logger = logging.getLogger("kafka.coordinator.group.GroupCoordinator")

LOAD_BYTES = 5 * 1024 * 1024
"""Read at a time when a log is replayed."""


def replay_log(partition: Partition, coordinator: GroupCoordinator, at: Moment) -> int:
    """Replay a partition's whole log; gives the number of records that are in force."""
    log = partition.log
    offset, end = log.log_start_offset, log.log_end_offset
    pending = PendingOffsets()
    count = 0
    while offset < end:
        slice_ = log.read(offset, LOAD_BYTES, limit_offset=end, min_one_batch=True).slice
        if slice_ is None:
            break
        for batch in iter_batches(slice_.read(), partial_ok=True):
            offset = batch.next_offset
            for record in _in_force(batch, pending):
                count += 1
                try:
                    coordinator.replay(record.key, record.value, at)
                except ProtocolError as error:
                    logger.error("Skipping a record up to offset %d of %r: %s", batch.last_offset, partition, error)
    if pending:
        logger.warning("%d offsets in %r belong to transactions that have not ended", len(pending), partition)
    return count


def _in_force(batch: BatchView, pending: PendingOffsets) -> list[CoordinatorRecord]:
    """What a batch makes the coordinator's state."""
    if batch.is_control:
        (marker,) = iter_records(batch)
        is_commit = control_record_type(marker) == ControlRecordType.COMMIT
        return pending.end(batch.producer_id, commit=is_commit)
    in_force = []
    for record in iter_records(batch):
        held = CoordinatorRecord(record.key or b"", record.value)
        if batch.is_transactional:
            pending.hold(batch.producer_id, record.offset, held)
        else:
            pending.saw(record.offset, held)
            in_force.append(held)
    return in_force
