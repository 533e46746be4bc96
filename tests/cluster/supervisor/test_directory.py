"""`serve` and `serve --brokers` refuse each other's directory, and leave it as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.storage.directories.log_dirs import DataDirMismatch
from barnabas.supervise import state
from barnabas.supervise.lock import take_directory
from barnabas.supervise.plan import PlanError
from tests.cluster.supervisor.states import a_state, identify
from tests.support.cases import for_each
from tests.support.logs.dirs_driver import append_batches, log_dirs, open_log, opened_dirs
from tests.support.memory.broker import MemoryBroker


def content(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*")}


def a_cluster(directory: Path, *, has_file: bool = True) -> Path:
    identify(directory / "controller-3000", 3000)
    identify(directory / "broker-1", 1)
    if has_file:
        state.write(str(directory), a_state(directory))
    return directory


@for_each("has_file", [True, False])
def test_a_broker_refuses_the_directory_of_a_cluster(has_file: bool, tmp_path: Path) -> None:
    """It set `broker-1` aside as a stray of a topic named `broker`, and the cluster's data was out of sight."""
    directory = a_cluster(tmp_path / str(has_file), has_file=has_file)
    before = content(directory)
    with pytest.raises(DataDirMismatch, match=r"has the data of a cluster \(\S+\), not of one broker") as refused:
        log_dirs(directory).open(1)
    assert "\n" not in str(refused.value)
    assert content(directory) == before


def test_a_node_of_the_cluster_is_a_log_directory(tmp_path: Path) -> None:
    directory = a_cluster(tmp_path / "c")
    log_dirs(directory / "broker-1").open(1)


def test_one_broker_refuses_the_directory_of_a_node(tmp_path: Path) -> None:
    """The only broker of a cluster: its copy of the metadata names no other, and the broker began to write to it."""
    directory = a_cluster(tmp_path / "c")
    before = content(directory)
    with pytest.raises(DataDirMismatch, match=r"broker-1 is of a node of the cluster in \S+, not of one broker"):
        MemoryBroker(directory / "broker-1")
    assert content(directory) == before


def test_a_cluster_refuses_the_directory_of_a_broker(tmp_path: Path) -> None:
    dirs = opened_dirs(tmp_path)
    append_batches(open_log(dirs), 1)
    dirs.close()
    before = content(tmp_path)
    with pytest.raises(PlanError, match=r"has the data of one broker \(meta\.properties\), not of a cluster"):
        take_directory(str(tmp_path), 0.0)
    (tmp_path / "meta.properties").unlink()
    with pytest.raises(PlanError, match=r"has the data of one broker \(t-0\), not of a cluster"):
        take_directory(str(tmp_path), 0.0)
    assert content(tmp_path) == before - {"meta.properties"}


def test_a_directory_with_both_is_refused_by_both(tmp_path: Path) -> None:
    """An earlier version made such directories: each says what to move where."""
    directory = a_cluster(tmp_path / "mix")
    identify(tmp_path / "one", 1)
    (tmp_path / "one" / "meta.properties").rename(directory / "meta.properties")
    with pytest.raises(DataDirMismatch, match=r"cluster\.json and the directories of the cluster's nodes"):
        log_dirs(directory).open(1)
    with pytest.raises(PlanError, match=r"cluster\.json and the directories of the nodes"):
        take_directory(str(directory), 0.0)


def test_a_new_directory_and_one_with_files_of_others_are_taken(tmp_path: Path) -> None:
    take_directory(str(tmp_path / "a" / "b"), 0.0).release()
    photos = tmp_path / "c" / "photos-2024"
    photos.mkdir(parents=True)
    (photos / "cat.jpg").touch()
    (tmp_path / "c" / "empty-1").mkdir()
    take_directory(str(tmp_path / "c"), 0.0).release()
