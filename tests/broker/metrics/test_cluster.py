"""Metrics of several brokers: a sum over all of them counts each partition, group and broker once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import trio

from barnabas.broker.exporter.group_figures import ask_ends, remote_steps
from barnabas.broker.exporter.listener import why_not_ready
from barnabas.broker.metadata.lifecycle import BrokerLifecycleState
from barnabas.wire.messages.groups.classic_groups import FindCoordinatorRequest
from tests.broker.metrics.pages import Samples, produce, samples_of, text_of, value
from tests.support.memory.broker import MemoryBroker
from tests.support.memory.cluster import MemoryCluster
from tests.support.requests.groups import commit


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[MemoryCluster]:
    members = MemoryCluster(tmp_path, {"barnabas.metrics.listener": "127.0.0.1:0"})
    yield members
    members.close()


def samples(cluster: MemoryCluster, node_id: int, ends: dict[tuple[str, int], int] | None = None) -> Samples:
    return samples_of(text_of(cluster.brokers[node_id], ends))


def added(cluster: MemoryCluster, name: str) -> Counter[frozenset[tuple[str, str]]]:
    """The sum of all brokers' series by labels."""
    total: Counter[frozenset[tuple[str, str]]] = Counter()
    for node_id in cluster.brokers:
        for labels, number in samples(cluster, node_id).get(name, {}).items():
            total[labels] += int(number)
    return total


def test_sums_over_brokers_count_everything_once(cluster: MemoryCluster) -> None:
    cluster.create("t", [1, 2, 2])
    for index, node_id in enumerate((1, 2, 2)):
        assert not produce(cluster.brokers[node_id].client(), "t", *[b"x"] * (index + 1), index=index)
    partitions = {str(index): index + 1 for index in range(3)}
    offsets = added(cluster, "kafka_topic_partition_current_offset")
    assert {dict(labels)["partition"]: number for labels, number in offsets.items()} == partitions
    assert dict(added(cluster, "kafka_topic_partitions")) == {frozenset({("topic", "t")}): 3}
    assert added(cluster, "kafka_brokers")[frozenset()] == 2
    assert added(cluster, "kafka_server_replicamanager_leadercount")[frozenset()] == 3
    assert added(cluster, "kafka_server_replicamanager_partitioncount")[frozenset()] == 6
    assert added(cluster, "kafka_controller_kafkacontroller_activecontrollercount")[frozenset()] == 1
    assert added(cluster, "kafka_controller_kafkacontroller_globalpartitioncount")[frozenset()] == 3
    assert added(cluster, "kafka_server_brokertopicmetrics_messagesin_total")[frozenset()] == 6
    assert added(cluster, "kafka_cluster_partition_underreplicated").total() == 3  # their ISR is their leader


def test_an_election_moves_what_is_counted_to_the_new_leader(cluster: MemoryCluster) -> None:
    cluster.create("t", [1])
    assert not produce(cluster.brokers[1].client(), "t", b"1", b"2")
    cluster.move("t", 0, 2)
    assert not produce(cluster.brokers[2].client(), "t", b"3")
    messages = "kafka_server_brokertopicmetrics_messagesin_total"
    assert [value(samples(cluster, node_id), messages, topic="t") for node_id in (1, 2)] == [2, 1]
    elections = "barnabas_leader_elections_total"
    assert [value(samples(cluster, node_id), elections) for node_id in (1, 2)] == [0, 1]
    assert value(samples(cluster, 2), "barnabas_replication_bytes_in_total") is not None
    cluster.move("t", 0, -1)
    assert added(cluster, "kafka_controller_kafkacontroller_offlinepartitionscount")[frozenset()] == 1
    assert not added(cluster, "kafka_topic_partition_leader")


def test_the_lag_of_partitions_that_others_lead_is_asked_for(cluster: MemoryCluster) -> None:
    cluster.create("__consumer_offsets", [1, 1])
    cluster.create("t", [1, 2])
    for index in (0, 1):
        assert not produce(cluster.brokers[index + 1].client(), "t", b"1", b"2", index=index)
    client = cluster.brokers[1].client()
    client.send(FindCoordinatorRequest(coordinator_keys=["g"]), 6)
    cluster.settle()
    assert client.answers()
    assert commit(client, "t", 1, partitions=[0, 1]) == {0}
    broker = cluster.brokers[1].broker
    remote = [key for key in remote_steps(broker, 10) if key is not None]
    assert remote == [("t", 1)]
    assert list(remote_steps(broker, 0)) == []
    ends: dict[tuple[str, int], int] = {}

    async def ask() -> None:
        async with trio.open_nursery() as nursery:

            async def take() -> None:
                ends.update(await ask_ends(broker, [*remote, ("none", 0)]))

            nursery.start_soon(take)
            await trio.testing.wait_all_tasks_blocked()
            cluster.settle()

    trio.run(ask)
    assert ends == {("t", 1): 2}
    lag = "kafka_consumergroup_lag"
    known = samples(cluster, 1, ends)
    assert [value(known, lag, consumergroup="g", topic="t", partition=index) for index in ("0", "1")] == [1, 1]
    unknown = samples(cluster, 1)  # the other broker does not answer
    assert value(unknown, lag, consumergroup="g", topic="t", partition="1") is None
    assert value(unknown, "kafka_consumergroup_current_offset", consumergroup="g", topic="t", partition="1") == 1
    assert "kafka_consumergroup_members" not in samples(cluster, 2)


def test_a_broker_is_ready_when_it_is_registered_and_not_fenced(cluster: MemoryCluster, tmp_path: Path) -> None:
    single = MemoryBroker(tmp_path / "single")
    assert why_not_ready(single.broker) is None
    single.broker.is_stopping = True
    assert why_not_ready(single.broker) == "The broker is stopping."
    single.close()
    broker = cluster.brokers[1].broker
    broker.lifecycle = SimpleNamespace(state=BrokerLifecycleState.RECOVERY)  # type: ignore[assignment]
    assert why_not_ready(broker) == "The broker is not in the cluster: its state is RECOVERY."
    broker.lifecycle.state = BrokerLifecycleState.RUNNING
    assert why_not_ready(broker) is None
    cluster.commit(cluster.registration(1, fenced=True))
    assert why_not_ready(broker) == "The broker is fenced."
