"""Missing or changed data that was synced is damage, not a torn tail: it is reported, and nothing is cut (rule L2)."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.storage.damage import DamagedLog
from barnabas.storage.log import Log
from tests.support.cases import for_each
from tests.support.logs.filled_log import filled_log, names_in
from tests.support.logs.log_driver import (
    EXAMPLES,
    append,
    append_marker,
    batch_of,
    kill,
    open_log,
    restart,
    small_config,
    values_from,
)
from tests.support.volume import first_seed


def flip(path: str | Path, at: int, bit: int = 1) -> None:
    content = bytearray(Path(path).read_bytes())
    content[at] ^= bit
    Path(path).write_bytes(content)


def log_files(log: Log) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path(log.directory).glob("*.log*")}


def cut_file(log: Log) -> None:
    path = Path(log.segments.active.stem + ".log")
    path.write_bytes(path.read_bytes()[:-1])


def lose_first_segment(log: Log) -> None:
    Path(log.segments[0].stem + ".log").unlink()


def lose_middle_segment(log: Log) -> None:
    Path(log.segments[1].stem + ".log").unlink()


def lose_last_segment(log: Log) -> None:
    for path in Path(log.directory).glob(f"{log.segments.active.base_offset:020d}.*"):
        path.unlink()


def lose_everything(log: Log) -> None:
    for path in Path(log.directory).glob("0*"):
        path.unlink()


def change_a_byte(log: Log) -> None:
    flip(log.segments.active.stem + ".log", 70)


@for_each(
    "damage", [cut_file, lose_first_segment, lose_middle_segment, lose_last_segment, lose_everything, change_a_byte]
)
def test_damage_below_the_recovery_point_is_reported_and_no_file_is_changed(
    tmp_path: Path, damage: Callable[[Log], None]
) -> None:
    """L2: after an unclean stop, and again at every start until an operator has decided."""
    log = filled_log(tmp_path)
    log.flush()
    damage(log)
    before = log_files(log)
    for _ in range(2):
        with pytest.raises(DamagedLog, match=str(log.directory)):
            kill(log)
        assert log_files(log) == before


@for_each("damage", [cut_file, lose_middle_segment, lose_last_segment, lose_everything])
def test_records_that_are_missing_after_a_clean_stop_are_damage(tmp_path: Path, damage: Callable[[Log], None]) -> None:
    log = filled_log(tmp_path)
    log.close()
    damage(log)
    before = log_files(log)
    with pytest.raises(DamagedLog):
        restart(log)
    assert log_files(log) == before


def test_every_flipped_bit_below_the_recovery_point_is_reported(tmp_path: Path) -> None:
    """L1, L2: except in the leader epoch and, where offsets may have gaps, the base offset: no CRC covers them."""
    log = filled_log(tmp_path)
    log.flush()
    active = log.segments.active
    path = Path(active.stem + ".log")
    content = path.read_bytes()
    spans = [(header.position, header.size) for header in active.scan(0)]
    bits = range(len(content) * 8)
    for bit in bits if EXAMPLES >= 1_000 else random.Random(first_seed()).sample(bits, 5 * EXAMPLES):
        at = bit // 8
        position = next(start for start, size in spans if start <= at < start + size)
        if at - position < 8 or 12 <= at - position < 16:
            continue
        flip(path, at, 1 << bit % 8)
        with pytest.raises(DamagedLog, match=f"is damaged at byte {position}"):
            kill(log)
        path.write_bytes(content)
    assert kill(log).log_end_offset == log.log_end_offset


def test_damage_above_the_recovery_point_is_cut_and_kept(tmp_path: Path) -> None:
    """L2: unsynced data may be lost in any order; valid batches behind the invalid one are copied."""
    log = filled_log(tmp_path)
    whole = values_from(log, 0)
    *_, last_but_one, active = log.segments
    first, second = [header for header, _ in zip(last_but_one.scan(0), range(2), strict=False)]
    log.recovery_point = first.last_offset + 1
    path = Path(last_but_one.stem + ".log")
    flip(path, second.position + 70)
    tail, following = path.read_bytes()[second.position :], Path(active.stem + ".log").read_bytes()
    again = kill(log)
    assert values_from(again, 0) == whole[: second.base_offset]
    saved = [f"{segment.stem}.log.damaged" for segment in (last_but_one, active)]
    assert again.torn == (second.base_offset, len(tail) + len(following), saved)
    assert [Path(name).read_bytes() for name in saved] == [tail, following]
    assert kill(again).torn is None


def test_torn_tail_with_nothing_behind_it_leaves_nothing_behind(tmp_path: Path) -> None:
    log = filled_log(tmp_path)
    last = list(log.segments.active.scan(0))[-1]
    flip(log.segments.active.stem + ".log", last.position + 70)
    again = kill(log)
    assert again.torn == (last.base_offset, last.size, [])
    assert not [name for name in names_in(log) if name.endswith(".damaged")]


def test_batch_whose_length_is_garbage_does_not_hide_those_behind_it(tmp_path: Path) -> None:
    """The next batch is found by its header, its CRC and its offsets, also when other bytes look like a header."""
    log = open_log(tmp_path, small_config(segment_bytes=1 << 20))
    append(log, batch_of([b"\x02" * 400]))
    append(log, batch_of([b"lost" + bytes(batch_of([b"a batch in a value"]))] * 3))
    append(log, batch_of([b"kept"]))
    second, third = list(log.segments.active.scan(0))[1:]
    flip(log.segments.active.stem + ".log", second.position + 9)
    again = kill(log)
    assert again.torn is not None
    (saved,) = again.torn.kept_in
    assert Path(saved).stat().st_size == second.size + third.size


def test_hole_that_compaction_has_left_is_no_damage(tmp_path: Path) -> None:
    """Offsets below the recovery point may be missing, between batches and between segments."""
    log = filled_log(tmp_path)
    log.flush()
    whole = values_from(log, 0)
    middle = log.segments[1]
    gone = next(middle.scan(0))
    content = Path(middle.stem + ".log").read_bytes()
    Path(middle.stem + ".log").write_bytes(content[gone.size :])
    assert values_from(kill(log), 0) == [
        entry for entry in whole if not gone.base_offset <= entry[0] <= gone.last_offset
    ]


def test_hole_in_what_was_not_synced_ends_the_log(tmp_path: Path) -> None:
    """The end of a segment is lost, the next segment exists: its records must not follow a gap."""
    log = filled_log(tmp_path)
    whole = values_from(log, 0)
    last = list(log.segments[0].scan(0))[-1]
    path = Path(log.segments[0].stem + ".log")
    path.write_bytes(path.read_bytes()[: last.position])
    again = kill(log)
    assert values_from(again, 0) == whole[: last.base_offset]
    assert again.torn is not None
    assert len(again.torn.kept_in) == len(log.segments) - 1


def test_deleted_records_are_not_reported_as_missing(tmp_path: Path) -> None:
    """A log start above the recovery point: the synced records below it are deleted."""
    log = filled_log(tmp_path)
    log.recovery_point = 2
    log.high_watermark = log.log_start_offset = log.log_end_offset
    end = log.log_end_offset
    lose_everything(log)
    again = kill(log)
    assert (again.log_start_offset, again.log_end_offset) == (end, end)


def test_damage_found_by_a_read_is_reported(tmp_path: Path) -> None:
    """L2: the rest of the segment must not be skipped silently; the batches before it are served."""
    log = restart(filled_log(tmp_path, 40))
    whole = values_from(log, 0)
    segment = log.segments[1]
    headers = list(segment.scan(0))
    flip(segment.stem + ".log", headers[2].position + 16)
    reports: list[str] = []
    log.on_damage = reports.append
    assert values_from(log, 0, limit=headers[1].base_offset) == whole[: headers[1].base_offset]
    with pytest.raises(DamagedLog):
        log.read(headers[2].base_offset, 1 << 20, limit_offset=log.log_end_offset, min_one_batch=True)
    assert reports == [f"{segment.stem}.log is damaged at byte {headers[2].position}: no record batch begins there"]


def test_damaged_index_of_aborted_transactions_is_reported(tmp_path: Path) -> None:
    """T6: without it a reader would treat aborted records as committed."""
    log = open_log(tmp_path, small_config(segment_bytes=1 << 20))
    append(log, batch_of([b"a"], producer=(1, 0, 0), transactional=True))
    append_marker(log, commit=False, producer_id=1)
    log = restart(log)
    flip(log.segments.active.stem + ".txnindex", 1)
    reports: list[str] = []
    log.on_damage = reports.append
    with pytest.raises(DamagedLog, match=r"txnindex is damaged in entry 0"):
        log.aborted_transactions(0, 2)
    assert len(reports) == 1
