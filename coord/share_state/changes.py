"""Records that say how the state of a share partition changes: updates, and snapshots that begin anew (KIP-932)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from barnabas.coord.share_state import records
from barnabas.coord.share_state.batches import StateBatch, combine
from barnabas.wire.messages.coordinator_records import (
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
    """What is new about a share partition."""

    batches: Sequence[StateBatch]
    start_offset: int
    complete_count: int
    leader_epoch: int


def nothing_but(state: ShareState, leader_epoch: int) -> Change:
    """A new leader, everything else as it is."""
    return Change((), state.start_offset, state.delivery_complete_count, leader_epoch)


def complete_count(state: ShareState, start_offset: int, count: int) -> int:
    """How many records from the start offset on are finished: the start offset never goes back, nor the count there."""
    if start_offset < state.start_offset:
        return state.delivery_complete_count
    return max(count, state.delivery_complete_count) if start_offset == state.start_offset else count


def update(about: SharePartitionKey, state: ShareState, change: Change) -> CoordinatorRecord:
    """The change alone, on top of the last snapshot."""
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
    return records.update_record(about, value)


def snapshot(about: SharePartitionKey, state: ShareState, change: Change, at: Moment) -> CoordinatorRecord:
    """Everything, with the change in it."""
    value = _everything(state, change)
    value.create_timestamp = value.write_timestamp = at.now_ms
    return records.snapshot_record(about, value)


def snapshot_again(about: SharePartitionKey, state: ShareState, at: Moment) -> CoordinatorRecord:
    """Everything that is known already; the time of its creation stays."""
    value = _everything(state, nothing_but(state, state.leader_epoch))
    value.create_timestamp, value.write_timestamp = state.create_timestamp_ms, at.now_ms
    return records.snapshot_record(about, value)


def _everything(state: ShareState, change: Change) -> ShareSnapshotValue:
    merged = combine(state.batches, change.batches, change.start_offset)
    return ShareSnapshotValue(
        snapshot_epoch=state.snapshot_epoch + 1,
        state_epoch=state.state_epoch,
        leader_epoch=change.leader_epoch,
        start_offset=change.start_offset,
        delivery_complete_count=change.complete_count,
        state_batches=[ShareSnapshotValueStateBatch(**batch._asdict()) for batch in merged],
    )
