"""Retention: which segments are removed, when, and which are kept (rules L5 and L12)."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.storage import layout
from barnabas.storage.cleaning import retention
from barnabas.storage.directories.log_dirs import LogDirs
from barnabas.storage.files import UnsyncedFiles
from barnabas.storage.log import Log
from tests.support.logs.log_driver import (
    PROPERTY,
    TOPIC_ID,
    append,
    batch_of,
    open_log,
    records_from,
    restart,
    small_config,
)

NOW_MS = 1_000_000
DELETE = frozenset({"delete"})


def filled(directory: Path | str, timestamps: list[int], **configs: object) -> Log:
    """A log of one-record segments with these timestamps, all below the high watermark."""
    log = open_log(directory, small_config(segment_bytes=100, cleanup_policy=DELETE, **configs))
    for timestamp in timestamps:
        append(log, batch_of([b"v" * 20], timestamps=[timestamp]), now_ms=max(timestamps))
    log.high_watermark = log.log_end_offset
    return log


def expire(log: Log, now_ms: int = NOW_MS) -> list[str]:
    """One complete retention check; the limits that were exceeded."""
    reasons = [expired.reason for expired in retention.expire(log, now_ms, now_ms / 1000)]
    log.delete_segments_below(log.log_start_offset)
    return reasons


def bases(log: Log) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def test_segments_whose_youngest_record_is_too_old_are_removed(tmp_path: Path) -> None:
    """L5: older than retention.ms by one millisecond is removed, exactly as old is kept, with everything after it."""
    log = filled(tmp_path, [NOW_MS - 1001, NOW_MS - 1000, NOW_MS - 5000], retention_ms=1000, retention_bytes=-1)
    assert expire(log) == ["retention.ms"]
    assert (bases(log), log.log_start_offset) == ([1, 2], 1)
    assert [record.offset for record in records_from(log, 1)] == [1, 2]


def test_segment_is_as_old_as_its_youngest_record(tmp_path: Path) -> None:
    """L5: a segment that starts with an old record is kept for its young one."""
    log = open_log(tmp_path, small_config(segment_bytes=250, cleanup_policy=DELETE, retention_ms=1000))
    for timestamp in (NOW_MS - 5000, NOW_MS - 500, NOW_MS - 5000, NOW_MS):
        append(log, batch_of([b"v" * 20], timestamps=[timestamp]), now_ms=NOW_MS)
    log.high_watermark = log.log_end_offset
    assert bases(log) == [0, 2]
    assert expire(log) == []
    assert expire(log, NOW_MS + 501) == ["retention.ms"]
    assert bases(log) == [2]


def test_age_is_that_of_the_records_and_not_of_the_file(tmp_path: Path) -> None:
    """L12: a file written today with old records is removed; one with a file time of 1970 and young records is kept."""
    log = filled(tmp_path, [NOW_MS - 2000, NOW_MS], retention_ms=1000)
    os.utime(log.segments[1].stem + ".log", (0, 0))
    expire(log)
    assert bases(log) == [1]


def test_without_timestamps_the_files_own_time_counts(tmp_path: Path) -> None:
    log = filled(tmp_path, [-1, -1, -1], retention_ms=1000)
    for segment, modified_ms in zip(log.segments, (NOW_MS - 1001, NOW_MS - 999, 0), strict=True):
        os.utime(segment.stem + ".log", (modified_ms / 1000, modified_ms / 1000))
    assert expire(log) == ["retention.ms"]
    assert bases(log) == [1, 2]


def test_timestamps_in_the_future_keep_a_segment(tmp_path: Path) -> None:
    """L12: a clock that jumped forward delays deletion, and a warning is logged; one that jumped back does not."""
    log = filled(tmp_path, [NOW_MS + 500, NOW_MS - 9000], retention_ms=1000)
    assert expire(log) == []
    assert retention.future_timestamp(log, NOW_MS) == NOW_MS + 500
    assert retention.future_timestamp(log, NOW_MS + 500) is None
    assert expire(log, now_ms=0) == []
    assert expire(log, now_ms=NOW_MS + 1501) == ["retention.ms"]


def test_oldest_segments_are_removed_while_retention_bytes_remain(tmp_path: Path) -> None:
    """L5: whole segments; the log stays at or above retention.bytes."""
    log = filled(tmp_path, [NOW_MS] * 5, retention_ms=-1)
    size = log.segments[0].size
    log.config.retention_bytes = size * 3 + 1
    assert expire(log) == ["retention.bytes"]
    assert (bases(log), log.size_bytes) == ([1, 2, 3, 4], size * 4)
    log.config.retention_bytes = size * 3
    expire(log)
    assert bases(log) == [2, 3, 4]
    assert expire(log) == []


def test_active_segment_is_rolled_when_it_is_too_old(tmp_path: Path) -> None:
    """L5: a topic without writes becomes empty, and its offsets continue."""
    log = filled(tmp_path, [1, 2, 3], retention_ms=1000)
    assert expire(log) == ["retention.ms"]
    assert (bases(log), log.log_start_offset, log.log_end_offset, log.size_bytes) == ([3], 3, 3, 0)
    assert expire(log) == [], "an empty active segment is not deleted again"
    assert append(log, batch_of([b"next"], timestamps=[NOW_MS])).first_offset == 3


def test_nothing_at_or_above_the_high_watermark_is_removed(tmp_path: Path) -> None:
    """L5: not by age and not by size."""
    log = filled(tmp_path, [1, 2, 3, 4], retention_ms=1000, retention_bytes=0)
    log.high_watermark = 2
    assert expire(log) == ["retention.bytes"]
    assert bases(log) == [2, 3]
    assert expire(log) == []


@pytest.mark.parametrize("policy", [frozenset(), frozenset({"compact"})])
def test_other_policies_delete_only_below_the_log_start(tmp_path: Path, policy: frozenset[str]) -> None:
    log = filled(tmp_path, [1, 2, 3], retention_ms=1, retention_bytes=0)
    log.config.cleanup_policy = policy
    log.advance_log_start_offset(1)
    assert expire(log) == []
    assert bases(log) == [1, 2]


def test_minus_one_means_no_limit(tmp_path: Path) -> None:
    log = filled(tmp_path, [1, 2, 3], retention_ms=-1, retention_bytes=-1)
    assert expire(log) == []
    assert retention.future_timestamp(log, 0) is None


def test_checks_leave_no_file_open(tmp_path: Path) -> None:
    """A thousand idle partitions are checked every few minutes."""
    log = restart(filled(tmp_path, [NOW_MS - 10, NOW_MS], retention_ms=1000))
    log.high_watermark = log.log_end_offset
    assert expire(log) == []
    assert retention.future_timestamp(log, NOW_MS - 20) == NOW_MS - 10
    assert not [segment for segment in log.segments if segment.is_open]


def test_log_start_is_on_the_disk_before_a_file_is_renamed(tmp_path: Path) -> None:
    """L5: after a kill at any moment consumers see no less of the log than the checkpoint says."""

    started_at: list[str] = []

    class Watching(UnsyncedFiles):
        def rename(self, old: str, new: str) -> None:
            if new.endswith(".deleted"):
                started_at.append((tmp_path / "log-start-offset-checkpoint").read_text())
            super().rename(old, new)

    dirs = LogDirs(Watching(), [str(tmp_path)], lambda: bytes(16))
    dirs.open(1)
    config = small_config(segment_bytes=100, cleanup_policy=DELETE, retention_ms=1000)
    log = dirs.open_log("t", 0, config, topic_id=TOPIC_ID, now_ms=NOW_MS, now=0.0)
    for _ in range(3):
        append(log, batch_of([b"v" * 20], timestamps=[1]))
    log.high_watermark = 3
    retention.expire(log, NOW_MS, 0.0)
    dirs.write_checkpoint(layout.LOG_START_CHECKPOINT)
    log.delete_segments_below(log.log_start_offset)
    assert set(started_at) == {"0\n1\nt 0 3\n"}


@PROPERTY
@given(
    ages=st.lists(st.integers(-2000, 5000), min_size=1, max_size=8),
    retention_ms=st.integers(-1, 3000),
    kept=st.integers(-1, 8),
    high_watermark=st.integers(0, 8),
)
def test_retention_keeps_what_a_plain_list_would_keep(
    tmp_path_factory: pytest.TempPathFactory, ages: list[int], retention_ms: int, kept: int, high_watermark: int
) -> None:
    """L5 as a loop over a list: from the front, while too many or too old, and below the high watermark."""
    directory = tmp_path_factory.mktemp("retention")
    timestamps = [NOW_MS - age for age in ages]
    log = filled(directory, timestamps, retention_ms=retention_ms)
    size = log.segments[0].size
    log.config.retention_bytes = size * kept if kept >= 0 else -1
    log.high_watermark = high_watermark
    start = 0
    while start < min(len(ages), high_watermark) and kept >= 0 and len(ages) - start > kept:
        start += 1
    while start < min(len(ages), high_watermark) and retention_ms >= 0 and ages[start] > retention_ms:
        start += 1
    expire(log)
    assert log.log_start_offset == start
    assert [record.offset for record in records_from(log, start)] == list(range(start, len(ages)))
    assert bases(log) == (list(range(start, len(ages))) or [len(ages)])
    shutil.rmtree(directory)
