"""Bringing a log back from its directory: quickly after a clean stop, by checking its tail after any other.

After a clean stop indexes and the producers' snapshot are trusted and hardly a batch is read. After an unclean one
every segment from the recovery point on is read: length, magic, CRC, offsets rising (L1); the first bad batch ends the
log, segments behind it are removed, and indexes and producer state are rebuilt on the way (I5). Source: Kafka's `LogLoader`.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING

from storage import layout
from storage.batch_header import CONTROL_BIT, CRC_START, BatchHeader
from storage.checkpoints import read_partition_metadata, write_partition_metadata
from storage.leader_epochs import LeaderEpochCache
from storage.offset_index import MAX_RELATIVE_OFFSET
from storage.producer_state import CorruptSnapshot, EndMarker, ProducerState
from storage.segment import Segment
from storage.txn_index import AbortedTransaction
from wire.crc import crc32c
from wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from storage.log import Log

_ZERO_UUID = bytes(16)
_CONTROL_KEY = Struct(">hh")
_END_MARKER = Struct(">hi")
_ABORT = 0
_COMMIT = 1


def load(
    log: Log,
    *,
    clean_shutdown: bool,
    recovery_point: int,
    log_start_offset: int,
    now_ms: int,
    now: float,
    producer_expiration_ms: int,
) -> bool:
    """Fill a fresh `log` from its directory. True when anything on disk had to change (so that a close has work to do)."""
    files, directory = log.files, log.directory
    if not files.exists(directory):
        _create(log, log_start_offset, now)
        return True
    names = dict(_without_leftovers(log, files.list_files(directory)))
    changed = _take_topic_id(log, layout.PARTITION_METADATA in names)
    if layout.LEADER_EPOCH_CHECKPOINT in names:
        log.leader_epochs = LeaderEpochCache.load(files, f"{directory}/{layout.LEADER_EPOCH_CHECKPOINT}")
    broken = _find_segments(log, names, now)
    snapshots = sorted(
        offset
        for name in names
        if name.endswith(layout.SNAPSHOT_SUFFIX) and (offset := layout.offset_of(name)) is not None
    )
    if clean_shutdown and broken is None:
        log.log_end_offset = log.segments.active.next_offset() if len(log.segments) else 0
        log.recovery_point = log.log_end_offset
    else:
        first = recovery_point if broken is None else min(broken, recovery_point)
        _recover(log, snapshots, min(recovery_point, first) if clean_shutdown else first)
        changed = True
    changed |= _settle(log, max(log_start_offset, log.segments[0].base_offset if len(log.segments) else 0), now)
    _restore_producers(log, snapshots, trust=clean_shutdown and broken is None)
    log.producers.remove_expired(now_ms, producer_expiration_ms)
    return changed


def _create(log: Log, log_start_offset: int, now: float) -> None:
    log.files.mkdirs(log.directory)
    write_partition_metadata(log.files, f"{log.directory}/{layout.PARTITION_METADATA}", log.topic_id)
    log.leader_epochs.save()
    log.segments.add(Segment.create(log.files, log.directory, log_start_offset, now))
    log.log_start_offset = log.log_end_offset = log.recovery_point = log_start_offset
    log.producers.clear(log_start_offset)


def _without_leftovers(log: Log, listed: object) -> list[tuple[str, int]]:
    """Remove what an interrupted deletion, cleaning or file replacement has left; the files that stay."""
    stay = []
    for name, size in listed:  # type: ignore[attr-defined]
        if name.endswith((layout.DELETED_SUFFIX, layout.CLEANED_SUFFIX, ".tmp")):
            log.files.unlink(f"{log.directory}/{name}")
        else:
            stay.append((name, size))
    return stay


def _take_topic_id(log: Log, present: bool) -> bool:
    """Check the directory's topic id against the log's, or adopt or write it (R22). True when it was written."""
    path = f"{log.directory}/{layout.PARTITION_METADATA}"
    stored = read_partition_metadata(log.files, path) if present else None
    if stored is None or stored == _ZERO_UUID:
        if log.topic_id != _ZERO_UUID:
            write_partition_metadata(log.files, path, log.topic_id)
            return True
        return False
    if log.topic_id == _ZERO_UUID:
        log.topic_id = stored
    elif stored != log.topic_id:
        raise KafkaError(ErrorCode.INCONSISTENT_TOPIC_ID, f"{log.directory} belongs to another topic of that name")
    return False


def _find_segments(log: Log, names: dict[str, int], now: float) -> int | None:
    """Add the segments whose log file is there, remove indexes without one. The first base offset that lacks an index."""
    broken = None
    for name in sorted(names):
        offset = layout.offset_of(name)
        if offset is None:
            continue
        log_name = layout.segment_name(offset, layout.LOG_SUFFIX)
        if name == log_name:
            segment = Segment(log.files, log.directory, offset, size=names[name], created=now)
            segment.has_txn_index = layout.segment_name(offset, layout.TXN_INDEX_SUFFIX) in names
            log.segments.add(segment)
            if names[name] and layout.segment_name(offset, layout.INDEX_SUFFIX) not in names and broken is None:
                broken = offset
        elif log_name not in names and name.endswith(layout.SEGMENT_SUFFIXES):
            log.files.unlink(f"{log.directory}/{name}")
    return broken


def _settle(log: Log, log_start_offset: int, now: float) -> bool:
    """Make start, end and epochs fit each other. True when a segment had to be made."""
    made = False
    if len(log.segments) and log.log_end_offset < log_start_offset:
        for segment in list(log.segments):
            log.segments.remove(segment)
            segment.delete()
    if not len(log.segments):
        log.segments.add(Segment.create(log.files, log.directory, log_start_offset, now))
        log.log_end_offset = log_start_offset
        log.leader_epochs.clear()
        made = True
    log.log_start_offset = log_start_offset
    log.recovery_point = min(log.recovery_point, log.log_end_offset)
    log.leader_epochs.truncate_from_end(log.log_end_offset)
    log.leader_epochs.truncate_from_start(log_start_offset)
    return made


# --- recovery


def _recover(log: Log, snapshots: list[int], recovery_point: int) -> None:
    """Check every segment from the one that holds the recovery point; the first bad batch ends the log."""
    if not len(log.segments):
        return
    log.recovery_point = recovery_point
    suspects = log.segments.from_offset(recovery_point)
    state = ProducerState(log.files, log.directory)
    _replay(log, state, snapshots, suspects[0].base_offset)
    end = suspects[0].base_offset
    cut = False
    epochs_before = log.leader_epochs.entries()
    for segment in suspects:
        if cut or segment.base_offset < end:
            log.segments.remove(segment)
            segment.delete()
            continue
        end, cut = _recover_segment(log, segment, state, max(end, segment.base_offset))
    log.log_end_offset = end
    if log.leader_epochs.entries() != epochs_before:
        log.leader_epochs.save()


def _recover_segment(log: Log, segment: Segment, state: ProducerState, expected: int) -> tuple[int, bool]:
    """Read one segment, rebuild its indexes, cut it behind the last good batch. (End offset, whether it was cut.)"""
    segment.reset_indexes()
    position = 0
    for header, data in segment.batches():
        if not _is_good(header, data, segment.base_offset, expected):
            break
        segment.index_recovered(header, log.config.index_interval_bytes)
        if header.leader_epoch > log.leader_epochs.latest_epoch:
            log.leader_epochs.assign_in_memory(header.leader_epoch, header.base_offset)
        _apply(state, header, data, segment)
        position += header.size
        expected = header.last_offset + 1
    cut = position < segment.size
    segment.cut_recovered(position)
    return expected, cut


def _is_good(header: BatchHeader, data: memoryview, base_offset: int, expected: int) -> bool:
    return (
        header.magic == 2
        and header.base_offset >= expected
        and header.last_offset >= header.base_offset
        and header.last_offset - base_offset <= MAX_RELATIVE_OFFSET
        and crc32c(data[CRC_START:]) == header.crc
    )


# --- producers


def rebuild_producers(log: Log, end_offset: int) -> None:
    """Bring the producer state to `end_offset`: the last snapshot at or below it, and the batches behind that (I5, I7)."""
    snapshots = []
    for name, _ in log.files.list_files(log.directory):
        offset = layout.offset_of(name) if name.endswith(layout.SNAPSHOT_SUFFIX) else None
        if offset is not None and offset > end_offset:
            log.files.unlink(f"{log.directory}/{name}")
        elif offset is not None:
            snapshots.append(offset)
    _replay(log, log.producers, sorted(snapshots), end_offset)


def remove_snapshots(log: Log) -> None:
    """Remove all snapshot files."""
    for name, _ in log.files.list_files(log.directory):
        if name.endswith(layout.SNAPSHOT_SUFFIX):
            log.files.unlink(f"{log.directory}/{name}")


def _restore_producers(log: Log, snapshots: list[int], *, trust: bool) -> None:
    """The producer state of a log just loaded; snapshots that belong to no segment are removed, but for the last."""
    bases = {segment.base_offset for segment in log.segments}
    kept = [offset for offset in snapshots if offset <= log.log_end_offset]
    for offset in snapshots:
        if offset > log.log_end_offset or (offset not in bases and offset != kept[-1]):
            log.files.unlink(_snapshot_path(log, offset))
    if trust and not kept:
        log.producers.clear(log.log_end_offset)  # as Kafka: no snapshot after a clean stop means no producers
        return
    _replay(log, log.producers, kept, log.log_end_offset)


def _replay(log: Log, state: ProducerState, snapshots: list[int], end_offset: int) -> None:
    """Load the last readable snapshot at or below `end_offset` and apply the batches from there to `end_offset`."""
    state.clear(log.segments[0].base_offset)
    for offset in reversed([offset for offset in snapshots if offset <= end_offset]):
        try:
            state.load_snapshot(log.files.read_file(_snapshot_path(log, offset)), offset)
            break
        except (CorruptSnapshot, FileNotFoundError):
            log.files.unlink(_snapshot_path(log, offset))
    if state.end_offset < end_offset:
        for segment in log.segments.from_offset(state.end_offset):
            found = segment.locate(state.end_offset) if segment.base_offset < state.end_offset else (0, 0, 0)
            if found is None or segment.base_offset >= end_offset:
                continue
            for header, data in segment.batches(found[0]):
                if header.base_offset >= end_offset:
                    break
                _apply(state, header, data, None)
    state.end_offset = end_offset


def _apply(state: ProducerState, header: BatchHeader, data: memoryview, segment: Segment | None) -> None:
    """Take one batch of the log into the state; with a segment, also into its index of aborted transactions."""
    if header.producer_id < 0:
        return
    if not header.attributes & CONTROL_BIT:
        state.update(header)
        return
    marker = marker_of(data)
    completed = state.end_transaction(header, marker) if marker is not None else None
    if completed is not None and completed.is_aborted and segment is not None:
        stable = state.stable_offset_after(completed)
        segment.append_aborted(
            AbortedTransaction(completed.producer_id, completed.first_offset, completed.last_offset, stable)
        )


def _snapshot_path(log: Log, offset: int) -> str:
    return f"{log.directory}/{layout.segment_name(offset, layout.SNAPSHOT_SUFFIX)}"


def marker_of(batch: memoryview) -> EndMarker | None:
    """The transaction marker in a control batch; None for other control records and emptied batches."""
    from wire.records import iter_batches, iter_records  # noqa: PLC0415 - only transactions need it

    record = next(iter(iter_records(next(iter_batches(batch)))), None)
    if record is None or record.key is None or record.value is None or len(record.key) < _CONTROL_KEY.size:
        return None
    _, kind = _CONTROL_KEY.unpack_from(record.key)
    if kind not in (_ABORT, _COMMIT) or len(record.value) < _END_MARKER.size:
        return None
    _, coordinator_epoch = _END_MARKER.unpack_from(record.value)
    return EndMarker(kind == _COMMIT, coordinator_epoch)
