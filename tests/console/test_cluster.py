"""The screens of the cluster, on `serve --brokers 3`: replicas, moves, drains, nodes, quorum, log directories."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.client.admin.topics import create_topic, list_topics
from barnabas.client.cluster import Cluster
from tests.support.console.browser import Browser
from tests.support.console.running import RunningConsole, running_console
from tests.support.processes.served_cluster import BarnabasCluster
from tests.support.waiting import wait_for

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BarnabasCluster]:
    """A supervisor with three brokers."""
    cluster = BarnabasCluster(tmp_path_factory.mktemp("three"))
    cluster.start()
    yield cluster
    cluster.stop()


@pytest.fixture(scope="module")
def of_three(three: BarnabasCluster) -> Iterator[RunningConsole]:
    """A console that knows the supervisor's directory."""
    with running_console(three.bootstrap, data_dir=str(three.data_dir)) as running:
        yield running


def create(three: BarnabasCluster, topic: str, assignment: list[list[int]]) -> None:
    with Cluster(three.bootstrap) as cluster:
        create_topic(cluster, topic, assignment=assignment)
        in_sync = [len(brokers) for brokers in assignment]
        wait_for(lambda: [len(each["in_sync"]) for each in placed(cluster, topic)] == in_sync, "all are in sync")


def placed(cluster: Cluster, topic: str) -> list[dict[str, Any]]:
    (described,) = (each for each in list_topics(cluster) if each.name == topic)
    return [
        {"leader": each.leader_id, "replicas": list(each.replica_nodes), "in_sync": list(each.isr_nodes)}
        for each in sorted(described.partitions, key=lambda each: each.partition_index)
    ]


def rows(console: RunningConsole, topic: str, state: str = "all") -> list[dict[str, Any]]:
    listed = console.json(f"/cluster/partitions?topic={topic}&state={state}")["partitions"]["rows"]
    assert isinstance(listed, list)
    return listed


def job_ends(console: RunningConsole) -> dict[str, Any]:
    """The newest job, when it has ended."""

    def ended() -> dict[str, Any] | None:
        job = console.json("/cluster")["jobs"][0]
        return job if job["state"] != "running" else None

    return wait_for(ended, "the job ends") or {}


def test_partitions_are_reassigned_elected_and_rebalanced(
    of_three: RunningConsole, three: BarnabasCluster, topic: str
) -> None:
    create(three, topic, [[1, 2], [1, 2], [1, 2], [1, 2]])
    assert [(row["leader"], row["replicas"]) for row in rows(of_three, topic)] == [(1, [1, 2])] * 4
    assert "moves to 3, 1" in of_three.act("/cluster/reassign", topic=topic, partition=0, replicas=[3, 1])["text"]
    wait_for(lambda: rows(of_three, topic)[0]["in_sync"] and not rows(of_three, topic, "moving"), "it has moved")
    assert rows(of_three, topic)[0]["replicas"] == [3, 1]
    of_three.act("/cluster/elect", topic=topic)
    wait_for(lambda: rows(of_three, topic)[0]["leader"] == 3, "the preferred replica leads")
    plan = of_three.json("/cluster/plan?size=1000")["moves"]
    assert {move["topic"] for move in plan["rows"]} >= {topic}
    of_three.act("/cluster/rebalance")
    job = job_ends(of_three)
    assert (job["state"], job["title"]) == ("done", "Rebalance")
    assert "left" not in job["text"]
    assert of_three.json("/cluster/plan")["moves"]["total"] == 0
    leaders = [broker["leaders"] for broker in of_three.json("/cluster")["brokers"]]
    assert max(leaders) - min(leaders) <= 1


def test_a_broker_is_drained_and_has_everything_back(
    of_three: RunningConsole, three: BarnabasCluster, topic: str
) -> None:
    create(three, topic, [[2, 1], [2, 3], [1, 2]])
    assert "away from broker 2" in of_three.act("/cluster/brokers/2/drain")["text"]
    assert job_ends(of_three)["state"] == "done"
    assert 2 not in [row["leader"] for row in rows(of_three, topic)]
    states = {broker["node_id"]: broker["state"] for broker in of_three.json("/cluster")["brokers"]}
    assert states == {1: "online", 2: "draining", 3: "online"}
    of_three.act("/cluster/brokers/2/undo-drain")
    assert job_ends(of_three)["state"] == "done"
    assert [row["leader"] for row in rows(of_three, topic)] == [2, 2, 1]


def test_nodes_are_killed_and_started_and_the_page_says_what_that_means(
    of_three: RunningConsole, three: BarnabasCluster, topic: str
) -> None:
    create(three, topic, [[3, 1]])
    assert "is killed" in of_three.act("/cluster/nodes/3/kill")["text"]
    wait_for(lambda: rows(of_three, topic)[0]["leader"] == 1, "another broker leads")
    assert rows(of_three, topic, "under-replicated")
    view = of_three.json("/cluster")
    assert [broker["state"] for broker in view["brokers"]] == ["online", "online", "offline"]
    assert "SIGKILL" in view["brokers"][2]["node"]["detail"]
    assert view["under_replicated"] > 0
    wait_for(
        lambda: "fewer in-sync replicas than replicas" in of_three.text("/overview"), "the overview warns", timeout_s=90
    )
    assert "runs on" in of_three.act("/cluster/nodes/3/start")["text"]
    wait_for(lambda: not rows(of_three, topic, "under-replicated"), "it is in sync again")
    refused = of_three.act("/cluster/nodes/9/stop", status=409)
    assert "no node 9" in refused["error"]


def test_quorum_and_log_directories(of_three: RunningConsole) -> None:
    quorum = of_three.json("/cluster/quorum")
    assert [member["role"] for member in quorum["members"]].count("leader") == 1
    directories = of_three.json("/cluster/log-dirs")["directories"]
    assert [row["broker"] for row in directories["rows"]] == [1, 2, 3]
    assert all(row["total"] > row["usable"] > 0 for row in directories["rows"])


def test_what_is_wrong_is_a_sentence(of_three: RunningConsole, three: BarnabasCluster, topic: str) -> None:
    create(three, topic, [[1]])
    for path, fields, status, sentence in (
        ("/cluster/reassign", {"topic": topic, "partition": 0, "brokers": "1,x"}, 400, "must be ids of brokers"),
        ("/cluster/reassign", {"topic": topic, "partition": 0, "replicas": [77]}, 400, "INVALID_REPLICA_ASSIGNMENT"),
        ("/cluster/elect", {"unclean": True}, 400, "an unclean election is for one topic"),
        ("/cluster/elect", {"topic": "nowhere"}, 404, "there is no topic 'nowhere'"),
        ("/cluster/brokers/9/drain", {}, 404, "there is no broker 9 online"),
        ("/cluster/brokers/1/undo-drain", {}, 409, "broker 1 is not drained"),
        ("/cluster/nodes/1/explode", {}, 400, "what: invalid enum value"),
    ):
        assert sentence in of_three.act(path, status=status, **fields)["error"]
    assert of_three.act("/cluster/cancel")["text"] == "Nothing is on the move."


@pytest.mark.browser
def test_the_cluster_in_the_browser(
    chromium: Browser, of_three: RunningConsole, three: BarnabasCluster, topic: str
) -> None:
    create(three, topic, [[1, 2, 3], [2, 3, 1], [3, 1, 2]])
    browser = chromium.at(of_three.url)
    browser.open("/cluster")
    browser.click("[data-open=kill-3]")
    browser.click("#kill-3 button.danger")
    browser.shows("is killed")
    wait_for(lambda: rows(of_three, topic)[0]["in_sync"] != rows(of_three, topic)[0]["replicas"], "broker 3 is behind")
    for path, name in (
        ("/cluster", "cluster"),
        (f"/cluster/partitions?topic={topic}&edit={topic}-0", "partitions"),
        ("/cluster/quorum", "quorum"),
        ("/cluster/log-dirs", "log-dirs"),
        ("/cluster/plan", "plan"),
    ):
        browser.looks(path, name)
    browser.size(1280)
    browser.open("/cluster")
    browser.click("[data-open=start-3]")
    browser.click("#start-3 button.primary")
    browser.shows("runs on")
    wait_for(lambda: not rows(of_three, topic, "under-replicated"), "all are in sync")
    browser.open(f"/cluster/partitions?edit={topic}-2")
    browser.fill("#brokers", "2, 3, 1")
    browser.click("form[aria-label='Move the partition'] button.primary")
    browser.shows(f"{topic}-2 moves to 2, 3, 1.")
    browser.open("/cluster/plan?broker=1&replicas=true")
    browser.check()
    browser.open("/cluster/plan?broker=1")
    browser.click("button.primary")
    browser.shows("away from broker 1")
    browser.shows("Drain broker 1")
    assert job_ends(of_three)["state"] == "done"
    browser.shows("done")
