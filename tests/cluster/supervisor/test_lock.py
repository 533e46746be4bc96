"""The locks of a cluster's directory: the kernel, never a process id, says which process runs there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from barnabas.storage.files import Files
from barnabas.storage.layout import LOCK
from barnabas.supervise.lock import NODES, ClusterLock
from barnabas.supervise.plan import PlanError


def taken(directory: Path, patience_s: float = 0.0) -> tuple[ClusterLock, list[str]]:
    """The locks of a directory, and what was said meanwhile."""
    messages: list[str] = []
    lock = ClusterLock(str(directory))
    lock.take(patience_s, messages.append)
    return lock, messages


def test_one_has_the_directory_and_the_other_is_told_who(tmp_path: Path) -> None:
    first, messages = taken(tmp_path)
    with pytest.raises(PlanError, match=rf"runs already in .* \(process {os.getpid()}") as refused:
        taken(tmp_path)
    assert "\n" not in str(refused.value)
    first.release()
    taken(tmp_path)[0].release()
    assert messages == []


def test_the_pid_of_a_supervisor_that_has_ended_means_nothing(tmp_path: Path) -> None:
    """After a power failure another process has it: this one."""
    (tmp_path / LOCK).write_text(f"{os.getpid()}\n")
    taken(tmp_path)[0].release()


def test_nodes_of_a_supervisor_that_was_killed_are_waited_for(tmp_path: Path) -> None:
    killed, _ = taken(tmp_path)
    node = os.dup(killed._nodes)  # as a node inherits it
    killed.release()
    for name in ("broker-2", "broker-3", "other-1"):
        (tmp_path / name).mkdir()
    running = Files().lock(str(tmp_path / "broker-2" / LOCK))
    assert running is not None
    Files().open(str(tmp_path / "broker-3" / LOCK)).close()
    messages: list[str] = []
    with pytest.raises(PlanError, match=r"broker-2.* whose supervisor was killed, still run") as refused:
        ClusterLock(str(tmp_path)).take(0.0, messages.append)
    assert "broker-3" not in str(refused.value)
    assert len(messages) == 1
    running.close()
    os.close(node)
    taken(tmp_path)[0].release()


def test_a_broker_and_a_cluster_exclude_each_other(tmp_path: Path) -> None:
    broker = Files().lock(str(tmp_path / LOCK))
    assert broker is not None
    with pytest.raises(PlanError, match="a cluster or a broker runs already"):
        taken(tmp_path)
    broker.close()
    cluster, _ = taken(tmp_path)
    assert Files().lock(str(tmp_path / LOCK)) is None
    cluster.release()


def test_a_node_does_not_keep_the_supervisors_own_lock(tmp_path: Path) -> None:
    lock, _ = taken(tmp_path)
    (own,) = lock.descriptors()
    assert os.path.samestat(os.fstat(own), (tmp_path / LOCK).stat())
    assert not os.path.samestat(os.fstat(own), (tmp_path / NODES).stat())
    lock.release()
    assert lock.descriptors() == []
