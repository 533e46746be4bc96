"""The screens of the cluster and its topics on Apache Kafka 4.4.0."""

from __future__ import annotations

import pytest

from tests.support.console.browser import Browser
from tests.support.console.running import RunningConsole
from tests.support.waiting import wait_for

pytestmark = pytest.mark.jvm


def test_topics_configs_and_the_cluster_of_kafka(kafka_console: RunningConsole, topic: str) -> None:
    console = kafka_console
    assert "is created with 3 partitions" in console.act("/new-topic", name=topic, partitions=3)["text"]
    (row,) = console.json(f"/topics?search={topic}")["topics"]["rows"]
    assert (row["records"], row["cleanup_policy"]) == (0, "delete")
    console.act(f"/configs/topic/{topic}/set", key="max.message.bytes", value="60000")
    edited = console.json(f"/configs/topic/{topic}?edit=max.message.bytes")["edited"]
    assert (edited["value"], edited["default"]) == ("60000", "1048588")
    assert "has 4 partitions" in console.act(f"/topics/{topic}/add-partitions", total=4)["text"]
    wait_for(lambda: console.json(f"/topics/{topic}")["partitions"]["total"] == 4, "the brokers know the partitions")
    console.act("/cluster/elect", topic=topic)
    assert console.json("/cluster")["offline"] == 0
    assert console.json("/cluster/quorum")["members"][0]["role"] == "leader"
    assert console.json("/cluster/log-dirs")["directories"]["rows"][0]["total"] > 0

    def version() -> str:
        return str(console.json("/overview")["figures"]["brokers"][0]["version"])

    wait_for(lambda: version() == "Kafka 4.4", "the version of the broker is known")
    assert "0 offsets are deleted" in console.act(f"/topics/{topic}/empty")["text"]
    console.act(f"/topics/{topic}/delete", confirm=topic)
    wait_for(lambda: not console.json(f"/topics?search={topic}")["topics"]["rows"], "it is gone")


@pytest.mark.browser
def test_pages_of_kafka_in_the_browser(chromium: Browser, kafka_console: RunningConsole) -> None:
    browser = chromium.at(kafka_console.url)
    for path in ("/overview", "/topics", "/cluster", "/cluster/partitions", "/cluster/quorum", "/configs/broker/1"):
        browser.open(path)
        browser.one("main h1")
        browser.check()
