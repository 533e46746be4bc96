"""Rebuilds a log's producer state: the latest valid snapshot, then the batches after it (rules I5, I7).

Source: Kafka's `UnifiedLog.rebuildProducerState` and `ProducerStateManager`.
"""

from __future__ import annotations

from barnabas.storage import layout
from barnabas.storage.damage import DamagedLog
from barnabas.storage.producers.producer_snapshot import CorruptSnapshot
from barnabas.storage.producers.producer_state import ProducerState
from barnabas.storage.producers.snapshot_files import SnapshotFiles
from barnabas.storage.segments.log_segments import Segments
from barnabas.storage.segments.segment import Segment


def replay(
    segments: Segments, snapshots: SnapshotFiles, offsets: list[int], state: ProducerState, end_offset: int
) -> None:
    """Load the latest valid snapshot at or below `end_offset` into `state`, then replay the batches after it.

    `offsets` are the snapshots' offsets, ascending. A snapshot from before the first segment is not used: some of the
    batches after it are deleted. Invalid snapshots are removed. DamagedLog for an invalid batch.
    """
    first = segments[0].base_offset
    state.clear(first)
    for offset in reversed([offset for offset in offsets if first <= offset <= end_offset]):
        try:
            state.load_snapshot(snapshots.read(offset), offset)
            break
        except (CorruptSnapshot, FileNotFoundError):
            snapshots.remove(offset)
    if state.end_offset < end_offset:
        for segment in segments.from_offset(state.end_offset):
            if segment.base_offset < end_offset:
                _replay_segment(segment, state, end_offset)
    state.end_offset = end_offset


def _replay_segment(segment: Segment, state: ProducerState, end_offset: int) -> None:
    place = segment.locate(state.end_offset) if state.end_offset > segment.base_offset else (0, 0)
    if place is None:
        return
    position = place[0]
    for header, batch in segment.batches(position):
        if header.base_offset >= end_offset:
            return
        state.replay(header, batch)
        position += header.size
    if position != segment.size:
        raise DamagedLog(f"{segment.path(layout.LOG_SUFFIX)} is damaged at byte {position}")
