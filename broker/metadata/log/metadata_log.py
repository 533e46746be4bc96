"""`__cluster_metadata-0`: the log of the cluster's metadata, replayed at start and synced with every write.

A write is a generator of steps: its sync runs in a thread, and its records are replayed into the image once they are
durable. There is one write at a time (`change_queue`).

The log has Kafka's format and the fixed topic id 00..01, so Kafka can continue it, and Barnabas can continue Kafka's.
Each start begins a new epoch, which is written to `quorum-state` first, with a LeaderChange record, as in a quorum of
one. A metadata transaction that was not ended is aborted. When the log has grown, or time has passed, a snapshot is
written (`snapshot_schedule`), and the segments it covers are deleted. After a failed sync the state on disk is unknown:
the log accepts no more writes. KIP-595, KIP-630.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from barnabas.broker.config.keys.general import MIN_INSYNC_REPLICAS
from barnabas.broker.config.profiles import KAFKA
from barnabas.broker.event_loop.steps import run_in_place
from barnabas.broker.metadata.log.metadata_dir import open_metadata_log, write_snapshot
from barnabas.broker.metadata.log.quorum_state import check_servable, new_quorum, read_election, write_epoch
from barnabas.broker.metadata.log.snapshot_schedule import SnapshotSchedule
from barnabas.broker.metadata.log.snapshots import load_newest, snapshot_ids
from barnabas.coord.cluster.delta import ClusterDelta
from barnabas.coord.cluster.image import ClusterImage, UnknownMetadataError
from barnabas.coord.cluster.metadata_log.metadata_batches import (
    as_written_in_steps,
    build_metadata_batch_in_steps,
    leader_change_batch,
    replay_batches,
)
from barnabas.coord.cluster.metadata_log.replay import replay_in_steps
from barnabas.coord.cluster.node_records import bootstrap_records, cluster_bootstrap_records
from barnabas.coord.topic_names import CLUSTER_METADATA_TOPIC
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.records.metadata_records import AbortTransactionRecord
from barnabas.wire.schema import Message

if TYPE_CHECKING:
    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.event_loop.steps import Steps
    from barnabas.broker.log_dir_failures import LogDirFailures
    from barnabas.coord.cluster.quorum import Quorum
    from barnabas.storage.directories.log_dir import LogDir
    from barnabas.storage.directories.log_dirs import LogDirs
    from barnabas.storage.log import Log
    from barnabas.wire.messages.records.raft_records import VotersRecordEndpoint

logger = logging.getLogger("kafka.server.MetadataLog")

READ_BYTES: Final = 1 << 20


class MetadataLog:
    """The metadata log, and the image made by replaying its records."""

    def __init__(
        self,
        loop: Loop,
        config: ServerConfig,
        log_dirs: LogDirs,
        failures: LogDirFailures,
        *,
        is_of_cluster: bool = False,
    ) -> None:
        """`is_of_cluster`: other brokers read the log, and the snapshot before the newest is kept for them."""
        self._is_of_cluster = is_of_cluster
        self.voter_endpoint: VotersRecordEndpoint | None = None
        """The address of this controller as advertised, if it is not the configured one."""
        self._loop = loop
        self._config = config
        self._log_dirs = log_dirs
        self._failures = failures
        self.image = ClusterImage()
        self.snapshots: list[tuple[int, int]] = []
        """(end offset, epoch) of the snapshots that can be read, oldest first; not the one that begins a new log."""
        self.on_commit: list[Callable[[], None]] = []
        """Called when the high watermark has moved, before the records are replayed."""
        self._bootstrap: ClusterImage | None = None
        self._has_failed = False
        self._schedule = SnapshotSchedule(config, loop.now())

    def open(self) -> None:
        """Load the newest snapshot and replay the log after it, then begin a new epoch.

        UnknownMetadataError when the metadata cannot be served, or is missing though there are partitions.
        """
        partitions = set(self._log_dirs.not_opened())
        has_metadata = (CLUSTER_METADATA_TOPIC, 0) in partitions
        if partitions and not has_metadata and self._has_partitions():
            raise self._partitions_without_metadata()
        self._log = open_metadata_log(self._loop, self._config, self._log_dirs)
        self._load_snapshot()
        self._replay_log()
        newest = self.snapshots[-1][0] if self.snapshots else 0
        self._schedule.wrote(sum(segment.size for segment in self._log.segments.from_offset(newest)))
        if self.is_new and len(partitions) > has_metadata and self._has_partitions():
            raise self._partitions_without_metadata()
        election = read_election(self._log)
        check_servable(self.image, self._config.node_id, election.voter_ids, is_of_cluster=self._is_of_cluster)
        before = self.image.quorum
        if self.is_new:
            bootstrap = self._bootstrap
            configured = new_quorum(self._config, self._dir().directory_id, self.voter_endpoint)
            self.image.quorum = configured if bootstrap is None else bootstrap.quorum
        if self.voter_endpoint is not None:
            self.image.quorum = self.image.quorum.at(self._config.node_id, self.voter_endpoint)
        self._begin_epoch(election.epoch, written=self.image.quorum if self.image.quorum != before else None)

    def _has_partitions(self) -> bool:
        """Whether there are directories of partitions without an opened log."""
        self._log_dirs.leave_foreign()
        return any(self._log_dirs.not_opened())

    def _partitions_without_metadata(self) -> UnknownMetadataError:
        """The error that prevents a start that would set aside every partition as a stray."""
        paths = ",".join(log_dir.path for log_dir in self._log_dirs.dirs)
        return UnknownMetadataError(
            f"There are partitions in {paths}, but no metadata of them ({CLUSTER_METADATA_TOPIC}-0): "
            "is it in another metadata.log.dir?"
        )

    def _replay_log(self) -> None:
        offset = self.image.offset + 1
        if offset < self._log.log_start_offset:
            raise UnknownMetadataError(
                f"The metadata log begins at offset {self._log.log_start_offset}, but there is no snapshot of the "
                f"records from offset {offset} to there"
            )
        delta = ClusterDelta()
        while offset < self._log.log_end_offset:
            read = self._log.read(offset, READ_BYTES, limit_offset=self._log.log_end_offset, min_one_batch=True)
            if read.slice is None:
                break
            replay_batches(read.slice.read(), self.image, delta, partial_ok=True)
            offset = self.image.offset + 1
        self._log_dirs.deleted_topics.add_all(delta.removed_topic_ids)

    @property
    def is_new(self) -> bool:
        """Whether nothing has been written to this log yet."""
        return not self.image.features

    def bootstrap_records(self) -> list[Message]:
        """The first records of a new log: those of `kafka-storage format` in a snapshot at offset 0, if there is one.

        Kafka reads that snapshot only once, so its records must be in the log.
        """
        if self._bootstrap is None:
            if self._is_of_cluster or self._config.profile == KAFKA:
                return cluster_bootstrap_records(str(self._config[MIN_INSYNC_REPLICAS]))
            return bootstrap_records()
        from barnabas.coord.cluster.metadata_log.image_records import image_records

        return list(image_records(self._bootstrap))

    @property
    def end_offset(self) -> int:
        """The offset that the next record will have."""
        return self._log.log_end_offset

    @property
    def high_watermark(self) -> int:
        """The end of the records that are committed."""
        return self._log.high_watermark

    @property
    def directory_id(self) -> str:
        """The id of the log directory that the metadata log is in."""
        return self._dir().directory_id

    @property
    def log(self) -> Log:
        """The log on disk, for readers."""
        return self._log

    def _begin_epoch(self, voted_epoch: int, *, written: Quorum | None) -> None:
        """Begin an epoch; `written` is the quorum that becomes part of the log."""
        image = self.image
        image.epoch = max(image.epoch, voted_epoch) + 1
        node_id, now_ms = self._config.node_id, self._loop.now_ms()
        write_epoch(self._log, image.quorum, node_id, image.epoch)
        self._append(leader_change_batch(leader_id=node_id, epoch=image.epoch, now_ms=now_ms, quorum=written))
        self._log.high_watermark = self._log.log_end_offset
        image.offset = self._log.log_end_offset - 1
        if image.is_in_transaction:
            run_in_place(self.write([AbortTransactionRecord(reason="The controller that began it has stopped")], False))

    def write(self, records: Sequence[Message], sync: bool = True) -> Steps[ClusterDelta]:
        """Append records as one batch, sync and replay them; returns their changes.

        KafkaError(KAFKA_STORAGE_ERROR) when the disk fails: nothing has changed then. `sync=False` leaves the sync to
        the next write, for records that no response depends on.
        """
        delta = ClusterDelta()
        if not records:
            return delta
        metadata_version = self.image.metadata_version
        batch = yield from build_metadata_batch_in_steps(
            records, epoch=self.image.epoch, now_ms=self._loop.now_ms(), metadata_version=metadata_version
        )
        self._append(batch)
        if sync:
            yield from self._sync()
        self._log.high_watermark = self._log.log_end_offset
        for committed in self.on_commit:
            committed()
        records = yield from as_written_in_steps(records, metadata_version)
        yield from replay_in_steps(self.image, records, delta)
        self.image.offset = self._log.log_end_offset - 1
        if not self._is_of_cluster:
            self._log_dirs.deleted_topics.add_recent(delta.removed_topic_ids)
        return delta

    def _append(self, batch: bytes) -> None:
        if self._has_failed:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "The metadata log could not be synced and is closed.")
        if self._dir().failure is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "The metadata log is in a log directory that has failed.")
        try:
            self._log.append_as_leader(
                memoryview(bytearray(batch)),
                leader_epoch=self.image.epoch,
                now_ms=self._loop.now_ms(),
                now=self._loop.now(),
                origin="coordinator",
            )
            self._schedule.wrote(len(batch))
        except KafkaError as error:
            if isinstance(error.__cause__, OSError):
                self._failures.report(self._dir(), "write to the metadata log", error.__cause__)
            raise

    def _sync(self) -> Steps[None]:
        """Sync everything that was written."""
        try:
            job = self._log.start_flush(data_only=True)
            if job is not None:
                yield job.run
                self._log.finish_flush(job)
        except OSError as error:
            self._has_failed = True
            self._failures.take_offline(self._dir(), "sync of the metadata log", error)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"Cannot sync the metadata log: {error}") from error

    def _dir(self) -> LogDir:
        log_dir = self._log_dirs.dir_of(CLUSTER_METADATA_TOPIC, 0)
        assert log_dir is not None
        return log_dir

    def sync(self) -> None:
        """Sync records written without a sync; part of a start. KafkaError(KAFKA_STORAGE_ERROR) when the disk fails."""
        run_in_place(self._sync())

    def _load_snapshot(self) -> None:
        loaded = load_newest(self._log)
        if loaded is not None:
            image, end_offset = loaded
            if end_offset:
                self.image = image
                self.snapshots = [
                    snapshot for snapshot in snapshot_ids(self._log) if snapshot[0] >= self._log.log_start_offset
                ]
            else:
                self._bootstrap = image

    @property
    def is_snapshot_due(self) -> bool:
        """Whether a snapshot is to be written now."""
        is_due = self._schedule.is_due(self._loop.now())
        return is_due and not self._has_failed and not self.image.is_in_transaction

    @property
    def snapshot_deadline(self) -> float | None:
        """When to look again whether a snapshot is due (monotonic seconds); None: after the next write."""
        return None if self._has_failed else self._schedule.deadline

    def snapshot(self) -> Steps[None]:
        """Write the image as a snapshot, then delete the segments it covers; not while the image changes."""
        try:
            yield from self._snapshot()
        except (OSError, KafkaError):
            self._schedule.failed(self._loop.now())
            logger.exception("Cannot write a snapshot of the metadata; the log keeps all its records")

    def _snapshot(self) -> Steps[None]:
        yield from self._sync()  # a snapshot must not contain records that the log can still lose
        previous = self.snapshots[-1:] if self._is_of_cluster else []
        written = (self.image.offset + 1, self.image.epoch)
        parts = (self._loop, self._log_dirs, self._failures, self._log, self.image)
        yield from write_snapshot(*parts, previous[0] if previous else None)
        self.snapshots = [*previous, written]
        self._schedule.has_snapshot(self._loop.now())
