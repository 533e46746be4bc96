"""Bringing a log back from its directory: quickly after a clean stop, by checking its tail after any other.

After a clean stop indexes and the producers' snapshot are trusted and hardly a batch is read. After an unclean one
every segment from the recovery point on is read: length, magic, CRC, offsets rising (L1); the first bad batch ends the
log, segments behind it are removed, and indexes and producer state are rebuilt on the way (I5).
Source: Kafka's `LogLoader`.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from storage import layout
from storage.batch_header import BatchHeader
from storage.checkpoints import read_partition_metadata, write_partition_metadata
from storage.leader_epochs import LeaderEpochCache
from storage.offset_index import MAX_RELATIVE_OFFSET
from storage.producer_snapshot import CorruptSnapshot
from storage.producer_state import ProducerState
from storage.segment import Segment
from storage.txn_index import AbortedTransaction
from wire.crc import crc32c
from wire.errors import ErrorCode, KafkaError
from wire.records import CRC_START, MAGIC

if TYPE_CHECKING:
    from storage.log import Log

_ZERO_UUID = bytes(16)
_NO_LIMIT = 2**63 - 1
_INDEX_SUFFIXES = (layout.INDEX_SUFFIX, layout.TIME_INDEX_SUFFIX)
_LEFTOVERS = (layout.DELETED_SUFFIX, layout.CLEANED_SUFFIX, layout.SWAP_SUFFIX)


class LoadPlan(NamedTuple):
    """What the log directory knows about a log that is to be loaded."""

    clean_shutdown: bool
    recovery_point: int
    log_start_offset: int


def load(log: Log, plan: LoadPlan, now: float) -> bool:
    """Fill a fresh `log` from its directory. True when the directory had to change: a close has work to do then."""
    if not log.files.exists(log.directory):
        _create(log, plan.log_start_offset, now)
        return True
    names = _settle_leftovers(log)
    changed = _take_topic_id(log, layout.PARTITION_METADATA in names)
    if layout.LEADER_EPOCH_CHECKPOINT in names:
        log.leader_epochs = LeaderEpochCache.load(log.files, log.leader_epochs.path)
    unindexed = _find_segments(log, names, plan.log_start_offset, now)
    snapshots = _snapshots_in(names)
    trusted = plan.clean_shutdown and unindexed is None
    if trusted:
        log.log_end_offset = log.recovery_point = log.segments.active.next_offset() if len(log.segments) else 0
    else:
        _recover(log, snapshots, _first_suspect(plan, unindexed), _accounted(plan))
        changed = True
    changed |= _settle(log, plan.log_start_offset, now)
    _restore_producers(log, snapshots, trusted=trusted)
    for segment in log.segments:
        segment.release()
    return changed


def _create(log: Log, log_start_offset: int, now: float) -> None:
    log.files.mkdirs(log.directory)
    write_partition_metadata(log.files, f"{log.directory}/{layout.PARTITION_METADATA}", log.topic_id)
    log.segments.add(Segment.create(log.files, log.directory, log_start_offset, now))
    log.log_start_offset = log.log_end_offset = log.recovery_point = log_start_offset
    log.producers.clear(log_start_offset)


def _settle_leftovers(log: Log) -> dict[str, int]:
    """Finish or undo what an interrupted deletion, compaction or replacement has left; name -> size of the rest."""
    names = dict(log.files.list_files(log.directory))
    if any(name.endswith(_LEFTOVERS) for name in names):
        from storage import swap  # hardly a start needs it

        names = swap.complete(log.files, log.directory, names)
    for name in [name for name in names if name.endswith(layout.TEMPORARY_SUFFIX)]:
        log.files.unlink(f"{log.directory}/{name}")
        del names[name]
    return names


def _take_topic_id(log: Log, present: bool) -> bool:
    """Check the directory's topic id against the log's, or adopt or write it (R22). True when it was written."""
    path = f"{log.directory}/{layout.PARTITION_METADATA}"
    stored = read_partition_metadata(log.files, path) if present else None
    if stored is None or stored == _ZERO_UUID:
        if log.topic_id == _ZERO_UUID:
            return False
        write_partition_metadata(log.files, path, log.topic_id)
        return True
    if log.topic_id == _ZERO_UUID:
        log.topic_id = stored
    elif stored != log.topic_id:
        raise KafkaError(ErrorCode.INCONSISTENT_TOPIC_ID, f"{log.directory} belongs to another topic of that name")
    return False


def _find_segments(log: Log, names: dict[str, int], log_start_offset: int, now: float) -> int | None:
    """Add the segments whose log file is there, remove indexes without one; the first base offset without an index.

    Segments wholly below the log's start are removed: their deletion was interrupted, and may have left holes.
    """
    bases = sorted(offset for name in names if (offset := layout.offset_of(name)) is not None and _is_log(name))
    first = bases[max(0, bisect_right(bases, log_start_offset) - 1)] if bases else 0
    unindexed = None
    for name in sorted(names):
        offset = layout.offset_of(name)
        if offset is None:
            continue
        log_name = layout.segment_name(offset, layout.LOG_SUFFIX)
        if offset < first and name.endswith(layout.SEGMENT_SUFFIXES):
            log.files.unlink(f"{log.directory}/{name}")
        elif name == log_name:
            segment = Segment(log.files, log.directory, offset, size=names[name], created=now)
            segment.has_txn_index = layout.segment_name(offset, layout.TXN_INDEX_SUFFIX) in names
            log.segments.add(segment)
            has_indexes = all(layout.segment_name(offset, suffix) in names for suffix in _INDEX_SUFFIXES)
            if segment.size and not has_indexes and unindexed is None:
                unindexed = offset
        elif log_name not in names and name.endswith(layout.SEGMENT_SUFFIXES):
            log.files.unlink(f"{log.directory}/{name}")
    return unindexed


def _is_log(name: str) -> bool:
    return name.endswith(layout.LOG_SUFFIX)


def _snapshots_in(names: dict[str, int]) -> list[int]:
    """The offsets of the producer snapshots, rising."""
    offsets = (layout.offset_of(name) for name in names if name.endswith(layout.SNAPSHOT_SUFFIX))
    return sorted(offset for offset in offsets if offset is not None)


def _settle(log: Log, log_start_offset: int, now: float) -> bool:
    """Make start, end and epochs fit each other. True when a segment had to be made."""
    if len(log.segments):
        log_start_offset = max(log_start_offset, log.segments[0].base_offset)
    made = False
    if log.log_end_offset < log_start_offset or not len(log.segments):
        for segment in list(log.segments):
            log.segments.remove(segment)
            segment.delete()
        log.files.sync_dir(log.directory)
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


def _first_suspect(plan: LoadPlan, unindexed: int | None) -> int:
    """The offset from which batches must be read: the recovery point, or a segment that has lost its index."""
    if unindexed is None:
        return plan.recovery_point
    return unindexed if plan.clean_shutdown else min(plan.recovery_point, unindexed)


def _accounted(plan: LoadPlan) -> int:
    """The offset up to which holes between segments are no damage: compaction and deletion make them there."""
    return _NO_LIMIT if plan.clean_shutdown else max(plan.recovery_point, plan.log_start_offset)


def _recover(log: Log, snapshots: list[int], first_suspect: int, accounted: int) -> None:
    """Check every segment from the one that holds `first_suspect`; the first bad batch ends the log.

    So does a hole between segments past `accounted`: the end of one was never written, though a later one was. What
    is cut off is gone for good on return, lest it come back behind new records. The producers' state is built on the
    way, as aborted transactions must be indexed again.
    """
    log.recovery_point = first_suspect
    if not len(log.segments):
        return
    suspects = log.segments.from_offset(first_suspect)
    end = suspects[0].base_offset
    state = log.producers
    _replay(log, state, snapshots, end)
    epochs_before = log.leader_epochs.entries()
    cut = False
    for segment in suspects:
        cut = cut or segment.base_offset > max(end, accounted)
        if cut or segment.base_offset < end:
            log.segments.remove(segment)
            segment.delete()
        else:
            end, cut = _recover_segment(log, segment, state)
    if log.segments.active is not suspects[-1]:
        log.files.sync_dir(log.directory)
    log.log_end_offset = state.end_offset = end
    if log.leader_epochs.entries() != epochs_before:
        log.leader_epochs.save()


def _recover_segment(log: Log, segment: Segment, state: ProducerState) -> tuple[int, bool]:
    """Read a segment, rebuild its indexes, cut it behind the last good batch: (its end offset, whether it was cut)."""
    segment.reset_indexes()
    position = 0
    end = segment.base_offset
    for header, batch in segment.batches():
        if not _is_good(header, batch, segment.base_offset, end):
            break
        segment.index_recovered(header, log.config.index_interval_bytes)
        if header.leader_epoch > log.leader_epochs.latest_epoch:
            log.leader_epochs.assign_in_memory(header.leader_epoch, header.base_offset)
        completed = state.replay(header, batch)
        if completed is not None and completed.is_aborted:
            segment.append_aborted(AbortedTransaction(*completed[:3], state.stable_offset_after(completed)))
        position += header.size
        end = header.last_offset + 1
    cut = position < segment.size
    segment.finish_recovery(position)
    return end, cut


def _is_good(header: BatchHeader, batch: memoryview, base_offset: int, expected: int) -> bool:
    return (
        header.magic == MAGIC
        and expected <= header.base_offset <= header.last_offset <= base_offset + MAX_RELATIVE_OFFSET
        and header.crc == crc32c(batch[CRC_START:])
    )


# --- producers


def rebuild_producers(log: Log, end_offset: int) -> None:
    """Bring the producers' state to `end_offset`: the last snapshot at or below it and the batches behind that (I7)."""
    remove_snapshots(log, end_offset + 1)
    snapshots = _snapshots_in(dict(log.files.list_files(log.directory)))
    _replay(log, log.producers, snapshots, end_offset)


def remove_snapshots(log: Log, start_offset: int) -> None:
    """Remove the snapshot files at or past an offset."""
    for offset in _snapshots_in(dict(log.files.list_files(log.directory))):
        if offset >= start_offset:
            log.files.unlink(_snapshot_path(log, offset))


def _restore_producers(log: Log, snapshots: list[int], *, trusted: bool) -> None:
    """The producers' state of a log just loaded; snapshots that belong to no segment are removed, but for the last."""
    bases = {segment.base_offset for segment in log.segments}
    kept = [offset for offset in snapshots if offset <= log.log_end_offset]
    for offset in snapshots:
        if offset > log.log_end_offset or (offset not in bases and offset != kept[-1]):
            log.files.unlink(_snapshot_path(log, offset))
    if trusted and not kept:
        log.producers.clear(log.log_end_offset)  # as Kafka: no snapshot after a clean stop means no producers
    elif trusted or log.producers.end_offset != log.log_end_offset:
        _replay(log, log.producers, kept, log.log_end_offset)


def _replay(log: Log, state: ProducerState, snapshots: list[int], end_offset: int) -> None:
    """Load the last readable snapshot at or below `end_offset`, and take over the batches from there on.

    A snapshot from before the first segment is no help: of the batches behind it some are deleted.
    """
    first = log.segments[0].base_offset
    state.clear(first)
    for offset in reversed([offset for offset in snapshots if first <= offset <= end_offset]):
        try:
            state.load_snapshot(log.files.read_file(_snapshot_path(log, offset)), offset)
            break
        except (CorruptSnapshot, FileNotFoundError):
            log.files.unlink(_snapshot_path(log, offset))
    if state.end_offset < end_offset:
        for segment in log.segments.from_offset(state.end_offset):
            if segment.base_offset < end_offset:
                _replay_segment(segment, state, end_offset)
    state.end_offset = end_offset


def _replay_segment(segment: Segment, state: ProducerState, end_offset: int) -> None:
    found = segment.locate(state.end_offset) if state.end_offset > segment.base_offset else (0, 0)
    if found is None:
        return
    for header, batch in segment.batches(found[0]):
        if header.base_offset >= end_offset:
            return
        state.replay(header, batch)


def _snapshot_path(log: Log, offset: int) -> str:
    return f"{log.directory}/{layout.snapshot_name(offset)}"
