"""What brokers and controllers do to clients when they stop, die and come back: nothing acknowledged is lost."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException

from barnabas.client.admin.configs import SET, ConfigChange, alter_config
from tests.cluster.conftest import KINDS, WITH_MIXED
from tests.cluster.load.checked_work import MORE, checked_work, in_sync
from tests.cluster.load.work import create_topic
from tests.support.cluster.asking import client, leader, partitions
from tests.support.cluster.clusters import Cluster, cluster_of
from tests.support.waiting import ANY_ERROR, wait_for

LONG_SESSION = {"broker.session.timeout.ms": "600000"}
pytestmark = pytest.mark.timeout(300)
"""Each wait has a deadline of its own."""


def is_made(cluster: Cluster, topic: str) -> bool:
    """Create a topic, unless an earlier request has, whose answer was lost."""
    try:
        create_topic(cluster.bootstrap, topic)
    except KafkaException as error:
        return error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS
    return True


@contextmanager
def elr_that_ends(cluster: Cluster, topic: str, dead: int) -> Iterator[None]:
    """A topic whose partitions have an ELR while a broker is dead, and lose it; at the end all replicas are in sync.

    Clearing an ELR raises the partition epoch: a broker that does not count it has all proposals refused (R11, R17).
    """
    create_topic(cluster.bootstrap, topic, min_insync_replicas="3")
    in_sync(cluster, topic)
    yield
    others = ",".join(node.bootstrap for broker, node in cluster.brokers.items() if broker != dead)

    def is_without() -> bool:
        return all(len(partition.isr_nodes) == 2 for partition in partitions(others, topic).values())

    wait_for(is_without, f"an ISR of {topic} without the broker that was killed", errors=ANY_ERROR)
    with client(others) as asking:
        alter_config(asking, "topic", topic, [ConfigChange("min.insync.replicas", SET, "1")])


def test_a_killed_leader_loses_nothing_and_comes_back(
    cluster: Cluster, tmp_path: Path, topic_name: Callable[..., str]
) -> None:
    topic, other = topic_name(), topic_name("elr")
    with checked_work(cluster, tmp_path, topic) as work:
        dead = leader(cluster.bootstrap, topic)
        with elr_that_ends(cluster, other, dead):
            cluster.brokers[dead].kill9()
            work.go_on(MORE)
        cluster.brokers[dead].restart()
        in_sync(cluster, other)


@pytest.mark.jvm
def test_a_broker_dies_and_comes_back_under_a_controller_of_kafka(tmp_path: Path, topic: str) -> None:
    """The same with three controllers, in processes and with Kafka's brokers, is `soak`."""
    cluster = Cluster(tmp_path / "cluster", kind="kafka", is_small=True)
    with cluster, checked_work(cluster, tmp_path, topic) as work:
        dead = leader(cluster.bootstrap, topic)
        with elr_that_ends(cluster, f"{topic}-elr", dead):
            cluster.brokers[dead].kill9()
            work.go_on(MORE)
        cluster.brokers[dead].restart()
        in_sync(cluster, f"{topic}-elr")


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
        wait_for(lambda: is_made(cluster, other), "a topic after the controller has come back", errors=ANY_ERROR)
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
    """Also one that was moved away and back before a crash: its checkpoint names records. No error is logged."""
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
