"""`cluster.json`: written as a checkpoint is, and found again in the nodes' directories when it cannot be read."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from barnabas.supervise import control, recovery, state
from barnabas.supervise.members import Members
from barnabas.supervise.options import KAFKA, OURS, ClusterOptions
from barnabas.supervise.plan import PlanError
from barnabas.supervise.state import ClusterState
from tests.cluster.supervisor.states import CLUSTER_ID, a_state, identify
from tests.support.cases import for_each
from tests.support.disks.failing_files import FailingFiles

DAMAGED = [
    "",
    "{",
    "[]",
    "null",
    "{}",
    '{"nodes": 3}',
    '{"nodes": []}',
    '{"nodes": [1]}',
    '{"nodes": [{"node_id": 1}]}',
    "\ud800",
]


def members(directory: Path, controllers: str = OURS) -> Members:
    return Members(ClusterOptions(1, port=0, controllers=controllers), str(directory))


def test_it_is_synced_renamed_and_its_directory_is_synced(tmp_path: Path) -> None:
    directory = tmp_path / "c"
    directory.mkdir()
    files = FailingFiles()
    state.write(str(directory), a_state(directory), files)
    assert [(operation, Path(path).name) for operation, path in files.done] == [
        ("sync", "cluster.json.tmp"),
        ("rename", "cluster.json"),
        ("sync_dir", "c"),
    ]
    assert state.read(str(directory)) == a_state(directory)


@for_each("text", DAMAGED)
def test_what_it_held_is_found_in_the_directories_of_the_nodes(text: str, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path)
    identify(tmp_path / "controller-3000", 3000)
    identify(tmp_path / "broker-1", 1)
    (tmp_path / "broker-2").mkdir()  # it was never started
    (tmp_path / "notes-1").mkdir()
    file = tmp_path / state.FILE
    file.write_text(text, errors="surrogatepass")
    with pytest.raises(state.Unreadable, match="cannot be read"):
        state.read(str(tmp_path))
    assert members(tmp_path).state.cluster_id == CLUSTER_ID
    damaged = tmp_path / f"{state.FILE}.damaged"
    assert damaged.read_text(errors="surrogatepass") == text, "the damaged file is kept"


def test_a_file_that_is_missing_is_found_again_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A new cluster id would lock every node out of its directory."""
    identify(tmp_path / "controller-3001" / "logs", 3001)
    identify(tmp_path / "broker-1", 1)
    state = recovery.find_again(str(tmp_path))
    assert state is not None
    assert (state.cluster_id, state.controllers) == (CLUSTER_ID, KAFKA)
    assert [node.name for node in state.nodes] == ["broker 1", "controller 3001"]
    with pytest.raises(PlanError, match="made with --controllers kafka"):
        members(tmp_path)
    assert members(tmp_path, KAFKA).state.cluster_id == CLUSTER_ID
    stderr = capsys.readouterr().err
    assert f"is missing and is written again: broker 1, controller 3001 are of the cluster {CLUSTER_ID}" in stderr


def test_a_damaged_file_without_nodes_is_that_of_a_new_cluster(tmp_path: Path) -> None:
    (tmp_path / state.FILE).write_text("{")
    assert members(tmp_path).state.cluster_id
    assert (tmp_path / f"{state.FILE}.damaged").exists()


def test_what_contradicts_itself_is_one_sentence(tmp_path: Path) -> None:
    identify(tmp_path / "broker-1", 1)
    with pytest.raises(PlanError, match="no directory of a controller"):
        members(tmp_path)
    identify(tmp_path / "controller-3000", 3000, "another")
    with pytest.raises(PlanError, match=f"different clusters: broker-1 to {CLUSTER_ID}, controller-3000 to another"):
        members(tmp_path)
    for name in ("broker-1", "controller-3000"):
        (tmp_path / name / "meta.properties").write_text("version=1\n")
    with pytest.raises(PlanError, match=r"is not known: .*broker-1/meta\.properties has no node\.id"):
        members(tmp_path)


def test_a_file_that_the_disk_does_not_let_be_read_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / state.FILE).mkdir()
    with pytest.raises(PlanError, match=r"cluster\.json cannot be read: Is a directory"):
        members(tmp_path)
    assert (tmp_path / state.FILE).is_dir()


def test_nodes_are_where_the_file_is(tmp_path: Path) -> None:
    """A directory may be moved or copied: commands must not work with the files of the original."""
    state.write(str(tmp_path), a_state(Path("/elsewhere")))
    assert state.read(str(tmp_path)).nodes[0].directory == str(tmp_path / "broker-1")
    assert state.read(str(tmp_path)).nodes[0].log == str(tmp_path / "broker-1.log")


def test_a_pid_of_the_file_is_nobody(tmp_path: Path) -> None:
    """After a power failure other processes have the ids of supervisor and nodes: here this process."""
    written = a_state(tmp_path)
    written.nodes[0].pid, written.nodes[0].state = os.getpid(), "running"
    state.write(str(tmp_path), written)
    messages: list[str] = []
    known = control.look(str(tmp_path), messages.append)
    assert (known.nodes[0].pid, known.nodes[0].state) == (None, "died")
    assert messages == [f"the supervisor of {tmp_path} does not run any more: it was killed"]
    with pytest.raises(control.NotRunning, match="does not run"):
        control.ask(str(tmp_path), "stop", node=1)


def test_a_state_of_the_version_before_can_be_read(tmp_path: Path) -> None:
    values = {"cluster_id": CLUSTER_ID, "controllers": "ours", "pid": 7, "control": "/c/control", "nodes": []}
    (tmp_path / state.FILE).write_text(json.dumps(values))
    assert state.read(str(tmp_path)) == ClusterState(CLUSTER_ID, OURS, 7, "/c/control")


@for_each(
    ("controllers", "left", "is_refused"),
    [(OURS, [], True), (OURS, [3000], False), (KAFKA, [3000], True), (KAFKA, [3001, 3002], False)],
)
def test_partitions_without_the_metadata_of_the_controllers_are_left_alone(
    controllers: str, left: list[int], is_refused: bool, tmp_path: Path
) -> None:
    """With empty metadata every broker would set its partitions aside."""
    shutil.rmtree(tmp_path)
    identify(tmp_path / "broker-1", 1)
    for node_id in left:
        identify(tmp_path / f"controller-{node_id}" / ("logs" if controllers == KAFKA else ""), node_id)
    recovery.check_metadata(str(tmp_path), [3000])  # the first start was interrupted: nothing is lost
    (tmp_path / "broker-1" / "t-0").mkdir()
    ids = [3000] if controllers == OURS else [3000, 3001, 3002]
    if is_refused:
        with pytest.raises(PlanError, match=r"^broker-1 in .* has partitions, but the controllers that have their"):
            recovery.check_metadata(str(tmp_path), ids)
    else:
        recovery.check_metadata(str(tmp_path), ids)
