"""The state of one share partition, as in the records of `__share_group_state`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.coord.share_state.batches import NO_OFFSET, combine, state_batches

if TYPE_CHECKING:
    from barnabas.coord.share_state.batches import StateBatch
    from barnabas.wire.messages.records.coordinator_records import ShareSnapshotValue, ShareUpdateValue

NO_COUNT = -1
NO_LEADER_EPOCH = -1


class ShareState:
    """A snapshot with the updates after it applied. Only `replay` of the coordinator changes it."""

    __slots__ = (
        "batches",
        "create_timestamp_ms",
        "delivery_complete_count",
        "leader_epoch",
        "leader_epoch_fence",
        "snapshot_epoch",
        "snapshot_offset",
        "start_offset",
        "state_epoch",
        "updates",
        "write_timestamp_ms",
    )

    def __init__(self) -> None:
        self.snapshot_epoch = 0
        self.state_epoch = 0
        """The highest so far: a write from before the group's start offset was reset has a lower one and is refused."""
        self.leader_epoch = 0
        self.start_offset = NO_OFFSET
        """First offset that is not finished (SPSO); -1 when it is to be determined from the log."""
        self.delivery_complete_count = NO_COUNT
        """Number of finished records from the start offset on; -1 when unknown."""
        self.batches: list[StateBatch] = []
        self.create_timestamp_ms = 0
        self.write_timestamp_ms = 0
        self.updates = 0
        """Update records since the last snapshot."""
        self.leader_epoch_fence = 0
        """The highest leader epoch so far: a write of an older leader is refused."""
        self.snapshot_offset: int | None = None
        """Offset of the last snapshot in the state partition; records of this key before it are not needed."""

    def apply_snapshot(self, value: ShareSnapshotValue, offset: int) -> None:
        """Apply a snapshot at `offset`: it replaces everything except the highest leader epoch."""
        self.snapshot_epoch = value.snapshot_epoch
        self.state_epoch = value.state_epoch
        self.leader_epoch = value.leader_epoch
        self.start_offset = value.start_offset
        self.delivery_complete_count = value.delivery_complete_count
        self.batches = combine((), state_batches(value.state_batches), NO_OFFSET)
        self.create_timestamp_ms = value.create_timestamp
        self.write_timestamp_ms = value.write_timestamp
        self.snapshot_offset = offset
        self.leader_epoch_fence = max(self.leader_epoch_fence, value.leader_epoch)
        self.updates = 0

    def apply_update(self, value: ShareUpdateValue) -> None:
        """Apply an update. When its snapshot was deleted from the log, it is applied to an empty state."""
        if value.start_offset != NO_OFFSET:
            self.start_offset = value.start_offset
        if value.leader_epoch != NO_LEADER_EPOCH:
            self.leader_epoch = value.leader_epoch
        self.snapshot_epoch = value.snapshot_epoch
        self.delivery_complete_count = value.delivery_complete_count
        self.batches = combine(self.batches, state_batches(value.state_batches), self.start_offset)
        self.leader_epoch_fence = max(self.leader_epoch_fence, value.leader_epoch)
        self.updates += 1
