"""The test lab: rules, clock, snapshots and coordinators of a broker with a control channel."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.client.admin.topics import create_topic
from barnabas.client.cluster import Cluster
from barnabas.client.errors import refusal
from barnabas.wire.errors import ErrorCode
from tests.support.console.browser import Browser
from tests.support.console.running import RunningConsole


def test_a_rule_is_added_fires_and_is_removed(controlled: RunningConsole) -> None:
    done = controlled.act(
        "/lab/add-fault", action="error", api="CreateTopics", error="POLICY_VIOLATION", topic="lab-topic"
    )
    assert "POLICY_VIOLATION" in done["text"]
    with Cluster(controlled.settings.bootstrap) as cluster:
        error = refusal(create_topic, cluster, "lab-topic", partitions=1)
        assert error is not None
        assert error.code == ErrorCode.POLICY_VIOLATION
    (row,) = controlled.json("/lab")["faults"]
    assert (row["condition"], row["hits"]) == ("api=CreateTopics, topic=lab-topic", 1)
    assert "lab-topic" in controlled.text("/lab")
    controlled.submit("/lab/remove-fault", {"rule": row["rule"]})
    assert controlled.json("/lab")["faults"] == []
    with Cluster(controlled.settings.bootstrap) as cluster:
        create_topic(cluster, "lab-topic", partitions=1)
    for wrong, sentence in (
        ({"action": "error"}, "error: which one?"),
        ({"action": "corrupt", "api": "Produce"}, "corrupt is for Fetch"),
        ({"action": "error", "error": "NO_SUCH"}, "Kafka has no error 'NO_SUCH'"),
    ):
        refused = controlled.client.post(
            "/api/lab/add-fault", json=wrong, headers={"x-csrf-token": controlled.csrf_token}
        )
        assert refused.status_code in (400, 409)
        assert sentence in refused.json()["error"]


def test_the_clock_stands_passes_and_runs(controlled: RunningConsole) -> None:
    controlled.act("/lab/clock", change="freeze")
    before = controlled.json("/lab")
    assert before["is_frozen"]
    controlled.act("/lab/clock", change="advance", seconds=90)
    assert controlled.json("/lab")["now_ms"] == before["now_ms"] + 90_000
    assert "stands still" in controlled.text("/lab")
    assert (
        "the clock is at 2031-05-06 07:08:00Z"
        in controlled.act("/lab/clock", change="jump", to="2031-05-06T07:08")["text"]
    )
    assert controlled.act("/lab/clock", change="jump", to="soon", status=400)["error"].startswith("to: ")
    controlled.act("/lab/clock", change="resume")
    assert not controlled.json("/lab")["is_frozen"]


def test_a_snapshot_is_saved_and_opened_as_a_cluster(controlled: RunningConsole, tmp_path: Path) -> None:
    controlled.act("/lab/snapshot", change="take")
    number = controlled.json("/lab")["snapshots"][-1]
    controlled.act("/lab/snapshot", change="save", snapshot=number, directory=str(tmp_path / "saved"))
    assert (tmp_path / "saved").is_dir()
    forked = controlled.act("/lab/snapshot", change="fork", snapshot=number)
    other = controlled.json(forked["location"])
    assert other["cluster_number"] > 0
    assert len(other["clusters"]) > 1
    controlled.act("/lab/snapshot", change="restore", snapshot=number, cluster_number=other["cluster_number"])
    refused = controlled.act("/lab/snapshot", change="restore", snapshot=number, status=409)
    assert "Cluster 0 is the broker itself" in refused["error"]
    controlled.act("/lab/snapshot", change="remove", snapshot=number)
    assert number not in controlled.json("/lab")["snapshots"]


def test_a_group_that_is_not_there_has_no_rebalance(controlled: RunningConsole) -> None:
    assert controlled.act("/lab/event", event="rebalance", status=400)["error"] == "group: which one?"
    assert (
        "no-such-group" in controlled.act("/lab/event", event="rebalance", group="no-such-group", status=409)["error"]
    )


def test_a_console_of_another_broker_has_no_lab(console: RunningConsole) -> None:
    assert "'barnabas serve --control --console' starts one" in console.text("/lab")
    assert "--control" in console.act("/lab/clock", change="freeze", status=409)["error"]


@pytest.mark.browser
def test_the_lab_in_the_browser(controlled: RunningConsole, chromium: Browser) -> None:
    chromium.at(controlled.url)
    chromium.open("/lab")
    chromium.click("[data-open=add-fault]")
    chromium.fill("#fault-topic", "<i>topic</i>")
    chromium.click("dialog[open] .primary")
    chromium.shows("added rule")
    chromium.shows("topic=<i>topic</i>")
    controlled.act("/lab/snapshot", change="take")
    chromium.looks("/lab", "lab")
    controlled.act("/lab/remove-fault")
