"""Deletion of logs and segments, stray directories, and new topics with the name of an old one (L5, R22)."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.storage import layout
from barnabas.storage.damage import DamagedLog
from barnabas.storage.directories.deletions import RECENT, DeletedTopics
from tests.support.cases import for_each
from tests.support.logs.dirs_driver import OTHER_ID, log_dirs, open_log, opened_dirs
from tests.support.logs.log_driver import TOPIC_ID, append, batch_of, values_from


def test_deleted_log_is_renamed_at_once_and_removed_later(tmp_path: Path) -> None:
    """L5: file.delete.delay.ms; a slice that a reader holds stays readable."""
    dirs = opened_dirs(tmp_path)
    log = open_log(dirs)
    append(log, batch_of([b"v"]))
    read = log.read(0, 1000, limit_offset=1, min_one_batch=True)
    assert read.slice is not None
    dirs.delete_log("t", 0, now=100.0)
    [renamed] = [path for path in tmp_path.iterdir() if path.is_dir()]
    assert renamed.name.startswith("t-0.")
    assert renamed.name.endswith("-delete")
    assert len(renamed.name) == len("t-0.") + 32 + len("-delete")
    assert dirs.deletions.take_due(159.9) == []
    [due] = dirs.deletions.take_due(160.0)
    dirs.deletions.remove(due)
    assert not renamed.exists()
    assert dirs.deletions.take_due(float("inf")) == []
    assert len(read.slice.read()) == len(read.slice)
    assert open_log(dirs).log_end_offset == 0


def test_deletion_that_a_crash_interrupted_is_finished_at_the_start(tmp_path: Path) -> None:
    dirs = opened_dirs(tmp_path)
    open_log(dirs)
    dirs.delete_log("t", 0, now=0.0)
    dirs.release()
    log_dirs(tmp_path).open(1)
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]


def test_topic_made_again_never_shows_the_data_of_the_old_one(tmp_path: Path) -> None:
    """R22: the directory of a deleted topic is renamed as a stray."""
    dirs = opened_dirs(tmp_path)
    append(open_log(dirs), batch_of([b"old"]))
    dirs.close()
    dirs = opened_dirs(tmp_path)
    dirs.deleted_topics.add_all([TOPIC_ID])
    log = open_log(dirs, topic_id=OTHER_ID)
    assert (log.log_end_offset, log.topic_id) == (0, OTHER_ID)
    assert [Path(path).name[:4] for path in dirs.strays] == ["t-0."]
    dirs.close()


@for_each("is_clean", [True, False])
@for_each("loses_checkpoint", [True, False])
def test_a_wrong_topic_id_does_not_make_a_log_empty(tmp_path: Path, is_clean: bool, loses_checkpoint: bool) -> None:
    """L2: without a deletion the directory is not another topic's: nothing is renamed, and the records stay."""
    dirs = opened_dirs(tmp_path)
    append(open_log(dirs), batch_of([b"old"]))
    if is_clean:
        dirs.close()
    else:
        dirs.release()
    if loses_checkpoint:
        (tmp_path / layout.RECOVERY_POINT_CHECKPOINT).unlink(missing_ok=True)
    metadata = tmp_path / "t-0" / layout.PARTITION_METADATA
    correct = metadata.read_text()
    metadata.write_text(correct.replace("AAECAw", "AAEDAw"))
    dirs = opened_dirs(tmp_path)
    with pytest.raises(DamagedLog, match=r"partition\.metadata has the topic id AAEDAw"):
        open_log(dirs)
    dirs.take_offline("t", 0)
    assert list(dirs.not_opened()) == []
    dirs.close()
    assert dirs.strays == []
    metadata.write_text(correct)
    assert open_log(opened_dirs(tmp_path)).log_end_offset == 1


def test_a_wrong_topic_id_of_an_empty_log_is_set_aside(tmp_path: Path) -> None:
    dirs = opened_dirs(tmp_path)
    open_log(dirs)
    dirs.close()
    dirs = opened_dirs(tmp_path)
    assert open_log(dirs, topic_id=OTHER_ID).topic_id == OTHER_ID
    assert len(dirs.strays) == 1


def test_stray_directory_is_renamed_and_kept(tmp_path: Path) -> None:
    """L2: as in Kafka; the metadata may be wrong."""
    dirs = opened_dirs(tmp_path)
    append(open_log(dirs, "gone", 3), batch_of([b"v"]))
    dirs.close()
    dirs = opened_dirs(tmp_path)
    assert list(dirs.not_opened()) == [("gone", 3)]
    renamed = Path(dirs.rename_stray("gone", 3))
    assert renamed.name.startswith("gone-3.")
    assert renamed.name.endswith("-stray")
    dirs.close()
    for _ in range(2):
        dirs = opened_dirs(tmp_path)
        assert list(dirs.not_opened()) == []
        dirs.close()
    assert (renamed / f"{0:020d}.log").stat().st_size


def test_name_of_a_deleted_directory_fits_the_file_system() -> None:
    name = layout.deleted_dir_name("x" * 249, 12345, "0" * 32)
    assert len(name) == 255
    assert name.endswith(f"-12345.{'0' * 32}-delete")


def test_delete_records_removes_segments_below_the_new_start(tmp_path: Path) -> None:
    """L5, L6: whole segments only, never the active one; files are renamed first."""
    dirs = opened_dirs(tmp_path)
    log = open_log(dirs)
    for _ in range(6):
        append(log, batch_of([b"v" * 1000]))
    log.high_watermark = 5
    log.advance_log_start_offset(4)
    renamed = log.delete_segments_below(log.log_start_offset)
    assert [segment.base_offset for segment in log.segments] == [4, 5]
    assert all(path.endswith(".deleted") and Path(path).exists() for path in renamed)
    dirs.deletions.schedule(renamed, due=60.0)
    for path in dirs.deletions.take_due(60.0):
        dirs.deletions.remove(path)
    assert not list(Path(log.directory).glob("*.deleted"))
    assert [offset for offset, _ in values_from(log, 4)] == [4, 5]


def test_topics_that_were_deleted_long_ago_are_forgotten() -> None:
    """Else every topic that was ever deleted would be kept for as long as the broker runs."""
    deleted = DeletedTopics()
    at_start = [number.to_bytes(16, "big") for number in range(2 * RECENT)]
    deleted.add_all(at_start)
    assert len(deleted) == 2 * RECENT
    assert at_start[0] in deleted
    for number in range(2 * RECENT):
        deleted.add_recent([b"now" + number.to_bytes(13, "big")])
    assert len(deleted) == RECENT
    assert at_start[-1] not in deleted
    assert b"now" + (2 * RECENT - 1).to_bytes(13, "big") in deleted
