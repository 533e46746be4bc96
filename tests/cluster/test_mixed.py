"""Barnabas and Apache Kafka in one cluster: each leads and follows the other, and coordinators move both ways.

Broker 1 is Kafka's, 2 and 3 are ours; Kafka's controllers have formatted the cluster with their defaults.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from confluent_kafka import Producer, ShareConsumer

from barnabas.client.admin.configs import SET, ConfigChange, alter_config
from barnabas.client.admin.reassignments import elect_leaders, reassign
from barnabas.coord.partitioning import coordinator_partition
from barnabas.coord.share_state.key import SharePartitionKey
from tests.cluster.load.coordinator_clients import OFFSETS, PARTITIONS, PATIENCE_S, STATE, TRANSACTIONS, Reader, write
from tests.cluster.load.replicas import differences
from tests.cluster.load.work import create_topic
from tests.support.cluster.asking import client, is_in_sync, leader, partitions
from tests.support.cluster.clusters import Cluster
from tests.support.jvm.kafka_tools import Tools
from tests.support.waiting import ANY_ERROR, wait_for

KAFKA, OURS = 1, 2
THERE_AND_BACK = [
    pytest.param(KAFKA, OURS, id="from Kafka to ours"),
    pytest.param(OURS, KAFKA, id="from ours to Kafka"),
]
pytestmark = [
    pytest.mark.soak,
    pytest.mark.jvm,
    pytest.mark.parametrize("cluster", ["mixed"], indirect=True, scope="session"),
]


def lead(cluster: Cluster, topic: str, index: int, broker: int) -> None:
    """Have a broker lead a partition: its replicas stay, the preferred one changes."""
    wait_for(lambda: is_in_sync(cluster.bootstrap, topic, 3), f"replicas of {topic} in sync", errors=ANY_ERROR)
    others = [node for node in sorted(cluster.brokers) if node != broker]

    def leads() -> bool:
        with client(cluster.bootstrap) as asking:
            if partitions(cluster.bootstrap, topic)[index].replica_nodes[0] != broker:
                reassign(asking, {(topic, index): [broker, *others]})
            elect_leaders(asking, [(topic, index)])
        return leader(cluster.bootstrap, topic, index) == broker

    wait_for(leads, f"{topic}-{index} led by {broker}", errors=ANY_ERROR)


def coordinate(cluster: Cluster, internal: str, key: str, broker: int) -> None:
    """Have a broker be the coordinator of a key; the internal topic exists."""
    lead(cluster, internal, coordinator_partition(key, PARTITIONS), broker)


def same_bytes(cluster: Cluster, *topics: str) -> None:
    """All replicas of these topics have the same bytes, whichever broker has written them."""
    dirs = {broker: node.data_dir for broker, node in cluster.brokers.items()}
    wait_for(lambda: not differences(dirs, topics), "replicas with the same bytes", 20.0, errors=ANY_ERROR)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_each_leads_and_follows_the_other(cluster: Cluster, topic_name: Callable[..., str], codec: str) -> None:
    topic = topic_name()
    create_topic(cluster.bootstrap, topic)
    for index, broker in enumerate((KAFKA, OURS, 3)):
        lead(cluster, topic, index, broker)
    settings = {"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True, "compression.type": codec}
    producer = Producer({**settings, "linger.ms": 5, "log_level": 0})
    for number in range(600):
        producer.produce(topic, str(number), key=str(number), partition=number % 3)
    assert producer.flush(PATIENCE_S) == 0
    reader = Reader(cluster, f"group-of-{topic}", topic, "consumer")
    reader.read(600)
    reader.consumer.close()
    assert sorted(reader.values) == list(range(600))
    same_bytes(cluster, topic)


@pytest.mark.parametrize(("first", "second"), THERE_AND_BACK)
def test_a_transaction_ends_on_the_other_coordinator(
    cluster: Cluster, topic_name: Callable[..., str], first: int, second: int
) -> None:
    topic = topic_name()
    create_topic(cluster.bootstrap, topic)
    for index, broker in enumerate((KAFKA, OURS, 3)):  # so that markers are written to both
        lead(cluster, topic, index, broker)
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": topic, "log_level": 0})
    producer.init_transactions(PATIENCE_S)
    for base, commits in ((0, True), (1000, False), (100, True)):
        coordinate(cluster, TRANSACTIONS, topic, first)
        producer.begin_transaction()
        for number in range(base, base + 50):
            producer.produce(topic, str(number), partition=number % 3)
        assert producer.flush(PATIENCE_S) == 0
        coordinate(cluster, TRANSACTIONS, topic, second)
        for number in range(base + 50, base + 100):
            producer.produce(topic, str(number), partition=number % 3)
        if commits:
            producer.commit_transaction(PATIENCE_S)
        else:
            producer.abort_transaction(PATIENCE_S)
    reader = Reader(cluster, f"group-of-{topic}", topic, "consumer")
    reader.read(200)
    reader.consumer.close()
    assert sorted(reader.values) == list(range(200))
    same_bytes(cluster, topic, TRANSACTIONS)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize(("first", "second"), THERE_AND_BACK)
def test_a_group_goes_on_with_the_other_coordinator(
    cluster: Cluster, topic_name: Callable[..., str], first: int, second: int, protocol: str
) -> None:
    topic = topic_name()
    group = f"group-of-{topic}"
    create_topic(cluster.bootstrap, topic)
    write(cluster, topic, 0, 100)
    reader = Reader(cluster, group, topic, protocol)
    reader.read(100)
    coordinate(cluster, OFFSETS, group, first)
    reader.commit()
    member = reader.consumer.memberid()
    for number, broker in enumerate((second, first, second), 1):
        coordinate(cluster, OFFSETS, group, broker)
        write(cluster, topic, number * 100, 100)
        reader.read((number + 1) * 100)
        reader.commit()
    assert reader.consumer.memberid() == member
    reader.consumer.close()
    assert sorted(reader.values) == list(range(400))
    again = Reader(cluster, group, topic, protocol)
    write(cluster, topic, 400, 1)
    again.read(1)
    assert again.values == [400]
    again.consumer.close()
    same_bytes(cluster, OFFSETS)


@pytest.mark.parametrize(("first", "second"), THERE_AND_BACK)
def test_a_share_group_goes_on_with_the_other_coordinators(
    cluster: Cluster, topic_name: Callable[..., str], first: int, second: int
) -> None:
    """The group coordinator, the share coordinator and the leader of the records change software."""
    topic = topic_name()
    group = f"group-of-{topic}"
    create_topic(cluster.bootstrap, topic, partitions=1)
    with client(cluster.bootstrap) as asking:
        alter_config(asking, "group", group, [ConfigChange("share.auto.offset.reset", SET, "earliest")])
    consumer = ShareConsumer({"bootstrap.servers": cluster.bootstrap, "group.id": group, "log_level": 0})
    consumer.subscribe([topic])
    seen: list[int] = []

    def read(count: int) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while len(set(seen)) < count:
            assert time.monotonic() < deadline, f"{len(set(seen))} of {count} values"
            seen.extend(int(message.value() or b"0") for message in consumer.poll(0.5) if message.error() is None)

    write_one(cluster, topic, 0, 50)
    read(50)
    with client(cluster.bootstrap) as asking:
        key = str(SharePartitionKey(group, asking.find_topic(topic).topic_id, 0))
    for number, broker in enumerate((first, second, first), 1):
        coordinate(cluster, OFFSETS, group, broker)
        coordinate(cluster, STATE, key, broker)
        lead(cluster, topic, 0, broker)
        write_one(cluster, topic, number * 50, 50)
        read((number + 1) * 50)
    consumer.close()
    assert sorted(set(seen)) == list(range(200))
    same_bytes(cluster, STATE)


def write_one(cluster: Cluster, topic: str, first: int, count: int) -> None:
    """Write to partition 0."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True, "log_level": 0})
    for number in range(first, first + count):
        producer.produce(topic, str(number), partition=0)
    assert producer.flush(PATIENCE_S) == 0


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_kafkas_tool_sees_the_same_group_on_both_coordinators(
    cluster: Cluster, topic_name: Callable[..., str], protocol: str
) -> None:
    topic = topic_name()
    group = f"group-of-{topic}"
    create_topic(cluster.bootstrap, topic)
    write(cluster, topic, 0, 90)
    reader = Reader(cluster, group, topic, protocol)
    reader.read(90)
    reader.commit()
    tools = Tools(cluster.bootstrap)
    try:
        descriptions = []
        for broker in (KAFKA, OURS):
            coordinate(cluster, OFFSETS, group, broker)
            descriptions.append(_described(tools, group, committed=f"{group} {topic} 0 30 30 0"))
        assert descriptions[0] == descriptions[1]
    finally:
        reader.consumer.close()


def _described(tools: Tools, group: str, committed: str) -> list[str]:
    """What the tool says of a group, from when its coordinator has the commit.

    A new leader answers up to the high watermark that it knows, which is up to one fetch behind the last leader's.
    """
    lines: list[str] = []

    def has_the_commit() -> bool:
        lines[:] = sorted(" ".join(line.split()) for line in tools.groups("--describe", "--group", group).splitlines())
        return any(line.startswith(committed) for line in lines)

    wait_for(has_the_commit, f"a line that begins with {committed}", errors=ANY_ERROR)
    return lines
