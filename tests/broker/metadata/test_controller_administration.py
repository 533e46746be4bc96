"""Administration over the controller listener: topics, configs, reassignments, elections, brokers that are removed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.coord.cluster.resources import BROKER, TOPIC
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.cluster import UnregisterBrokerRequest
from barnabas.wire.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from barnabas.wire.messages.replication import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    BrokerState,
)
from barnabas.wire.messages.topics import (
    AlterPartitionReassignmentsRequest,
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    ElectLeadersRequestTopicPartitions,
    ListPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from tests.support.memory.controller import MemoryController


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemoryController]:
    controller = MemoryController(tmp_path / "data")
    yield controller
    controller.close()


@pytest.mark.parametrize("version", range(2))
def test_administration_of_topics_and_configs(memory: MemoryController, version: int) -> None:
    for broker_id in (1, 2):
        memory.unfence(broker_id)
    client = memory.client()
    topic = CreatableTopic(name="t", num_partitions=9, replication_factor=1)
    assert client.ask(CreateTopicsRequest(topics=[topic]), 7).topics[0].error_code == 0
    more = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="t", count=12, assignments=None)])
    assert client.ask(more, 2 + version).results[0].error_code == 0
    change = IncrementalAlterConfigsRequestAlterableConfig(name="retention.ms", config_operation=0, value="60000")
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=TOPIC, resource_name="t", configs=[change]
    )
    changed = client.ask(IncrementalAlterConfigsRequest(resources=[resource]), version)
    assert changed.responses[0].error_code == 0
    assert memory.node.image.config(TOPIC, "t") == {"retention.ms": "60000"}
    config_resource = DescribeConfigsResource(
        resource_type=BROKER, resource_name="3000", configuration_keys=["node.id"]
    )
    described = client.ask(DescribeConfigsRequest(resources=[config_resource]), 3 + version)
    assert [(config.name, config.value) for config in described.results[0].configs] == [("node.id", "3000")]
    config_resource.resource_name = "7"
    other = client.ask(DescribeConfigsRequest(resources=[config_resource]), 3 + version)
    assert other.results[0].error_code == ErrorCode.INVALID_REQUEST
    gone = client.ask(DeleteTopicsRequest(topic_names=["t"]), 4 + version)
    assert gone.responses[0].error_code == 0
    assert "t" not in memory.node.image.topics


def test_a_reassignment_is_listed_until_its_leader_has_the_new_replicas_in_sync(memory: MemoryController) -> None:
    epochs = {broker_id: memory.unfence(broker_id) for broker_id in (1, 2)}
    client = memory.client()
    topic = CreatableTopic(name="t", num_partitions=-1, replication_factor=-1)
    topic.assignments = [CreatableReplicaAssignment(partition_index=0, broker_ids=[1])]
    assert client.ask(CreateTopicsRequest(topics=[topic]), 7).topics[0].error_code == 0
    moved = ReassignableTopic(name="t", partitions=[ReassignablePartition(partition_index=0, replicas=[2])])
    assert client.ask(AlterPartitionReassignmentsRequest(topics=[moved]), 1).error_code == 0
    (listed,) = client.ask(ListPartitionReassignmentsRequest(topics=None), 0).topics
    (partition,) = listed.partitions
    assert (partition.adding_replicas, partition.removing_replicas) == ([2], [1])
    image = memory.node.image.topics["t"]
    state = image.partitions[0]
    data = AlterPartitionRequestPartitionData(
        partition_index=0,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        new_isr_with_epochs=[
            BrokerState(broker_id=replica_id, broker_epoch=epoch) for replica_id, epoch in epochs.items()
        ],
    )
    request = AlterPartitionRequest(
        broker_id=1,
        broker_epoch=epochs[1],
        topics=[AlterPartitionRequestTopicData(topic_id=image.topic_id, partitions=[data])],
    )
    assert client.ask(request, 3).error_code == 0
    assert client.ask(ListPartitionReassignmentsRequest(topics=None), 0).topics == []
    assert (memory.node.image.topics["t"].partitions[0].leader, *image.partitions[0].replicas) == (2, 2)
    elect = ElectLeadersRequest(topic_partitions=None, timeout_ms=1000)
    for version in range(3):
        assert client.ask(elect, version).error_code == 0
    unknown = ElectLeadersRequest(
        election_type=2, topic_partitions=[ElectLeadersRequestTopicPartitions(topic="t", partitions=[0])]
    )
    response = client.ask(unknown, 2)
    (result,) = response.replica_election_results[0].partition_result
    assert response.error_code == result.error_code == ErrorCode.INVALID_REQUEST
    assert result.error_message == "Unknown election type 2"


def test_an_unregistered_broker_is_gone(memory: MemoryController) -> None:
    memory.unfence(1)
    client = memory.client()
    assert client.ask(UnregisterBrokerRequest(broker_id=9), 0).error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
    assert client.ask(UnregisterBrokerRequest(broker_id=1), 0).error_code == 0
    assert memory.node.image.brokers == {}
