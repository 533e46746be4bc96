"""What brokers and controllers do to clients when they stop, die and come back: nothing acknowledged is lost."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException

from tests.cluster.asking import is_in_sync, leader
from tests.cluster.clusters import Cluster, cluster_of, wait_for
from tests.cluster.conftest import KINDS, WITH_MIXED
from tests.cluster.replicas import differences
from tests.cluster.work import Work, create_topic

LONG_SESSION = {"broker.session.timeout.ms": "600000"}
RATE = 200
"""Records a second of the writer."""
MORE = 60
"""Records that are acknowledged while something is broken."""
pytestmark = pytest.mark.timeout(300)
"""Each wait has a deadline of its own."""


def in_sync(cluster: Cluster, topic: str) -> None:
    """Wait until every partition has three replicas in sync."""
    wait_for(lambda: is_in_sync(cluster.bootstrap, topic, 3), f"three replicas of {topic} in sync")


def is_made(cluster: Cluster, topic: str) -> bool:
    """Create a topic, unless an earlier request has, whose answer was lost."""
    try:
        create_topic(cluster.bootstrap, topic)
    except KafkaException as error:
        return error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS
    return True


def same_bytes(cluster: Cluster, topic: str) -> None:
    """Wait until all replicas have the same bytes."""
    dirs = {broker: node.data_dir for broker, node in cluster.brokers.items()}
    wait_for(
        lambda: not differences(dirs, [topic]),
        lambda: f"replicas with the same bytes: {differences(dirs, [topic])}",
    )


@contextmanager
def checked_work(cluster: Cluster, tmp_path: Path, topic: str) -> Iterator[Work]:
    """Work on a new topic; at the end it goes on with all replicas, has lost nothing, and replicas are the same."""
    create_topic(cluster.bootstrap, topic)
    in_sync(cluster, topic)
    with Work(cluster, tmp_path / "histories", topic, rate=RATE, in_threads=True) as work:
        work.go_on(MORE)
        yield work
        in_sync(cluster, topic)
        work.go_on(MORE)
        assert work.finish() == []
    same_bytes(cluster, topic)


def test_a_killed_leader_loses_nothing_and_comes_back(
    cluster: Cluster, tmp_path: Path, topic_name: Callable[..., str]
) -> None:
    topic = topic_name()
    with checked_work(cluster, tmp_path, topic) as work:
        victim = cluster.brokers[leader(cluster.bootstrap, topic)]
        victim.kill9()
        work.go_on(MORE)
        victim.restart()


@pytest.mark.jvm
def test_a_broker_dies_and_comes_back_under_a_controller_of_kafka(tmp_path: Path, topic: str) -> None:
    """The same with three controllers, in processes and with Kafka's brokers, is `soak`."""
    cluster = Cluster(tmp_path / "cluster", kind="kafka", is_small=True)
    with cluster, checked_work(cluster, tmp_path, topic) as work:
        victim = cluster.brokers[leader(cluster.bootstrap, topic)]
        victim.kill9()
        work.go_on(MORE)
        victim.restart()


@pytest.mark.parametrize("kind", [*KINDS, WITH_MIXED[-1]])
def test_a_controlled_shutdown_fails_no_acknowledgement(tmp_path: Path, topic: str, kind: str) -> None:
    """Others lead at once: the session of the broker that stops would not end during the test."""
    with (
        cluster_of(kind, tmp_path / "cluster", LONG_SESSION) as cluster,
        checked_work(cluster, tmp_path, topic) as work,
    ):
        victim = cluster.brokers[leader(cluster.bootstrap, topic)]
        assert victim.stop() == 0
        work.go_on(MORE)
        victim.restart()


def test_the_brokers_go_on_without_a_controller_and_find_it_again(
    cluster: Cluster, tmp_path: Path, topic_name: Callable[..., str]
) -> None:
    topic = topic_name()
    with checked_work(cluster, tmp_path, topic) as work:
        active = cluster.quorum.active
        active.kill9()
        work.go_on(MORE)
        active.restart()
        other = topic_name("after")
        wait_for(lambda: is_made(cluster, other), "a topic after the controller has come back")
        victim = cluster.brokers[leader(cluster.bootstrap, topic)]
        victim.kill9()
        work.go_on(MORE)
        victim.restart()


def test_all_killed_at_once_lose_nothing(cluster: Cluster, tmp_path: Path, topic_name: Callable[..., str]) -> None:
    with checked_work(cluster, tmp_path, topic_name()) as work:
        work.go_on(2 * MORE)
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
