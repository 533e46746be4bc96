"""The screens of topics: the list, and one topic."""

from __future__ import annotations

import pytest

from barnabas.client.admin.topics import create_topic
from barnabas.client.cluster import Cluster
from tests.support.console.browser import Browser
from tests.support.console.running import RunningConsole


def test_the_list_and_a_topic_are_pages_and_json(console: RunningConsole, broker, topic: str) -> None:
    with Cluster(broker.bootstrap) as cluster:
        create_topic(cluster, topic, partitions=3)
    rows = console.json(f"/topics?search={topic}")["topics"]["rows"]
    assert [(row["name"], row["partitions"], row["records"], row["cleanup_policy"]) for row in rows] == [
        (topic, 3, 0, "delete")
    ]
    assert topic in console.text(f"/topics?search={topic}")
    assert [row["end"] for row in console.json(f"/topics/{topic}")["partitions"]] == [0, 0, 0]
    assert f'<h1 class="name">{topic}</h1>' in console.html(f"/topics/{topic}")


def test_what_is_wrong_is_a_sentence(console: RunningConsole) -> None:
    assert console.json("/topics/nowhere", status=404) == {"error": "there is no topic 'nowhere'"}
    assert "there is no topic 'nowhere'" in console.text("/topics/nowhere", status=404)
    assert console.json("/topics?page=0", status=400) == {"error": "page: expected `int` >= 1, not '0'"}
    assert "there is no column 'x'" in console.json("/topics?sort=x", status=400)["error"]
    assert "Not Found" in console.text("/nowhere", status=404)


@pytest.mark.browser
def test_topics_in_the_browser(browser: Browser, broker, topic: str) -> None:
    with Cluster(broker.bootstrap) as cluster:
        create_topic(cluster, topic, partitions=2)
    browser.open("/topics")
    browser.fill("[data-search]", topic)
    browser.shows(topic)
    browser.click(f"a[href='/topics/{topic}']")
    browser.shows("Partition")
    browser.looks("/topics", "topics")
    browser.looks(f"/topics/{topic}", "topic")
