"""Kafka's own tools against a cluster of three, under each kind of controllers."""

from __future__ import annotations

import json
import re
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.support.cluster.asking import is_in_sync, leader, partitions
from tests.support.cluster.clusters import PATIENCE_S, Cluster
from tests.support.jvm.kafka_tools import Tools, output, process
from tests.support.waiting import ANY_ERROR, wait_for

pytestmark = pytest.mark.jvm


@pytest.fixture(scope="module")
def cluster(local_cluster: Cluster) -> Cluster:
    return local_cluster


@pytest.fixture(scope="module")
def tools(cluster: Cluster) -> Tools:
    return Tools(cluster.bootstrap)


@pytest.fixture
def moved(tools: Tools, cluster: Cluster, topic_name: Callable[..., str]) -> str:
    """A topic of two replicas that kafka-topics has created."""
    topic = topic_name("moved")
    output = tools.run(
        "TopicCommand", "--create", "--topic", topic, "--replica-assignment", "1:2,2:3", "--config", "retention.ms=-1"
    )
    assert "Created topic" in output
    wait_for(lambda: is_in_sync(cluster.bootstrap, topic, 2), "two replicas in sync", errors=ANY_ERROR)
    return topic


def test_topics_and_configs(tools: Tools, moved: str) -> None:
    output = tools.run("TopicCommand", "--describe", "--topic", moved)
    assert "ReplicationFactor: 2" in output
    assert "Isr: 1,2" in output
    assert moved not in tools.run("TopicCommand", "--describe", "--under-replicated-partitions")
    configs = ["--entity-type", "topics", "--entity-name", moved]
    tools.run("kafka.admin.ConfigCommand", "--alter", *configs, "--add-config", "segment.bytes=2097152")
    output = tools.run("kafka.admin.ConfigCommand", "--describe", *configs)
    assert "segment.bytes=2097152" in output


def test_reassign_partitions_and_elect_leaders(tools: Tools, cluster: Cluster, moved: str, tmp_path: Path) -> None:
    plan = {"version": 1, "partitions": [{"topic": moved, "partition": 0, "replicas": [3, 1]}]}
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(plan))
    output = tools.run(
        *("reassign.ReassignPartitionsCommand", "--reassignment-json-file", file, "--execute", "--throttle", "10000000")
    )
    assert "Successfully started" in output
    verify = ("reassign.ReassignPartitionsCommand", "--reassignment-json-file", file, "--verify")
    wait_for(lambda: "is completed" in tools.run(*verify), "the reassignment", errors=ANY_ERROR)
    assert list(partitions(cluster.bootstrap, moved)[0].replica_nodes) == [3, 1]
    tools.run("LeaderElectionCommand", "--election-type", "preferred", "--topic", moved, "--partition", 0)
    wait_for(lambda: leader(cluster.bootstrap, moved, 0) == 3, "the preferred leader", errors=ANY_ERROR)


def test_the_quorum_the_directories_and_the_cluster(tools: Tools, cluster: Cluster, moved: str) -> None:
    address = ("--bootstrap-server", cluster.bootstrap)
    status = tools.run("MetadataQuorumCommand", "describe", "--status")
    assert "LeaderId:" in status
    assert cluster.quorum.cluster_id in status
    replication = tools.run("MetadataQuorumCommand", "describe", "--replication")
    assert replication.count("Observer") == 3
    shown = tools.run("LogDirsCommand", "--describe", "--topic-list", moved)
    brokers = json.loads(shown[shown.index("{") : shown.rindex("}") + 1])["brokers"]
    assert {broker["broker"] for broker in brokers} == {1, 2, 3}
    assert cluster.quorum.cluster_id in output("ClusterTool", "cluster-id", *address)
    listed = output("ClusterTool", "list-endpoints", *address)
    assert all(re.search(rf"{node}\s+127.0.0.1\s.*broker", listed) for node in (1, 2, 3)), listed


def test_replicas_are_compared(tools: Tools, cluster: Cluster, topic_name: Callable[..., str]) -> None:
    """The tool reads every replica to its end, and compares the checksums of the batches.

    It names one partition only, the one with the largest lag, so that this topic has a single one.
    """
    topic = topic_name("compared")
    tools.run("TopicCommand", "--create", "--topic", topic, "--replica-assignment", "1:2:3")
    wait_for(lambda: is_in_sync(cluster.bootstrap, topic, 3), "three replicas in sync", errors=ANY_ERROR)
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 0})
    for number in range(50):
        producer.produce(topic, b"%d" % number)
        producer.flush(PATIENCE_S)
    options = ["--broker-list", cluster.bootstrap, "--topics-include", topic, "--time", "-2"]
    options += ["--report-interval-ms", "500"]
    command = process("ReplicaVerificationTool", *options)
    expected = f"max lag is 0 for partition {topic}-0 at offset 50 among 1 partitions"
    lines: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as tool:
        overdue = threading.Timer(PATIENCE_S, tool.kill)
        overdue.start()
        assert tool.stdout is not None
        for line in tool.stdout:
            lines.append(line)
            if expected in line:
                break
        overdue.cancel()
        tool.kill()
    assert expected in lines[-1], lines
    assert not [line for line in lines if "unmatched checksum" in line or "different number" in line]
