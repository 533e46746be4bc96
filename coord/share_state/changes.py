"""The records that change the state of a share partition: updates and snapshots (KIP-932)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from barnabas.coord.share_state import records
from barnabas.coord.share_state.batches import StateBatch, combine
from barnabas.wire.messages.records.coordinator_records import (
    ShareSnapshotValue,
    ShareSnapshotValueStateBatch,
    ShareUpdateValue,
    ShareUpdateValueStateBatch,
)

if TYPE_CHECKING:
    from barnabas.coord.machine import CoordinatorRecord, Moment
    from barnabas.coord.share_state.key import SharePartitionKey
    from barnabas.coord.share_state.state import ShareState


class Change(NamedTuple):
    """New state of a share partition."""

    batches: Sequence[StateBatch]
    start_offset: int
    complete_count: int
    leader_epoch: int


def leader_change(state: ShareState, leader_epoch: int) -> Change:
    """A change of the leader epoch only."""
    return Change((), state.start_offset, state.delivery_complete_count, leader_epoch)


def complete_count(state: ShareState, start_offset: int, count: int) -> int:
    """The number of finished records from the start offset on; neither it nor the start offset ever decreases."""
    if start_offset < state.start_offset:
        return state.delivery_complete_count
    return max(count, state.delivery_complete_count) if start_offset == state.start_offset else count


def update(key: SharePartitionKey, state: ShareState, change: Change) -> CoordinatorRecord:
    """The record that holds the change only."""
    value = ShareUpdateValue(
        snapshot_epoch=state.snapshot_epoch,
        leader_epoch=change.leader_epoch,
        start_offset=change.start_offset,
        delivery_complete_count=change.complete_count,
        state_batches=[
            ShareUpdateValueStateBatch(first_offset=first, last_offset=last, delivery_state=kind, delivery_count=count)
            for first, last, kind, count in combine((), change.batches, change.start_offset)
        ],
    )
    return records.update_record(key, value)


def snapshot(key: SharePartitionKey, state: ShareState, change: Change, at: Moment) -> CoordinatorRecord:
    """The record that holds the whole state, the change included."""
    value = _whole_state(state, change)
    value.create_timestamp = value.write_timestamp = at.now_ms
    return records.snapshot_record(key, value)


def repeated_snapshot(key: SharePartitionKey, state: ShareState, at: Moment) -> CoordinatorRecord:
    """The record that repeats the current state; its creation time stays."""
    value = _whole_state(state, leader_change(state, state.leader_epoch))
    value.create_timestamp, value.write_timestamp = state.create_timestamp_ms, at.now_ms
    return records.snapshot_record(key, value)


def _whole_state(state: ShareState, change: Change) -> ShareSnapshotValue:
    merged = combine(state.batches, change.batches, change.start_offset)
    return ShareSnapshotValue(
        snapshot_epoch=state.snapshot_epoch + 1,
        state_epoch=state.state_epoch,
        leader_epoch=change.leader_epoch,
        start_offset=change.start_offset,
        delivery_complete_count=change.complete_count,
        state_batches=[ShareSnapshotValueStateBatch(**batch._asdict()) for batch in merged],
    )
