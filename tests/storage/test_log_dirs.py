"""Log directories: lock, identity, clean shutdown marker, checkpoints, deletion, directories of other topics."""

from __future__ import annotations

import itertools
import os
import shutil
from pathlib import Path

import pytest

from barnabas.storage import layout
from barnabas.storage.checkpoints import CorruptCheckpoint
from barnabas.storage.damage import DamagedLog
from barnabas.storage.files import Files, UnsyncedFiles
from barnabas.storage.log import Log
from barnabas.storage.log_dirs import DataDirLocked, DataDirMismatch, LogDir, LogDirs
from tests.storage.log_driver import TOPIC_ID, append, batch_of, small_config, values_from

CHECKPOINTS = (layout.RECOVERY_POINT_CHECKPOINT, layout.LOG_START_CHECKPOINT, layout.REPLICATION_CHECKPOINT)
OTHER_ID = bytes(reversed(range(16)))


def log_dirs(*paths: Path, ids: itertools.count[int] | None = None) -> LogDirs:
    numbers = ids or itertools.count(1)
    return LogDirs(UnsyncedFiles(), [str(path) for path in paths], lambda: next(numbers).to_bytes(16, "big"))


def open_log(dirs: LogDirs, topic: str = "t", partition: int = 0, topic_id: bytes = TOPIC_ID, now: float = 0.0) -> Log:
    return dirs.open_log(
        topic, partition, small_config(file_delete_delay_ms=60_000), topic_id=topic_id, now_ms=10_000, now=now
    )


def test_a_data_directory_that_is_made_admits_only_its_owner(tmp_path: Path) -> None:
    umask = os.umask(0)
    try:
        Files().mkdirs(str(tmp_path / "data"))
    finally:
        os.umask(umask)
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700


def test_identity_is_made_once_and_kept(tmp_path: Path) -> None:
    dirs = log_dirs(tmp_path)
    cluster_id = dirs.open(1)
    directory_id = dirs.dirs[0].directory_id
    dirs.close()
    lines = (tmp_path / "meta.properties").read_text().splitlines()
    assert lines == ["version=1", "node.id=1", f"cluster.id={cluster_id}", f"directory.id={directory_id}"]
    again = log_dirs(tmp_path, ids=itertools.count(500))
    assert again.open(1) == cluster_id
    assert again.dirs[0].directory_id == directory_id
    again.release()


@pytest.mark.parametrize(("node_id", "cluster_id"), [(2, ""), (1, "another-cluster")])
def test_directory_of_another_node_or_cluster_is_refused(tmp_path: Path, node_id: int, cluster_id: str) -> None:
    dirs = log_dirs(tmp_path)
    dirs.open(1)
    dirs.close()
    with pytest.raises(DataDirMismatch, match=str(tmp_path)):
        log_dirs(tmp_path).open(node_id, cluster_id)
    log_dirs(tmp_path).open(1)


def test_locked_directory_is_refused_and_the_others_are_unlocked(tmp_path: Path) -> None:
    first = log_dirs(tmp_path / "b")
    first.open(1)
    with pytest.raises(DataDirLocked, match="in use by another broker"):
        log_dirs(tmp_path / "a", tmp_path / "b").open(1)
    log_dirs(tmp_path / "a").open(1)
    first.release()
    log_dirs(tmp_path / "b").open(1)


def test_logs_and_their_offsets_survive_a_clean_stop(tmp_path: Path) -> None:
    dirs = log_dirs(tmp_path)
    dirs.open(1)
    log = open_log(dirs)
    for _ in range(5):
        append(log, batch_of([b"v"]))
    log.high_watermark = 5
    log.advance_log_start_offset(3)
    dirs.close()
    assert (tmp_path / layout.CLEAN_SHUTDOWN).read_text() == '{"version":0,"brokerEpoch":-1}'
    assert (tmp_path / layout.RECOVERY_POINT_CHECKPOINT).read_text() == "0\n1\nt 0 5\n"
    assert (tmp_path / layout.LOG_START_CHECKPOINT).read_text() == "0\n1\nt 0 3\n"
    assert (tmp_path / layout.REPLICATION_CHECKPOINT).read_text() == "0\n1\nt 0 5\n"
    dirs = log_dirs(tmp_path)
    dirs.open(1)
    assert dirs.dirs[0].had_clean_shutdown
    assert not (tmp_path / layout.CLEAN_SHUTDOWN).exists(), "a crash from here on is an unclean stop"
    assert list(dirs.found()) == [("t", 0)]
    log = open_log(dirs)
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (3, 5, 5)
    assert list(dirs.found()) == []
    dirs.close()


def test_kill_leaves_no_marker_and_the_logs_are_recovered(tmp_path: Path) -> None:
    dirs = log_dirs(tmp_path)
    dirs.open(1)
    log = open_log(dirs)
    append(log, batch_of([b"v"]))
    with Path(log.segments.active.stem + ".log").open("ab") as file:
        file.write(b"torn")
    dirs.release()
    dirs = log_dirs(tmp_path)
    dirs.open(1)
    assert not dirs.dirs[0].had_clean_shutdown
    log = open_log(dirs)
    assert values_from(log, 0) == [(0, b"v")]
    append(log, batch_of([b"w"]))
    assert values_from(log, 0) == [(0, b"v"), (1, b"w")]


def test_unchanged_logs_are_not_written_at_a_clean_stop(tmp_path: Path) -> None:
    dirs = log_dirs(tmp_path)
    dirs.open(1)
    append(open_log(dirs), batch_of([b"v"]))
    dirs.close()
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "t-0").iterdir()}
    dirs = log_dirs(tmp_path)
    dirs.open(1)
    open_log(dirs)
    dirs.close()
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "t-0").iterdir()} == before


def test_failure_at_the_stop_leaves_no_marker_in_its_directory(tmp_path: Path) -> None:
    """Logs that could not be written are checked at the next start; the other directory stops cleanly."""
    dirs = log_dirs(tmp_path / "a", tmp_path / "b")
    dirs.open(1)
    for partition in range(2):
        append(open_log(dirs, partition=partition), batch_of([b"v"]))
    (tmp_path / "a" / "t-0" / f"{0:020d}.index").mkdir()
    with pytest.raises(OSError, match="index"):
        dirs.close()
    again = log_dirs(tmp_path / "a", tmp_path / "b")
    again.open(1)
    assert [log_dir.had_clean_shutdown for log_dir in again.dirs] == [False, True]
    assert values_from(open_log(again, partition=1), 0) == [(0, b"v")]


def test_deleted_log_is_renamed_at_once_and_removed_later(tmp_path: Path) -> None:
    """L5: file.delete.delay.ms; a slice that a reader holds stays readable."""
    dirs = log_dirs(tmp_path)
    dirs.open(1)
    log = open_log(dirs)
    append(log, batch_of([b"v"]))
    read = log.read(0, 1000, limit_offset=1, min_one_batch=True)
    assert read.slice is not None
    dirs.delete_log("t", 0, now=100.0)
    [renamed] = [path for path in tmp_path.iterdir() if path.is_dir()]
    assert renamed.name.startswith("t-0.")
    assert renamed.name.endswith("-delete")
    assert len(renamed.name) == len("t-0.") + 32 + len("-delete")
    assert dirs.deletions.next_due() == 160.0
    assert dirs.deletions.take_due(159.9) == []
    [due] = dirs.deletions.take_due(160.0)
    dirs.deletions.remove(due)
    assert not renamed.exists()
    assert dirs.deletions.next_due() is None
    assert len(read.slice.read()) == len(read.slice)
    assert open_log(dirs).log_end_offset == 0


def test_deletion_that_a_crash_interrupted_is_finished_at_the_start(tmp_path: Path) -> None:
    dirs = log_dirs(tmp_path)
    dirs.open(1)
    open_log(dirs)
    dirs.delete_log("t", 0, now=0.0)
    dirs.release()
    log_dirs(tmp_path).open(1)
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]


def test_topic_made_again_never_shows_the_data_of_the_old_one(tmp_path: Path) -> None:
    """R22: the directory of another topic id is renamed as a stray."""
    dirs = log_dirs(tmp_path)
    dirs.open(1)
    append(open_log(dirs), batch_of([b"old"]))
    dirs.close()
    dirs = log_dirs(tmp_path)
    dirs.open(1)
    log = open_log(dirs, topic_id=OTHER_ID)
    assert (log.log_end_offset, log.topic_id) == (0, OTHER_ID)
    assert [Path(path).name[:4] for path in dirs.strays] == ["t-0."]
    dirs.close()


def test_log_start_is_checkpointed_even_where_a_segment_starts(tmp_path: Path) -> None:
    """L5: a power failure may restore deleted segments below it, since their renames are not synced."""
    dirs = log_dirs(tmp_path)
    dirs.open(1)
    log = open_log(dirs)
    for _ in range(3):
        append(log, batch_of([b"v" * 1000]))
    log.high_watermark = 3
    log.advance_log_start_offset(2)
    log.delete_segments_below(2)
    assert log.segments[0].base_offset == 2
    dirs.write_log_starts()
    assert (tmp_path / layout.LOG_START_CHECKPOINT).read_text() == "0\n1\nt 0 2\n"


def test_checkpoints_of_a_deleted_topic_do_not_apply_to_a_new_one_of_the_same_name(tmp_path: Path) -> None:
    """R22, L2: otherwise recovery would expect records that the new log never had."""
    dirs = log_dirs(tmp_path)
    dirs.open(1)
    log = open_log(dirs)
    for _ in range(5):
        append(log, batch_of([b"v"]))
    log.flush()
    log.high_watermark = 5
    log.advance_log_start_offset(3)
    dirs.write_recovery_points()
    dirs.write_log_starts()
    dirs.delete_log("t", 0, now=0.0)
    append(open_log(dirs, topic_id=OTHER_ID), batch_of([b"new"]))
    dirs.release()
    dirs = log_dirs(tmp_path)
    dirs.open(1)
    assert values_from(open_log(dirs, topic_id=OTHER_ID), 0) == [(0, b"new")]


@pytest.mark.parametrize("name", [layout.RECOVERY_POINT_CHECKPOINT, layout.LOG_START_CHECKPOINT])
def test_checkpoint_written_late_does_not_contain_the_deleted_topic(tmp_path: Path, name: str) -> None:
    """R22, L2: a write planned before the deletion would look like data lost from the new topic."""
    dirs = log_dirs(tmp_path)
    dirs.open(1)
    log = open_log(dirs)
    for _ in range(5):
        append(log, batch_of([b"v"]))
    log.flush()
    log.high_watermark = 5
    log.advance_log_start_offset(3)
    late = [write for _, write in dirs.plan_checkpoint(name)]
    dirs.delete_log("t", 0, now=0.0)
    append(open_log(dirs, topic_id=OTHER_ID), batch_of([b"new"]))
    for write in late:
        write()
    dirs.release()
    dirs = log_dirs(tmp_path)
    dirs.open(1)
    assert values_from(open_log(dirs, topic_id=OTHER_ID), 0) == [(0, b"new")]


def test_late_checkpoint_does_not_undo_a_later_one_that_had_nothing_to_write(tmp_path: Path) -> None:
    log_dir = LogDir(UnsyncedFiles(), str(tmp_path))
    key = ("t", 0)
    log_dir.plan_write(layout.LOG_START_CHECKPOINT, {key: 5})()
    late = log_dir.plan_write(layout.LOG_START_CHECKPOINT, {key: 4})
    log_dir.plan_write(layout.LOG_START_CHECKPOINT, {key: 5})()
    late()
    assert (tmp_path / layout.LOG_START_CHECKPOINT).read_text() == "0\n1\nt 0 5\n"


def test_stray_directory_is_renamed_and_kept(tmp_path: Path) -> None:
    """L2: as in Kafka; the metadata may be wrong."""
    dirs = log_dirs(tmp_path)
    dirs.open(1)
    append(open_log(dirs, "gone", 3), batch_of([b"v"]))
    dirs.close()
    dirs = log_dirs(tmp_path)
    dirs.open(1)
    assert list(dirs.found()) == [("gone", 3)]
    renamed = Path(dirs.rename_stray("gone", 3))
    assert renamed.name.startswith("gone-3.")
    assert renamed.name.endswith("-stray")
    dirs.close()
    for _ in range(2):
        dirs = log_dirs(tmp_path)
        dirs.open(1)
        assert list(dirs.found()) == []
        dirs.close()
    assert (renamed / f"{0:020d}.log").stat().st_size


def test_new_logs_go_to_the_directory_with_the_fewest(tmp_path: Path) -> None:
    dirs = log_dirs(tmp_path / "a", tmp_path / "b")
    dirs.open(1)
    for partition in range(4):
        open_log(dirs, partition=partition)
    assert sorted(path.name for path in (tmp_path / "a").glob("t-*")) == ["t-0", "t-2"]
    assert sorted(path.name for path in (tmp_path / "b").glob("t-*")) == ["t-1", "t-3"]
    dirs.close()
    dirs = log_dirs(tmp_path / "a", tmp_path / "b")
    dirs.open(1)
    assert open_log(dirs, partition=3).directory == str(tmp_path / "b" / "t-3")


def test_logs_with_unsynced_closed_segments_are_listed(tmp_path: Path) -> None:
    dirs = log_dirs(tmp_path)
    dirs.open(1)
    log = open_log(dirs)
    append(log, batch_of([b"v" * 1000]))
    assert dirs.logs_with_rolled_segments() == []
    append(log, batch_of([b"v" * 1000]))
    assert dirs.logs_with_rolled_segments() == [log]
    job = log.start_flush(log.segments.active.base_offset)
    assert job is not None
    append(log, batch_of([b"v"]))
    job.run()
    log.finish_flush(job)
    assert (log.recovery_point, log.unflushed) == (1, 2)
    assert dirs.logs_with_rolled_segments() == []


@pytest.mark.parametrize("name", ["plain", "-0", "t-", "t-x", "t-0.0123-delete", "t-0-future", "t-٣"])
def test_other_directories_are_left_alone(tmp_path: Path, name: str) -> None:
    if not name.endswith("-delete"):
        (tmp_path / name).mkdir()
    dirs = log_dirs(tmp_path)
    dirs.open(1)
    assert list(dirs.found()) == []


def test_name_of_a_deleted_directory_fits_the_file_system() -> None:
    name = layout.deleted_dir_name("x" * 249, 12345, "0" * 32)
    assert len(name) == 255
    assert name.endswith(f"-12345.{'0' * 32}-delete")


def test_partition_metadata_is_kafkas_text(tmp_path: Path) -> None:
    dirs = log_dirs(tmp_path)
    dirs.open(1)
    open_log(dirs)
    assert (tmp_path / "t-0" / "partition.metadata").read_text() == "version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"


def test_delete_records_removes_segments_below_the_new_start(tmp_path: Path) -> None:
    """L5, L6: whole segments only, never the active one; files are renamed first."""
    dirs = log_dirs(tmp_path)
    dirs.open(1)
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


def test_clean_shutdown_marker_applies_only_to_logs_in_the_checkpoint(tmp_path: Path) -> None:
    """Kafka does not close its metadata log when it stops: its index is then 10 MB of zeros."""
    dirs = log_dirs(tmp_path)
    dirs.open(1)
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
    again = log_dirs(tmp_path)
    again.open(1)
    assert again.dirs[0].had_clean_shutdown
    log = open_log(again)
    assert log.log_end_offset == 20
    assert len(log.segments.active.offset_index) == entries
    again.close()


def test_an_identity_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=one\n")
    with pytest.raises(CorruptCheckpoint, match=r"node\.id 'one'"):
        log_dirs(tmp_path).open(1)


def test_checkpoint_that_comes_late_does_not_undo_a_later_one(tmp_path: Path) -> None:
    """They are written in threads, while creation or truncation of a log writes one directly."""
    dirs = log_dirs(tmp_path)
    dirs.open(1)
    log = open_log(dirs)
    append(log, batch_of([b"v"] * 5))
    log.flush()
    ((_, late),) = dirs.plan_checkpoint(layout.RECOVERY_POINT_CHECKPOINT)
    dirs.truncate_log("t", 0, 0)
    late()
    assert (tmp_path / layout.RECOVERY_POINT_CHECKPOINT).read_text() == "0\n1\nt 0 0\n"
    dirs.release()


def test_new_log_with_the_name_of_a_deleted_one_is_not_damaged(tmp_path: Path) -> None:
    """L2: the deleted log is removed from the checkpoint before the new one is made."""
    dirs = log_dirs(tmp_path)
    dirs.open(1)
    append(open_log(dirs), batch_of([b"v"] * 5))
    dirs.logs["t", 0].flush()
    dirs.write_recovery_points()
    dirs.delete_log("t", 0, now=0.0)
    append(open_log(dirs, topic_id=OTHER_ID), batch_of([b"new"]))
    dirs.release()
    again = log_dirs(tmp_path)
    again.open(1)
    assert values_from(open_log(again, topic_id=OTHER_ID), 0) == [(0, b"new")]
    again.release()


def test_truncated_log_is_not_reported_as_damaged(tmp_path: Path) -> None:
    """L2: the recovery point in the checkpoint is lowered before the truncation."""
    dirs = log_dirs(tmp_path)
    dirs.open(1)
    log = open_log(dirs)
    for _ in range(5):
        append(log, batch_of([b"v"]))
    log.flush()
    dirs.write_recovery_points()
    assert dirs.truncate_log("t", 0, 2)
    assert not dirs.truncate_log("t", 0, 2)
    dirs.release()
    again = log_dirs(tmp_path)
    again.open(1)
    assert open_log(again).log_end_offset == 2
    again.release()


@pytest.mark.parametrize("offset", [2, 5])
def test_truncated_segment_is_not_trusted_when_a_new_one_starts_at_its_end(tmp_path: Path, offset: int) -> None:
    """L1, L4: its indexes were truncated without a sync, so a crash may restore entries for truncated records."""
    dirs = log_dirs(tmp_path)
    dirs.open(1)
    log = open_log(dirs)
    for _ in range(5):
        append(log, batch_of([b"v"]))
    log.flush()
    append(log, batch_of([b"not synced"]))
    assert dirs.truncate_log("t", 0, offset)
    log.roll(0.0)
    assert log.segments.active.base_offset == offset
    assert (tmp_path / layout.RECOVERY_POINT_CHECKPOINT).read_text() == f"0\n1\nt 0 {offset - 1}\n"
    dirs.release()


def test_checkpoints_of_logs_that_are_not_open_yet_stay(tmp_path: Path) -> None:
    """The metadata log is opened first and may write checkpoints before the other logs are opened."""
    dirs = log_dirs(tmp_path)
    dirs.open(1)
    for topic in ("t", "u"):
        log = open_log(dirs, topic)
        append(log, batch_of([b"v"] * 3))
        append(log, batch_of([b"v"] * 3))
        log.high_watermark = 6
        log.advance_log_start_offset(3)
    dirs.close()
    before = {name: (tmp_path / name).read_text() for name in CHECKPOINTS}
    again = log_dirs(tmp_path)
    again.open(1)
    open_log(again, "metadata")
    again.write_recovery_points()
    again.write_log_starts()
    again.write_high_watermarks()
    for name, text in before.items():
        assert set(text.splitlines()[2:]) <= set((tmp_path / name).read_text().splitlines())
    again.release()


def test_missing_directory_is_damage(tmp_path: Path) -> None:
    """L2: it was removed, or its disk is not mounted; an empty log in its place would hide that."""
    dirs = log_dirs(tmp_path)
    dirs.open(1)
    for topic in ("t", "empty"):
        open_log(dirs, topic)
    append(dirs.logs["t", 0], batch_of([b"v"] * 5))
    dirs.close()
    shutil.rmtree(tmp_path / "t-0")
    shutil.rmtree(tmp_path / "empty-0")
    for _ in range(2):
        again = log_dirs(tmp_path)
        again.open(1)
        assert open_log(again, "empty").log_end_offset == 0
        with pytest.raises(DamagedLog, match="t-0 is missing, but everything up to offset 5 was synced"):
            open_log(again)
        again.take_offline("t", 0)
        again.forget_missing()
        again.close()
    (tmp_path / "t-0").mkdir()
    again = log_dirs(tmp_path)
    again.open(1)
    with pytest.raises(DamagedLog, match="ends at offset 0"):
        open_log(again)
    again.release()


def test_deleted_log_is_not_reported_as_missing(tmp_path: Path) -> None:
    """The crash came before the checkpoint was written; the next start removes the log from the checkpoint."""
    dirs = log_dirs(tmp_path)
    dirs.open(1)
    append(open_log(dirs), batch_of([b"v"] * 5))
    dirs.logs["t", 0].flush()
    dirs.write_recovery_points()
    dirs.delete_log("t", 0, now=0.0)
    dirs.release()
    again = log_dirs(tmp_path)
    again.open(1)
    again.forget_missing()
    again.release()
    assert (tmp_path / layout.RECOVERY_POINT_CHECKPOINT).read_text() == "0\n0\n"
    again = log_dirs(tmp_path)
    again.open(1)
    assert open_log(again).log_end_offset == 0
    again.release()
