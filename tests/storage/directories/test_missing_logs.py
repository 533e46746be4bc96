"""Logs that are in a checkpoint but not in the directory: damage, unless they were deleted or truncated (L2)."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from barnabas.storage import layout
from barnabas.storage.damage import DamagedLog
from tests.support.logs.dirs_driver import OTHER_ID, append_batches, open_log, opened_dirs, truncate_log
from tests.support.logs.log_driver import append, batch_of, values_from


def test_new_log_with_the_name_of_a_deleted_one_is_not_damaged(tmp_path: Path) -> None:
    """L2: the deleted log is removed from the checkpoint before the new one is made."""
    dirs = opened_dirs(tmp_path)
    append(open_log(dirs), batch_of([b"v"] * 5))
    dirs.logs["t", 0].flush()
    dirs.write_checkpoint(layout.RECOVERY_POINT_CHECKPOINT)
    dirs.delete_log("t", 0, now=0.0)
    append(open_log(dirs, topic_id=OTHER_ID), batch_of([b"new"]))
    dirs.release()
    again = opened_dirs(tmp_path)
    assert values_from(open_log(again, topic_id=OTHER_ID), 0) == [(0, b"new")]
    again.release()


def test_truncated_log_is_not_reported_as_damaged(tmp_path: Path) -> None:
    """L2: the recovery point in the checkpoint is lowered before the truncation."""
    dirs = opened_dirs(tmp_path)
    log = open_log(dirs)
    append_batches(log, 5)
    log.flush()
    dirs.write_checkpoint(layout.RECOVERY_POINT_CHECKPOINT)
    truncate_log(dirs, 2)
    dirs.release()
    again = opened_dirs(tmp_path)
    assert open_log(again).log_end_offset == 2
    again.release()


def test_missing_directory_is_damage(tmp_path: Path) -> None:
    """L2: it was removed, or its disk is not mounted; an empty log in its place would hide that."""
    dirs = opened_dirs(tmp_path)
    for topic in ("t", "empty"):
        open_log(dirs, topic)
    append(dirs.logs["t", 0], batch_of([b"v"] * 5))
    dirs.close()
    shutil.rmtree(tmp_path / "t-0")
    shutil.rmtree(tmp_path / "empty-0")
    for _ in range(2):
        again = opened_dirs(tmp_path)
        assert open_log(again, "empty").log_end_offset == 0
        with pytest.raises(DamagedLog, match="t-0 is missing, but everything up to offset 5 was synced"):
            open_log(again)
        again.take_offline("t", 0)
        again.forget_missing()
        again.close()
    (tmp_path / "t-0").mkdir()
    again = opened_dirs(tmp_path)
    with pytest.raises(DamagedLog, match="ends at offset 0"):
        open_log(again)
    again.release()


def test_deleted_log_is_not_reported_as_missing(tmp_path: Path) -> None:
    """The crash came before the checkpoint was written; the next start removes the log from the checkpoint."""
    dirs = opened_dirs(tmp_path)
    append(open_log(dirs), batch_of([b"v"] * 5))
    dirs.logs["t", 0].flush()
    dirs.write_checkpoint(layout.RECOVERY_POINT_CHECKPOINT)
    dirs.delete_log("t", 0, now=0.0)
    dirs.release()
    again = opened_dirs(tmp_path)
    again.forget_missing()
    again.release()
    assert (tmp_path / layout.RECOVERY_POINT_CHECKPOINT).read_text() == "0\n0\n"
    again = opened_dirs(tmp_path)
    assert open_log(again).log_end_offset == 0
    again.release()
