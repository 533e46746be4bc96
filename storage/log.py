"""A partition's log: appended at the end, read by offset, cut at either end.

Invariants:
- memory never runs ahead of the file: a failed write is undone and leaves the log as it was;
- `log_start_offset <= high_watermark <= log_end_offset`; offsets are given out here and nowhere else;
- every batch carries the leader epoch it was appended under (R1), and the epoch cache knows it (R2);
- all below `recovery_point` is on the disk; what lies above is checked after an unclean stop (L1).

Nothing here waits: a method either does its disk work at once or hands it out (`start_flush`) for somebody with a
thread. Sources: Kafka's `UnifiedLog` and `LocalLog`.
"""

from __future__ import annotations

import os
from struct import Struct
from typing import TYPE_CHECKING

from storage import layout, loader, timestamps
from storage.batch_check import Origin, check_batches
from storage.batch_header import CONTROL_BIT, CRC_START, TIMESTAMP_TYPE_BIT, BatchHeader
from storage.files import File, Files, FileSlice
from storage.leader_epochs import LeaderEpochCache
from storage.producer_state import BatchMetadata, EndMarker, ProducerEntry, ProducerState
from storage.segment import Segment
from storage.segments import Segments
from storage.txn_index import AbortedTransaction
from wire.crc import crc32c
from wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from storage.log_config import LogConfig

NO_TIMESTAMP = -1

_BASE_OFFSET = Struct(">q")
_LEADER_EPOCH = Struct(">i")
_CRC_ATTRIBUTES = Struct(">IH")
_MAX_TIMESTAMP = Struct(">q")
_EPOCH_AT = 12
_CRC_AT = 17
_ATTRIBUTES_AT = 21
_MAX_TIMESTAMP_AT = 35


class AppendInfo:
    """Where an append ended up."""

    __slots__ = ("duplicate", "first_offset", "last_offset", "log_append_time_ms", "log_start_offset")

    def __init__(
        self,
        first_offset: int,
        last_offset: int,
        log_append_time_ms: int,
        log_start_offset: int,
        *,
        duplicate: bool = False,
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.log_append_time_ms = log_append_time_ms
        self.log_start_offset = log_start_offset
        self.duplicate = duplicate


class LogRead:
    """What a read found: bytes of whole batches (the last may be cut), or no slice when there is nothing below the limit.

    `end_offset` is at or past every offset in the slice: the range to look for aborted transactions in.
    """

    __slots__ = ("end_offset", "first_batch_offset", "slice", "start_offset")

    def __init__(
        self, file_slice: FileSlice | None, start_offset: int, first_batch_offset: int, end_offset: int
    ) -> None:
        self.slice = file_slice
        self.start_offset = start_offset
        self.first_batch_offset = first_batch_offset
        self.end_offset = end_offset


class FlushJob:
    """Files to sync so that the log is on the disk up to `offset`; `run` touches no state and may be called in a thread."""

    __slots__ = ("directory", "files", "offset", "targets")

    def __init__(self, files: Files, targets: list[File], directory: str | None, offset: int) -> None:
        self.files = files
        self.targets = targets
        self.directory = directory
        self.offset = offset

    def run(self) -> None:
        """Sync them all. An OSError means that the log directory must be given up (never try again)."""
        for target in self.targets:
            self.files.sync(target)
        if self.directory is not None:
            self.files.sync_dir(self.directory)


class Log:
    """One partition's log."""

    __slots__ = (
        "_changed",
        "_dir_changed",
        "_end_hint",
        "_high_watermark",
        "_roll_jitter",
        "config",
        "directory",
        "files",
        "leader_epochs",
        "log_end_offset",
        "log_start_offset",
        "partition",
        "producers",
        "recovery_point",
        "segments",
        "topic",
        "topic_id",
    )

    def __init__(
        self, files: Files, directory: str, topic: str, partition: int, config: LogConfig, topic_id: bytes
    ) -> None:
        self.files = files
        self.directory = directory
        self.topic = topic
        self.partition = partition
        self.config = config
        self.topic_id = topic_id
        self.segments = Segments()
        self.leader_epochs = LeaderEpochCache(files, f"{directory}/{layout.LEADER_EPOCH_CHECKPOINT}")
        self.producers = ProducerState(files, directory)
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.recovery_point = 0
        self._high_watermark = 0
        self._end_hint: tuple[int, Segment, int] | None = None
        self._changed = False
        self._dir_changed = False

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
        producer_expiration_ms: int = 86_400_000,
    ) -> Log:
        """Load the log in `directory`, or make an empty one; after an unclean stop, recover it.

        The three offsets are those of the checkpoint files. Raises KafkaError(INCONSISTENT_TOPIC_ID) when the directory
        belongs to another topic of that name (R22), OSError when the disk fails.
        """
        log = cls(files, directory, topic, partition, config, topic_id)
        log._changed = log._dir_changed = loader.load(
            log,
            clean_shutdown=clean_shutdown,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            now_ms=now_ms,
            now=now,
            producer_expiration_ms=producer_expiration_ms,
        )
        log.high_watermark = high_watermark
        return log

    # --- offsets

    @property
    def high_watermark(self) -> int:
        """All below it is committed: consumers may read it."""
        return self._high_watermark

    @high_watermark.setter
    def high_watermark(self, offset: int) -> None:
        offset = min(max(offset, self.log_start_offset), self.log_end_offset)
        self._high_watermark = offset
        self.producers.on_high_watermark(offset)

    @property
    def last_stable_offset(self) -> int:
        """All below it is decided: read_committed consumers may read it (T6)."""
        unstable = self.producers.first_unstable_offset
        if unstable is None:
            return self._high_watermark
        return min(max(unstable, self.log_start_offset), self._high_watermark)

    @property
    def size_bytes(self) -> int:
        """The bytes of all log files."""
        return self.segments.size_bytes

    @property
    def unflushed(self) -> int:
        """The number of offsets that are not known to be on the disk."""
        return self.log_end_offset - self.recovery_point

    def update_config(self, config: LogConfig) -> None:
        """Take over a changed configuration; it holds from the next append."""
        self.config = config

    # --- appending

    def append_as_leader(
        self, records: memoryview, *, leader_epoch: int, now_ms: int, now: float, origin: Origin = "client"
    ) -> AppendInfo:
        """Append record batches: check them, give them offsets (in place), write them once.

        `records` must be writable and belongs to the log for the length of the call. `now_ms` is the wall clock for
        timestamps, `now` the monotonic one for rolling. Raises KafkaError with Kafka's code for what is wrong with them,
        KAFKA_STORAGE_ERROR when the disk failed; nothing has changed then.
        """
        config = self.config
        headers = check_batches(records, config, origin, now_ms)
        offset = self.log_end_offset
        markers: list[tuple[BatchHeader, EndMarker]] = []
        for header in headers:
            if header.producer_id >= 0:
                duplicate = self._check_producer(records, header, origin, markers)
                if duplicate is not None:
                    return self._answer_duplicate(duplicate)
        if len(records) > config.segment_bytes:
            raise KafkaError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"The record batches have {len(records)} bytes, more than segment.bytes of {config.segment_bytes}",
            )
        append_time = now_ms if config.message_timestamp_type == "LogAppendTime" else NO_TIMESTAMP
        last_offset = _assign(records, headers, offset, leader_epoch, append_time)
        self._append(records, headers, last_offset, leader_epoch, now)
        self._remember_producers(headers, markers)
        return AppendInfo(offset, last_offset, append_time, self.log_start_offset)

    def _check_producer(
        self, records: memoryview, header: BatchHeader, origin: Origin, markers: list[tuple[BatchHeader, EndMarker]]
    ) -> BatchMetadata | None:
        if header.attributes & CONTROL_BIT:
            marker = loader.marker_of(records[header.position : header.position + header.size])
            if marker is not None:
                self.producers.check_marker(header, marker)
                markers.append((header, marker))
            return None
        return self.producers.check(header, self.log_end_offset, from_client=origin == "client")

    def _answer_duplicate(self, batch: BatchMetadata) -> AppendInfo:
        return AppendInfo(batch.first_offset, batch.last_offset, batch.timestamp, self.log_start_offset, duplicate=True)

    def _append(
        self, records: memoryview, headers: list[BatchHeader], last_offset: int, leader_epoch: int, now: float
    ) -> None:
        config = self.config
        segment = self.segments.active
        max_timestamp = headers[0].max_timestamp
        if len(headers) > 1:
            max_timestamp = max(header.max_timestamp for header in headers)
        try:
            if segment.should_roll(
                incoming=len(records),
                last_offset=last_offset,
                max_timestamp=max_timestamp,
                now=now,
                segment_bytes=config.segment_bytes,
                segment_ms=config.segment_ms,
                index_bytes=config.segment_index_bytes,
            ):
                segment = self.roll(now)
            if leader_epoch > self.leader_epochs.latest_epoch:
                self.leader_epochs.assign(leader_epoch, self.log_end_offset)
            segment.append(records, headers, config.index_interval_bytes)
        except OSError as error:
            self._undo(segment)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"Cannot append to {self.directory}: {error}") from error
        self.log_end_offset = last_offset + 1
        self._changed = True

    def _undo(self, segment: Segment) -> None:
        """Cut off what a failed write has left behind the last batch."""
        try:
            self.files.truncate(segment.file, segment.size)
        except OSError:
            pass  # the bytes are garbage past `size`: overwritten by the next append, cut by recovery

    def _remember_producers(self, headers: list[BatchHeader], markers: list[tuple[BatchHeader, EndMarker]]) -> None:
        producers = self.producers
        for header in headers:
            if header.producer_id >= 0 and not header.attributes & CONTROL_BIT:
                producers.update(header)
        for header, marker in markers:
            completed = producers.end_transaction(header, marker)
            if completed is not None:
                if completed.is_aborted:
                    stable = producers.stable_offset_after(completed)
                    entry = AbortedTransaction(
                        completed.producer_id, completed.first_offset, completed.last_offset, stable
                    )
                    self.segments.active.append_aborted(entry)
                producers.keep_until_replicated(completed)
        producers.end_offset = self.log_end_offset

    def roll(self, now: float) -> Segment:
        """Close the active segment and start a new one at the log's end; an empty active one is simply kept."""
        active = self.segments.active
        if active.size == 0 and active.base_offset == self.log_end_offset:
            return active
        active.seal()
        segment = Segment.create(self.files, self.directory, self.log_end_offset, now)
        segment.roll_jitter_ms = self._jitter_ms(segment.base_offset)
        self.segments.add(segment)
        self.segments.warm(active)
        self._dir_changed = True
        self._take_snapshot()
        return segment

    def _jitter_ms(self, base_offset: int) -> int:
        """A part of segment.jitter.ms that differs between partitions and segments, yet is the same in every run."""
        jitter = self.config.segment_jitter_ms
        return crc32c(f"{self.topic}-{self.partition}-{base_offset}".encode()) % jitter if jitter > 0 else 0

    def _take_snapshot(self) -> None:
        producers = self.producers
        producers.end_offset = self.log_end_offset
        if producers.end_offset > producers.snapshot_offset:
            path = f"{self.directory}/{layout.segment_name(self.log_end_offset, layout.SNAPSHOT_SUFFIX)}"
            producers.write_snapshot(path, sync=False)  # a torn one is noticed by its CRC, and an older one serves

    # --- reading

    def read(self, offset: int, max_bytes: int, *, limit_offset: int, min_one_batch: bool) -> LogRead:
        """Batches from the one that holds `offset`, up to `max_bytes` and below `limit_offset`.

        The slice starts with a whole batch; the last one may be cut, as in Kafka. With `min_one_batch` the first batch
        is given whole even when it is larger than `max_bytes`; without, nothing is given then.
        Raises KafkaError(OFFSET_OUT_OF_RANGE) for offsets outside the log, KAFKA_STORAGE_ERROR when the disk failed.
        """
        log_end = self.log_end_offset
        if offset < self.log_start_offset or offset > log_end:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"Offset {offset} is outside of [{self.log_start_offset}, {log_end}]"
            )
        if offset >= limit_offset or offset == log_end:
            return LogRead(None, offset, offset, limit_offset)
        hint = self._end_hint
        try:
            if hint is not None and hint[0] == offset:
                return self._read_tail(hint[1], hint[2], offset, max_bytes, limit_offset, min_one_batch=min_one_batch)
            return self._read_from(offset, max_bytes, limit_offset, min_one_batch=min_one_batch)
        except OSError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"Cannot read {self.directory}: {error}") from error

    def _read_tail(
        self, segment: Segment, position: int, offset: int, max_bytes: int, limit_offset: int, *, min_one_batch: bool
    ) -> LogRead:
        """A reader that follows the end of the log: its offset is where the last read ended."""
        header = next(segment.scan(position, 1), None)
        if header is None or header.base_offset != offset:
            self._end_hint = None
            return self._read_from(offset, max_bytes, limit_offset, min_one_batch=min_one_batch)
        at = self.segments.floor_index(segment.base_offset)
        return self._slice(
            at, position, header.size, offset, offset, max_bytes, limit_offset, min_one_batch=min_one_batch
        )

    def _read_from(self, offset: int, max_bytes: int, limit_offset: int, *, min_one_batch: bool) -> LogRead:
        segments = self.segments
        at = segments.floor_index(offset)
        while at < len(segments):
            segment = segments[at]
            segments.warm(segment)
            found = segment.locate(offset)
            if found is not None:
                position, size, base_offset = found
                return self._slice(
                    at, position, size, offset, base_offset, max_bytes, limit_offset, min_one_batch=min_one_batch
                )
            at += 1  # offsets between the segment's last batch and the next segment are gone (compaction)
        return LogRead(None, offset, offset, limit_offset)

    def _slice(
        self,
        at: int,
        position: int,
        first_size: int,
        offset: int,
        base_offset: int,
        max_bytes: int,
        limit_offset: int,
        *,
        min_one_batch: bool,
    ) -> LogRead:
        segments = self.segments
        segment = segments[at]
        end_position = segment.size
        next_base = segments.next_base(at)
        segment_end = self.log_end_offset if next_base is None else next_base
        if limit_offset < segment_end:
            limit = segment.locate(limit_offset)
            end_position = segment.size if limit is None else limit[0]
        length = end_position - position
        if first_size > max_bytes:
            if not min_one_batch:
                return LogRead(None, offset, base_offset, limit_offset)
            max_bytes = first_size
        if length <= max_bytes:
            if next_base is None and end_position == segment.size:
                self._end_hint = (self.log_end_offset, segment, end_position)
        else:
            length = max_bytes
        if length <= 0:
            return LogRead(None, offset, base_offset, limit_offset)
        return LogRead(FileSlice(segment.file, position, length), offset, base_offset, min(limit_offset, segment_end))

    def aborted_transactions(self, start_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """The aborted transactions that touch [start, end), by last offset: what a read_committed fetch must be told."""
        found: list[AbortedTransaction] = []
        for segment in self.segments.from_offset(start_offset):
            if segment.has_txn_index and segment.txn_index.collect(start_offset, end_offset, found):
                break
        return found

    def offset_for_timestamp(self, timestamp: int) -> timestamps.OffsetAndTimestamp | None:
        """The first record whose timestamp in ms is at or past `timestamp`; None when there is none."""
        return timestamps.offset_for_timestamp(self, timestamp)

    def max_timestamp_offset(self) -> timestamps.OffsetAndTimestamp | None:
        """The first record with the log's greatest timestamp (ListOffsets -3); None in an empty log."""
        return timestamps.max_timestamp_offset(self)

    def earliest(self) -> timestamps.OffsetAndTimestamp:
        """The log's start and its leader epoch (ListOffsets -2)."""
        start = self.log_start_offset
        return timestamps.OffsetAndTimestamp(start, NO_TIMESTAMP, self.leader_epochs.epoch_for_offset(start))

    def latest(self, limit_offset: int) -> timestamps.OffsetAndTimestamp:
        """An end of the log (high watermark or last stable offset) and its leader epoch (ListOffsets -1)."""
        return timestamps.OffsetAndTimestamp(limit_offset, NO_TIMESTAMP, self.leader_epochs.latest_epoch)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(epoch, end offset) of the greatest epoch at or below `epoch`; (-1, -1) when unknown."""
        return self.leader_epochs.end_offset_for(epoch, self.log_end_offset)

    def active_producers(self) -> list[ProducerEntry]:
        """The producers remembered, for DescribeProducers."""
        return list(self.producers.producers.values())

    # --- cutting

    def truncate_to(self, offset: int) -> bool:
        """Cut off all at or past `offset`, and roll indexes, epochs and producers back (I7). False when nothing was there."""
        if offset >= self.log_end_offset:
            return False
        if offset < self.segments[0].base_offset:
            self.truncate_fully_and_start_at(offset)
            return True
        for segment in self.segments.from_offset(offset):
            if segment.base_offset > offset:
                self._drop(segment)
        self.segments.active.truncate_to(offset)
        self._set_end(offset)
        self.leader_epochs.truncate_from_end(offset)
        loader.rebuild_producers(self, offset)
        return True

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop all data and go on at `offset` (R24)."""
        for segment in list(self.segments):
            self._drop(segment)
        self.segments.add(Segment.create(self.files, self.directory, offset, 0.0))
        loader.remove_snapshots(self)
        self.leader_epochs.clear()
        self.producers.clear(offset)
        self.log_start_offset = offset
        self._set_end(offset)
        self._high_watermark = offset

    def _drop(self, segment: Segment) -> None:
        self.segments.remove(segment)
        segment.delete()
        self._dir_changed = True

    def _set_end(self, offset: int) -> None:
        self.log_end_offset = offset
        self.recovery_point = min(self.recovery_point, offset)
        self.log_start_offset = min(self.log_start_offset, offset)
        self._high_watermark = min(self._high_watermark, offset)
        self._end_hint = None
        self._changed = True

    def advance_log_start_offset(self, offset: int) -> bool:
        """Make `offset` the first that may be read (DeleteRecords, retention). False when it was already past it.

        Raises KafkaError(OFFSET_OUT_OF_RANGE) beyond the high watermark (L6). Segments wholly below it are removed by
        `delete_segments_below`; the caller persists the offset first (L5).
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

    def delete_segments_below(self, offset: int) -> list[str]:
        """Rename the files of segments wholly below `offset` to `.deleted`, never the active one's; the new names.

        Removing those files after file.delete.delay.ms is the caller's.
        """
        doomed = []
        while len(self.segments) > 1 and self.segments[1].base_offset <= offset:
            segment = self.segments[0]
            self.segments.remove(segment)
            snapshot = f"{self.directory}/{layout.segment_name(segment.base_offset, layout.SNAPSHOT_SUFFIX)}"
            for path in [*segment.paths(), snapshot]:
                if self.files.exists(path):
                    self.files.rename(path, path + layout.DELETED_SUFFIX)
                    doomed.append(path + layout.DELETED_SUFFIX)
            self._dir_changed = True
        return doomed

    # --- durability and the end

    def start_flush(self, up_to: int | None = None) -> FlushJob | None:
        """The work that makes the log durable up to `up_to` (default: its end); None when it is already.

        Run the job, in a thread if need be, then call `finish_flush` with it.
        """
        offset = self.log_end_offset if up_to is None else min(up_to, self.log_end_offset)
        if offset <= self.recovery_point and not self._dir_changed:
            return None
        targets: list[File] = []
        for segment in self.segments.from_offset(self.recovery_point):
            if segment.base_offset < offset or segment.size == 0:
                targets.extend(segment.files_to_sync())
        directory = self.directory if self._dir_changed else None
        self._dir_changed = False
        return FlushJob(self.files, targets, directory, offset)

    def finish_flush(self, job: FlushJob) -> None:
        """The job has run: what it covered need not be checked after an unclean stop."""
        self.recovery_point = max(self.recovery_point, min(job.offset, self.log_end_offset))

    def flush(self) -> None:
        """Make the whole log durable, here and now. KafkaError(KAFKA_STORAGE_ERROR) when the disk failed."""
        try:
            job = self.start_flush()
            if job is not None:
                job.run()
                self.finish_flush(job)
        except OSError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"Cannot flush {self.directory}: {error}") from error

    def close(self) -> None:
        """A clean stop: indexes written, producers' snapshot taken, everything synced. Nothing to do for an untouched log."""
        if self._changed:
            self.segments.active.seal()
            if self.log_end_offset > 0:
                self._take_snapshot()
            self.flush()
            self._changed = False
        for segment in self.segments:
            segment.release()

    def delete_renamed(self, unique: str) -> str:
        """Rename the partition's directory for deletion; the new path. `unique` is 32 hex digits.

        The log must not be used any more, except for slices under way.
        """
        parent, name = os.path.split(self.directory)
        renamed = f"{parent}/{layout.deleted_dir_name(self.topic, self.partition, unique)}"
        self.files.rename(f"{parent}/{name}", renamed)
        self.files.sync_dir(parent)
        self.directory = renamed
        for segment in self.segments:
            segment.forget()
        return renamed


def _assign(
    records: memoryview, headers: list[BatchHeader], offset: int, leader_epoch: int, append_time_ms: int
) -> int:
    """Write offsets and leader epoch into the batches (outside their CRC), and the append time when it is asked for
    (inside). The last offset given.
    """
    for header in headers:
        at = header.position
        delta = header.last_offset - header.base_offset
        _BASE_OFFSET.pack_into(records, at, offset)
        _LEADER_EPOCH.pack_into(records, at + _EPOCH_AT, leader_epoch)
        header.base_offset = offset
        header.last_offset = offset + delta
        header.leader_epoch = leader_epoch
        if append_time_ms != NO_TIMESTAMP:
            _set_append_time(records, header, append_time_ms)
        offset += delta + 1
    return offset - 1


def _set_append_time(records: memoryview, header: BatchHeader, append_time_ms: int) -> None:
    at = header.position
    header.attributes |= TIMESTAMP_TYPE_BIT
    header.max_timestamp = append_time_ms
    _MAX_TIMESTAMP.pack_into(records, at + _MAX_TIMESTAMP_AT, append_time_ms)
    records[at + _ATTRIBUTES_AT + 1] |= TIMESTAMP_TYPE_BIT
    header.crc = crc32c(records[at + CRC_START : at + header.size])
    records[at + _CRC_AT : at + _CRC_AT + 4] = header.crc.to_bytes(4, "big")
