"""Recovery after an unclean stop: what lies past the recovery point is read, checked and indexed anew. L1, L2, I5.

Below the recovery point everything was synced; so a batch that is bad or missing there is damage, and the log is not
touched (`DamagedLog`). Above it nothing is known to be on the disk: a power failure leaves some of the writes, in any
order. The log ends before the first batch that is bad, and so does it at a hole between two segments.

The indexes of the segment that holds the recovery point need not be on the disk. They are made anew from the headers of
its batches; what lies between them is read, and checked, from the recovery point on, and where batches are so small
that reading all costs less than going from header to header.

A cut tail is a torn write nearly always, with nothing behind it. But after a bad batch there may be good ones: writes
that overtook a lost one, or data that was fine and has rotted since the last checkpoint of recovery points. Nobody can
tell these apart. The log is cut, since a broker has to come back from a power failure by itself; what is cut off then
stays beside it as `.log.damaged`, where `barnabas storage recover` finds it, and the log says so (`log.torn`).
Source: Kafka's `LogLoader.recoverLog`, which has neither of the two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from barnabas.storage import layout, producer_replay
from barnabas.storage.damage import DamagedLog
from barnabas.storage.producer_state import ProducerState
from barnabas.storage.salvage import has_intact_batch, is_good, is_placed, offset_limit, set_aside_name
from barnabas.storage.txn_index import AbortedTransaction

if TYPE_CHECKING:
    from barnabas.storage.batch_header import BatchHeader
    from barnabas.storage.loader import LoadPlan
    from barnabas.storage.log import Log
    from barnabas.storage.segment import Segment

_COPY_CHUNK = 4 << 20


class TornTail(NamedTuple):
    """What recovery has cut off: from which offset on, how many bytes, and the files that keep it, if any do."""

    offset: int
    size: int
    kept_in: list[str]


def recover(log: Log, snapshots: list[int], plan: LoadPlan) -> None:
    """Check every segment from the one that holds the recovery point; set the log's end, epochs and producers.

    DamagedLog when anything would have to be cut that lies below the recovery point.
    """
    log.recovery_point = plan.recovery_point
    if not len(log.segments):
        return
    suspects = log.segments.from_offset(plan.recovery_point)
    state = log.producers
    end = suspects[0].base_offset
    producer_replay.replay(log, state, snapshots, end)
    epochs_before = log.leader_epochs.entries()
    for at, segment in enumerate(suspects):
        # A hole before a segment: up to here compaction and deletion have made some, beyond it an end was lost.
        if segment.base_offset > max(end, plan.recovery_point, plan.log_start_offset) and not plan.may_have_holes:
            what = f"begins at offset {segment.base_offset}, but what is before it ends at {end}"
            _check_synced(segment, end, plan, what)
            _cut(log, suspects[at:], 0, end)
            break
        behind = suspects[at + 1 :]
        limit = offset_limit(segment, behind[0].base_offset if behind else None)
        segment.reset_indexes()
        has_holes = plan.may_have_holes or (bool(behind) and "compact" in log.config.cleanup_policy)
        dense_from = None if has_holes else plan.recovery_point
        position, end = _recover_segment(log, segment, state, limit, dense_from, synced_to=plan.recovery_point)
        if position < segment.size:
            _check_synced(segment, end, plan, f"is damaged at byte {position}, offset {end}")
            _cut(log, [segment, *behind], position, end)
            break
    log.log_end_offset = state.end_offset = end
    if log.leader_epochs.entries() != epochs_before:
        log.leader_epochs.save()


def index_anew(log: Log, unindexed: list[Segment], snapshots: list[int], plan: LoadPlan) -> None:
    """Make the indexes of segments that lack some and that `recover` will not come by. DamagedLog for a bad batch.

    No later start will come by there either, so they are on the disk before they have their names.
    """
    for segment in unindexed:
        following = log.segments.next_base(log.segments.floor_index(segment.base_offset))
        if not plan.clean_shutdown and (following is None or following > plan.recovery_point):
            return
        limit = offset_limit(segment, following)
        state = ProducerState(log.files)
        producer_replay.replay(log, state, snapshots, segment.base_offset)
        segment.reset_indexes(aside=True)
        position, end = _recover_segment(log, segment, state, limit, None)
        if position < segment.size:
            raise DamagedLog(f"{segment.path(layout.LOG_SUFFIX)} is damaged at byte {position}, offset {end}")
        segment.name_indexes()


def _check_synced(segment: Segment, offset: int, plan: LoadPlan, what: str) -> None:
    """Nothing from `offset` on may be cut that was synced."""
    if plan.promises(offset):
        raise DamagedLog(
            f"{segment.path(layout.LOG_SUFFIX)} {what}, though all up to offset {plan.recovery_point} was synced"
        )


def _recover_segment(
    log: Log, segment: Segment, state: ProducerState, limit: int, dense_from: int | None, synced_to: int = 0
) -> tuple[int, int]:
    """Read a segment and index it up to the first bad batch: (the bad one's position, the offset before it).

    Offsets lie below `limit`. From `dense_from` on none may be missing: the CRC does not cover a batch's base offset.
    Of large batches below `synced_to` the headers are enough.
    """
    position = 0
    end = segment.base_offset
    aborted: list[AbortedTransaction] = []
    for header, batch in segment.batches(unread_below=synced_to):
        has_hole = dense_from is not None and dense_from <= end < header.base_offset
        is_whole = is_good if len(batch) == header.size else _has_good_header
        if has_hole or not is_whole(header, batch, end, limit):
            break
        segment.index_recovered(header, log.config.index_interval_bytes)
        if header.leader_epoch > log.leader_epochs.latest_epoch:
            log.leader_epochs.assign_in_memory(header.leader_epoch, header.base_offset)
        completed = state.replay(header, batch)
        if completed is not None and completed.is_aborted:
            aborted.append(AbortedTransaction(*completed[:3], state.stable_offset_after(completed)))
        position += header.size
        end = header.last_offset + 1
    segment.finish_recovery(aborted)
    return position, end


def _has_good_header(header: BatchHeader, _: memoryview, expected: int, limit: int) -> bool:
    return is_placed(header, expected, limit)


# --- cutting


def _cut(log: Log, segments: list[Segment], position: int, end: int) -> None:
    """End the log at a position of the first of these segments; gone for good on return, lest it come back later."""
    first, *behind = segments
    size = first.size - position + sum(segment.size for segment in behind)
    kept: list[str] = []
    if any(segment.size for segment in behind) or has_intact_batch(first, position, end):
        kept = _keep(log, segments, position)
    if position or first.base_offset == end:
        first.cut_file(position)
    else:
        behind = segments
    for segment in behind:
        log.segments.remove(segment)
        segment.delete()
    if behind or kept:
        log.files.sync_dir(log.directory)
    log.torn = TornTail(end, size, kept)


def _keep(log: Log, segments: list[Segment], position: int) -> list[str]:
    """Copy what is to be cut off to `.damaged` files, durably."""
    kept = []
    for segment in segments:
        target = set_aside_name(log.files, segment.path(layout.LOG_SUFFIX))
        file = log.files.open(target)
        log.files.truncate(file, 0)
        for at in range(position, segment.size, _COPY_CHUNK):
            piece = segment.read_bytes(at, min(_COPY_CHUNK, segment.size - at))
            log.files.write_at(file, piece, at - position)
        log.files.sync(file)
        kept.append(target)
        position = 0
    log.files.sync_dir(log.directory)
    return kept
