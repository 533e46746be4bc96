"""R26: trouble of one broker's disk moves leaders and coordinators to others; the broker joins again by itself.

Each fault is planted in the files of a running broker, under our controller and under one of Apache Kafka's.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.broker.test_disk_failures import FaultyFiles
from tests.cluster.asking import is_in_sync, leader, partitions
from tests.cluster.clusters import Cluster, wait_for
from tests.cluster.in_process import LocalNode
from tests.cluster.quorums import IN_PROCESS
from tests.cluster.test_failover import MORE, checked_work, in_sync

pytestmark = pytest.mark.timeout(300)
MOVED_S = 5.0
"""How long a partition may be without a leader that serves it, seconds."""
MAGIC = 16
"""The position of the magic byte in a batch."""


class Disk(FaultyFiles):
    """A broker's disk; full as long as writes fail with ENOSPC."""

    def volume(self, path: str) -> tuple[int, int]:
        size, free = super().volume(path)
        return size, 0 if self.errors.get("write") == errno.ENOSPC else free


@pytest.fixture(scope="module", params=[IN_PROCESS, pytest.param("kafka", marks=pytest.mark.jvm)])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three brokers in this process."""
    folder = tmp_path_factory.mktemp("cluster")
    made = Cluster(folder, kind=request.param, is_small=request.param == "kafka")
    for node in made.brokers.values():
        disk = Disk()
        assert isinstance(node, LocalNode)
        node.make_files = lambda disk=disk: disk
        node.disk = disk  # type: ignore[attr-defined]
    with made:
        yield made


def disk_of(cluster: Cluster, broker: int) -> Disk:
    disk = cluster.brokers[broker].disk  # type: ignore[attr-defined]
    assert isinstance(disk, Disk)
    return disk


def other_leads(cluster: Cluster, topic: str, index: int, than: int) -> int:
    """Wait until another broker leads a partition, as all brokers know; which one."""

    def moved() -> int:
        leaders = {leader(node.bootstrap, topic, index) for node in cluster.brokers.values()}
        return leaders.pop() if len(leaders) == 1 and not leaders & {than, -1} else 0

    return wait_for(moved, f"another leader of {topic}-{index} than {than}", MOVED_S)


def read_once(cluster: Cluster, topic: str, index: int, offset: int = 0) -> None:
    """Have a consumer read from an offset, until it has something."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "reader", "log_level": 0})
    consumer.assign([TopicPartition(topic, index, offset)])
    try:
        wait_for(lambda: [one for one in consumer.consume(1, 0.2) if one.error() is None], "a record", 20.0)
    finally:
        consumer.close()


def damage(data_dir: Path, partition: str) -> None:
    """Overwrite the magic of a log's first batch."""
    with next(iter(sorted((data_dir / partition).glob("*.log")))).open("r+b") as log:
        os.pwrite(log.fileno(), b"\x7f", MAGIC)


def test_damage_that_a_read_finds_moves_the_leader_and_the_replica_is_filled_again(
    made: Cluster, tmp_path: Path, topic: str
) -> None:
    with checked_work(made, tmp_path, topic) as work:
        victim = leader(made.bootstrap, topic, 0)
        node = made.brokers[victim]
        damage(node.data_dir, f"{topic}-0")
        began = time.monotonic()
        read_once(made, topic, 0)
        other_leads(made, topic, 0, victim)
        assert time.monotonic() - began < MOVED_S
        work.go_on(MORE)
        in_sync(made, topic)
    assert f"The replica {topic}-0 of this broker is damaged" in node.log()
    assert f"Partition {topic}-0 is filled from its leader again" in node.log()


def test_a_full_disk_moves_leaders_and_coordinators_until_there_is_space(
    made: Cluster, tmp_path: Path, topic: str
) -> None:
    with checked_work(made, tmp_path, topic) as work:
        victim = leader(made.bootstrap, topic, 0)
        disk, node = disk_of(made, victim), made.brokers[victim]
        disk.errors_in = str(node.data_dir)
        disk.errors["write"] = errno.ENOSPC
        began = time.monotonic()
        other_leads(made, topic, 0, victim)
        assert time.monotonic() - began < MOVED_S
        work.go_on(3 * MORE)
        assert all(victim not in one.isr_nodes for one in partitions(made.bootstrap, topic).values())
        del disk.errors["write"]
        wait_for(lambda: is_in_sync(made.bootstrap, topic, 3), "three replicas in sync")
    assert "take no records: others in sync lead their partitions" in node.log()
    assert "take records again" in node.log()
