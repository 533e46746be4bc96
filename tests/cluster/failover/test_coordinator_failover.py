"""Groups, transactions and share groups go on when the broker that coordinates them dies (librdkafka's clients)."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer, ShareConsumer

from barnabas.client.admin.configs import SET, ConfigChange, alter_config
from barnabas.coord.partitioning import coordinator_partition
from barnabas.coord.share_state.key import SharePartitionKey
from tests.cluster.load.coordinator_clients import OFFSETS, PARTITIONS, PATIENCE_S, STATE, TRANSACTIONS, Reader, write
from tests.cluster.load.work import create_topic
from tests.support.cluster.asking import client, is_in_sync, leader, partitions
from tests.support.cluster.clusters import Cluster
from tests.support.waiting import ANY_ERROR, wait_for

pytestmark = pytest.mark.timeout(300)
"""Each wait has a deadline of its own."""


def of(cluster: Cluster, internal: str, key: str) -> int:
    """The broker that has the coordinator of a key."""
    return leader(cluster.bootstrap, internal, coordinator_partition(key, PARTITIONS))


@contextlib.contextmanager
def killed(cluster: Cluster, broker: int) -> Iterator[None]:
    """Kill a broker, and have it back with all its replicas in the end."""
    node = cluster.brokers[broker]
    node.kill9()
    try:
        yield
    finally:
        node.restart()
        for internal in (OFFSETS, TRANSACTIONS, STATE):
            if _exists(cluster, internal):
                wait_for(
                    lambda name=internal: is_in_sync(cluster.bootstrap, name, 3),
                    f"replicas of {internal}",
                    errors=ANY_ERROR,
                )


def _exists(cluster: Cluster, topic: str) -> bool:
    return bool(partitions(cluster.bootstrap, topic))


@pytest.mark.parametrize("protocol", [pytest.param("classic", marks=pytest.mark.soak), "consumer"])
def test_a_group_goes_on_after_its_coordinator_was_killed(
    cluster: Cluster, topic_name: Callable[..., str], protocol: str
) -> None:
    topic = topic_name()
    group = f"group-of-{topic}"
    create_topic(cluster.bootstrap, topic)
    write(cluster, topic, 0, 100)
    reader = Reader(cluster, group, topic, protocol)
    reader.read(100)
    reader.commit()
    with killed(cluster, of(cluster, OFFSETS, group)):
        write(cluster, topic, 100, 100)
        reader.read(200)
        reader.commit()
    reader.consumer.close()
    assert sorted(reader.values) == list(range(200))
    again = Reader(cluster, group, topic, protocol)
    write(cluster, topic, 200, 1)
    again.read(1)
    assert again.values == [200]
    again.consumer.close()


@pytest.mark.parametrize(
    "kills",
    [pytest.param({100}, id="one kill"), pytest.param({0, 1000, 100}, id="three kills", marks=pytest.mark.soak)],
)
def test_a_transaction_goes_on_after_its_coordinator_was_killed(
    cluster: Cluster, topic_name: Callable[..., str], kills: set[int]
) -> None:
    """The coordinator is killed in the transactions that begin with these numbers."""
    topic = topic_name()
    create_topic(cluster.bootstrap, topic)
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": topic, "log_level": 0})
    producer.init_transactions(PATIENCE_S)
    for first, commits in ((0, True), (1000, False), (100, True)):
        producer.begin_transaction()
        for number in range(first, first + 50):
            producer.produce(topic, str(number), partition=number % 3)
        assert producer.flush(PATIENCE_S) == 0
        broken = killed(cluster, of(cluster, TRANSACTIONS, topic)) if first in kills else contextlib.nullcontext()
        with broken:
            for number in range(first + 50, first + 100):
                producer.produce(topic, str(number), partition=number % 3)
            if commits:
                producer.commit_transaction(PATIENCE_S)
            else:
                producer.abort_transaction(PATIENCE_S)
    reader = Reader(cluster, f"group-of-{topic}", topic, "consumer")
    reader.read(200)
    reader.consumer.close()
    assert sorted(reader.values) == list(range(200))


OTHER_VICTIMS = [pytest.param(name, marks=pytest.mark.soak) for name in ("the leader", "the share coordinator")]


@pytest.mark.parametrize("victim", ["the group's coordinator", *OTHER_VICTIMS])
def test_a_share_group_goes_on_after_a_kill(cluster: Cluster, topic_name: Callable[..., str], victim: str) -> None:
    topic = topic_name()
    group = f"group-of-{topic}"
    create_topic(cluster.bootstrap, topic)
    with client(cluster.bootstrap) as asking:
        alter_config(asking, "group", group, [ConfigChange("share.auto.offset.reset", SET, "earliest")])
    consumer = ShareConsumer({"bootstrap.servers": cluster.bootstrap, "group.id": group, "log_level": 0})
    consumer.subscribe([topic])
    seen: set[int] = set()

    def read(count: int) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while len(seen) < count:
            assert time.monotonic() < deadline, f"{len(seen)} of {count} values"
            for message in consumer.poll(0.5):
                if message.error() is None:
                    seen.add(int(message.value() or b"0"))

    write(cluster, topic, 0, 100)
    read(100)
    if victim == "the leader":
        broker = leader(cluster.bootstrap, topic)
    elif victim == "the share coordinator":
        with client(cluster.bootstrap) as asking:
            topic_id = asking.find_topic(topic).topic_id
        broker = of(cluster, STATE, str(SharePartitionKey(group, topic_id, 0)))
    else:
        broker = of(cluster, OFFSETS, group)
    with killed(cluster, broker):
        write(cluster, topic, 100, 100)
        read(200)
    consumer.close()
    assert seen == set(range(200))
