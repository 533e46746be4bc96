"""`__cluster_metadata-0`: the log of the cluster's metadata, read at start and synced with every write.

The log has Kafka's format and the fixed topic id 00..01, so that Kafka itself goes on with it, and we with Kafka's.
Each start is a new epoch, written to `quorum-state` first, and begins with a LeaderChange record, as in a quorum of
one. A metadata transaction that never ended is aborted. When the log has grown by
metadata.log.max.record.bytes.between.snapshots, the image is written as `<offset>-<epoch>.checkpoint` beside the
segments, and what it covers is let go. After a failed sync the state on disk is unknown: the log takes no more
writes. KIP-595, KIP-630.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from barnabas.broker.config.keys.controller import (
    CONTROLLER_QUORUM_VOTERS,
    METADATA_LOG_DIR,
    METADATA_LOG_MAX_RECORD_BYTES_BETWEEN_SNAPSHOTS,
    METADATA_LOG_SEGMENT_BYTES,
    METADATA_LOG_SEGMENT_MS,
)
from barnabas.coord.cluster.checkpoint import parse_checkpoint_name
from barnabas.coord.cluster.delta import ClusterDelta
from barnabas.coord.cluster.image import METADATA_VERSION_FEATURE, ClusterImage, UnknownMetadataError
from barnabas.coord.cluster.metadata_batches import build_metadata_batch, leader_change_batch, replay_batches
from barnabas.coord.cluster.node_records import SUPPORTED_FEATURES, bootstrap_records
from barnabas.coord.cluster.quorum import Election, Quorum, standalone
from barnabas.coord.cluster.replay import replay_record
from barnabas.coord.cluster.topic_names import CLUSTER_METADATA_TOPIC
from barnabas.storage.checkpoints import replace_file
from barnabas.storage.log_config import LogConfig
from barnabas.wire.configdef import INT_MAX, ConfigError
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.metadata_records import AbortTransactionRecord
from barnabas.wire.messages.raft_records import VotersRecordEndpoint
from barnabas.wire.schema import Message
from barnabas.wire.types import ONE_UUID, uuid_from_text

if TYPE_CHECKING:
    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.broker.log_dir_failures import LogDirFailures
    from barnabas.broker.loop import Loop
    from barnabas.storage.log_dir import LogDir
    from barnabas.storage.log_dirs import LogDirs

logger = logging.getLogger("kafka.server.MetadataLog")

READ_BYTES: Final = 1 << 20
QUORUM_STATE: Final = "quorum-state"
"""The file beside the log that says which epoch was begun last."""


class MetadataLog:
    """The metadata log, and the image that replaying its records gives."""

    def __init__(self, loop: Loop, config: ServerConfig, log_dirs: LogDirs, failures: LogDirFailures) -> None:
        self._loop = loop
        self._config = config
        self._log_dirs = log_dirs
        self._failures = failures
        self.image = ClusterImage()
        self._bootstrap: ClusterImage | None = None
        self._is_dead = False

    def open(self) -> None:
        """Load the newest snapshot and replay what follows it, then begin a new epoch.

        UnknownMetadataError when there is something that this broker cannot serve.
        """
        found = set(self._log_dirs.found())
        has_metadata = (CLUSTER_METADATA_TOPIC, 0) in found
        if found and not has_metadata:
            raise self._nobody_knows_the_partitions()
        self._log = self._log_dirs.open_log(
            CLUSTER_METADATA_TOPIC,
            0,
            self._log_config(),
            topic_id=ONE_UUID,
            now_ms=self._loop.now_ms(),
            now=self._loop.now(),
            home=self._home(),
        )
        self._load_snapshot()
        self._replay_log()
        if self.is_new and len(found) > has_metadata:
            raise self._nobody_knows_the_partitions()
        election = self._read_election()
        self._check_alone(election.voter_ids)
        if self.is_new:
            self.image.quorum = self._new_quorum() if self._bootstrap is None else self._bootstrap.quorum
        self._begin_epoch(election.epoch)

    def _nobody_knows_the_partitions(self) -> UnknownMetadataError:
        """Instead of a start that would set every partition aside as a stray."""
        where = ",".join(log_dir.path for log_dir in self._log_dirs.dirs)
        return UnknownMetadataError(
            f"There are partitions in {where}, but no metadata that knows them ({CLUSTER_METADATA_TOPIC}-0): "
            "is it in a metadata.log.dir elsewhere?"
        )

    def _home(self) -> LogDir:
        """The log directory in which a new metadata log belongs: metadata.log.dir, else the first."""
        dirs, path = self._log_dirs.dirs, self._config[METADATA_LOG_DIR]
        if path is None:
            return dirs[0]
        for log_dir in dirs:
            if str(Path(path).absolute()) == log_dir.path:
                return log_dir
        raise ConfigError(f"metadata.log.dir={path} is none of the log.dirs: Barnabas needs it to be one of them")

    def _new_quorum(self) -> Quorum:
        """The quorum that Kafka would find with the same configuration: configured voters, else this node's record."""
        config = self._config
        endpoint = config.controller_listener
        if endpoint is None or config[CONTROLLER_QUORUM_VOTERS]:
            return Quorum()
        address = VotersRecordEndpoint(name=endpoint.name, host=endpoint.host or "localhost", port=endpoint.port)
        log_dir = self._log_dirs.dir_of(CLUSTER_METADATA_TOPIC, 0) or self._home()
        return standalone(config.node_id, uuid_from_text(log_dir.directory_id), address)

    def _replay_log(self) -> None:
        offset = self.image.offset + 1
        if offset < self._log.log_start_offset:
            raise UnknownMetadataError(
                f"The metadata log begins at offset {self._log.log_start_offset}, but what was before it is in no "
                f"snapshot beyond offset {offset}"
            )
        delta = ClusterDelta()
        while offset < self._log.log_end_offset:
            read = self._log.read(offset, READ_BYTES, limit_offset=self._log.log_end_offset, min_one_batch=True)
            if read.slice is None:
                break
            replay_batches(read.slice.read(), self.image, delta, partial_ok=True)
            offset = self.image.offset + 1

    def _check_alone(self, configured_voters: frozenset[int]) -> None:
        """Refuse the metadata of a cluster of several nodes, and metadata newer than what is known here."""
        node_id, image = self._config.node_id, self.image
        others = (configured_voters | image.quorum.voter_ids | image.brokers.keys()) - {node_id}
        if others:
            nodes = ",".join(map(str, sorted(others)))
            raise UnknownMetadataError(
                f"The metadata is of a cluster with other nodes ({nodes}) beside {node_id}: "
                "Barnabas runs as a single node so far"
            )
        lowest, highest = SUPPORTED_FEATURES[METADATA_VERSION_FEATURE]
        level = image.features.get(METADATA_VERSION_FEATURE, highest)
        if not lowest <= level <= highest:
            raise UnknownMetadataError(
                f"The metadata has {METADATA_VERSION_FEATURE} {level}, but this broker knows {lowest} to {highest}"
            )

    def _log_config(self) -> LogConfig:
        config = LogConfig()
        config.segment_bytes = self._config[METADATA_LOG_SEGMENT_BYTES]
        config.segment_ms = self._config[METADATA_LOG_SEGMENT_MS]
        config.max_message_bytes = INT_MAX
        return config

    @property
    def is_new(self) -> bool:
        """Whether nothing was ever written to this log."""
        return not self.image.features

    def bootstrap_records(self) -> list[Message]:
        """What a new log begins with: the records that `kafka-storage format` has left in a snapshot of nothing.

        Kafka does not read them from there a second time, so they have to be in the log.
        """
        if self._bootstrap is None:
            return bootstrap_records()
        from barnabas.coord.cluster.image_records import image_records

        return list(image_records(self._bootstrap))

    @property
    def end_offset(self) -> int:
        """The offset that the next record will have."""
        return self._log.log_end_offset

    def _begin_epoch(self, voted_epoch: int) -> None:
        image = self.image
        image.epoch = max(image.epoch, voted_epoch) + 1
        node_id, now_ms = self._config.node_id, self._loop.now_ms()
        replace_file(self._log.files, self._state_path, image.quorum.state_file(node_id, image.epoch))
        written = image.quorum if self.is_new else None
        self._append(leader_change_batch(leader_id=node_id, epoch=image.epoch, now_ms=now_ms, quorum=written))
        image.offset = self._log.log_end_offset - 1
        if image.is_in_transaction:
            self.write([AbortTransactionRecord(reason="The controller that began it has stopped")], sync=False)

    @property
    def _state_path(self) -> str:
        return f"{self._log.directory}/{QUORUM_STATE}"

    def _read_election(self) -> Election:
        """What `quorum-state` says: its epoch may be newer than the log's."""
        try:
            return Election.from_file(self._log.files.read_file(self._state_path))
        except FileNotFoundError:
            return Election()
        except ValueError as error:  # as Kafka does: the epochs of the log are enough for a quorum of one
            logger.warning("Cannot read %s: %s", self._state_path, error)
            return Election()

    def write(self, records: Sequence[Message], *, sync: bool = True) -> ClusterDelta:
        """Append records as one batch, make them durable, replay them; what they changed.

        KafkaError(KAFKA_STORAGE_ERROR) when the disk fails: nothing has changed then. `sync=False` leaves the sync to
        the next write: for records that nobody has been told of.
        """
        delta = ClusterDelta()
        if not records:
            return delta
        self._append(
            build_metadata_batch(
                records,
                epoch=self.image.epoch,
                now_ms=self._loop.now_ms(),
                metadata_version=self.image.metadata_version,
            )
        )
        if sync:
            self.sync()
        for record in records:
            replay_record(self.image, record, delta)
        self.image.offset = self._log.log_end_offset - 1
        self._snapshot_if_due()
        return delta

    def _append(self, batch: bytes) -> None:
        if self._is_dead:
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
        except KafkaError as error:
            if isinstance(error.__cause__, OSError):
                self._failures.report(self._dir(), "write to the metadata log", error.__cause__)
            raise
        self._log.high_watermark = self._log.log_end_offset

    def sync(self) -> None:
        """Make everything written durable."""
        try:
            self._log.flush(data_only=True)
        except KafkaError as error:
            self._is_dead = True
            cause = error.__cause__
            failure = cause if isinstance(cause, OSError) else error
            self._failures.take_offline(self._dir(), "sync of the metadata log", failure)
            raise

    def _dir(self) -> LogDir:
        log_dir = self._log_dirs.dir_of(CLUSTER_METADATA_TOPIC, 0)
        assert log_dir is not None
        return log_dir

    def _load_snapshot(self) -> None:
        files, directory = self._log.files, self._log.directory
        found = [(parsed, name) for name, _ in files.list_files(directory) if (parsed := parse_checkpoint_name(name))]
        if found:
            from barnabas.coord.cluster.checkpoint import load_checkpoint

            (end_offset, epoch), name = max(found)
            loaded = load_checkpoint(files.read_file(f"{directory}/{name}"), end_offset, epoch)
            if end_offset:
                self.image = loaded
            else:
                self._bootstrap = loaded

    def _snapshot_if_due(self) -> None:
        if self._log.size_bytes > self._config[METADATA_LOG_MAX_RECORD_BYTES_BETWEEN_SNAPSHOTS]:
            try:
                self._snapshot()
            except (OSError, KafkaError):
                logger.exception("Cannot write a snapshot of the metadata; the log keeps all of it")

    def _snapshot(self) -> None:
        """Write the image as a checkpoint, then let go of older checkpoints and of the segments it covers."""
        from barnabas.coord.cluster.checkpoint import build_checkpoint, checkpoint_name
        from barnabas.coord.cluster.image_records import image_records

        if self.image.is_in_transaction:
            return
        self.sync()  # a snapshot must not know of records that the log can still lose
        log, image, loop = self._log, self.image, self._loop
        now_ms = loop.now_ms()
        content = b"".join(
            build_checkpoint(
                image_records(image),
                quorum=image.quorum,
                epoch=image.epoch,
                last_timestamp_ms=now_ms,
                now_ms=now_ms,
                metadata_version=image.metadata_version,
            )
        )
        name = checkpoint_name(image.offset + 1, image.epoch)
        replace_file(log.files, f"{log.directory}/{name}", content)
        for other, _ in log.files.list_files(log.directory):
            if parse_checkpoint_name(other) is not None and other != name:
                log.files.unlink(f"{log.directory}/{other}")
        log.roll(loop.now())
        log.advance_log_start_offset(image.offset + 1)
        self._log_dirs.write_log_starts()
        deleted = log.delete_segments_below(image.offset + 1)
        self._log_dirs.deletions.schedule(deleted, loop.now() + log.config.file_delete_delay_ms / 1000)
        logger.info("Wrote snapshot %s of the metadata", name)
