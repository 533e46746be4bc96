"""The segments of a log, and which of them are durable. Offsets and producers are in `storage.log`.

Invariants:
- all data below `synced_offset` is durable;
- all data below `recovery_point` is durable with its indexes and leader epochs, or in the segment of the recovery
  point, from whose batches recovery rebuilds both; data above it is checked after an unclean stop (rule L1).

Source: Kafka's `LocalLog`.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.storage import layout
from barnabas.storage.append.flush_job import FlushJob
from barnabas.storage.files import File
from barnabas.storage.log_config import LogConfig
from barnabas.storage.log_state import LogState
from barnabas.storage.producers.snapshot_files import SnapshotFiles
from barnabas.storage.read.log_reader import LogReader
from barnabas.storage.segments.segment import Segment
from barnabas.wire.errors import ErrorCode, KafkaError


class LocalLog:
    """One partition's segments."""

    __slots__ = (
        "_changed",
        "_dir_version",
        "_reader",
        "_snapshots",
        "_synced_dir_version",
        "_truncations",
        "config",
        "directory",
        "files",
        "is_cleaning",
        "leader_epochs",
        "log_end_offset",
        "partition",
        "recovery_limit",
        "recovery_point",
        "segments",
        "synced_offset",
        "topic",
    )

    def __init__(self, topic: str, partition: int, state: LogState) -> None:
        self.topic = topic
        self.partition = partition
        self.files = state.files
        self.directory = state.directory
        self.config = state.config
        self.segments = state.segments
        self.log_end_offset = state.log_end_offset
        self.recovery_point = state.recovery_point
        self.synced_offset = state.recovery_point
        self.is_cleaning = False
        """Whether a cleaner is reading the closed segments: none of them is deleted or truncated meanwhile."""
        self.recovery_limit: int | None = None
        """While the log is about to be truncated: the recovery point that the checkpoint file must not exceed."""
        self.leader_epochs = state.leader_epochs
        self._snapshots = state.snapshots
        self._reader = LogReader(self.segments, self.files.open_files)
        self._changed = state.is_changed
        self._dir_version = int(state.is_changed)  # incremented when a file is created, renamed or removed
        self._synced_dir_version = 0
        self._truncations = 0

    @property
    def size_bytes(self) -> int:
        """The bytes of all log files."""
        return self.segments.size_bytes

    @property
    def unflushed(self) -> int:
        """The number of offsets that are not known to be durable."""
        return self.log_end_offset - self.synced_offset

    @property
    def recovery_point_to_write(self) -> int:
        """The recovery point for the checkpoint file.

        At the log end it is one less: a segment may start right there before the next checkpoint is written, and the
        segment before it would then be trusted although its indexes were not synced since it was closed.
        """
        point = self.recovery_point
        if self._changed and point == self.log_end_offset > self.segments.active.base_offset:
            point -= 1
        return point if self.recovery_limit is None else min(point, self.recovery_limit)

    def update_config(self, config: LogConfig) -> None:
        """Replace the configuration; it applies from the next append on."""
        self.config = config

    # --- removing and replacing segments

    def delete_segments_below(self, offset: int) -> list[str]:
        """Rename the files of segments wholly below `offset` to `.deleted`, except for the active one; the new names.

        The caller removes the renamed files after file.delete.delay.ms. A segment's log file is renamed last, and the
        segment belongs to the log until then: after an OSError the next call continues with it. What was renamed
        before that is returned then; an OSError is raised if it was nothing.
        """
        renamed: list[str] = []
        while not self.is_cleaning and len(self.segments) > 1 and self.segments[1].base_offset <= offset:
            segment = self.segments[0]
            try:
                self.drop(segment, renamed)
            except OSError:
                if not renamed:
                    raise
                break
        return renamed

    def drop(self, segment: Segment, renamed: list[str]) -> None:
        """Rename the files of a segment to `.deleted`, add the new names to `renamed`, and forget the segment.

        OSError when the disk failed: the segment still belongs to the log, and the call can be repeated.
        """
        for path in [self._snapshots.path(segment.base_offset), *reversed(segment.paths())]:
            if self.files.exists(path):
                self._directory_changes()
                self.files.rename(path, path + layout.DELETED_SUFFIX)
                renamed.append(path + layout.DELETED_SUFFIX)
        self.segments.remove(segment)
        segment.forget()
        self._reader.forget()

    @property
    def snapshots(self) -> SnapshotFiles:
        """The producer snapshots."""
        return self._snapshots

    def replace_segments(self, replaced: Sequence[Segment], new: Segment) -> None:
        """Read from `new` instead of these adjacent segments; `storage.recover.swap` handles their files."""
        for segment in replaced:
            self.segments.remove(segment)
        self.segments.add(new)
        self._reader.forget()
        self._directory_changes()

    def delete_renamed(self, unique: str) -> str:
        """Rename the partition's directory for deletion; the new path. `unique` is 32 hex digits. Not synced.

        The log must not be used afterwards, except for slices that are still being sent.
        """
        parent = self.directory.rpartition("/")[0]
        renamed = f"{parent}/{layout.deleted_dir_name(self.topic, self.partition, unique)}"
        with self.leader_epochs.closing():
            self.files.rename(self.directory, renamed)
        self.directory = renamed
        for segment in self.segments:
            segment.forget()
        return renamed

    def relocate(self, directory: str) -> None:
        """The directory was renamed; no write of leader epochs is in progress."""
        self.directory = directory
        self.leader_epochs.relocate(f"{directory}/{layout.LEADER_EPOCH_CHECKPOINT}")
        self._snapshots.relocate(directory)
        for segment in self.segments:
            segment.relocate(directory)

    @property
    def truncations(self) -> int:
        """How often the log was truncated since it was opened."""
        return self._truncations

    # --- durability

    def _directory_changes(self) -> None:
        """A file is created, renamed or removed: the next flush, or else a clean stop, syncs the directory.

        The next start takes the names in the directory for durable.
        """
        self._dir_version += 1
        self._changed = True

    def start_flush(self, up_to: int | None = None, *, data_only: bool = False) -> FlushJob | None:
        """The job that makes the log durable up to the offset `up_to` (default: the log end); None when it is already.

        Run the job, in a thread if necessary, then pass it to `finish_flush`. With `data_only` index files and leader
        epochs are not written and synced: that is enough to acknowledge records, and faster.
        """
        offset = self.log_end_offset if up_to is None else min(up_to, self.log_end_offset)
        durable = self.synced_offset if data_only else self.recovery_point
        if offset <= durable and self._dir_version == self._synced_dir_version:
            return None
        targets: list[File | str] = []
        segments: list[Segment] = []
        for segment in self.segments.from_offset(durable):
            if segment.base_offset < offset or segment.size == 0:
                segments.append(segment)
                files = segment.files_to_sync(data_only=data_only)
                if len(files) > segment.file_count:  # index files were created
                    segment.file_count = len(files)
                    self._dir_version += 1
                targets.extend(files)
        directories = []
        epochs = None
        if not data_only:
            targets.extend(self._snapshots.unsynced_paths())
            epochs = self.leader_epochs.start_write()
            if epochs is not None:
                targets.append(epochs.temporary)
                directories = [self.directory]
        if self._dir_version != self._synced_dir_version:
            directories = [self.directory, self.directory.rpartition("/")[0]]
            targets.append(f"{self.directory}/{layout.PARTITION_METADATA}")
        job = FlushJob(
            self.files, targets, directories, offset, self._dir_version, self._truncations, data_only=data_only
        )
        job.epochs = epochs
        job.snapshots = [] if data_only else list(self._snapshots.unsynced)
        for segment in segments:
            job.segments.append((segment, segment.size))
            job.file_system = job.file_system or segment.file_system_to_sync
        return job

    def finish_flush(self, job: FlushJob) -> None:
        """Advance `synced_offset` and `recovery_point` after `job` has run, unless the log was truncated meanwhile."""
        self._synced_dir_version = max(self._synced_dir_version, job.dir_version)
        if job.epochs is not None:
            self.leader_epochs.finish_write(job.epochs)
        if job.snapshots:
            self._snapshots.synced(job.snapshots)
        if job.truncations != self._truncations:
            return
        for segment, size in job.segments:
            segment.synced(size)
        self.synced_offset = max(self.synced_offset, job.offset)
        point = job.offset
        if job.data_only:  # recovery has to read closed segments, whose indexes and leader epochs are not durable
            end = self.segments.next_base(max(0, self.segments.floor_index(self.recovery_point)))
            point = point if end is None else min(point, end - 1)
        self.recovery_point = max(self.recovery_point, point)

    def flush(self, *, data_only: bool = False) -> None:
        """Make the whole log durable before returning. KafkaError(KAFKA_STORAGE_ERROR) when the disk failed."""
        try:
            job = self.start_flush(data_only=data_only)
            if job is not None:
                job.run()
                self.finish_flush(job)
        except OSError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"Cannot flush {self.directory}: {error}") from error
