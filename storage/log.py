"""A partition's log: appended to at the end, read by offset, truncated at either end.

Invariants (the invariants of durability are in `storage.local_log`):
- the state in memory never runs ahead of the file: a failed write is undone and leaves the log as it was;
- `log_start_offset <= high_watermark <= log_end_offset`; offsets are assigned only here;
- every batch carries the leader epoch under which it was appended (R1), and the epoch cache has it (R2).

No method waits: it does its disk operations itself or returns a job (`start_flush`) that can be run in a thread.
Source: Kafka's `UnifiedLog`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NoReturn, TypeVar

from barnabas.storage.append.batch_check import Origin, check_batches
from barnabas.storage.append.flush_job import FlushJob
from barnabas.storage.append.offset_assignment import AppendInfo, assign_offset, assign_offsets
from barnabas.storage.damage import DamagedLog
from barnabas.storage.files import Files
from barnabas.storage.local_log import LocalLog
from barnabas.storage.log_config import LogConfig
from barnabas.storage.log_state import Checkpointed, LogState
from barnabas.storage.producers.producer_entry import BatchMetadata, ProducerEntry
from barnabas.storage.producers.producer_state import EndMarker, marker_of
from barnabas.storage.read import timestamps
from barnabas.storage.read.log_reader import LogRead, checked
from barnabas.storage.recover import loader
from barnabas.storage.segments.segment import Segment, may_roll, roll_jitter_ms, should_roll
from barnabas.storage.segments.txn_index import AbortedTransaction
from barnabas.wire.batches.batch_header import BatchHeader
from barnabas.wire.batches.records import CONTROL_BIT, MAX_INT32, NO_TIMESTAMP
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.storage.append.follower_append import FollowerAppend

PRODUCER_EXPIRATION_MS = 86_400_000

_Marker = tuple[BatchHeader, EndMarker]
T = TypeVar("T")


class Log(LocalLog):
    """One partition's log."""

    __slots__ = (
        "_high_watermark",
        "checks_reads",
        "log_start_offset",
        "max_producers",
        "on_damage",
        "producers",
        "topic_id",
        "torn",
    )

    def __init__(self, topic: str, partition: int, state: LogState) -> None:
        super().__init__(topic, partition, state)
        self.topic_id = state.topic_id
        self.producers = state.producers
        self.log_start_offset = state.log_start_offset
        self.torn = state.torn
        """The data that recovery has cut off; None if there is none."""
        self.checks_reads = False
        """Whether the CRC of each batch is checked before it is handed to a reader."""
        self.max_producers = MAX_INT32
        """The most producers whose state is kept (barnabas.partition.producers.max)."""
        self.on_damage: Callable[[str], None] | None = None
        """Called with a description when damaged data is read: the log should not be used any longer (L2)."""
        self._high_watermark = 0

    @classmethod
    def open(
        cls,
        files: Files,
        directory: str,
        topic: str,
        partition: int,
        config: LogConfig,
        *,
        topic_id: bytes,
        now_ms: int,
        now: float = 0.0,
        clean_shutdown: bool = True,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        high_watermark: int = 0,
        producer_expiration_ms: int = PRODUCER_EXPIRATION_MS,
        may_have_gaps: bool = False,
        is_replica: bool = False,
        is_made: bool = False,
    ) -> Log:
        """Load the log in `directory`, or make an empty one; after an unclean stop, recover it.

        The three offsets come from the checkpoint files. `may_have_gaps`: offsets may be missing anywhere, as in a
        log under repair. `is_replica`: they may be missing within a segment, where the leader had compacted its log.
        `is_made`: the directory was just made by `new_directories`, and nothing is read from it.

        Raises KafkaError(INCONSISTENT_TOPIC_ID) when the directory belongs to another topic of the same name (R22),
        DamagedLog when data that was synced is missing or invalid (L2), CorruptCheckpoint, and OSError when the disk
        fails.
        """
        state = LogState(files, directory, config, topic_id, may_have_gaps=may_have_gaps, is_replica=is_replica)
        if is_made:
            loader.start_empty(state, log_start_offset, now)
        else:
            loader.load(state, Checkpointed(clean_shutdown, recovery_point, log_start_offset), now)
        log = cls(topic, partition, state)
        log.producers.on_synced(log.synced_offset)
        log.producers.remove_expired(now_ms, producer_expiration_ms)
        log.high_watermark = high_watermark
        return log

    # --- offsets

    @property
    def high_watermark(self) -> int:
        """The end of the committed records, which consumers may read. Assigned values are clamped to the log."""
        return self._high_watermark

    @high_watermark.setter
    def high_watermark(self, offset: int) -> None:
        offset = min(max(offset, self.log_start_offset), self.log_end_offset)
        self._high_watermark = offset
        self.producers.on_high_watermark(offset)

    def commit_all(self) -> None:
        """Everything is committed: there is no other replica."""
        end = self._high_watermark = self.log_end_offset
        self.producers.on_high_watermark(end)

    @property
    def last_stable_offset(self) -> int:
        """The end of what read_committed consumers may read: no transaction below it is open (T6)."""
        unstable = self.producers.first_unstable_offset
        if unstable is None:
            return self._high_watermark
        return min(max(unstable, self.log_start_offset), self._high_watermark)

    @property
    def durable_stable_offset(self) -> int:
        """The last stable offset that a power failure cannot lower: the limit for compaction (L7)."""
        undecided = self.producers.first_undecided_durable
        known = min(self.last_stable_offset, self.synced_offset)
        return known if undecided is None else min(known, undecided)

    # --- appending

    def append_as_leader(
        self,
        records: memoryview,
        *,
        leader_epoch: int,
        now_ms: int,
        now: float,
        origin: Origin = "client",
        headers: list[BatchHeader] | None = None,
    ) -> AppendInfo:
        """Append record batches: check them, assign offsets in place, write them with one write.

        `records` must be writable and must not be used by others during the call. `now_ms` is the wall clock for
        timestamps, `now` the monotonic clock in seconds for rolling; `headers` are the headers of the batches if they
        have been checked. Raises KafkaError with Kafka's code for invalid batches, KAFKA_STORAGE_ERROR when the disk
        failed; the log is unchanged then.
        """
        config = self.config
        if headers is None:
            headers = check_batches(records, config, origin, now_ms)
        markers: list[_Marker] = []
        for header in headers:
            if header.producer_id >= 0:
                if origin == "client" and header.producer_id not in self.producers.producers:
                    self.producers.make_room(self.max_producers, now_ms)
                repeated = self._check_producer(records, header, origin, markers)
                if repeated is not None:
                    return _repeated(repeated, self.log_start_offset)
        return self._append_checked(records, headers, markers, leader_epoch=leader_epoch, now_ms=now_ms, now=now)

    def append_markers(
        self,
        records: memoryview,
        markers: list[tuple[BatchHeader, EndMarker]],
        *,
        leader_epoch: int,
        now_ms: int,
        now: float,
    ) -> AppendInfo:
        """As `append_as_leader`, for the transaction markers of different producers that this process has built."""
        for header, marker in markers:
            self.producers.check_marker(header, marker)
        headers = [header for header, _ in markers]
        return self._append_checked(records, headers, markers, leader_epoch=leader_epoch, now_ms=now_ms, now=now)

    def _append_checked(
        self,
        records: memoryview,
        headers: list[BatchHeader],
        markers: list[_Marker],
        *,
        leader_epoch: int,
        now_ms: int,
        now: float,
    ) -> AppendInfo:
        config = self.config
        if len(records) > config.segment_bytes:
            _raise_larger_than_segment(len(records), config)
        offset = self.log_end_offset
        append_time_ms = now_ms if config.message_timestamp_type == "LogAppendTime" else NO_TIMESTAMP
        last_offset = assign_offsets(records, headers, offset, leader_epoch, append_time_ms)
        self.write(records, headers, last_offset, leader_epoch, now, is_marker=bool(markers))
        self._remember_producers(headers, markers)
        return AppendInfo(offset, last_offset, append_time_ms, self.log_start_offset)

    def append_batch(
        self, records: memoryview, header: BatchHeader, *, leader_epoch: int, now_ms: int, now: float, from_client: bool
    ) -> AppendInfo:
        """As `append_as_leader`, for one batch that is checked and is no control batch: nearly every append."""
        config = self.config
        producers = self.producers
        if header.producer_id >= 0 or header.size > config.segment_bytes:
            repeated = self.check_batch(header, now_ms, from_client=from_client)
            if repeated is not None:
                return repeated
        offset = self.log_end_offset
        append_time_ms = assign_offset(records, header, offset, leader_epoch, now_ms, config.message_timestamp_type)
        try:
            segment = self.segments.active
            if may_roll(segment, config, header) and should_roll(
                segment, config, header.size, header.last_offset, header.max_timestamp, now
            ):
                segment = self.roll(now)
            if leader_epoch > self.leader_epochs.latest_epoch:
                self.leader_epochs.assign(leader_epoch, offset)
            segment.append_batch(records, header, config.index_interval_bytes)
        except OSError as error:
            raise self._undo_append(error) from error
        self.log_end_offset = producers.end_offset = header.last_offset + 1
        self._changed = True
        if header.producer_id >= 0:
            producers.update(header)
        return AppendInfo(offset, header.last_offset, append_time_ms, self.log_start_offset)

    def check_batch(self, header: BatchHeader, now_ms: int, *, from_client: bool = True) -> AppendInfo | None:
        """Check a batch against its producer's state and the size of a segment; the batch that it repeats, if any."""
        if header.producer_id >= 0:
            producers = self.producers
            if from_client and header.producer_id not in producers.producers:
                producers.make_room(self.max_producers, now_ms)
            repeated = producers.check(header, self.log_end_offset, from_client=from_client)
            if repeated is not None:
                return _repeated(repeated, self.log_start_offset)
        if header.size > self.config.segment_bytes:
            _raise_larger_than_segment(header.size, self.config)
        return None

    def append_checked(self, records: memoryview, headers: list[BatchHeader], *, leader_epoch: int, now: float) -> None:
        """Append batches of clients that `check_batch` has passed, and that have their offsets, with one write.

        KafkaError(KAFKA_STORAGE_ERROR) when the disk failed; the log is unchanged then.
        """
        assert headers[0].base_offset == self.log_end_offset
        self.write(records, headers, headers[-1].last_offset, leader_epoch, now, is_marker=False)
        self._remember_producers(headers, ())

    def append_as_follower(self, records: memoryview, *, now: float) -> FollowerAppend:
        """Append whole batches of the leader's log as they are; see `storage.append.follower_append`."""
        from barnabas.storage.append import follower_append

        return follower_append.append_as_follower(self, records, now=now)

    def _check_producer(
        self, records: memoryview, header: BatchHeader, origin: Origin, markers: list[_Marker]
    ) -> BatchMetadata | None:
        """Check a batch against its producer's state; the batch that it repeats, if any. Adds markers to `markers`."""
        if header.attributes & CONTROL_BIT:
            marker = marker_of(records[header.position : header.position + header.size])
            if marker is not None:
                self.producers.check_marker(header, marker)
                markers.append((header, marker))
            return None
        if origin == "replication":
            return None  # the leader has already checked it (I3)
        return self.producers.check(header, self.log_end_offset, from_client=origin == "client")

    def write(
        self,
        records: memoryview,
        headers: list[BatchHeader],
        last_offset: int,
        leader_epoch: int,
        now: float,
        *,
        is_marker: bool,
    ) -> None:
        """Write batches that are checked and have their offsets, with one write; `leader_epoch` begins if it is new.

        KafkaError(KAFKA_STORAGE_ERROR) when the disk failed; the log is unchanged then. What the batches say about
        producers and, on a follower, leader epochs is up to the caller, and must not fail.
        """
        config = self.config
        segment = self.segments.active
        max_timestamp = headers[0].max_timestamp
        if len(headers) > 1:
            max_timestamp = max([header.max_timestamp for header in headers])
        try:
            if should_roll(segment, config, len(records), last_offset, max_timestamp, now):
                segment = self.roll(now)
            if leader_epoch > self.leader_epochs.latest_epoch:
                self.leader_epochs.assign(leader_epoch, self.log_end_offset)
            if is_marker:
                segment.load_txn_index()
            segment.append(records, headers, max_timestamp, config.index_interval_bytes)
        except OSError as error:
            raise self._undo_append(error) from error
        self.log_end_offset = self.producers.end_offset = last_offset + 1
        self._changed = True

    def _undo_append(self, error: OSError) -> KafkaError:
        """Truncate what a failed write has left; the error to raise."""
        self.segments.active.undo_append()
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"Cannot append to {self.directory}: {error}")

    def _remember_producers(self, headers: list[BatchHeader], markers: Sequence[_Marker]) -> None:
        producers = self.producers
        for header in headers:
            if header.producer_id >= 0 and not header.attributes & CONTROL_BIT:
                producers.update(header)
        for header, marker in markers:
            completed = producers.end_transaction(header, marker)
            if completed is not None:
                if completed.is_aborted:
                    stable_offset = producers.stable_offset_after(completed)
                    self.segments.active.append_aborted(AbortedTransaction(*completed[:3], stable_offset))
                producers.keep_until_replicated(completed)

    def roll(self, now: float) -> Segment:
        """Close the active segment and start a new one at the log end; an empty active segment is kept."""
        active = self.segments.active
        if active.size == 0 and active.base_offset == self.log_end_offset:
            return active
        active.seal()
        self.recovery_point = min(self.recovery_point, self.log_end_offset - 1)  # its indexes are not synced
        segment = Segment.create(self.files, self.directory, self.log_end_offset, now)
        jitter_ms = self.config.segment_jitter_ms
        segment.roll_jitter_ms = roll_jitter_ms(jitter_ms, self.topic, self.partition, segment.base_offset)
        self.segments.add(segment)
        self.segments.keep_open(active)
        self._directory_changes()
        self._snapshots.write(self.producers)
        return segment

    # --- reading

    def read(
        self, offset: int, max_bytes: int, *, limit_offset: int, min_one_batch: bool, may_wait: bool = True
    ) -> LogRead:
        """Read batches from the batch that holds `offset` on, up to `max_bytes` and below `limit_offset`.

        The last batch of the slice may be incomplete, as in Kafka. With `min_one_batch` the first batch is returned
        whole even if it is larger than `max_bytes`; otherwise nothing is returned then.
        Raises KafkaError(OFFSET_OUT_OF_RANGE) for offsets outside the log, KAFKA_STORAGE_ERROR when the disk failed;
        without `may_wait` NotInMemory when the lookup of `offset` would wait for the disk.
        """
        if offset < self.log_start_offset or offset > self.log_end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Offset {offset} is outside of [{self.log_start_offset}, {self.log_end_offset}]",
            )
        if offset >= limit_offset or offset == self.log_end_offset:
            return LogRead(None, offset, limit_offset)
        try:
            read = self._reader.read(
                offset,
                max_bytes,
                limit_offset,
                self.log_end_offset,
                min_one_batch=min_one_batch,
                may_wait=may_wait,
            )
            if self.checks_reads and read.slice is not None:
                read = read._replace(slice=checked(read.slice))
            return read
        except DamagedLog as damage:
            self._report(damage)
            raise
        except OSError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"Cannot read {self.directory}: {error}") from error

    def _report(self, damage: DamagedLog) -> None:
        if self.on_damage is not None:
            self.on_damage(str(damage))

    def aborted_transactions(self, start_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """The aborted transactions that overlap [start, end), by last offset, for a read_committed fetch.

        KafkaError(KAFKA_STORAGE_ERROR) when the disk failed.
        """
        aborted: list[AbortedTransaction] = []
        try:
            for segment in self.segments.from_offset(start_offset):
                if segment.has_txn_index and segment.txn_index.collect(start_offset, end_offset, aborted):
                    break
        except DamagedLog as damage:
            self._report(damage)
            raise
        except OSError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"Cannot read {self.directory}: {error}") from error
        return aborted

    def offset_for_timestamp(
        self, timestamp: int, budget: timestamps.LookupBudget | None = None
    ) -> timestamps.Steps[timestamps.OffsetAndTimestamp | None]:
        """The first record whose timestamp in ms is at least `timestamp`, None when there is none; in steps."""
        return self._reporting(timestamps.offset_for_timestamp(self, timestamp, budget or timestamps.LookupBudget()))

    def max_timestamp_offset(
        self, budget: timestamps.LookupBudget | None = None
    ) -> timestamps.Steps[timestamps.OffsetAndTimestamp | None]:
        """The first record with the log's greatest timestamp (ListOffsets -3), None in an empty log; in steps."""
        return self._reporting(timestamps.max_timestamp_offset(self, budget or timestamps.LookupBudget()))

    def _reporting(self, steps: timestamps.Steps[T]) -> timestamps.Steps[T]:
        try:
            return (yield from steps)
        except DamagedLog as damage:
            self._report(damage)
            raise

    def earliest(self) -> timestamps.OffsetAndTimestamp:
        """The log start and its leader epoch (ListOffsets -2)."""
        start = self.log_start_offset
        return timestamps.OffsetAndTimestamp(start, NO_TIMESTAMP, self.leader_epochs.epoch_for_offset(start))

    def latest(self, limit_offset: int) -> timestamps.OffsetAndTimestamp:
        """`limit_offset` (high watermark or last stable offset) and the latest leader epoch (ListOffsets -1)."""
        return timestamps.OffsetAndTimestamp(limit_offset, NO_TIMESTAMP, self.leader_epochs.latest_epoch)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(epoch, end offset) of the greatest epoch at or below `epoch`; (-1, -1) when unknown."""
        return self.leader_epochs.end_offset_for(epoch, self.log_end_offset)

    def active_producers(self) -> list[ProducerEntry]:
        """The producers in the producer state, for DescribeProducers."""
        return list(self.producers.producers.values())

    def skip_to(self, offset: int) -> None:
        """Move the log end forward to `offset`, the next that there is in the leader's log."""
        self.log_end_offset = self.producers.end_offset = offset

    def take_over(self, current: Log, directory: str) -> None:
        """Be the partition's log from now on: the copy of `current` was renamed to `directory` (`future_logs`)."""
        self.relocate(directory)
        current.producers.snapshot_offset = self.producers.snapshot_offset
        self.producers = current.producers
        self.producers.on_synced(self.synced_offset)
        self.config = current.config
        self.checks_reads = current.checks_reads
        self.max_producers = current.max_producers
        self.on_damage, current.on_damage = current.on_damage, None
        self._truncations = current._truncations + 1  # flushes of the former log say nothing about this one
        self._dir_version = max(self._dir_version, current._dir_version) + 1
        self._changed = True
        self.high_watermark = current.high_watermark

    def set_end(self, offset: int) -> None:
        """The log ends at `offset` now: its files are truncated (`storage.recover.truncation`)."""
        self.log_end_offset = offset
        self.recovery_point = min(self.recovery_point, offset)
        self.synced_offset = min(self.synced_offset, offset)
        self.log_start_offset = min(self.log_start_offset, offset)
        self._high_watermark = min(self._high_watermark, offset)
        self._reader.forget()
        self._truncations += 1
        self._directory_changes()

    def start_again_at(self, offset: int) -> None:
        """The log is empty and begins and ends at `offset` now (`storage.recover.truncation`)."""
        self.set_end(offset)
        self.recovery_point = 0
        self.synced_offset = self.log_start_offset = self._high_watermark = offset

    def advance_log_start_offset(self, offset: int) -> bool:
        """Advance the log start to `offset` (DeleteRecords, retention). False if it is already there or above.

        Raises KafkaError(OFFSET_OUT_OF_RANGE) above the high watermark (L6). The caller persists the log start, then
        calls `delete_segments_below` (L5).
        """
        if offset > self._high_watermark:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"Offset {offset} is beyond the high watermark {self._high_watermark}"
            )
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        self.leader_epochs.truncate_from_start(offset)
        self.producers.on_log_start(offset)
        self._changed = True
        return True

    # --- flush and close

    def finish_flush(self, job: FlushJob) -> None:
        """Advance `synced_offset` and `recovery_point` after `job` has run, unless the log was truncated meanwhile."""
        super().finish_flush(job)
        self.producers.on_synced(self.synced_offset)

    def start_close(self) -> FlushJob | None:
        """Begin a clean stop: write indexes and producer snapshot; the job that syncs everything, None if not needed.

        Run the job, then call `finish_close`.
        """
        if not self._changed:
            return None
        self.segments.active.seal()
        if self.log_end_offset > 0:
            self._snapshots.write(self.producers)
        self._dir_version += 1  # index files and snapshot, which the next start trusts
        return self.start_flush()

    def finish_close(self, job: FlushJob | None) -> None:
        """Close the files after the job of `start_close` has run."""
        if job is not None:
            self.finish_flush(job)
            self._changed = False
        for segment in self.segments:
            segment.release()

    def close(self) -> None:
        """Stop cleanly, all steps. KafkaError(KAFKA_STORAGE_ERROR) when the disk failed."""
        try:
            job = self.start_close()
            if job is not None:
                job.run()
        except OSError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"Cannot close {self.directory}: {error}") from error
        self.finish_close(job)


def _repeated(batch: BatchMetadata, log_start_offset: int) -> AppendInfo:
    """The result for a batch that is in the log already (I1)."""
    return AppendInfo(batch.first_offset, batch.last_offset, batch.timestamp, log_start_offset, True)


def _raise_larger_than_segment(size: int, config: LogConfig) -> NoReturn:
    raise KafkaError(
        ErrorCode.RECORD_LIST_TOO_LARGE,
        f"The record batches have {size} bytes, more than segment.bytes of {config.segment_bytes}",
    )
