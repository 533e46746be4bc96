"""The checkpoint files of log directories: their content, and when a start trusts them."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.storage import layout
from barnabas.storage.directories.log_dirs import LogDir
from barnabas.storage.files import UnsyncedFiles
from tests.support.logs.dirs_driver import CHECKPOINTS, OTHER_ID, append_batches, open_log, opened_dirs, truncate_log
from tests.support.logs.log_driver import append, batch_of, values_from


def test_log_start_is_checkpointed_even_where_a_segment_starts(tmp_path: Path) -> None:
    """L5: a power failure may restore deleted segments below it, since their renames are not synced."""
    dirs = opened_dirs(tmp_path)
    log = open_log(dirs)
    for _ in range(3):
        append(log, batch_of([b"v" * 1000]))
    log.high_watermark = 3
    log.advance_log_start_offset(2)
    log.delete_segments_below(2)
    assert log.segments[0].base_offset == 2
    dirs.write_checkpoint(layout.LOG_START_CHECKPOINT)
    assert (tmp_path / layout.LOG_START_CHECKPOINT).read_text() == "0\n1\nt 0 2\n"


def test_checkpoints_of_a_deleted_topic_do_not_apply_to_a_new_one_of_the_same_name(tmp_path: Path) -> None:
    """R22, L2: otherwise recovery would expect records that the new log never had."""
    dirs = opened_dirs(tmp_path)
    log = open_log(dirs)
    append_batches(log, 5)
    log.flush()
    log.high_watermark = 5
    log.advance_log_start_offset(3)
    dirs.write_checkpoint(layout.RECOVERY_POINT_CHECKPOINT)
    dirs.write_checkpoint(layout.LOG_START_CHECKPOINT)
    dirs.delete_log("t", 0, now=0.0)
    append(open_log(dirs, topic_id=OTHER_ID), batch_of([b"new"]))
    dirs.release()
    dirs = opened_dirs(tmp_path)
    assert values_from(open_log(dirs, topic_id=OTHER_ID), 0) == [(0, b"new")]


@pytest.mark.parametrize("name", [layout.RECOVERY_POINT_CHECKPOINT, layout.LOG_START_CHECKPOINT])
def test_checkpoint_written_late_does_not_contain_the_deleted_topic(tmp_path: Path, name: str) -> None:
    """R22, L2: a write planned before the deletion would look like data lost from the new topic."""
    dirs = opened_dirs(tmp_path)
    log = open_log(dirs)
    append_batches(log, 5)
    log.flush()
    log.high_watermark = 5
    log.advance_log_start_offset(3)
    late = [write for _, write in dirs.plan_checkpoint(name)]
    dirs.delete_log("t", 0, now=0.0)
    append(open_log(dirs, topic_id=OTHER_ID), batch_of([b"new"]))
    for write in late:
        write()
    dirs.release()
    dirs = opened_dirs(tmp_path)
    assert values_from(open_log(dirs, topic_id=OTHER_ID), 0) == [(0, b"new")]


def test_late_checkpoint_does_not_undo_a_later_one_that_had_nothing_to_write(tmp_path: Path) -> None:
    checkpoints = LogDir(UnsyncedFiles(), str(tmp_path)).checkpoints
    writes = []
    for offset in (5, 4, 5):
        writes.append(checkpoints.plan(layout.LOG_START_CHECKPOINT))
        writes[-1].offsets["t", 0] = offset
    first, late, last = writes
    first()
    last()
    late()
    assert (tmp_path / layout.LOG_START_CHECKPOINT).read_text() == "0\n1\nt 0 5\n"


def test_checkpoint_that_comes_late_does_not_undo_a_later_one(tmp_path: Path) -> None:
    """They are written in threads, while creation or truncation of a log writes one directly."""
    dirs = opened_dirs(tmp_path)
    log = open_log(dirs)
    append(log, batch_of([b"v"] * 5))
    log.flush()
    ((_, late),) = dirs.plan_checkpoint(layout.RECOVERY_POINT_CHECKPOINT)
    truncate_log(dirs, 0)
    late()
    assert (tmp_path / layout.RECOVERY_POINT_CHECKPOINT).read_text() == "0\n1\nt 0 0\n"
    dirs.release()


def test_checkpoints_of_logs_that_are_not_open_yet_stay(tmp_path: Path) -> None:
    """The metadata log is opened first and may write checkpoints before the other logs are opened."""
    dirs = opened_dirs(tmp_path)
    for topic in ("t", "u"):
        log = open_log(dirs, topic)
        append(log, batch_of([b"v"] * 3))
        append(log, batch_of([b"v"] * 3))
        log.high_watermark = 6
        log.advance_log_start_offset(3)
    dirs.close()
    before = {name: (tmp_path / name).read_text() for name in CHECKPOINTS}
    again = opened_dirs(tmp_path)
    open_log(again, "metadata")
    again.write_checkpoint(layout.RECOVERY_POINT_CHECKPOINT)
    again.write_checkpoint(layout.LOG_START_CHECKPOINT)
    again.write_checkpoint(layout.REPLICATION_CHECKPOINT)
    for name, text in before.items():
        assert set(text.splitlines()[2:]) <= set((tmp_path / name).read_text().splitlines())
    again.release()


@pytest.mark.parametrize("offset", [2, 5])
def test_truncated_segment_is_not_trusted_when_a_new_one_starts_at_its_end(tmp_path: Path, offset: int) -> None:
    """L1, L4: its indexes were truncated without a sync, so a crash may restore entries for truncated records."""
    dirs = opened_dirs(tmp_path)
    log = open_log(dirs)
    append_batches(log, 5)
    log.flush()
    append(log, batch_of([b"not synced"]))
    truncate_log(dirs, offset)
    log.roll(0.0)
    assert log.segments.active.base_offset == offset
    assert (tmp_path / layout.RECOVERY_POINT_CHECKPOINT).read_text() == f"0\n1\nt 0 {offset - 1}\n"
    dirs.release()


def test_clean_shutdown_marker_applies_only_to_logs_in_the_checkpoint(tmp_path: Path) -> None:
    """Kafka does not close its metadata log when it stops: its index is then 10 MB of zeros."""
    dirs = opened_dirs(tmp_path)
    log = open_log(dirs)
    for _ in range(20):
        append(log, batch_of([b"v" * 100]))
    entries = len(log.segments.active.offset_index)
    assert entries > 0
    dirs.close(broker_epoch=77)
    assert (tmp_path / layout.CLEAN_SHUTDOWN).read_text() == '{"version":0,"brokerEpoch":77}'
    index = tmp_path / "t-0" / f"{0:020d}.index"
    index.write_bytes(bytes(8 * 1000))
    (tmp_path / layout.RECOVERY_POINT_CHECKPOINT).write_text("0\n0\n")
    again = opened_dirs(tmp_path)
    assert again.dirs[0].had_clean_shutdown
    log = open_log(again)
    assert log.log_end_offset == 20
    assert len(log.segments.active.offset_index) == entries
    again.close()
