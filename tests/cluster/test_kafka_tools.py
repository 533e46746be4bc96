"""Kafka's own tools against a cluster of three, under each kind of controllers."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.clients.test_kafka_tools import Tools
from tests.cluster.asking import is_in_sync, leader, partitions
from tests.cluster.clusters import Cluster, wait_for

pytestmark = [
    pytest.mark.java,
    pytest.mark.skipif(not shutil.which("javac") or not shutil.which("mvn"), reason="needs a JDK and Maven"),
]


@pytest.fixture(scope="module")
def tools(cluster: Cluster) -> Iterator[Tools]:
    """The JVM of the tools."""
    made = Tools(cluster.bootstrap)
    yield made
    made.process.stdin.close()
    made.process.wait(30)


@pytest.fixture
def moved(tools: Tools, cluster: Cluster, topic_name: Callable[..., str]) -> str:
    """A topic of two replicas that kafka-topics has created."""
    topic = topic_name("moved")
    told = tools.run(
        "TopicCommand", "--create", "--topic", topic, "--replica-assignment", "1:2,2:3", "--config", "retention.ms=-1"
    )
    assert "Created topic" in told
    wait_for(lambda: is_in_sync(cluster.bootstrap, topic, 2), "two replicas in sync")
    return topic


def test_topics_and_configs(tools: Tools, moved: str) -> None:
    told = tools.run("TopicCommand", "--describe", "--topic", moved)
    assert "ReplicationFactor: 2" in told
    assert "Isr: 1,2" in told
    assert moved not in tools.run("TopicCommand", "--describe", "--under-replicated-partitions")
    configs = ["--entity-type", "topics", "--entity-name", moved]
    tools.run("kafka.admin.ConfigCommand", "--alter", *configs, "--add-config", "segment.bytes=2097152")
    told = tools.run("kafka.admin.ConfigCommand", "--describe", *configs)
    assert "segment.bytes=2097152" in told


def test_reassign_partitions_and_elect_leaders(tools: Tools, cluster: Cluster, moved: str, tmp_path: Path) -> None:
    plan = {"version": 1, "partitions": [{"topic": moved, "partition": 0, "replicas": [3, 1]}]}
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(plan))
    told = tools.run(
        *("reassign.ReassignPartitionsCommand", "--reassignment-json-file", file, "--execute", "--throttle", "10000000")
    )
    assert "Successfully started" in told
    verify = ("reassign.ReassignPartitionsCommand", "--reassignment-json-file", file, "--verify")
    wait_for(lambda: "is completed" in tools.run(*verify), "the reassignment")
    assert list(partitions(cluster.bootstrap, moved)[0].replica_nodes) == [3, 1]
    tools.run("LeaderElectionCommand", "--election-type", "preferred", "--topic", moved, "--partition", 0)
    wait_for(lambda: leader(cluster.bootstrap, moved, 0) == 3, "the preferred leader")


def test_the_quorum_the_directories_and_the_cluster(tools: Tools, cluster: Cluster, moved: str) -> None:
    status = tools.run("MetadataQuorumCommand", "describe", "--status")
    assert "LeaderId:" in status
    assert cluster.quorum.cluster_id in status
    replication = tools.run("MetadataQuorumCommand", "describe", "--replication")
    assert replication.count("Observer") == 3
    told = tools.run("LogDirsCommand", "--describe", "--topic-list", moved)
    brokers = json.loads(told[told.index("{") : told.rindex("}") + 1])["brokers"]
    assert {one["broker"] for one in brokers} == {1, 2, 3}
    command = [*tools.java, "org.apache.kafka.tools.ClusterTool", "cluster-id", "--bootstrap-server", cluster.bootstrap]
    told = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=60, check=True).stdout
    assert cluster.quorum.cluster_id in told
