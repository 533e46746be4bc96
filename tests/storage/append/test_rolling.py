"""When a new segment starts, and the state of the closed one."""

from __future__ import annotations

import struct
from pathlib import Path

from barnabas.storage.files import File, UnsyncedFiles
from barnabas.storage.log import Log
from barnabas.storage.segments.segment import Segment, should_roll
from barnabas.wire.steps import result_of
from tests.support.logs.log_driver import append, batch_of, kill, open_log, restart, small_config, truncate, values_from

SIZE = len(batch_of([b"v"]))
HOUR = 3_600_000


def bases(log: Log) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def test_full_segment_is_rolled_before_the_append(tmp_path: Path) -> None:
    log = open_log(tmp_path, small_config(segment_bytes=3 * SIZE))
    for _ in range(7):
        append(log, batch_of([b"v"]))
    assert bases(log) == [0, 3, 6]
    assert all(segment.size <= 3 * SIZE for segment in log.segments)


def test_age_is_counted_in_timestamps_of_records(tmp_path: Path) -> None:
    """L12: independent of the wall clock."""
    log = open_log(tmp_path, small_config(segment_bytes=1 << 20, segment_ms=HOUR))
    append(log, batch_of([b"v"], timestamps=[1_000]), now_ms=10_000)
    append(log, batch_of([b"v"], timestamps=[1_000 + HOUR]), now_ms=10_000_000_000)
    assert bases(log) == [0]
    append(log, batch_of([b"v"], timestamps=[1_001 + HOUR]), now_ms=10_000_000_000)
    assert bases(log) == [0, 2]


def test_age_is_known_after_a_restart(tmp_path: Path) -> None:
    log = open_log(tmp_path, small_config(segment_bytes=1 << 20, segment_ms=HOUR))
    append(log, batch_of([b"v"], timestamps=[1_000]))
    for again in (restart, kill):
        log = again(log)
        assert should_roll(log.segments.active, log.config, 10, 1, 1_001 + HOUR, 0.0)
        assert not should_roll(log.segments.active, log.config, 10, 1, 1_000 + HOUR, 0.0)


def test_without_timestamps_age_is_time_since_the_segment_was_made(tmp_path: Path) -> None:
    log = open_log(tmp_path, small_config(segment_bytes=1 << 20, segment_ms=HOUR))
    append(log, batch_of([b"v"], timestamps=[-1]), now_ms=0)
    append(log, batch_of([b"v"], timestamps=[-1]), now_ms=HOUR)
    assert bases(log) == [0]
    append(log, batch_of([b"v"], timestamps=[-1]), now_ms=HOUR + 1)
    assert bases(log) == [0, 2]


def test_jitter_makes_segments_roll_earlier_but_not_all_at_once(tmp_path: Path) -> None:
    log = open_log(tmp_path, small_config(segment_bytes=SIZE, segment_jitter_ms=HOUR))
    for _ in range(8):
        append(log, batch_of([b"v"]))
    jitters = [segment.roll_jitter_ms for segment in log.segments][1:]
    assert all(0 <= jitter < HOUR for jitter in jitters)
    assert len(set(jitters)) == len(jitters)


def test_full_index_rolls_the_segment(tmp_path: Path) -> None:
    log = open_log(tmp_path, small_config(segment_bytes=1 << 20, index_interval_bytes=0, segment_index_bytes=40))
    for at in range(12):
        append(log, batch_of([b"v"], timestamps=[at]))
    assert len(log.segments) > 1
    assert all(len(segment.offset_index) <= 5 and len(segment.time_index) <= 3 for segment in log.segments)


def test_offset_too_far_from_the_base_rolls_the_segment(tmp_path: Path) -> None:
    """Indexes hold 31-bit offsets relative to the base offset."""
    log = open_log(tmp_path, small_config(segment_bytes=1 << 20))
    segment = log.segments.active
    append(log, batch_of([b"v"]))
    assert not should_roll(segment, log.config, SIZE, 2**31 - 1, 0, 0.0)
    assert should_roll(segment, log.config, SIZE, 2**31, 0, 0.0)


def test_closed_segment_has_its_greatest_timestamp_in_the_time_index(tmp_path: Path) -> None:
    """Kafka's dump tool and retention rely on the last entry; its offset is the last of its batch."""
    log = open_log(tmp_path, small_config(segment_bytes=3 * SIZE, index_interval_bytes=4096))
    for timestamp in (5, 9, 7, 1):
        append(log, batch_of([b"v"], timestamps=[timestamp]))
    content = Path(f"{log.directory}/{0:020d}.timeindex").read_bytes()
    assert list(struct.iter_unpack(">qi", content)) == [(9, 1)]


def test_time_index_is_strictly_ascending(tmp_path: Path) -> None:
    """L4: equal and lower timestamps make no entry; the offset is the offset of the batch with the timestamp."""
    log = open_log(tmp_path, small_config(segment_bytes=1 << 20, index_interval_bytes=0))
    for timestamp in (10, 10, 30, 20, 30, 40):
        append(log, batch_of([b"v"], timestamps=[timestamp]))
    index = log.segments.active.time_index
    assert list(zip(index.timestamps, index.offsets, strict=True)) == [(10, 0), (30, 2), (40, 5)]


def test_index_entry_holds_the_last_offset_of_the_batch_it_points_to(tmp_path: Path) -> None:
    log = open_log(tmp_path, small_config(segment_bytes=1 << 20, index_interval_bytes=0))
    for _ in range(4):
        append(log, batch_of([b"a", b"b"]))
    size = log.size_bytes // 4
    log.close()
    content = Path(f"{log.directory}/{0:020d}.index").read_bytes()
    assert list(struct.iter_unpack(">ii", content)) == [(3, size), (5, 2 * size), (7, 3 * size)]


def test_greatest_timestamp_is_exact_after_any_stop(tmp_path: Path) -> None:
    log = open_log(tmp_path, small_config(segment_bytes=1 << 20))
    for timestamp in (5, 9, 7, 12, 3, 12):
        append(log, batch_of([b"v" * 60], timestamps=[timestamp]))
    for stop in (kill, restart):
        log = stop(log)
        assert log.segments.active.max_timestamp == 12
        assert result_of(log.max_timestamp_offset()) == (3, 12, 0)


def test_greatest_timestamp_survives_a_truncation(tmp_path: Path) -> None:
    log = open_log(tmp_path, small_config(segment_bytes=1 << 20, index_interval_bytes=100))
    for timestamp in (5, 9, 7, 12, 3, 8, 13, 1):
        append(log, batch_of([b"v" * 60], timestamps=[timestamp]))
    for end, expected in ((7, (6, 13, 0)), (6, (3, 12, 0)), (4, (3, 12, 0)), (3, (1, 9, 0)), (1, (0, 5, 0))):
        truncate(log, end)
        assert result_of(log.max_timestamp_offset()) == expected


def test_searches_by_timestamp_leave_no_segment_open(tmp_path: Path) -> None:
    log = open_log(tmp_path, small_config(segment_bytes=SIZE))
    for timestamp in range(20):
        append(log, batch_of([b"v"], timestamps=[timestamp]))
    log = restart(log)
    assert result_of(log.max_timestamp_offset()) == (19, 19, 0)
    assert result_of(log.offset_for_timestamp(15)) == (15, 15, 0)
    assert sum(segment.is_open for segment in log.segments) <= 2


def test_empty_log_has_no_timestamp(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    assert result_of(log.max_timestamp_offset()) is None
    assert result_of(log.offset_for_timestamp(0)) is None


def test_many_index_entries_are_written_as_they_come(tmp_path: Path) -> None:
    """The index files of the active segment are written in blocks, and are complete after a clean stop."""
    log = open_log(tmp_path, small_config(segment_bytes=1 << 20, index_interval_bytes=0))
    for at in range(1100):
        append(log, batch_of([b"v"], timestamps=[at]))
    index, time_index = Path(f"{log.directory}/{0:020d}.index"), Path(f"{log.directory}/{0:020d}.timeindex")
    assert (index.stat().st_size, time_index.stat().st_size) == (1024 * 8, 1024 * 12)
    log = restart(log)
    assert (index.stat().st_size, time_index.stat().st_size) == (1099 * 8, 1099 * 12)
    assert values_from(log, 1090)[0] == (1090, b"v")


def test_indexes_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    """Kafka's byte order, and the zeros that Kafka preallocates after the last entry."""
    log = open_log(tmp_path, small_config(segment_bytes=1 << 20, index_interval_bytes=0, segment_ms=2**62))
    for timestamp in (2**40, 2**40 + 1, 2**40 + 2**33):
        append(log, batch_of([b"v", b"v"], timestamps=[timestamp, timestamp]), now_ms=2**41)
    log.segments.active.seal()
    for zeros in (0, 1200):
        for suffix in (".index", ".timeindex"):
            with Path(log.segments.active.stem + suffix).open("ab") as file:
                file.write(bytes(zeros))
        log = restart(log)
        segment = log.segments.active
        assert list(segment.offset_index.offsets) == [3, 5]
        assert list(segment.time_index.timestamps) == [2**40 + 1, 2**40 + 2**33]
        assert list(segment.time_index.offsets) == [3, 5]


def test_rolled_segment_is_found_from_any_offset(tmp_path: Path) -> None:
    log = open_log(tmp_path, small_config(segment_bytes=2 * SIZE))
    for _ in range(9):
        append(log, batch_of([b"v"]))
    segments: list[Segment] = [log.segments[log.segments.floor_index(offset)] for offset in range(9)]
    assert [segment.base_offset for segment in segments] == [0, 0, 2, 2, 4, 4, 6, 6, 8]


class DelayedAllocation(UnsyncedFiles):
    """Like ext4: a file that was truncated to zero, even if it was empty, is flushed when it is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.written_out_at_close: set[str] = set()

    def truncate(self, file: File, size: int) -> None:
        if not size:
            self.written_out_at_close.add(Path(file.path).name)
        super().truncate(file, size)


def test_closing_a_segment_does_not_wait_for_the_disk(tmp_path: Path) -> None:
    """The event loop closes the segments of a deleted topic: a deleted gigabyte must not be flushed then."""
    files = DelayedAllocation()
    log = open_log(tmp_path, small_config(segment_bytes=3 * SIZE), files)
    for _ in range(7):
        append(log, batch_of([b"v"]))
    assert not {name for name in files.written_out_at_close if name.endswith(".log")}


def test_leftovers_of_the_name_of_a_new_segment_are_cleared(tmp_path: Path) -> None:
    log = open_log(tmp_path, small_config(segment_bytes=2 * SIZE))
    (tmp_path / "t-0" / f"{2:020d}.log").write_bytes(b"left by a crash" * 100)
    for value in (b"a", b"b", b"c"):
        append(log, batch_of([value]))
    assert bases(log) == [0, 2]
    assert values_from(log, 0) == [(0, b"a"), (1, b"b"), (2, b"c")]
    assert (tmp_path / "t-0" / f"{2:020d}.log").stat().st_size == SIZE
