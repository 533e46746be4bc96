"""The state of one share partition, as the records of `__share_group_state` say it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.coord.share_state.batches import NO_OFFSET, combine, state_batches

if TYPE_CHECKING:
    from barnabas.coord.share_state.batches import StateBatch
    from barnabas.wire.messages.coordinator_records import ShareSnapshotValue, ShareUpdateValue

NO_COUNT = -1
NO_LEADER_EPOCH = -1


class ShareState:
    """What a snapshot and the updates after it amount to. Only `replay` of the coordinator changes it."""

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
        """The highest there was: a write about the state before the group's position was set anew is refused."""
        self.leader_epoch = 0
        self.start_offset = NO_OFFSET
        """First offset that is not finished: the SPSO; -1 when the partition is to find it out."""
        self.delivery_complete_count = NO_COUNT
        """Records from the start offset on that are finished; -1 when nobody has counted."""
        self.batches: list[StateBatch] = []
        self.create_timestamp_ms = 0
        self.write_timestamp_ms = 0
        self.updates = 0
        """Update records since the last snapshot."""
        self.leader_epoch_fence = 0
        """The highest leader epoch there was: a write of an older leader is refused."""
        self.snapshot_offset: int | None = None
        """Where the last snapshot lies in the state partition: nothing before it is needed."""

    def take_snapshot(self, value: ShareSnapshotValue, offset: int) -> None:
        """A snapshot at `offset` says everything anew, except which leaders have been."""
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

    def take_update(self, value: ShareUpdateValue) -> None:
        """An update says what has changed since; of a deleted snapshot, all that is left to know."""
        if value.start_offset != NO_OFFSET:
            self.start_offset = value.start_offset
        if value.leader_epoch != NO_LEADER_EPOCH:
            self.leader_epoch = value.leader_epoch
        self.snapshot_epoch = value.snapshot_epoch
        self.delivery_complete_count = value.delivery_complete_count
        self.batches = combine(self.batches, state_batches(value.state_batches), self.start_offset)
        self.leader_epoch_fence = max(self.leader_epoch_fence, value.leader_epoch)
        self.updates += 1
