"""A broker's own copy of the controllers' metadata log, and the image made of its committed records.

The copy is Kafka's `__cluster_metadata-0` with its snapshots, so that a restart goes on from it, and Kafka can take it
over. Fetched records stay in memory until the controller's high watermark has passed them: so the copy has committed
records only, and applied records are never undone (R25). A copy that Kafka has written may end with records that were
never committed: they are not applied before a controller has confirmed them, and truncated if it denies them.

A broker whose disk has no space goes on following: records that cannot be written are applied from memory, up to
`MAX_UNWRITTEN_BYTES`, and written when there is space.

Records are applied in whole batches; the records of a metadata transaction are applied when it has ended. An unknown
record or version is an UnknownMetadataError. The copy is not synced: records lost in a crash are fetched again.
KIP-595, KIP-630.
"""

from __future__ import annotations

import logging
from collections import deque
from itertools import takewhile
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.event_loop.steps import run_in_place
from barnabas.broker.log_dir_failures import is_transient
from barnabas.broker.metadata.log.metadata_dir import open_metadata_log, write_snapshot
from barnabas.broker.metadata.log.snapshot_schedule import SnapshotSchedule
from barnabas.broker.metadata.log.snapshots import load_newest
from barnabas.coord.cluster.delta import ClusterDelta
from barnabas.coord.cluster.image import ClusterImage, UnknownMetadataError
from barnabas.coord.cluster.metadata_log.metadata_batches import replay_batches_in_steps
from barnabas.coord.topic_names import CLUSTER_METADATA_TOPIC
from barnabas.storage import layout
from barnabas.storage.append.follower_append import append_as_follower
from barnabas.storage.recover.truncation import Truncation
from barnabas.wire.batches.records import CorruptRecord, iter_batches
from barnabas.wire.errors import KafkaError
from barnabas.wire.types import Uuid, uuid_from_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.event_loop.steps import Steps
    from barnabas.broker.log_dir_failures import LogDirFailures
    from barnabas.storage.directories.log_dirs import LogDirs
    from barnabas.wire.types import Records

logger = logging.getLogger("kafka.server.MetadataLog")

READ_BYTES: Final = 1 << 20
MAX_UNWRITTEN_BYTES: Final = 64 << 20
"""The most committed bytes that may wait in memory for space on the disk; above it the broker stops."""


class _Fetched(NamedTuple):
    """A batch that is not committed yet, or not written yet."""

    records: bytes
    last_offset: int
    epoch: int


class MetadataCopy:
    """The copy on disk, the fetched batches after its end, and the image."""

    def __init__(self, loop: Loop, config: ServerConfig, log_dirs: LogDirs, failures: LogDirFailures) -> None:
        self._loop = loop
        self._config = config
        self._log_dirs = log_dirs
        self._failures = failures
        self._fetched: deque[_Fetched] = deque()
        self._snapshot_end = self._snapshot_epoch = 0
        self._schedule = SnapshotSchedule(config, loop.now())
        self.image = ClusterImage()
        self.high_watermark = 0
        """The end of the records that the controllers have committed, as far as it is known; never lowered."""

    def open(self) -> None:
        """Open the log and load the newest snapshot; records are applied when a controller has confirmed them.

        UnknownMetadataError for an invalid snapshot; the errors of opening a log.
        """
        self.log = open_metadata_log(self._loop, self._config, self._log_dirs)
        loaded = load_newest(self.log)
        end = 0
        if loaded is not None and loaded[1]:
            self.image, end = loaded
            self._snapshot_end, self._snapshot_epoch = end, self.image.epoch
        if self.log.log_end_offset < end or self.log.log_start_offset > end:
            # It was stopped after a snapshot was fetched; or it has a gap, and a copy is simply fetched again.
            run_in_place(self._truncate(end, fully=True))
        self.log.high_watermark = end
        self._schedule.wrote(sum(segment.size for segment in self.log.segments.from_offset(end)))

    @property
    def end_offset(self) -> int:
        """The offset to fetch next."""
        return self._fetched[-1].last_offset + 1 if self._fetched else self.log.log_end_offset

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record before `end_offset`; 0 when there is none."""
        if self._fetched:
            return self._fetched[-1].epoch
        return max(self.log.leader_epochs.latest_epoch, self._snapshot_epoch, 0)

    @property
    def directory_id(self) -> Uuid:
        """The id of the log directory that has the copy."""
        log_dir = self._log_dirs.dir_of(CLUSTER_METADATA_TOPIC, 0)
        assert log_dir is not None
        return uuid_from_text(log_dir.directory_id)

    def add(self, records: Records) -> None:
        """Add records fetched from `end_offset` on; the bytes are copied, an incomplete last batch is left out.

        UnknownMetadataError for batches that are damaged or do not follow.
        """
        try:
            held = records_in_memory(records)
            for batch in iter_batches(held, partial_ok=True):
                if batch.last_offset < self.end_offset:
                    continue  # the first batch may begin before the offset that was asked for
                if batch.base_offset != self.end_offset or not batch.crc_is_valid():
                    raise UnknownMetadataError(
                        f"The metadata batch at offset {batch.base_offset}, fetched for {self.end_offset}, is damaged"
                    )
                entry = _Fetched(held[batch.start : batch.end], batch.last_offset, batch.partition_leader_epoch)
                self._fetched.append(entry)
        except CorruptRecord as error:
            raise UnknownMetadataError(
                f"The metadata fetched for offset {self.end_offset} is damaged: {error}"
            ) from error

    def forget_uncommitted(self) -> bool:
        """Drop fetched records that are not committed, since another controller may have others; whether any were."""
        return self._drop(lambda _: True)

    def _drop(self, is_unwanted: Callable[[_Fetched], bool]) -> bool:
        """Drop batches from the end that are not committed; whether there were any that are not."""
        had_any = bool(self._fetched) and self._fetched[-1].last_offset >= self.high_watermark
        while self._fetched and self._fetched[-1].last_offset >= self.high_watermark and is_unwanted(self._fetched[-1]):
            self._fetched.pop()
        return had_any

    def truncate(self, epoch: int, end_offset: int) -> Steps[None]:
        """A controller says that its newest epoch up to this copy's is `epoch`, which ends at `end_offset` there.

        Records after the end of that epoch, here or there, are dropped. UnknownMetadataError when they were applied.
        """
        if self._drop(lambda batch: batch.epoch > epoch or batch.last_offset >= end_offset):
            return  # the remaining records may differ as well: the next fetch shows it
        own_end = self.log.end_offset_for_epoch(epoch)[1]
        target = end_offset if own_end < 0 else min(end_offset, own_end)
        if target >= self.log.log_end_offset:
            return
        if target <= self.image.offset:
            raise UnknownMetadataError(
                f"The controllers' metadata differs from offset {target} on, but this broker has applied it up to "
                f"offset {self.image.offset}: the quorum has lost committed metadata, or it is another cluster's"
            )
        yield from self._truncate(target)

    def _truncate(self, offset: int, *, fully: bool = False) -> Steps[None]:
        log = self.log
        truncation = Truncation(log, offset, fully=fully)
        yield from truncation.prepare()
        truncation.announce()
        yield from self._failures.write_checkpoint(layout.RECOVERY_POINT_CHECKPOINT)
        if truncation.lowers_log_start:
            yield from self._failures.write_checkpoint(layout.LOG_START_CHECKPOINT)
        renamed = truncation.cut()
        yield truncation.sync
        truncation.finish()
        self._log_dirs.deletions.schedule(renamed, self._loop.now() + log.config.file_delete_delay_ms / 1000)

    def commit(self, high_watermark: int) -> None:
        """Write the fetched batches that are below the controllers' high watermark to the copy.

        Without space they stay in memory. OSError or KafkaError for any other error of the disk.
        """
        self.high_watermark = max(self.high_watermark, high_watermark)
        committed = self._committed()
        if committed:
            try:
                records = memoryview(bytearray(b"".join(batch.records for batch in committed)))
                append_as_follower(self.log, records, now=self._loop.now())
                self._schedule.wrote(len(records))
            except (KafkaError, OSError) as error:
                self._not_written(error, committed)
            while self._fetched and self._fetched[0].last_offset < self.log.log_end_offset:
                self._fetched.popleft()
        self.log.high_watermark = min(self.high_watermark, self.log.log_end_offset)

    def _committed(self) -> list[_Fetched]:
        """The committed batches in memory."""
        return list(takewhile(lambda batch: batch.last_offset < self.high_watermark, self._fetched))

    def _not_written(self, error: KafkaError | OSError, committed: list[_Fetched]) -> None:
        """Committed records could not be written: go on if the disk may have space later."""
        cause = error if isinstance(error, OSError) else error.__cause__
        if not isinstance(cause, OSError) or not is_transient(cause):
            raise error
        if sum(len(batch.records) for batch in committed) > MAX_UNWRITTEN_BYTES:
            raise error
        self._failures.report_log(CLUSTER_METADATA_TOPIC, 0, "write", cause)

    @property
    def applicable(self) -> int:
        """The end of the records that can be applied."""
        return min(self.high_watermark, self.end_offset)

    @property
    def is_behind(self) -> bool:
        """Whether committed records are not applied yet."""
        return self.image.offset + 1 < self.applicable

    def apply(self, delta: ClusterDelta) -> Steps[None]:
        """Apply the committed records to the image."""
        image, log = self.image, self.log
        while image.offset + 1 < (limit := min(self.high_watermark, log.log_end_offset)):
            read = log.read(image.offset + 1, READ_BYTES, limit_offset=limit, min_one_batch=True)
            if read.slice is None:
                return
            yield from self._replay(read.slice.read(), delta)
        for held in self._committed():
            if held.last_offset > image.offset:
                yield from self._replay(held.records, delta)

    def _replay(self, records: bytes, delta: ClusterDelta) -> Steps[None]:
        before = self.image.offset
        yield from replay_batches_in_steps(records, self.image, delta)
        if self.image.offset == before:
            raise UnknownMetadataError(f"The metadata log cannot be read at offset {before + 1}")

    def replace(self, image: ClusterImage, end_offset: int) -> Steps[None]:
        """Replace image and log by a fetched snapshot, whose file is in its place already."""
        self._fetched.clear()
        yield from self._truncate(end_offset, fully=True)
        self._snapshot_end, self._snapshot_epoch = end_offset, image.epoch
        self._schedule.has_snapshot(self._loop.now())
        self.image = image
        self.high_watermark = max(self.high_watermark, end_offset)

    def snapshot_if_due(self) -> Steps[None]:
        """Write a snapshot of the image when it is due (R31), and delete the segments that it covers.

        Called after every answer of the controller, so no timer is needed.
        """
        image = self.image
        has_more = image.offset + 1 > self._snapshot_end and not image.is_in_transaction
        if not has_more or not self._schedule.is_due(self._loop.now()):
            return
        if self.log.log_end_offset <= self.image.offset:
            return  # the disk has no space
        try:
            yield from write_snapshot(self._loop, self._log_dirs, self._failures, self.log, image)
            self._snapshot_end, self._snapshot_epoch = image.offset + 1, image.epoch
            self._schedule.has_snapshot(self._loop.now())
        except OSError:
            self._schedule.failed(self._loop.now())
            logger.exception("Cannot write a snapshot of the metadata; the log keeps all its records")


def records_in_memory(records: Records | None) -> bytes:
    """A copy of the record bytes of a received response, whose memory is reused."""
    assert records is None or isinstance(records, (bytes, bytearray, memoryview))
    return bytes(records or b"")
