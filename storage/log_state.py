"""A log's checkpointed offsets, which the loader takes, and the log's state in memory, which it fills."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.storage import layout
from barnabas.storage.append.leader_epochs import LeaderEpochCache
from barnabas.storage.files import Files
from barnabas.storage.log_config import LogConfig
from barnabas.storage.producers.producer_state import ProducerState
from barnabas.storage.producers.snapshot_files import SnapshotFiles
from barnabas.storage.segments.log_segments import Segments


class Checkpointed(NamedTuple):
    """What the checkpoint files and the clean shutdown marker of a log directory say about one log."""

    clean_shutdown: bool = True
    recovery_point: int = 0
    log_start_offset: int = 0

    @property
    def begins_above_its_end(self) -> bool:
        """Whether the log starts above its end, which no clean stop leaves."""
        return self.clean_shutdown and self.log_start_offset > self.recovery_point

    def must_exist(self, offset: int) -> bool:
        """Whether records at or above `offset` were synced and are not deleted (rule L2)."""
        return offset < self.recovery_point and self.log_start_offset < self.recovery_point


class TornTail(NamedTuple):
    """Data that recovery has cut off: its first offset, its bytes, and the files that keep a copy, if any."""

    offset: int
    size: int
    kept_in: list[str]

    def __str__(self) -> str:
        where = ", ".join(self.kept_in)
        copy_note = f"; there were whole record batches among them, so they are kept in {where}" if where else ""
        return f"{self.size} bytes that were not synced, from offset {self.offset} on{copy_note}"


class LogState:
    """The state of one log in memory; the loader fills it and a `Log` is made from it."""

    __slots__ = (
        "config",
        "directory",
        "files",
        "is_changed",
        "is_replica",
        "leader_epochs",
        "log_end_offset",
        "log_start_offset",
        "may_have_gaps",
        "producers",
        "recovery_point",
        "segments",
        "snapshots",
        "topic_id",
        "torn",
    )

    def __init__(
        self,
        files: Files,
        directory: str,
        config: LogConfig,
        topic_id: bytes,
        *,
        may_have_gaps: bool = False,
        is_replica: bool = False,
    ) -> None:
        """`may_have_gaps`: offsets may be missing anywhere, also above the recovery point (in a log under repair).

        `is_replica`: they may be missing within a segment, since a leader that had compacted its log sent the batches.
        """
        self.files = files
        self.directory = directory
        self.config = config
        self.topic_id = topic_id
        self.may_have_gaps = may_have_gaps
        self.is_replica = is_replica
        self.segments = Segments()
        self.leader_epochs = LeaderEpochCache(files, f"{directory}/{layout.LEADER_EPOCH_CHECKPOINT}")
        self.producers = ProducerState()
        self.snapshots = SnapshotFiles(files, directory)
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.recovery_point = 0
        self.torn: TornTail | None = None
        """The data that recovery has cut off."""
        self.is_changed = False
        """Whether loading has changed files, so that the next clean stop has to sync the log."""
