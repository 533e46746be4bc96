"""Checks a log directory without changing it: `barnabas storage check`.

All batches of every partition are read (length, magic, CRC, offsets) and compared with the indexes, producer snapshots,
leader epochs and checkpoints. What the next start repairs itself, such as a torn tail above the recovery point, is
reported as a notice; what would keep a partition offline or cause wrong reads is reported as damage (L2).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from barnabas.storage import layout
from barnabas.storage.append.leader_epochs import LeaderEpochCache
from barnabas.storage.checking.check_indexes import SegmentBatches, check_indexes
from barnabas.storage.checking.findings import DirectoryReport, PartitionReport
from barnabas.storage.directories.checkpoints import (
    CorruptCheckpoint,
    OffsetCheckpoint,
    read_partition_metadata,
    topic_id_text,
)
from barnabas.storage.directories.foreign import is_of_partition
from barnabas.storage.directories.meta_properties import DataDirMismatch, read_meta_properties
from barnabas.storage.files import Files
from barnabas.storage.layout import TopicPartition
from barnabas.storage.log_state import Checkpointed
from barnabas.storage.producers.producer_snapshot import CorruptSnapshot, decode_snapshot
from barnabas.storage.producers.producer_state import ProducerState
from barnabas.storage.recover.salvage import DamagedBytes, offset_limit, walk
from barnabas.storage.segments.segment import Segment
from barnabas.storage.segments.txn_index import AbortedTransaction
from barnabas.wire.types import ZERO_UUID

_LEFTOVERS = (layout.DELETED_SUFFIX, layout.CLEANED_SUFFIX, layout.SWAP_SUFFIX, layout.TEMPORARY_SUFFIX)
_METADATA = layout.partition_dir_name("__cluster_metadata", 0)
_FILES = frozenset({layout.META_PROPERTIES, layout.CLEAN_SHUTDOWN, layout.LOCK, layout.CLEANER_CHECKPOINT})
_CHECKPOINTS = (layout.RECOVERY_POINT_CHECKPOINT, layout.LOG_START_CHECKPOINT, layout.REPLICATION_CHECKPOINT)


def _partitions(files: Files, report: DirectoryReport, directories: list[str]) -> list[TopicPartition]:
    """The partitions that have a directory, in order; other directories with such a name are noticed."""
    partitions = []
    for name in directories:
        key = layout.parse_partition_dir(name)
        if key is None:
            continue
        try:
            is_one = is_of_partition(files, f"{report.path}/{name}")
        except OSError:
            is_one = True  # the check of the partition says why it cannot be read
        if is_one:
            partitions.append(key)
        else:
            report.notice(name, "it has a partition's name, but no file of one; brokers leave it as it is")
    return sorted(partitions)


def check_directory(files: Files, path: str, topic_ids: Mapping[str, bytes] | None = None) -> DirectoryReport:
    """Check a log directory with every partition in it. OSError when it cannot be read.

    `topic_ids` come from the metadata, if that is known.
    """
    report = DirectoryReport(path)
    report.is_clean = files.exists(f"{path}/{layout.CLEAN_SHUTDOWN}")
    directories = list(files.list_dirs(path))
    _check_identity(files, report, has_metadata=_METADATA in directories)
    for name in sorted(_FILES.intersection(directories)):
        report.damage(name, "it is a directory, but has to be a file")
    offsets = {name: _read_checkpoint(files, report, name) for name in _CHECKPOINTS}
    recovery_points, log_starts = offsets[layout.RECOVERY_POINT_CHECKPOINT], offsets[layout.LOG_START_CHECKPOINT]
    partitions = _partitions(files, report, directories)
    for key in partitions:
        is_clean = report.is_clean and key in recovery_points  # Kafka does not close its metadata log
        checkpointed = Checkpointed(is_clean, recovery_points.get(key, 0), log_starts.get(key, 0))
        topic_id = topic_ids.get(key[0]) if topic_ids is not None else None
        report.partitions.append(check_partition(files, path, key, checkpointed, topic_id))
    for topic, partition in sorted(recovery_points.keys() - set(partitions)):
        offset = recovery_points[topic, partition]
        if offset > log_starts.get((topic, partition), 0):
            name = layout.partition_dir_name(topic, partition)
            report.damage(name, f"the directory is missing, but everything up to offset {offset} was synced")
    return report


def _check_identity(files: Files, report: DirectoryReport, *, has_metadata: bool) -> None:
    try:
        identity = read_meta_properties(files, f"{report.path}/{layout.META_PROPERTIES}")
        if identity is None and has_metadata:
            report.damage(layout.META_PROPERTIES, "no broker starts without it: it says whose partitions these are")
    except (CorruptCheckpoint, DataDirMismatch, OSError) as error:
        report.damage(layout.META_PROPERTIES, f"no broker starts with it: {error}")


def _read_checkpoint(files: Files, report: DirectoryReport, name: str) -> dict[TopicPartition, int]:
    try:
        return OffsetCheckpoint(files, f"{report.path}/{name}").read()
    except (CorruptCheckpoint, OSError) as error:
        report.damage(name, f"it cannot be read: {error}")
        return {}


def check_partition(
    files: Files, path: str, key: TopicPartition, checkpointed: Checkpointed, topic_id: bytes | None = None
) -> PartitionReport:
    """Check one partition's directory; `topic_id` comes from the metadata, if it is known."""
    directory = f"{path}/{layout.partition_dir_name(*key)}"
    report = PartitionReport(directory, *key)
    try:
        return _check_partition(files, report, checkpointed, topic_id)
    except OSError as error:
        report.damage("", f"it cannot be read: {error}")
        return report


def _check_partition(
    files: Files, report: PartitionReport, checkpointed: Checkpointed, topic_id: bytes | None
) -> PartitionReport:
    directories = list(files.list_dirs(report.directory))
    for name in directories:
        report.damage(name, "it is a directory, but a partition has only files")
    names = dict(files.list_files(report.directory))
    _check_small_files(files, report, names, topic_id, directories)
    segments = _segments(files, report, names, checkpointed)
    report.segments, report.size = len(segments), sum(segment.size for segment in segments)
    report.start = max(checkpointed.log_start_offset, segments[0].base_offset if segments else 0)
    if any(name.endswith(layout.SWAP_SUFFIX) for name in names):
        report.notice("", "a compaction was interrupted; check again after the next start, which finishes it")
        return report
    _LogCheck(files, report, names, segments, checkpointed).run()
    return report


def _check_small_files(
    files: Files, report: PartitionReport, names: dict[str, int], topic_id: bytes | None, directories: list[str]
) -> None:
    for name in sorted(names):
        if name.endswith(_LEFTOVERS):
            report.notice(name, "left by an interrupted operation; the next start finishes or removes it")
        elif name.endswith(layout.DAMAGED_SUFFIX):
            report.notice(name, "kept from an earlier recovery; remove it when it is not needed")
    if layout.PARTITION_METADATA not in directories:
        _check_topic_id(files, report, topic_id)
    if layout.LEADER_EPOCH_CHECKPOINT not in directories:
        try:
            LeaderEpochCache.load(files, f"{report.directory}/{layout.LEADER_EPOCH_CHECKPOINT}")
        except CorruptCheckpoint as error:
            report.damage(layout.LEADER_EPOCH_CHECKPOINT, f"it cannot be read: {error}")


def _check_topic_id(files: Files, report: PartitionReport, topic_id: bytes | None) -> None:
    stored = read_partition_metadata(files, f"{report.directory}/{layout.PARTITION_METADATA}")
    if stored is None:
        report.notice(layout.PARTITION_METADATA, "it contains no topic id; the next start writes it")
    elif topic_id is not None and stored not in (topic_id, ZERO_UUID):
        report.damage(
            layout.PARTITION_METADATA,
            f"it has the topic id {topic_id_text(stored)}, but the metadata has {topic_id_text(topic_id)}",
        )


def _segments(
    files: Files, report: PartitionReport, names: dict[str, int], checkpointed: Checkpointed
) -> list[Segment]:
    segments = []
    for name in sorted(names):
        offset = layout.offset_of(name)
        if offset is None or not name.endswith(layout.SEGMENT_SUFFIXES):
            continue
        log_name = layout.segment_name(offset, layout.LOG_SUFFIX)
        if name == log_name:
            segment = Segment(files, report.directory, offset, size=names[name])
            segment.has_txn_index = layout.segment_name(offset, layout.TXN_INDEX_SUFFIX) in names
            segments.append(segment)
        elif log_name not in names and log_name + layout.DELETED_SUFFIX not in names:
            if checkpointed.log_start_offset <= offset < checkpointed.recovery_point:
                report.damage(log_name, f"the file is missing, but {name} exists")
            else:
                report.notice(name, "there is no log file of this name; the next start removes it")
    return segments


class _LogCheck:
    """One pass over the batches of a partition."""

    def __init__(
        self,
        files: Files,
        report: PartitionReport,
        names: dict[str, int],
        segments: list[Segment],
        checkpointed: Checkpointed,
    ) -> None:
        self._files = files
        self._report = report
        self._names = names
        self._segments = segments
        self._checkpointed = checkpointed
        self._state = ProducerState()
        self._end = segments[0].base_offset if segments else 0
        self._is_dense = True  # no gap so far, so that the next gap means lost data

    def run(self) -> None:
        """Check all segments and snapshots."""
        snapshot = max((at for at in self._snapshots() if at <= self._end), default=None)
        if snapshot is not None:
            self._load(snapshot)
        for at, segment in enumerate(self._segments):
            following = self._segments[at + 1].base_offset if at + 1 < len(self._segments) else None
            self._check_gap(segment)
            self._check_snapshot(segment.base_offset)
            self._check_segment(segment, following)
        self._check_snapshot(self._end)
        report, checkpointed = self._report, self._checkpointed
        report.end_offset = self._end
        if checkpointed.begins_above_its_end:
            report.damage("", f"its checkpointed log start {checkpointed.log_start_offset} is above its end")
        if checkpointed.must_exist(self._end):
            report.damage(
                "", f"the log ends at offset {self._end}, but everything up to {checkpointed.recovery_point} was synced"
            )

    def _snapshots(self) -> Iterator[int]:
        for name in self._names:
            offset = layout.offset_of(name)
            if offset is not None and name.endswith(layout.SNAPSHOT_SUFFIX):
                yield offset

    def _load(self, offset: int) -> None:
        name = layout.snapshot_name(offset)
        try:
            self._state.load_snapshot(self._files.read_file(f"{self._report.directory}/{name}"), offset)
        except CorruptSnapshot as error:
            self._report.notice(name, f"{error}; the next start ignores it")

    def _check_gap(self, segment: Segment) -> None:
        """Report a gap before a segment; it is damage unless compaction may have made it."""
        if segment.base_offset > max(self._end, self._checkpointed.log_start_offset):
            text = f"offsets {self._end} to {segment.base_offset - 1} before it are missing"
            name = layout.segment_name(segment.base_offset, layout.LOG_SUFFIX)
            if self._is_dense:
                self._report.damage(name, text)
            else:
                self._report.notice(name, text)

    def _check_segment(self, segment: Segment, following: int | None) -> None:
        batches = SegmentBatches()
        self._end = segment.base_offset
        dense_from = self._checkpointed.recovery_point if following is None else None
        for item in walk(segment, offset_limit(segment, following), dense_from or None):
            if isinstance(item, DamagedBytes):
                self._report_damaged(segment, item, is_last=following is None)
                continue
            header, batch = item
            self._is_dense &= header.base_offset == self._end
            self._report.batches += 1
            batches.add(header)
            completed = self._state.replay(header, batch)
            if completed is not None and completed.is_aborted:
                batches.aborted.append(AbortedTransaction(*completed[:3], -1))
            self._end = header.last_offset + 1
        if self._checkpointed.clean_shutdown or (
            following is not None and following <= self._checkpointed.recovery_point
        ):
            self._check_indexes(segment, batches, is_closed=following is not None)
        segment.forget()

    def _report_damaged(self, segment: Segment, damaged: DamagedBytes, *, is_last: bool) -> None:
        name = layout.segment_name(segment.base_offset, layout.LOG_SUFFIX)
        where = f"{damaged.size} bytes from byte {damaged.position} on, at offset {damaged.offset}"
        text = f"{where}, are not a valid record batch"
        if self._checkpointed.clean_shutdown or damaged.offset < self._checkpointed.recovery_point:
            self._report.damage(name, text)
        elif is_last and damaged.position + damaged.size == segment.size:
            self._report.notice(name, f"{text}: a torn write, which the next start truncates")
        else:
            self._report.notice(
                name,
                f"{text}; they were not synced: the next start truncates the log there and keeps a copy of the rest",
            )

    def _check_indexes(self, segment: Segment, batches: SegmentBatches, *, is_closed: bool) -> None:
        for kind in (layout.INDEX_SUFFIX, layout.TIME_INDEX_SUFFIX):
            name = layout.segment_name(segment.base_offset, kind)
            if segment.size and name not in self._names:
                self._report.notice(name, "the index is missing; the next start rebuilds it")
                return
        check_indexes(self._report, segment, batches, is_closed=is_closed)

    def _check_snapshot(self, offset: int) -> None:
        """Compare a snapshot with the batches before it, for the producers that are in both."""
        name = layout.snapshot_name(offset)
        if name not in self._names:
            return
        try:
            entries = decode_snapshot(self._files.read_file(f"{self._report.directory}/{name}"))
        except CorruptSnapshot as error:
            self._report.notice(name, f"{error}; the next start ignores it")
            return
        for entry in entries:
            known = self._state.producers.get(entry.producer_id)
            if known is None or not known.batches or not entry.batches:
                continue
            if (known.producer_epoch, known.last_sequence, known.last_offset, known.current_txn_first_offset) != (
                entry.producer_epoch,
                entry.last_sequence,
                entry.last_offset,
                entry.current_txn_first_offset,
            ):
                self._report.damage(name, f"the state of producer {entry.producer_id} differs from the log")
                return
