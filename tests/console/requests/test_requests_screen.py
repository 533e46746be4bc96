"""The requests of a broker's clients on their screen: listed, filtered, opened, followed."""

from __future__ import annotations

import json

import pytest

from barnabas.client.admin.topics import create_topic
from barnabas.client.cluster import Cluster
from barnabas.client.errors import NotFound, refusal
from tests.support.console.browser import Browser
from tests.support.console.running import RunningConsole
from tests.support.processes.commands import call_command
from tests.support.waiting import wait_for


@pytest.fixture
def traffic(controlled: RunningConsole) -> str:
    """What a client named `shop` has done while somebody watched: two topics, one record, one mistake."""
    controlled.json("/requests")  # begins the watch
    with Cluster(controlled.settings.bootstrap, client_id="shop") as cluster:
        for name in ("req-orders", "req-bills"):
            refusal(create_topic, cluster, name, partitions=1)  # an earlier test may have made it
        with pytest.raises(NotFound):
            cluster.find_topic("req-nowhere")
    run = call_command("produce", "req-orders", stdin="<b>one</b>", bootstrap=controlled.settings.bootstrap)
    assert run.code == 0, run.stderr
    return "req-orders"


def test_requests_are_listed_filtered_and_opened(controlled: RunningConsole, traffic: str) -> None:
    view = controlled.json("/requests?client=shop")
    assert view["available"]
    apis = {row["api"] for row in view["requests"]}
    assert {"CreateTopics", "Metadata"} <= apis
    assert {row["client"] for row in view["requests"]} == {"shop"}
    only = controlled.json("/requests?client=shop&topic=req-bills")["requests"]
    assert {row["names"] for row in only} == {"req-bills"}
    failed = controlled.json("/requests?error=any&client=shop")["requests"]
    assert "req-nowhere: UNKNOWN_TOPIC_OR_PARTITION" in {error for row in failed for error in row["errors"]}
    assert controlled.json("/requests?error=unknown_topic&client=shop")["requests"]
    assert controlled.json("/requests?error=THERE_IS_NONE")["requests"] == []
    assert controlled.json("/requests?connection=999999")["requests"] == []
    assert all(row["client"] != "barnabas-console" for row in controlled.json("/requests")["requests"])
    assert "barnabas-console" in {row["client"] for row in controlled.json("/requests?own=true")["requests"]}
    number = only[-1]["number"]
    one = controlled.json(f"/requests/{number}")
    assert one["topics"] == ["req-bills"]
    assert "req-bills" in json.dumps(one["request"])
    assert one["request_bytes"].startswith("00000000  00")
    text = controlled.text(f"/requests/{number}")
    assert "throttleTimeMs" in text
    assert "req-bills" in text
    assert "is not kept any more" in controlled.json("/requests/999999999", status=404)["error"]


def test_records_are_shown_by_their_batches(controlled: RunningConsole, traffic: str) -> None:
    row = controlled.json(f"/requests?api=Produce&topic={traffic}")["requests"][0]
    (topic,) = controlled.json(f"/requests/{row['number']}")["request"]["topicData"]
    records = topic["partitionData"][0]["records"]
    assert records["batches"][0]["records"] == 1
    assert records["bytes"] > 60


def test_without_the_channel_one_sentence_says_how_to_get_it(console: RunningConsole) -> None:
    assert "'barnabas serve --console' shows them here" in console.text("/requests")
    assert console.json("/requests")["available"] is False
    assert "barnabas serve --console" in console.json("/requests/1", status=404)["error"]


@pytest.mark.browser
def test_requests_appear_as_they_happen(controlled: RunningConsole, chromium: Browser, traffic: str) -> None:
    chromium.at(controlled.url)
    chromium.open("/requests?client=later")
    chromium.shows("Live")
    with Cluster(controlled.settings.bootstrap, client_id="later<script>") as cluster:

        def has_appeared() -> bool:  # the broker is watched a moment after the page is live
            cluster.forget(traffic)
            cluster.find_topic(traffic)
            return "later<script>" in chromium.driver.execute_script("return document.body.innerText")

        wait_for(has_appeared, "the client is among the requests")
        chromium.shows(traffic)
        chromium.check()
        chromium.click("#pause")
        chromium.shows("Paused")
    chromium.click("#requests tbody a")
    chromium.shows("Bytes")
    chromium.click("details summary")
    chromium.shows("00000000")
    path = chromium.driver.current_url.removeprefix(controlled.url)
    chromium.looks(path, "request", "pre")
    chromium.looks("/requests", "requests", "#requests")
