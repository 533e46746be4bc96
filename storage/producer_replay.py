"""The producers' state of a log, from the last good snapshot and the batches behind it. I5, I7.

Snapshots are not synced when they are written: a torn one is noticed by its CRC, and an older one serves.
Source: Kafka's `UnifiedLog.rebuildProducerState` and `ProducerStateManager`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from barnabas.storage import layout
from barnabas.storage.damage import DamagedLog
from barnabas.storage.producer_snapshot import CorruptSnapshot

if TYPE_CHECKING:
    from barnabas.storage.log import Log
    from barnabas.storage.producer_state import ProducerState
    from barnabas.storage.segment import Segment


def rebuild_producers(log: Log, end_offset: int) -> None:
    """Bring the producers' state to `end_offset`: the last snapshot at or below it and the batches behind that (I7)."""
    remove_snapshots(log, end_offset + 1)
    snapshots = snapshots_in(dict(log.files.list_files(log.directory)))
    replay(log, log.producers, snapshots, end_offset)


def remove_snapshots(log: Log, start_offset: int) -> None:
    """Remove the snapshot files at or past an offset."""
    for offset in snapshots_in(dict(log.files.list_files(log.directory))):
        if offset >= start_offset:
            log.files.unlink(_path_of(log, offset))


def snapshots_in(names: Iterable[str]) -> list[int]:
    """The offsets of the producer snapshots among a directory's files, rising."""
    offsets = (layout.offset_of(name) for name in names if name.endswith(layout.SNAPSHOT_SUFFIX))
    return sorted(offset for offset in offsets if offset is not None)


def restore(log: Log, snapshots: list[int], *, trusted: bool) -> None:
    """The producers' state of a log just loaded; snapshots that belong to no segment are removed, but for the last."""
    bases = {segment.base_offset for segment in log.segments}
    kept = [offset for offset in snapshots if offset <= log.log_end_offset]
    for offset in snapshots:
        if offset > log.log_end_offset or (offset not in bases and offset != kept[-1]):
            log.files.unlink(_path_of(log, offset))
    if not trusted:
        log.unsynced_snapshots = [_path_of(log, offset) for offset in kept if offset >= log.recovery_point]
    if trusted and not kept:
        log.producers.clear(log.log_end_offset)  # as Kafka: no snapshot after a clean stop means no producers
    elif trusted or log.producers.end_offset != log.log_end_offset:
        replay(log, log.producers, kept, log.log_end_offset)


def replay(log: Log, state: ProducerState, snapshots: list[int], end_offset: int) -> None:
    """Load the last readable snapshot at or below `end_offset`, and take over the batches from there on.

    A snapshot from before the first segment is no help: of the batches behind it some are deleted.
    """
    first = log.segments[0].base_offset
    state.clear(first)
    for offset in reversed([offset for offset in snapshots if first <= offset <= end_offset]):
        try:
            state.load_snapshot(log.files.read_file(_path_of(log, offset)), offset)
            break
        except (CorruptSnapshot, FileNotFoundError):
            log.files.unlink(_path_of(log, offset))
    if state.end_offset < end_offset:
        for segment in log.segments.from_offset(state.end_offset):
            if segment.base_offset < end_offset:
                _replay_segment(segment, state, end_offset)
    state.end_offset = end_offset


def _replay_segment(segment: Segment, state: ProducerState, end_offset: int) -> None:
    found = segment.locate(state.end_offset) if state.end_offset > segment.base_offset else (0, 0)
    if found is None:
        return
    position = found[0]
    for header, batch in segment.batches(position):
        if header.base_offset >= end_offset:
            return
        state.replay(header, batch)
        position += header.size
    if position != segment.size:
        raise DamagedLog(f"{segment.path(layout.LOG_SUFFIX)} is damaged at byte {position}")


def _path_of(log: Log, offset: int) -> str:
    return f"{log.directory}/{layout.snapshot_name(offset)}"
