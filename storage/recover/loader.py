"""Loads a log from its directory: without reading batches after a clean stop, with a check of its tail after any other.

After a clean stop the indexes and the latest producer snapshot are trusted. After an unclean stop `recovery`
reads everything from the recovery point on. In both cases everything below the recovery point has to exist, since the
checkpoint guarantees that it was synced (rule L2). Source: Kafka's `LogLoader`.
"""

from __future__ import annotations

from bisect import bisect_right

from barnabas.storage import layout
from barnabas.storage.append.leader_epochs import LeaderEpochCache
from barnabas.storage.damage import DamagedLog
from barnabas.storage.directories.checkpoints import read_partition_metadata, write_partition_metadata
from barnabas.storage.directories.new_directories import make_directory
from barnabas.storage.log_state import Checkpointed, LogState
from barnabas.storage.producers import producer_replay, snapshot_files
from barnabas.storage.segments.segment import Segment
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.types import ZERO_UUID

_INDEX_SUFFIXES = (layout.INDEX_SUFFIX, layout.TIME_INDEX_SUFFIX)
_LEFTOVERS = (layout.DELETED_SUFFIX, layout.CLEANED_SUFFIX, layout.SWAP_SUFFIX)


def load(state: LogState, checkpointed: Checkpointed, now: float) -> None:
    """Load the log in `state.directory` into an empty `state`; make the log if the directory is missing.

    `now` is the monotonic clock in seconds. Raises DamagedLog when data that was synced is missing or invalid; the log
    files are unchanged then. Raises also what `Log.open` raises.
    """
    if not state.files.exists(state.directory):
        _create(state, checkpointed.log_start_offset, now)
        return
    _check_log_start(state, checkpointed)
    names = _finish_interrupted(state)
    _check_topic_id(state, layout.PARTITION_METADATA in names)
    if layout.LEADER_EPOCH_CHECKPOINT in names:
        state.leader_epochs = LeaderEpochCache.load(state.files, state.leader_epochs.path)
    unindexed = _find_segments(state, names, checkpointed, now)
    snapshots = snapshot_files.offsets_of(names)
    if unindexed:
        from barnabas.storage.recover import recovery

        recovery.rebuild_indexes(state, unindexed, snapshots, checkpointed)
        state.is_changed = True
    if checkpointed.clean_shutdown:
        state.log_end_offset = state.segments.active.next_offset() if len(state.segments) else 0
        _check_end(state, checkpointed)
        state.recovery_point = state.log_end_offset
    else:
        from barnabas.storage.recover import recovery

        recovery.recover(state, snapshots, checkpointed)
        _check_end(state, checkpointed)
        state.is_changed = True
    _align_offsets(state, checkpointed.log_start_offset, now)
    _load_producers(state, snapshots, trusted=checkpointed.clean_shutdown)
    for segment in state.segments:
        segment.release()


def _create(state: LogState, log_start_offset: int, now: float) -> None:
    make_directory(state.files, state.directory, state.topic_id, log_start_offset)
    start_empty(state, log_start_offset, now)


def start_empty(state: LogState, log_start_offset: int, now: float) -> None:
    """Fill the state of a log whose directory was just made (`storage.directories.new_directories`)."""
    state.segments.add(Segment.of_new_file(state.files, state.directory, log_start_offset, now))
    state.log_start_offset = state.log_end_offset = state.recovery_point = log_start_offset
    state.producers.clear(log_start_offset)
    state.is_changed = True


def _finish_interrupted(state: LogState) -> dict[str, int]:
    """Finish or undo an interrupted deletion, compaction or file replacement; the remaining files: name -> size."""
    names = dict(state.files.list_files(state.directory))
    if any(name.endswith(_LEFTOVERS) for name in names):
        from barnabas.storage.recover import swap  # rarely needed, and imports take time at the start

        names = swap.complete(state.files, state.directory, names)
    for name in [name for name in names if name.endswith(layout.TEMPORARY_SUFFIX)]:
        state.files.unlink(f"{state.directory}/{name}")
        del names[name]
    return names


def _check_topic_id(state: LogState, present: bool) -> None:
    """Compare the topic id in the directory with the log's; adopt or write it where one of the two is unknown (R22)."""
    path = f"{state.directory}/{layout.PARTITION_METADATA}"
    stored = read_partition_metadata(state.files, path) if present else None
    if stored is None or stored == ZERO_UUID:
        if state.topic_id != ZERO_UUID:
            write_partition_metadata(state.files, path, state.topic_id)
            state.is_changed = True
    elif state.topic_id == ZERO_UUID:
        state.topic_id = stored
    elif stored != state.topic_id:
        raise KafkaError(
            ErrorCode.INCONSISTENT_TOPIC_ID, f"{state.directory} belongs to another topic of the same name"
        )


def _find_segments(state: LogState, names: dict[str, int], checkpointed: Checkpointed, now: float) -> list[Segment]:
    """Add the segments whose log file exists and remove indexes without a log file; the segments that lack an index.

    Segments wholly below the log start are removed: their deletion was interrupted, and may have left gaps.
    """
    files, directory = state.files, state.directory
    bases = sorted(offset for name in names if (offset := layout.offset_of(name)) is not None and _is_log(name))
    below = bisect_right(bases, checkpointed.log_start_offset)
    first = bases[below - 1] if below else 0
    unindexed = []
    for name in sorted(names):
        offset = layout.offset_of(name)
        if offset is None:
            continue
        log_name = layout.segment_name(offset, layout.LOG_SUFFIX)
        if offset < first and name.endswith(layout.SEGMENT_SUFFIXES):
            files.unlink(f"{directory}/{name}")
        elif name == log_name:
            segment = Segment(files, directory, offset, size=names[name], created=now)
            segment.has_txn_index = layout.segment_name(offset, layout.TXN_INDEX_SUFFIX) in names
            state.segments.add(segment)
            if segment.size and not all(layout.segment_name(offset, kind) in names for kind in _INDEX_SUFFIXES):
                unindexed.append(segment)
        elif log_name not in names and name.endswith(layout.SEGMENT_SUFFIXES):
            if checkpointed.log_start_offset <= offset < checkpointed.recovery_point:
                raise DamagedLog(f"{directory}/{log_name} is missing, but {name} exists")
            files.unlink(f"{directory}/{name}")
    return unindexed


def _is_log(name: str) -> bool:
    return name.endswith(layout.LOG_SUFFIX)


def _check_log_start(state: LogState, checkpointed: Checkpointed) -> None:
    """DamagedLog for a log start above the log end, which no clean stop leaves: everything would be removed."""
    if checkpointed.begins_above_its_end:
        raise DamagedLog(
            f"{state.directory} begins at offset {checkpointed.log_start_offset} and ends at offset "
            f"{checkpointed.recovery_point} by the checkpoints of a clean stop"
        )


def _check_end(state: LogState, checkpointed: Checkpointed) -> None:
    if checkpointed.must_exist(state.log_end_offset):
        raise DamagedLog(
            f"{state.directory} ends at offset {state.log_end_offset}, "
            f"but everything up to offset {checkpointed.recovery_point} was synced"
        )


def _align_offsets(state: LogState, log_start_offset: int, now: float) -> None:
    """Make log start, log end, recovery point and leader epochs consistent; make a segment if there is none."""
    if len(state.segments):
        log_start_offset = max(log_start_offset, state.segments[0].base_offset)
    if state.log_end_offset < log_start_offset or not len(state.segments):
        for segment in list(state.segments):
            state.segments.remove(segment)
            segment.delete()
        state.files.sync_dir(state.directory)
        state.segments.add(Segment.create(state.files, state.directory, log_start_offset, now))
        state.log_end_offset = log_start_offset
        state.leader_epochs.clear()
        state.leader_epochs.save()
        state.is_changed = True
    state.log_start_offset = log_start_offset
    state.recovery_point = min(state.recovery_point, state.log_end_offset)
    if state.leader_epochs.truncate_from_end(state.log_end_offset):
        state.leader_epochs.save()
    state.leader_epochs.truncate_from_start(log_start_offset)


def _load_producers(state: LogState, offsets: list[int], *, trusted: bool) -> None:
    """Load the producer state; snapshots that belong to no segment are removed, except for the latest.

    `offsets` are the snapshots' offsets. `trusted`: the last stop was clean, so the snapshots are complete and synced.
    """
    bases = {segment.base_offset for segment in state.segments}
    usable = [offset for offset in offsets if offset <= state.log_end_offset]
    for offset in offsets:
        if offset > state.log_end_offset or (offset not in bases and offset != usable[-1]):
            state.snapshots.remove(offset)
    if not trusted:
        state.snapshots.unsynced = [offset for offset in usable if offset >= state.recovery_point]
    if trusted and not usable:
        state.producers.clear(state.log_end_offset)  # as in Kafka: no snapshot after a clean stop means no producers
    elif trusted or state.producers.end_offset != state.log_end_offset:
        producer_replay.replay(state.segments, state.snapshots, usable, state.producers, state.log_end_offset)
