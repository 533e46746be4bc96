"""Recovery after an unclean stop: reads, checks and indexes everything from the recovery point on (rules L1, L2, I5).

Below the recovery point everything was synced. An invalid or missing batch there is damage: the log is left unchanged
and DamagedLog is raised. Above it a power failure may have lost any of the writes, in any order, so the log is cut
before the first invalid batch, or at a gap between two segments.

The indexes of the segment that holds the recovery point are perhaps not synced. They are rebuilt from the headers of
its batches; record data is read, and its CRC checked, from the recovery point on, and below it where batches are so
small that reading everything is cheaper than reading header by header.

The tail that is cut is nearly always one torn write. But valid batches may follow the invalid one: writes that reached
the disk before a lost one, or synced data that was damaged since the recovery points were last written. These cases
cannot be distinguished. The log is cut, because a broker has to restart after a power failure without an operator; the
data that was cut is copied to `.log.damaged`, where `barnabas storage recover` finds it, and reported (`TornTail`).
Source: Kafka's `LogLoader.recoverLog`, which does neither.
"""

from __future__ import annotations

from barnabas.storage import layout
from barnabas.storage.damage import DamagedLog
from barnabas.storage.log_state import Checkpointed, LogState, TornTail
from barnabas.storage.producers import producer_replay
from barnabas.storage.producers.producer_state import ProducerState
from barnabas.storage.recover.salvage import (
    free_damaged_path,
    has_valid_batch_behind,
    has_valid_offsets,
    is_valid,
    offset_limit,
)
from barnabas.storage.segments.segment import Segment
from barnabas.storage.segments.txn_index import AbortedTransaction
from barnabas.wire.batches.batch_header import BatchHeader

_COPY_CHUNK = 4 << 20


def recover(state: LogState, snapshots: list[int], checkpointed: Checkpointed) -> None:
    """Check every segment from the recovery point on; set the log end, leader epochs and producers.

    `snapshots` are the offsets of the producer snapshots. Raises DamagedLog when data below the recovery point would
    have to be cut.
    """
    recovery_point = state.recovery_point = checkpointed.recovery_point
    if not len(state.segments):
        return
    unchecked = state.segments.from_offset(recovery_point)
    producers = state.producers
    end = unchecked[0].base_offset
    producer_replay.replay(state.segments, state.snapshots, snapshots, producers, end)
    for at, segment in enumerate(unchecked):
        # A gap before a segment: below these offsets compaction and deletion make gaps, above them data was lost.
        if segment.base_offset > max(end, recovery_point, checkpointed.log_start_offset) and not state.may_have_gaps:
            problem = f"begins at offset {segment.base_offset}, but the segment before it ends at {end}"
            _check_not_synced(segment, end, checkpointed, problem)
            _cut(state, unchecked[at:], 0, end)
            break
        following = unchecked[at + 1 :]
        limit = offset_limit(segment, following[0].base_offset if following else None)
        segment.reset_indexes()
        is_compacted = bool(following) and "compact" in state.config.cleanup_policy
        has_gaps = state.may_have_gaps or state.is_replica or is_compacted
        dense_from = None if has_gaps else recovery_point
        position, end = _recover_segment(state, segment, producers, limit, dense_from, synced_to=recovery_point)
        if position < segment.size:
            _check_not_synced(segment, end, checkpointed, f"is damaged at byte {position}, offset {end}")
            _cut(state, [segment, *following], position, end)
            break
    state.log_end_offset = producers.end_offset = end


def rebuild_indexes(
    state: LogState, unindexed: list[Segment], snapshots: list[int], checkpointed: Checkpointed
) -> None:
    """Rebuild the missing indexes of the segments that `recover` does not read. DamagedLog for an invalid batch.

    No later start reads these segments either, so the index files are synced before they are renamed into place.
    """
    for segment in unindexed:
        next_base = state.segments.next_base(state.segments.floor_index(segment.base_offset))
        if not checkpointed.clean_shutdown and (next_base is None or next_base > checkpointed.recovery_point):
            return
        limit = offset_limit(segment, next_base)
        producers = ProducerState()
        producer_replay.replay(state.segments, state.snapshots, snapshots, producers, segment.base_offset)
        segment.reset_indexes(temporary=True)
        position, end = _recover_segment(state, segment, producers, limit, None)
        if position < segment.size:
            raise DamagedLog(f"{segment.path(layout.LOG_SUFFIX)} is damaged at byte {position}, offset {end}")
        segment.install_indexes()


def _check_not_synced(segment: Segment, offset: int, checkpointed: Checkpointed, problem: str) -> None:
    """Raise DamagedLog if data at or above `offset` was synced, and so may not be cut."""
    if checkpointed.must_exist(offset):
        raise DamagedLog(
            f"{segment.path(layout.LOG_SUFFIX)} {problem}, "
            f"but everything up to offset {checkpointed.recovery_point} was synced"
        )


def _recover_segment(
    state: LogState, segment: Segment, producers: ProducerState, limit: int, dense_from: int | None, synced_to: int = 0
) -> tuple[int, int]:
    """Read and index a segment up to its first invalid batch: (position of that batch, offset before it).

    All offsets are below `limit`. From `dense_from` on no offset may be missing: the CRC does not cover the base offset
    of a batch. Of large batches below `synced_to` only the headers are read.
    """
    position = 0
    end = segment.base_offset
    aborted: list[AbortedTransaction] = []
    for header, batch in segment.batches(unread_below=synced_to):
        has_gap = dense_from is not None and dense_from <= end < header.base_offset
        is_whole = is_valid if len(batch) == header.size else _has_valid_header
        if has_gap or not is_whole(header, batch, end, limit):
            break
        segment.index_recovered(header, state.config.index_interval_bytes)
        if header.partition_leader_epoch > state.leader_epochs.latest_epoch:
            state.leader_epochs.assign(header.partition_leader_epoch, header.base_offset)
        completed = producers.replay(header, batch)
        if completed is not None and completed.is_aborted:
            aborted.append(AbortedTransaction(*completed[:3], producers.stable_offset_after(completed)))
        position += header.size
        end = header.last_offset + 1
    segment.finish_recovery(aborted)
    return position, end


def _has_valid_header(header: BatchHeader, _: memoryview, expected: int, limit: int) -> bool:
    return has_valid_offsets(header, expected, limit)


# --- cutting


def _cut(state: LogState, segments: list[Segment], position: int, end: int) -> None:
    """Cut the log at a position of the first of these segments; durable, so that a later crash does not undo it."""
    first, *following = segments
    size = first.size - position + sum(segment.size for segment in following)
    copies: list[str] = []
    if any(segment.size for segment in following) or has_valid_batch_behind(first, position, end):
        copies = _copy_tail(state, segments, position)
    if position or first.base_offset == end:
        first.cut_file(position)
    else:
        following = segments
    for segment in following:
        state.segments.remove(segment)
        segment.delete()
    if following or copies:
        state.files.sync_dir(state.directory)
    state.torn = TornTail(end, size, copies)


def _copy_tail(state: LogState, segments: list[Segment], position: int) -> list[str]:
    """Copy the data that is about to be cut to `.damaged` files, durably; their paths."""
    files = state.files
    copies = []
    for segment in segments:
        target = free_damaged_path(files, segment.path(layout.LOG_SUFFIX))
        file = files.open(target)
        files.truncate(file, 0)
        for at in range(position, segment.size, _COPY_CHUNK):
            piece = segment.read_bytes(at, min(_COPY_CHUNK, segment.size - at))
            files.write_at(file, piece, at - position)
        files.sync(file)
        copies.append(target)
        position = 0
    files.sync_dir(state.directory)
    return copies
