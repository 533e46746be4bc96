"""Which snapshots have to be repeated, so that the log before them can be deleted (KIP-932).

Source: Kafka 4.4 `ShareCoordinatorShard.snapshotColdPartitions`, `ShareCoordinatorOffsetsManager`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.coord.share_state.changes import repeated_snapshot

if TYPE_CHECKING:
    from collections.abc import Mapping

    from barnabas.coord.machine import CoordinatorRecord, Moment
    from barnabas.coord.share_state.key import SharePartitionKey
    from barnabas.coord.share_state.state import ShareState


def cold_snapshots(
    states: Mapping[SharePartitionKey, ShareState], interval_ms: int, at: Moment
) -> list[CoordinatorRecord]:
    """Snapshots of the partitions whose last snapshot is `interval_ms` old or older.

    None when the last snapshot of every partition is a repeated one: without writes the log does not grow.
    """
    if all(state.create_timestamp_ms != state.write_timestamp_ms for state in states.values()):
        return []
    return [
        repeated_snapshot(key, state, at)
        for key, state in states.items()
        if at.now_ms - state.write_timestamp_ms >= interval_ms
    ]


def old_snapshots(states: Mapping[SharePartitionKey, ShareState], before: int, at: Moment) -> list[CoordinatorRecord]:
    """Snapshots of the partitions whose last snapshot is at an offset below `before`."""
    return [
        repeated_snapshot(key, state, at)
        for key, state in states.items()
        if state.snapshot_offset is not None and state.snapshot_offset < before
    ]


def first_needed_offset(states: Mapping[SharePartitionKey, ShareState], end_offset: int) -> int:
    """The lowest offset of a last snapshot, `end_offset` when there is none."""
    offsets = [state.snapshot_offset for state in states.values()]
    return min((offset for offset in offsets if offset is not None), default=end_offset)
