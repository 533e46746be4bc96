"""A node that is broker and controller of a cluster: its own broker takes the same way as others, without a network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.config.listeners import Endpoint
from barnabas.broker.config.load import load
from barnabas.broker.metadata.lifecycle import BrokerLifecycleState
from barnabas.broker.start.builder import open_combined
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.cluster import AllocateProducerIdsRequest, UnregisterBrokerRequest
from barnabas.wire.messages.raft import DescribeQuorumRequest
from barnabas.wire.messages.topics import CreatableTopic, CreateTopicsRequest
from tests.support.memory.broker import InMemory, MemoryBroker
from tests.support.memory.controller import ENDPOINT, MemoryController
from tests.support.world import Flushes, simulated_world

SETS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
}


class NoNetwork:
    """Connections to other nodes that never open."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    def connect(self, host: str, port: int, _peer: object) -> Any:
        self.asked.append((host, port))
        return self

    def close(self) -> None:
        """Nothing is open."""


class Combined(MemoryController):
    """The node in memory; brokers that are registered by `register` are other processes."""

    def __init__(self, data_dir: Path) -> None:
        InMemory.__init__(self)
        self.flushes = Flushes()
        self.network = NoNetwork()
        config = load(SETS, {}, None, "kafka")
        self.node, self.member = open_combined(
            config,
            [str(data_dir)],
            simulated_world(self, self.disk, flushes=self.flushes),
            lambda _: self.network.connect,
            [ENDPOINT],
        )
        self.broker = self.node
        self._client = self.client()
        self.joined: list[Exception | None] = []
        self.member.begin_joining([Endpoint("PLAINTEXT", "127.0.0.1", 9092)], lambda: None, self.joined.append)
        self.advance(0.1)
        assert self.joined == [None]

    def close(self) -> None:
        self.member.close()
        super().close()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Combined]:
    combined = Combined(tmp_path / "data")
    yield combined
    combined.close()


def test_its_broker_registers_and_is_unfenced(node: Combined) -> None:
    assert node.node.lifecycle.state == BrokerLifecycleState.RUNNING
    registered = node.node.image.brokers[1]
    assert (registered.fenced, registered.epoch) == (False, node.node.lifecycle.broker_epoch)
    node.advance(60)  # its session goes on
    assert not node.node.image.brokers[1].fenced


def test_a_broker_of_another_process_joins_its_cluster(node: Combined) -> None:
    node.unfence(2)
    topic = CreatableTopic(name="t", num_partitions=2, replication_factor=2)
    response = node.client().ask(CreateTopicsRequest(topics=[topic]), 7)
    assert response.topics[0].error_code == 0
    partitions = node.node.image.topics["t"].partitions
    assert {index: sorted(partition.replicas) for index, partition in partitions.items()} == {0: [1, 2], 1: [1, 2]}
    node.advance(30)
    assert node.node.image.brokers[2].fenced
    assert {partition.leader for partition in partitions.values()} == {1}


def test_a_start_after_a_crash_does_not_wait_for_its_own_session(tmp_path: Path) -> None:
    crashed = Combined(tmp_path / "data")
    epoch = crashed.node.lifecycle.broker_epoch
    crashed.node.log_dirs.release()
    again = Combined(tmp_path / "data")
    assert again.node.lifecycle.state == BrokerLifecycleState.RUNNING
    assert again.node.lifecycle.broker_epoch > epoch
    again.close()


def test_the_channel_answers_later_and_with_the_errors_of_the_network(node: Combined) -> None:
    outcomes: list[Any] = []
    node.node.controller_channel.send(AllocateProducerIdsRequest(broker_id=1, broker_epoch=0), outcomes.append)
    assert outcomes == []
    node.advance(0.01)
    assert outcomes[0].error_code == ErrorCode.STALE_BROKER_EPOCH
    node.node.controller_channel.close()
    node.node.controller_channel.send(AllocateProducerIdsRequest(broker_id=1, broker_epoch=0), outcomes.append)
    node.advance(0.01)
    assert outcomes[1].code == ErrorCode.NETWORK_EXCEPTION


def test_the_broker_listener_of_a_single_node_describes_its_quorum(memory: MemoryBroker) -> None:
    from barnabas.wire.messages.cluster import UnregisterBrokerResponse
    from barnabas.wire.messages.raft import (
        DescribeQuorumRequestPartitionData,
        DescribeQuorumRequestTopicData,
        DescribeQuorumResponse,
    )

    topic = DescribeQuorumRequestTopicData(
        topic_name="__cluster_metadata", partitions=[DescribeQuorumRequestPartitionData(partition_index=0)]
    )
    response = memory.client().ask(DescribeQuorumRequest(topics=[topic]), 2, DescribeQuorumResponse)
    (partition,) = response.topics[0].partitions
    assert (partition.leader_id, [voter.replica_id for voter in partition.current_voters]) == (1, [1])
    refused = memory.client().ask(UnregisterBrokerRequest(broker_id=1), 0, UnregisterBrokerResponse)
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    unknown = memory.client().ask(UnregisterBrokerRequest(broker_id=9), 0, UnregisterBrokerResponse)
    assert unknown.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
