"""R28: trouble of one broker's disk moves leaders and coordinators to others; the broker joins again by itself.

Each fault is planted in the files of a running broker, under our controller and under one of Apache Kafka's.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from barnabas.broker.server import EXIT_FAILED
from tests.cluster.load.checked_work import MORE, checked_work, in_sync
from tests.cluster.load.work import create_topic
from tests.support.cluster.asking import is_in_sync, leader, partitions
from tests.support.cluster.clusters import Cluster, cluster_of
from tests.support.cluster.in_process import LocalNode
from tests.support.cluster.quorums import IN_PROCESS
from tests.support.disks.failing_files import FailingFiles
from tests.support.waiting import ANY_ERROR, wait_for

pytestmark = pytest.mark.timeout(300)
MOVED_S = 30.0
"""How long another leader is waited for, seconds: less than a session, so it is not the session's end that moves it.

How fast it is on an idle machine (5 s at most) is measured by `tests.cluster.faults`.
"""
MAGIC = 16
"""The position of the magic byte in a batch."""


class FillingDisk(FailingFiles):
    """A broker's disk; full as long as writes fail with ENOSPC."""

    def volume(self, path: str) -> tuple[int, int]:
        size, free = super().volume(path)
        return size, 0 if self.errors.get("write") == errno.ENOSPC else free


@pytest.fixture(scope="module", params=[IN_PROCESS, pytest.param("kafka", marks=[pytest.mark.jvm, pytest.mark.soak])])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three brokers in this process."""
    folder = tmp_path_factory.mktemp("cluster")
    config = {"log.cleaner.backoff.ms": "500"}
    made = Cluster(folder, kind=request.param, is_small=request.param == "kafka", config=config)
    for node in made.brokers.values():
        disk = FillingDisk()
        assert isinstance(node, LocalNode)
        node.make_files = lambda disk=disk: disk
        node.disk = disk  # type: ignore[attr-defined]
    with made:
        yield made


def disk_of(cluster: Cluster, broker: int) -> FillingDisk:
    disk = cluster.brokers[broker].disk  # type: ignore[attr-defined]
    assert isinstance(disk, FillingDisk)
    return disk


@contextmanager
def failing(cluster: Cluster, broker: int, operation: str, code: int, below: str = "") -> Iterator[None]:
    """Operations on the files of a broker fail with an error number, or only those in one of its directories."""
    disk, data_dir = disk_of(cluster, broker), cluster.brokers[broker].data_dir
    disk.errors_in = str(data_dir / below)
    disk.errors[operation] = code
    try:
        yield
    finally:
        del disk.errors[operation]


def other_leads(cluster: Cluster, topic: str, index: int, than: int) -> int:
    """Wait until another broker leads a partition, as all others know; which one."""

    def moved() -> int:
        others = [node for broker, node in cluster.brokers.items() if broker != than]
        leaders = {leader(node.bootstrap, topic, index) for node in others}
        return leaders.pop() if len(leaders) == 1 and not leaders & {than, -1} else 0

    return wait_for(moved, f"another leader of {topic}-{index} than {than}", MOVED_S, errors=ANY_ERROR)


def read_once(cluster: Cluster, topic: str, index: int, offset: int = 0, patience_s: float = 20.0) -> None:
    """Have a consumer read from an offset, until it has something."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "reader", "log_level": 0})
    consumer.assign([TopicPartition(topic, index, offset)])
    try:
        wait_for(
            lambda: [message for message in consumer.consume(1, 0.2) if message.error() is None],
            "a record",
            patience_s,
            errors=ANY_ERROR,
        )
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
        read_once(made, topic, 0)
        other_leads(made, topic, 0, victim)
        work.go_on(MORE)
        in_sync(made, topic)
    assert f"The replica {topic}-0 of this broker is damaged" in node.log()
    assert f"Partition {topic}-0 is filled from its leader again" in node.log()


def test_a_full_disk_moves_leaders_and_coordinators_until_there_is_space(
    made: Cluster, tmp_path: Path, topic: str
) -> None:
    with checked_work(made, tmp_path, topic) as work:
        victim = leader(made.bootstrap, topic, 0)
        with failing(made, victim, "write", errno.ENOSPC):
            other_leads(made, topic, 0, victim)
            work.go_on(3 * MORE)
            assert all(victim not in partition.isr_nodes for partition in partitions(made.bootstrap, topic).values())
        wait_for(lambda: is_in_sync(made.bootstrap, topic, 3), "three replicas in sync", errors=ANY_ERROR)
    log = made.brokers[victim].log()
    assert "take no records: where another one in sync can lead" in log
    assert "take records again" in log
    assert "There is space again" in log


def commit_offset(cluster: Cluster, group: str, topic: str, offset: int) -> None:
    """Commit an offset of a group, and read it again."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": group, "log_level": 0})
    try:
        consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
        assert [partition.offset for partition in consumer.committed([TopicPartition(topic, 0)], 10.0)] == [offset]
    finally:
        consumer.close()


def test_a_coordinator_that_cannot_append_is_another_brokers_soon(made: Cluster, topic: str) -> None:
    create_topic(made.bootstrap, topic)
    in_sync(made, topic)
    groups = [f"{topic}-{number}" for number in range(6)]
    for group in groups:
        wait_for(
            lambda group=group: commit_offset(made, group, topic, 1) or True, f"a commit of {group}", errors=ANY_ERROR
        )
    in_sync(made, "__consumer_offsets")
    victim = leader(made.bootstrap, "__consumer_offsets", 0)
    with failing(made, victim, "write", errno.ENOSPC, "__consumer_offsets-0"):
        for group in groups:
            wait_for(
                lambda group=group: commit_offset(made, group, topic, 2) or True,
                f"a commit of {group}",
                errors=ANY_ERROR,
            )
        assert leader(made.bootstrap, "__consumer_offsets", 0) != victim
    in_sync(made, "__consumer_offsets")


@pytest.mark.soak
def test_a_read_error_moves_the_leader_and_the_replica_is_filled_again(
    made: Cluster, tmp_path: Path, topic: str
) -> None:
    with checked_work(made, tmp_path, topic) as work:
        victim = leader(made.bootstrap, topic, 0)
        with failing(made, victim, "read", errno.EIO, f"{topic}-0"):
            read_once(made, topic, 0)
            other_leads(made, topic, 0, victim)
        work.go_on(MORE)
        in_sync(made, topic)
    assert "cannot be read" in made.brokers[victim].log()


@pytest.mark.parametrize("fault", ["sync", "directory", pytest.param("write", marks=pytest.mark.soak)])
def test_a_broker_without_a_disk_hands_its_partitions_over_before_it_ends(
    made: Cluster, tmp_path: Path, topic: str, fault: str
) -> None:
    """Its only log directory has failed: what leads there moves at once, not when its session ends."""
    with checked_work(made, tmp_path, topic) as work:
        victim = leader(made.bootstrap, topic, 0)
        disk, node = disk_of(made, victim), made.brokers[victim]
        away = node.data_dir.with_name(f"{node.data_dir.name}-away")
        if fault == "directory":
            node.data_dir.rename(away)
        else:
            disk.errors_in = str(node.data_dir)
            disk.errors[fault] = errno.EIO
        other_leads(made, topic, 0, victim)
        work.go_on(MORE)
        wait_for(lambda: not node.is_running, "the end of the broker", errors=ANY_ERROR)
        assert node.stop() == EXIT_FAILED
        disk.errors.clear()
        if fault == "directory":
            away.rename(node.data_dir)
        node.start()
        in_sync(made, topic)


@pytest.mark.soak
def test_damage_that_the_cleaner_finds_moves_the_leader(made: Cluster, topic: str) -> None:
    create_topic(
        made.bootstrap,
        topic,
        1,
        cleanup_policy="compact",
        segment_bytes=str(1 << 20),
        min_cleanable_dirty_ratio="0.001",
    )
    in_sync(made, topic)
    producer = Producer({"bootstrap.servers": made.bootstrap, "linger.ms": 1})

    def fill() -> None:
        for number in range(1500):
            producer.produce(topic, os.urandom(1000), key=str(number % 10))
        assert producer.flush(20) == 0

    fill()
    victim = leader(made.bootstrap, topic, 0)
    node = made.brokers[victim]
    damage(node.data_dir, f"{topic}-0")
    fill()
    other_leads(made, topic, 0, victim)
    in_sync(made, topic)
    assert f"The replica {topic}-0 of this broker is damaged" in node.log()


def test_the_last_replica_in_sync_goes_on(made: Cluster, topic: str) -> None:
    """No other replica has its records: reads that cross the damage fail, everything else goes on."""
    create_topic(made.bootstrap, topic, 1, min_insync_replicas="1")
    in_sync(made, topic)
    producer = Producer({"bootstrap.servers": made.bootstrap, "acks": "all"})
    last = leader(made.bootstrap, topic, 0)
    node = made.brokers[last]
    others = [other for broker, other in made.brokers.items() if broker != last]
    value = os.urandom(5000)  # so that each batch has an entry in the index
    for _ in range(2):
        producer.produce(topic, value)
        assert producer.flush(20) == 0
    for other in others:
        assert other.stop() == 0
    damage(node.data_dir, f"{topic}-0")
    with pytest.raises(AssertionError, match="a record"):
        read_once(made, topic, 0, patience_s=2.0)
    producer.produce(topic, value)
    assert producer.flush(20) == 0
    read_once(made, topic, 0, 2)
    assert leader(node.bootstrap, topic, 0) == last
    for other in others:
        other.start()
    in_sync(made, topic)  # they have the damaged records; then one of them leads, and this one is filled again
    wait_for(
        lambda: f"Partition {topic}-0 is filled from its leader again" in node.log(),
        "a new log of the last one",
        errors=ANY_ERROR,
    )
    in_sync(made, topic)
    read_once(made, topic, 0)


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["ours", pytest.param("kafka", marks=pytest.mark.jvm)])
def test_a_leader_whose_log_is_damaged_when_all_start_again_is_filled_again(
    tmp_path: Path, topic: str, kind: str
) -> None:
    """By the metadata it leads, and is in sync: a power failure has ended all of them at once."""
    with cluster_of(kind, tmp_path / "cluster") as cluster, checked_work(cluster, tmp_path, topic) as work:
        victim = leader(cluster.bootstrap, topic, 0)
        node = cluster.brokers[victim]
        checkpoint = node.data_dir / "recovery-point-offset-checkpoint"

        def synced() -> bool:
            return any(int(end) > 0 for end in re.findall(rf"^{topic} 0 (\d+)$", checkpoint.read_text(), re.MULTILINE))

        wait_for(synced, "a recovery point of the log", errors=ANY_ERROR)
        cluster.kill_all()
        damage(node.data_dir, f"{topic}-0")
        cluster.start()
        in_sync(cluster, topic)
        work.go_on(MORE)
    assert f"Partition {topic}-0 is filled from its leader again" in node.log()
