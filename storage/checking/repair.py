"""Repairs a damaged partition in a log directory that no broker is using: `barnabas storage recover`.

A repair keeps every valid record batch, before and behind the damage, at its offset. Bytes that are not a batch are
moved to `.log.damaged` beside the segment, and lost offsets are covered by an empty batch, as compaction does: so no
offset is assigned twice, and a later check finds no damage. Indexes, producer state and leader epochs are rebuilt from
the batches. `plan` returns what will be lost; `run` can be interrupted at any time and started again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from barnabas.storage import layout
from barnabas.storage.append.leader_epochs import LeaderEpochCache
from barnabas.storage.directories.checkpoints import (
    CorruptCheckpoint,
    OffsetCheckpoint,
    read_partition_metadata,
    write_partition_metadata,
)
from barnabas.storage.files import Files
from barnabas.storage.layout import TopicPartition
from barnabas.storage.log import Log
from barnabas.storage.log_config import LogConfig
from barnabas.storage.recover import swap
from barnabas.storage.recover.salvage import DamagedBytes, free_damaged_path, offset_limit, walk
from barnabas.storage.segments.segment import Segment
from barnabas.storage.segments.sparse_indexes import MAX_RELATIVE_OFFSET
from barnabas.wire.batches.records import NO_TIMESTAMP, encode_batch
from barnabas.wire.types import ZERO_UUID

_CHUNK = 4 << 20
_NEVER_MS = 2**63 - 1  # producers are expired by the broker


class Loss(NamedTuple):
    """Lost data: the records from offset `first` to `last` (none if `last` is less), and `size` damaged bytes."""

    path: str
    first: int
    last: int
    size: int


class _SegmentRepair:
    """The new content of a segment: its valid batches, and an empty batch wherever offsets are lost."""

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        self.pieces: list[tuple[int, int] | bytes] = []  # (position, size) in the old file, or new bytes
        self.damaged: list[tuple[int, int]] = []
        self.losses: list[Loss] = []
        self.end = segment.base_offset
        self._leader_epoch = 0
        self._damaged_size = 0

    def read(self, following: int | None, recovery_point: int) -> bool:
        """Read the segment; whether offsets are missing only where bytes are damaged."""
        is_dense = True
        dense_from = recovery_point if following is None else None  # as in a check (`check.py`)
        for item in walk(self.segment, offset_limit(self.segment, following), dense_from or None):
            if isinstance(item, DamagedBytes):
                self.damaged.append((item.position, item.size))
                self._damaged_size += item.size
                continue
            header, _ = item
            if self._damaged_size:
                self.fill_to(header.base_offset)
            is_dense &= header.base_offset == self.end
            self.pieces.append((header.position, header.size))
            self._leader_epoch = header.partition_leader_epoch
            self.end = header.last_offset + 1
        self.segment.forget()
        return is_dense

    def fill_to(self, offset: int) -> None:
        """Record the offsets from the last batch up to `offset` as lost and cover them by an empty batch."""
        first, last = self.end, offset - 1
        self.losses.append(Loss(self.segment.path(layout.LOG_SUFFIX), first, last, self._damaged_size))
        if first <= last <= self.segment.base_offset + MAX_RELATIVE_OFFSET:
            self.pieces.append(_empty_batch(first, last, self._leader_epoch))
            self.end = offset
        self._damaged_size = 0

    @property
    def has_damaged_end(self) -> bool:
        """Whether the bytes after the last valid batch are damaged."""
        return self._damaged_size > 0


def _empty_batch(first: int, last: int, leader_epoch: int) -> bytes:
    """A batch without records that covers offsets."""
    return encode_batch(b"", 0, 0, first, last, leader_epoch, NO_TIMESTAMP, NO_TIMESTAMP)


class Repair:
    """The repair of one partition of a log directory."""

    def __init__(self, files: Files, path: str, key: TopicPartition, topic_id: bytes | None = None) -> None:
        """`topic_id` comes from the metadata, if it is known; the directory gets it."""
        self._files = files
        self._topic_id = topic_id
        self._path = path
        self._key = key
        self._directory = f"{path}/{layout.partition_dir_name(*key)}"
        self._recovery_points = OffsetCheckpoint(files, f"{path}/{layout.RECOVERY_POINT_CHECKPOINT}")
        self._log_starts = OffsetCheckpoint(files, f"{path}/{layout.LOG_START_CHECKPOINT}")
        self._log_start = self._log_starts.read().get(key, 0)

    @property
    def _recovery_point(self) -> int:
        return self._recovery_points.read().get(self._key, 0)

    def plan(self) -> list[Loss]:
        """The data that would be lost; nothing is changed. CorruptCheckpoint when a checkpoint file is invalid."""
        repairs = self._survey()
        losses = [loss for repair in repairs for loss in repair.losses]
        if not repairs and self._log_start < self._recovery_point:
            losses.append(Loss(self._directory, self._log_start, self._recovery_point - 1, 0))
        return losses

    def _survey(self) -> list[_SegmentRepair]:
        repairs = []
        segments = self._segments()
        is_dense = True
        for at, segment in enumerate(segments):
            repair = _SegmentRepair(segment)
            following = segments[at + 1].base_offset if at + 1 < len(segments) else None
            is_dense &= repair.read(following, self._recovery_point)
            behind = self._recovery_point if following is None else following
            is_lost = following is None or is_dense or repair.has_damaged_end
            if repair.has_damaged_end or (is_lost and repair.end < behind):
                repair.fill_to(max(behind, repair.end))
            repairs.append(repair)
        return repairs

    def _segments(self) -> list[Segment]:
        if not self._files.exists(self._directory):
            return []
        return [
            Segment(self._files, self._directory, offset, size=size)
            for name, size in sorted(self._files.list_files(self._directory))
            if name.endswith(layout.LOG_SUFFIX) and (offset := layout.offset_of(name)) is not None
        ]

    def run(self) -> None:
        """Repair the partition; durable on return."""
        files, directory = self._files, self._directory
        files.mkdirs(directory)
        swap.complete(files, directory, dict(files.list_files(directory)))
        self._write_topic_id()
        self._rename_invalid_epochs()
        self._remove_derived()
        repairs = self._survey()
        self._forget_wrong_log_start(repairs)
        for repair in repairs:
            if repair.losses:
                self._rewrite(repair)
        if not repairs or repairs[-1].end < self._recovery_point:
            Segment.create(files, directory, max(self._recovery_point, self._log_start), 0.0)
        files.sync_dir(directory)
        files.sync_dir(self._path)
        self._load()

    def _forget_wrong_log_start(self, repairs: list[_SegmentRepair]) -> None:
        """Begin the log with its first segment if the checkpointed log start is above all its batches."""
        if repairs and self._log_start > max(repairs[-1].end, self._recovery_point):
            starts = self._log_starts.read()
            starts.pop(self._key, None)
            self._log_starts.write(starts)
            self._log_start = 0

    def _write_topic_id(self) -> None:
        path = f"{self._directory}/{layout.PARTITION_METADATA}"
        if self._topic_id is not None and read_partition_metadata(self._files, path) != self._topic_id:
            write_partition_metadata(self._files, path, self._topic_id)
            self._files.sync(self._files.open(path))

    def _rename_invalid_epochs(self) -> None:
        """Rename an invalid checkpoint of leader epochs; it is rebuilt, since every batch carries its epoch."""
        path = f"{self._directory}/{layout.LEADER_EPOCH_CHECKPOINT}"
        try:
            LeaderEpochCache.load(self._files, path)
        except CorruptCheckpoint:
            self._files.rename(path, free_damaged_path(self._files, path))

    def _remove_derived(self) -> None:
        """Remove files that are rebuilt from the batches, but not the first snapshot: it covers deleted batches."""
        names = sorted(name for name, _ in self._files.list_files(self._directory))
        first = next((layout.offset_of(name) for name in names if name.endswith(layout.LOG_SUFFIX)), None)
        for name in names:
            is_index = name.endswith(layout.SEGMENT_SUFFIXES) and not name.endswith(layout.LOG_SUFFIX)
            if is_index or (name.endswith(layout.SNAPSHOT_SUFFIX) and layout.offset_of(name) != first):
                self._files.unlink(f"{self._directory}/{name}")
        self._files.sync_dir(self._directory)

    def _rewrite(self, repair: _SegmentRepair) -> None:
        """Copy the damaged bytes to another file, and atomically replace the log file by one with the new content."""
        segment, files = repair.segment, self._files
        path = segment.path(layout.LOG_SUFFIX)
        if repair.damaged:
            self._copy(segment, repair.damaged, free_damaged_path(files, path))
        self._copy(segment, repair.pieces, path + layout.TEMPORARY_SUFFIX)
        files.sync_dir(self._directory)
        files.rename(path + layout.TEMPORARY_SUFFIX, path)
        segment.forget()

    def _copy(self, segment: Segment, pieces: Iterable[tuple[int, int] | bytes], path: str) -> None:
        file = self._files.open(path)
        self._files.truncate(file, 0)
        end = 0
        for piece in pieces:
            for data in [piece] if isinstance(piece, bytes) else _read_in_chunks(segment, *piece):
                self._files.write_at(file, data, end)
                end += len(data)
        self._files.sync(file)

    def _load(self) -> None:
        """Recover the log from its first batch on, close it, and checkpoint that all of it is synced."""
        log = Log.open(
            self._files,
            self._directory,
            *self._key,
            LogConfig(),
            topic_id=ZERO_UUID,
            now_ms=0,
            clean_shutdown=False,
            log_start_offset=self._log_start,
            producer_expiration_ms=_NEVER_MS,
            may_have_gaps=True,
        )
        log.close()
        points = self._recovery_points.read()
        points[self._key] = log.recovery_point
        self._recovery_points.write(points)


def _read_in_chunks(segment: Segment, position: int, size: int) -> Iterator[bytes]:
    for at in range(position, position + size, _CHUNK):
        yield segment.read_bytes(at, min(_CHUNK, position + size - at))


def put_checkpoint_aside(files: Files, path: str) -> str:
    """Rename an invalid checkpoint file of a log directory; its new path."""
    renamed = free_damaged_path(files, path)
    files.rename(path, renamed)
    files.sync_dir(path.rpartition("/")[0])
    return renamed
