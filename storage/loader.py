"""Bringing a log back from its directory: quickly after a clean stop, by checking its tail after any other.

After a clean stop indexes and the producers' snapshot are trusted and hardly a batch is read. After an unclean one
`storage.recovery` reads what lies past the recovery point. Either way everything below the recovery point has to be
there: the checkpoint says that it was synced (L2). Source: Kafka's `LogLoader`.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from barnabas.storage import layout, producer_replay
from barnabas.storage.checkpoints import read_partition_metadata, write_partition_metadata
from barnabas.storage.damage import DamagedLog
from barnabas.storage.leader_epochs import LeaderEpochCache
from barnabas.storage.segment import Segment
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.storage.log import Log

_ZERO_UUID = bytes(16)
_INDEX_SUFFIXES = (layout.INDEX_SUFFIX, layout.TIME_INDEX_SUFFIX)
_LEFTOVERS = (layout.DELETED_SUFFIX, layout.CLEANED_SUFFIX, layout.SWAP_SUFFIX)


class LoadPlan(NamedTuple):
    """What the log directory knows about a log that is to be loaded."""

    clean_shutdown: bool
    recovery_point: int
    log_start_offset: int
    may_have_holes: bool = False
    """Whether offsets may be missing anywhere, also above the recovery point: in a log under repair."""

    def promises(self, offset: int) -> bool:
        """Whether the record at `offset` was synced and is not deleted, or one behind it."""
        return offset < self.recovery_point and self.log_start_offset < self.recovery_point


def load(log: Log, plan: LoadPlan, now: float) -> bool:
    """Fill a fresh `log` from its directory. True when the directory had to change: a close has work to do then.

    DamagedLog when what was synced is not there or not as it was; the log files are as they were then.
    """
    if not log.files.exists(log.directory):
        _create(log, plan.log_start_offset, now)
        return True
    names = _settle_leftovers(log)
    changed = _take_topic_id(log, layout.PARTITION_METADATA in names)
    if layout.LEADER_EPOCH_CHECKPOINT in names:
        log.leader_epochs = LeaderEpochCache.load(log.files, log.leader_epochs.path)
    unindexed = _find_segments(log, names, plan, now)
    snapshots = producer_replay.snapshots_in(names)
    if unindexed:
        from barnabas.storage import recovery

        recovery.index_anew(log, unindexed, snapshots, plan)
        changed = True
    if plan.clean_shutdown:
        log.log_end_offset = log.segments.active.next_offset() if len(log.segments) else 0
        _check_end(log, plan)
        log.recovery_point = log.log_end_offset
    else:
        from barnabas.storage import recovery

        recovery.recover(log, snapshots, plan)
        _check_end(log, plan)
        changed = True
    changed |= _settle(log, plan.log_start_offset, now)
    producer_replay.restore(log, snapshots, trusted=plan.clean_shutdown)
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
        from barnabas.storage import swap  # hardly a start needs it

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


def _find_segments(log: Log, names: dict[str, int], plan: LoadPlan, now: float) -> list[Segment]:
    """Add the segments whose log file is there, remove indexes without one; the segments that lack an index.

    Segments wholly below the log's start are removed: their deletion was interrupted, and may have left holes.
    """
    bases = sorted(offset for name in names if (offset := layout.offset_of(name)) is not None and _is_log(name))
    below = bisect_right(bases, plan.log_start_offset)
    first = bases[below - 1] if below else 0
    unindexed = []
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
            if segment.size and not all(layout.segment_name(offset, kind) in names for kind in _INDEX_SUFFIXES):
                unindexed.append(segment)
        elif log_name not in names and name.endswith(layout.SEGMENT_SUFFIXES):
            if plan.log_start_offset <= offset < plan.recovery_point:
                raise DamagedLog(f"{log.directory}/{log_name} is missing, though {name} is there")
            log.files.unlink(f"{log.directory}/{name}")
    return unindexed


def _is_log(name: str) -> bool:
    return name.endswith(layout.LOG_SUFFIX)


def _check_end(log: Log, plan: LoadPlan) -> None:
    if plan.promises(log.log_end_offset):
        raise DamagedLog(
            f"{log.directory} ends at offset {log.log_end_offset}, though all up to {plan.recovery_point} was synced"
        )


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
