"""R16, KIP-112, KIP-966: what clients learn of the brokers and replicas of a cluster."""

from __future__ import annotations

import pytest

from barnabas.coord.cluster.topic_image import LOST_DIRECTORY
from barnabas.wire.errors import ErrorCode as E
from barnabas.wire.messages import metadata as md
from barnabas.wire.messages.records import metadata_records as m
from tests.support.memory.cluster import MemoryCluster


@pytest.fixture
def cluster(tmp_path):
    cluster = MemoryCluster(tmp_path, count=3)
    cluster.create("t", [1, 2, 3])
    yield cluster
    cluster.close()


def metadata(cluster: MemoryCluster, version: int = 12, broker: int = 1) -> md.MetadataResponse:
    request = md.MetadataRequest(topics=[md.MetadataRequestTopic(name="t")])
    return cluster.brokers[broker].client().ask(request, version, md.MetadataResponse)


def described(cluster: MemoryCluster) -> list[md.DescribeTopicPartitionsResponsePartition]:
    request = md.DescribeTopicPartitionsRequest(topics=[md.DescribeTopicPartitionsRequestTopicRequest(name="t")])
    return cluster.brokers[1].client().ask(request, 0, md.DescribeTopicPartitionsResponse).topics[0].partitions


def fence(cluster: MemoryCluster, broker: int) -> None:
    cluster.commit(m.BrokerRegistrationChangeRecord(broker_id=broker, broker_epoch=broker, fenced=1))


@pytest.mark.parametrize("broker", [1, 2])
def test_every_live_broker_is_listed_with_its_address_and_rack(cluster, broker) -> None:
    response = metadata(cluster, broker=broker)
    listed = {item.node_id: (item.host, item.port, item.rack) for item in response.brokers}
    assert listed.pop(broker) == ("127.0.0.1", 9092, None)  # its own address is the one that was dialled
    assert listed == {item: (f"host-{item}", 9092, f"rack-{item}") for item in {1, 2, 3} - {broker}}
    assert response.controller_id in {1, 2, 3}
    assert [item.leader_id for item in response.topics[0].partitions] == [1, 2, 3]


def test_the_controller_is_any_live_broker(cluster) -> None:
    fence(cluster, 3)
    assert {metadata(cluster).controller_id for _ in range(50)} == {1, 2}


def test_a_fenced_broker_is_not_listed_and_its_replicas_are_offline(cluster) -> None:
    fence(cluster, 3)
    response = metadata(cluster)
    assert [broker.node_id for broker in response.brokers] == [1, 2]
    first, _, third = response.topics[0].partitions
    assert (first.error_code, first.leader_id, first.offline_replicas) == (0, 1, [3])
    assert (third.error_code, third.leader_id, third.offline_replicas) == (E.LISTENER_NOT_FOUND, -1, [3])
    assert metadata(cluster, version=5).topics[0].partitions[2].error_code == E.LEADER_NOT_AVAILABLE
    assert [broker.offline_replicas for broker in described(cluster)] == [[3], [3], [3]]


def test_clients_are_never_told_that_there_is_no_broker(cluster) -> None:
    """librdkafka then forgets every address, its bootstrap servers too, and sends no request again."""
    member = cluster.brokers[1]
    for broker in list(member.broker.image.brokers.values()):
        change = m.BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=1)
        cluster.commit_to(member, change)
    response = metadata(cluster)
    assert [(broker.node_id, broker.port) for broker in response.brokers] == [(1, 9092), (2, 9092), (3, 9092)]
    assert response.controller_id == -1
    assert [broker.leader_id for broker in response.topics[0].partitions] == [-1, -1, -1]


def test_an_unregistered_broker_is_offline(cluster) -> None:
    cluster.commit(m.UnregisterBrokerRecord(broker_id=3, broker_epoch=3))
    assert metadata(cluster).topics[0].partitions[2].error_code == E.LEADER_NOT_AVAILABLE
    assert metadata(cluster).topics[0].partitions[0].offline_replicas == [3]


def test_version_0_lists_only_replicas_that_can_be_reached(cluster) -> None:
    fence(cluster, 3)
    first = metadata(cluster, version=0).topics[0].partitions[0]
    assert (first.error_code, first.replica_nodes, first.isr_nodes) == (E.REPLICA_NOT_AVAILABLE, [1, 2], [1])


def test_a_replica_in_a_lost_directory_is_offline(cluster) -> None:
    topic = cluster.brokers[1].broker.image.topics["t"]
    own = m.PartitionChangeRecord(
        partition_id=0, topic_id=topic.topic_id, directories=[*topic.partitions[0].directories[:2], LOST_DIRECTORY]
    )
    cluster.commit(own)
    assert metadata(cluster).topics[0].partitions[0].offline_replicas == [3]
    assert metadata(cluster).topics[0].partitions[1].offline_replicas == []


def test_eligible_and_last_known_leaders_are_described(cluster) -> None:
    topic_id = cluster.brokers[1].broker.image.topics["t"].topic_id
    cluster.commit(
        m.PartitionChangeRecord(
            partition_id=0, topic_id=topic_id, leader=-1, isr=[], eligible_leader_replicas=[2], last_known_elr=[1]
        )
    )
    first = described(cluster)[0]
    assert (first.error_code, first.leader_id, first.isr_nodes) == (E.LEADER_NOT_AVAILABLE, -1, [])
    assert (first.eligible_leader_replicas, first.last_known_elr) == ([2], [1])


def test_fenced_brokers_are_described_when_they_are_asked_for(cluster) -> None:
    fence(cluster, 2)
    client = cluster.brokers[1].client()

    def ask(version: int, **fields: bool) -> dict[int, bool]:
        response = client.ask(md.DescribeClusterRequest(**fields), version, md.DescribeClusterResponse)
        assert response.controller_id in {1, 3}
        return {broker.broker_id: broker.is_fenced for broker in response.brokers}

    assert ask(1) == {1: False, 3: False}
    assert ask(2) == {1: False, 3: False}
    assert ask(2, include_fenced_brokers=True) == {1: False, 2: True, 3: False}
