"""What brokers and controllers do to clients when they stop, die and come back: nothing acknowledged is lost."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cluster.asking import is_in_sync, leader
from tests.cluster.clusters import Cluster, wait_for
from tests.cluster.conftest import WITH_MIXED
from tests.cluster.replicas import differences
from tests.cluster.work import Work, create_topic

SESSION_S = 3.0
pytestmark = pytest.mark.parametrize("cluster", WITH_MIXED, indirect=True, scope="session")


def in_sync(cluster: Cluster, topic: str) -> None:
    """Wait until every partition has three replicas in sync."""
    wait_for(lambda: is_in_sync(cluster.bootstrap, topic, 3), f"three replicas of {topic} in sync")


def same_bytes(cluster: Cluster, topic: str) -> None:
    """Wait until all replicas have the same bytes."""
    dirs = {broker: node.data_dir for broker, node in cluster.brokers.items()}
    try:
        wait_for(lambda: not differences(dirs, [topic]), "replicas with the same bytes", 10.0)
    except AssertionError:
        raise AssertionError(differences(dirs, [topic])) from None


@contextmanager
def checked_work(cluster: Cluster, tmp_path: Path, topic: str) -> Iterator[Work]:
    """Work on a new topic; at the end it goes on with all replicas, has lost nothing, and replicas are the same."""
    create_topic(cluster.bootstrap, topic)
    in_sync(cluster, topic)
    with Work(cluster, tmp_path / "histories", topic) as work:
        work.go_on()
        yield work
        in_sync(cluster, topic)
        work.go_on()
        assert work.finish() == []
    same_bytes(cluster, topic)


def test_a_killed_leader_loses_nothing_and_comes_back(
    cluster: Cluster, tmp_path: Path, topic_name: Callable[..., str]
) -> None:
    topic = topic_name()
    with checked_work(cluster, tmp_path, topic) as work:
        victim = cluster.brokers[leader(cluster.bootstrap, topic)]
        victim.kill9()
        work.go_on(300)
        victim.restart()


def test_a_controlled_shutdown_fails_no_acknowledgement(
    cluster: Cluster, tmp_path: Path, topic_name: Callable[..., str]
) -> None:
    topic = topic_name()
    with checked_work(cluster, tmp_path, topic) as work:
        victim = cluster.brokers[leader(cluster.bootstrap, topic)]
        assert victim.stop() == 0
        work.go_on(300, patience_s=SESSION_S)
        victim.restart()


def test_the_brokers_go_on_without_a_controller_and_find_it_again(
    cluster: Cluster, tmp_path: Path, topic_name: Callable[..., str]
) -> None:
    topic = topic_name()
    with checked_work(cluster, tmp_path, topic) as work:
        active = cluster.quorum.active
        active.kill9()
        work.go_on(300)
        active.restart()
        other = topic_name("after")
        wait_for(lambda: create_topic(cluster.bootstrap, other) or True, "a topic after the controller has come back")
        victim = cluster.brokers[leader(cluster.bootstrap, topic)]
        victim.kill9()
        work.go_on(300)
        victim.restart()


def test_all_killed_at_once_lose_nothing(cluster: Cluster, tmp_path: Path, topic_name: Callable[..., str]) -> None:
    with checked_work(cluster, tmp_path, topic_name()) as work:
        work.go_on(500)
        cluster.kill_all()
        cluster.start()


def test_a_replica_whose_directory_is_lost_is_filled_again(
    cluster: Cluster, tmp_path: Path, topic_name: Callable[..., str]
) -> None:
    """Also one that was moved away and back before a crash: its checkpoint tells of records. No error is logged."""
    topic = topic_name()
    with checked_work(cluster, tmp_path, topic):
        node = cluster.brokers[2]
        assert node.stop() == 0
        shutil.rmtree(node.data_dir / f"{topic}-0")
        logged = len(node.log())
        node.restart()
    log = node.log()[logged:]
    assert f"Partition {topic}-0 is filled from its leader again" in log
    assert "ERROR" not in log
