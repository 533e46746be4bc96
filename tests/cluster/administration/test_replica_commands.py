"""`barnabas topic` and Kafka's tools move partitions and elect leaders in a cluster."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster.load.work import create_topic
from tests.support.cluster.asking import is_in_sync, partitions
from tests.support.cluster.clusters import Cluster
from tests.support.processes.commands import Ran, call_command
from tests.support.waiting import ANY_ERROR, wait_for


@pytest.fixture(scope="module")
def cluster(local_cluster: Cluster) -> Cluster:
    return local_cluster


def call(cluster: Cluster, *arguments: str) -> Ran:
    return call_command(*arguments, bootstrap=cluster.bootstrap)


def replicas(cluster: Cluster, topic: str) -> list[list[int]]:
    return [list(partition.replica_nodes) for _, partition in sorted(partitions(cluster.bootstrap, topic).items())]


def leaders(cluster: Cluster, topic: str) -> list[int]:
    return [partition.leader_id for _, partition in sorted(partitions(cluster.bootstrap, topic).items())]


def test_a_topic_is_created_where_it_is_said_and_described(cluster: Cluster, topic_name: Callable[..., str]) -> None:
    topic = topic_name()
    call(cluster, "topic", "create", topic, "--replica-assignment", "3:1,2:3").ok()
    wait_for(lambda: replicas(cluster, topic) == [[3, 1], [2, 3]], "the replicas as they were said", errors=ANY_ERROR)
    wait_for(lambda: is_in_sync(cluster.bootstrap, topic, 2), "both replicas in sync", errors=ANY_ERROR)
    (described,) = call(cluster, "topic", "describe", topic, "-o", "json").ok().json
    first = described["partitions"][0]
    assert (first["leader"], first["replicas"], sorted(first["isr"])) == (3, [3, 1], [1, 3])
    assert (first["elr"], first["last_known_elr"], first["offline"]) == ([], [], [])
    shown = call(cluster, "topic", "describe", topic).ok().lines
    assert shown[1].split() == ["PARTITION", "LEADER", "REPLICAS", "ISR", "START-OFFSET", "END-OFFSET"]


def test_mistakes_are_said(cluster: Cluster, topic_name: Callable[..., str]) -> None:
    topic = topic_name()
    for arguments in (
        ("create", topic, "--replica-assignment", "1:2", "-p", "1"),
        ("create", topic, "--replica-assignment", "1:x"),
        ("reassign", "--replicas", "1,2"),
        ("reassign", topic, "--replicas", "1,1"),
        ("reassign", topic, "--replicas", "1", "--cancel"),
        ("elect-leaders", "--unclean"),
    ):
        assert call(cluster, "topic", *arguments).code == 2, arguments
    assert call(cluster, "topic", "reassign", topic, "--replicas", "1").code == 3
    create_topic(cluster.bootstrap, topic, partitions=1)
    unclean = call(cluster, "topic", "elect-leaders", topic, "--unclean")
    assert (unclean.code, "confirm it with -y" in unclean.stderr) == (2, True)


def test_partitions_are_moved_and_their_preferred_leaders_elected(
    cluster: Cluster, topic_name: Callable[..., str]
) -> None:
    topic = topic_name()
    call(cluster, "topic", "create", topic, "--replica-assignment", "1:2,2:3").ok()
    moved = call(cluster, "topic", "reassign", f"{topic}:0", "--replicas", "2,3", "--wait").ok()
    assert moved.lines == [f"reassigned {topic}-0 to 2,3"]
    wait_for(lambda: replicas(cluster, topic) == [[2, 3], [2, 3]], "the new replicas", errors=ANY_ERROR)
    assert "no partition is being reassigned" in call(cluster, "topic", "reassign").ok().stderr
    assert "nothing to cancel" in call(cluster, "topic", "reassign", topic, "--cancel").ok().stderr
    call(cluster, "topic", "reassign", topic, "--replicas", "3,2", "--wait").ok()
    elected = call(cluster, "topic", "elect-leaders", topic).ok()
    assert elected.lines == [f"broker 3 leads {topic}-{index}" for index in (0, 1)]
    again = call(cluster, "topic", "elect-leaders", topic).ok()
    assert "every partition has its leader already" in again.stderr
    wait_for(lambda: leaders(cluster, topic) == [3, 3], "the preferred leaders", errors=ANY_ERROR)


def test_kafkas_tools_move_partitions(cluster: Cluster, topic_name: Callable[..., str], tmp_path: Path) -> None:
    topic = topic_name()
    call(cluster, "topic", "create", topic, "--replica-assignment", "1:2").ok()
    plan = {"version": 1, "partitions": [{"topic": topic, "partition": 0, "replicas": [3, 2]}]}
    (tmp_path / "plan.json").write_text(json.dumps(plan))

    def reassign(*arguments: str) -> Ran:
        file = ("--reassignment-json-file", str(tmp_path / "plan.json"))
        return call(cluster, "kafka-reassign-partitions", *arguments, *(() if "--list" in arguments else file))

    assert reassign("--verify").ok().lines[:2] == [
        "Status of partition reassignment:",
        f"There is no active reassignment of partition {topic}-0, but replica set is 1,2 rather than 3,2.",
    ]
    begun = reassign("--execute", "--throttle", "10000000").ok().lines
    assert begun[0] == "Current partition replica assignment"
    assert json.loads(begun[2])["partitions"][0]["replicas"] == [1, 2]
    assert begun[-2:] == [
        "The inter-broker throttle limit was set to 10000000 B/s",
        f"Successfully started partition reassignment for {topic}-0",
    ]
    done = f"Reassignment of partition {topic}-0 is completed."
    wait_for(lambda: done in reassign("--verify").ok().lines, "the reassignment", errors=ANY_ERROR)
    assert reassign("--verify").ok().lines == [
        "Status of partition reassignment:",
        done,
        "",
        "Clearing broker-level throttles on brokers 1,2,3",
        f"Clearing topic-level throttles on topic {topic}",
    ]
    assert reassign("--list").ok().lines == ["No partition reassignments found."]
    assert "None of the specified partition reassignments are active." in reassign("--cancel").ok().lines
    assert "throttled" not in call(cluster, "config", "describe", "topic", topic).stdout


def test_kafkas_tool_elects_leaders(cluster: Cluster, topic_name: Callable[..., str]) -> None:
    topic = topic_name()
    call(cluster, "topic", "create", topic, "--replica-assignment", "1:2").ok()
    call(cluster, "topic", "reassign", topic, "--replicas", "2,1", "--wait").ok()

    def elect(*arguments: str) -> Ran:
        return call(cluster, "kafka-leader-election", "--election-type", "preferred", *arguments)

    partition_options = ("--topic", topic, "--partition", "0")
    assert elect(*partition_options).ok().lines == [
        f"Successfully completed leader election (PREFERRED) for partitions {topic}-0"
    ]
    assert elect(*partition_options).ok().lines == [f"Valid replica already elected for partitions {topic}-0"]
    assert elect().stderr == (
        "One and only one of the following options is required: topic, all-topic-partitions, path-to-json-file\n"
    )
    missing = elect("--topic", f"not-{topic}", "--partition", "0")
    assert missing.code == 1
    assert missing.stderr.strip() == "1 replica(s) could not be elected"


def test_kafkas_tool_describes_the_quorum(cluster: Cluster) -> None:
    status = dict(
        line.split(":", 1) for line in call(cluster, "kafka-metadata-quorum", "describe", "--status").ok().lines
    )
    voters = json.loads(status["CurrentVoters"])
    assert int(status["LeaderId"]) in {voter["id"] for voter in voters}
    assert {observer["id"] for observer in json.loads(status["CurrentObservers"])} == {1, 2, 3}
    rows = call(cluster, "kafka-metadata-quorum", "describe", "--replication").ok().lines
    assert rows[1].split()[-1] == "Leader"
    assert [row.split()[-1] for row in rows[-3:]] == ["Observer"] * 3
