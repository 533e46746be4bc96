"""Log directories: lock, identity, clean shutdown marker, and content."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest

from barnabas.storage import layout
from barnabas.storage.damage import DamagedLog
from barnabas.storage.directories.checkpoints import CorruptCheckpoint
from barnabas.storage.directories.log_dirs import DataDirLocked, DataDirMismatch
from barnabas.storage.files import Files
from tests.support.cases import for_each
from tests.support.logs.dirs_driver import append_batches, log_dirs, open_log, opened_dirs
from tests.support.logs.log_driver import append, batch_of, values_from


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
    dirs = opened_dirs(tmp_path)
    dirs.close()
    with pytest.raises(DataDirMismatch, match=str(tmp_path)):
        log_dirs(tmp_path).open(node_id, cluster_id)
    log_dirs(tmp_path).open(1)


def test_locked_directory_is_refused_and_the_others_are_unlocked(tmp_path: Path) -> None:
    first = opened_dirs(tmp_path / "b")
    with pytest.raises(DataDirLocked, match="in use by another broker"):
        log_dirs(tmp_path / "a", tmp_path / "b").open(1)
    log_dirs(tmp_path / "a").open(1)
    first.release()
    log_dirs(tmp_path / "b").open(1)


def test_logs_and_their_offsets_survive_a_clean_stop(tmp_path: Path) -> None:
    dirs = opened_dirs(tmp_path)
    log = open_log(dirs)
    append_batches(log, 5)
    log.high_watermark = 5
    log.advance_log_start_offset(3)
    dirs.close()
    assert (tmp_path / layout.CLEAN_SHUTDOWN).read_text() == '{"version":0,"brokerEpoch":-1}'
    assert (tmp_path / layout.RECOVERY_POINT_CHECKPOINT).read_text() == "0\n1\nt 0 5\n"
    assert (tmp_path / layout.LOG_START_CHECKPOINT).read_text() == "0\n1\nt 0 3\n"
    assert (tmp_path / layout.REPLICATION_CHECKPOINT).read_text() == "0\n1\nt 0 5\n"
    dirs = opened_dirs(tmp_path)
    assert dirs.dirs[0].had_clean_shutdown
    assert not (tmp_path / layout.CLEAN_SHUTDOWN).exists(), "a crash from here on is an unclean stop"
    assert list(dirs.not_opened()) == [("t", 0)]
    log = open_log(dirs)
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (3, 5, 5)
    assert list(dirs.not_opened()) == []
    dirs.close()


def test_kill_leaves_no_marker_and_the_logs_are_recovered(tmp_path: Path) -> None:
    dirs = opened_dirs(tmp_path)
    log = open_log(dirs)
    append(log, batch_of([b"v"]))
    with Path(log.segments.active.stem + ".log").open("ab") as file:
        file.write(b"torn")
    dirs.release()
    dirs = opened_dirs(tmp_path)
    assert not dirs.dirs[0].had_clean_shutdown
    log = open_log(dirs)
    assert values_from(log, 0) == [(0, b"v")]
    append(log, batch_of([b"w"]))
    assert values_from(log, 0) == [(0, b"v"), (1, b"w")]


def test_unchanged_logs_are_not_written_at_a_clean_stop(tmp_path: Path) -> None:
    dirs = opened_dirs(tmp_path)
    append(open_log(dirs), batch_of([b"v"]))
    dirs.close()
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "t-0").iterdir()}
    dirs = opened_dirs(tmp_path)
    open_log(dirs)
    dirs.close()
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "t-0").iterdir()} == before


def test_failure_at_the_stop_leaves_no_marker_in_its_directory(tmp_path: Path) -> None:
    """Logs that could not be written are checked at the next start; the other directory stops cleanly."""
    dirs = opened_dirs(tmp_path / "a", tmp_path / "b")
    for partition in range(2):
        append(open_log(dirs, partition=partition), batch_of([b"v"]))
    (tmp_path / "a" / "t-0" / f"{0:020d}.index").mkdir()
    with pytest.raises(OSError, match="index"):
        dirs.close()
    again = opened_dirs(tmp_path / "a", tmp_path / "b")
    assert [log_dir.had_clean_shutdown for log_dir in again.dirs] == [False, True]
    assert values_from(open_log(again, partition=1), 0) == [(0, b"v")]


def test_new_logs_go_to_the_directory_with_the_fewest(tmp_path: Path) -> None:
    dirs = opened_dirs(tmp_path / "a", tmp_path / "b")
    for partition in range(4):
        open_log(dirs, partition=partition)
    assert sorted(path.name for path in (tmp_path / "a").glob("t-*")) == ["t-0", "t-2"]
    assert sorted(path.name for path in (tmp_path / "b").glob("t-*")) == ["t-1", "t-3"]
    dirs.close()
    dirs = opened_dirs(tmp_path / "a", tmp_path / "b")
    assert open_log(dirs, partition=3).directory == str(tmp_path / "b" / "t-3")


def test_logs_with_unsynced_closed_segments_are_listed(tmp_path: Path) -> None:
    dirs = opened_dirs(tmp_path)
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


@for_each("name", ["plain", "-0", "t-", "t-x", "t-0.0123-delete", "t-0-future", "t-٣"])
def test_other_directories_are_left_alone(tmp_path: Path, name: str) -> None:
    if not name.endswith("-delete"):
        (tmp_path / name).mkdir()
    dirs = opened_dirs(tmp_path)
    assert list(dirs.not_opened()) == []


def test_partition_metadata_is_kafkas_text(tmp_path: Path) -> None:
    dirs = opened_dirs(tmp_path)
    open_log(dirs)
    assert (tmp_path / "t-0" / "partition.metadata").read_text() == "version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"


def test_an_identity_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=one\n")
    with pytest.raises(CorruptCheckpoint, match=r"meta\.properties, line 2: node\.id is 'one'.*restore the file"):
        log_dirs(tmp_path).open(1)


def test_partitions_without_an_identity_get_no_new_one(tmp_path: Path) -> None:
    """Only the user can say whose they are: clients know the cluster by its id."""
    dirs = opened_dirs(tmp_path)
    open_log(dirs)
    dirs.close()
    (tmp_path / "meta.properties").unlink()
    with pytest.raises(DataDirMismatch, match=r"has partitions but no meta\.properties"):
        log_dirs(tmp_path).open(1)
    assert not (tmp_path / "meta.properties").exists()
    again = log_dirs(tmp_path)
    assert again.open(1, "given") == "given"
    again.close()


def test_a_new_directory_joins_the_cluster_of_the_others(tmp_path: Path) -> None:
    dirs = opened_dirs(tmp_path / "a")
    cluster_id = dirs.dirs[0].cluster_id
    dirs.close()
    both = log_dirs(tmp_path / "b", tmp_path / "a", ids=itertools.count(500))
    assert both.open(1) == cluster_id
    assert f"cluster.id={cluster_id}" in (tmp_path / "b" / "meta.properties").read_text()


def test_a_lost_directory_id_is_replaced_as_in_kafka(tmp_path: Path) -> None:
    dirs = opened_dirs(tmp_path)
    cluster_id = dirs.dirs[0].cluster_id
    dirs.close()
    (tmp_path / "meta.properties").write_text(f"version=1\nnode.id=1\ncluster.id={cluster_id}\n")
    again = log_dirs(tmp_path, ids=itertools.count(500))
    assert again.open(1) == cluster_id
    assert f"directory.id={again.dirs[0].directory_id}" in (tmp_path / "meta.properties").read_text()


def test_directories_that_disagree_are_refused(tmp_path: Path) -> None:
    opened_dirs(tmp_path / "a").close()
    identity = (tmp_path / "a" / "meta.properties").read_text()
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "meta.properties").write_text(identity)
    with pytest.raises(DataDirMismatch, match=r"a and .*b have the same directory\.id"):
        log_dirs(tmp_path / "a", tmp_path / "b").open(1)
    (tmp_path / "b" / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=other\n")
    with pytest.raises(DataDirMismatch, match=r"a \(cluster .*b \(cluster other\) belong to different clusters"):
        log_dirs(tmp_path / "a", tmp_path / "b").open(1)


def test_a_partition_on_another_file_system_is_not_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sync of the log directory's file system would not make its records durable."""
    dirs = opened_dirs(tmp_path)
    append_batches(open_log(dirs), 1)
    dirs.close()
    dirs = opened_dirs(tmp_path)
    monkeypatch.setattr(Files, "is_on_same_file_system", lambda _, path, other: path == other)
    with pytest.raises(DamagedLog, match="another file system"):
        open_log(dirs)
    monkeypatch.undo()
    assert open_log(dirs).log_end_offset == 1
    elsewhere = Path("/dev/shm") if Path("/dev/shm").is_dir() else tmp_path
    files = Files()
    assert files.is_on_same_file_system(str(tmp_path), str(tmp_path / "t-0"))
    assert files.is_on_same_file_system(str(tmp_path), str(elsewhere)) is (
        tmp_path.stat().st_dev == elsewhere.stat().st_dev
    )
