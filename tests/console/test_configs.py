"""The configs of brokers, topics, groups and client metrics: shown with defaults and sources, set, reset."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.client.admin.topics import create_topic
from barnabas.client.cluster import Cluster
from tests.support.console.browser import Browser
from tests.support.console.running import RunningConsole


def config(console: RunningConsole, resource: str, key: str) -> dict[str, Any]:
    """What the console tells of one key."""
    described = console.json(f"/configs/{resource}?edit={key}")["edited"]
    assert isinstance(described, dict)
    return described


def test_keys_are_set_and_reset_with_their_default_in_sight(console: RunningConsole, broker, topic: str) -> None:
    with Cluster(broker.bootstrap) as cluster:
        create_topic(cluster, topic)
    before = config(console, f"topic/{topic}", "max.message.bytes")
    assert (before["value"], before["default"], before["is_set"]) == ("1048588", "1048588", False)
    assert "batch" in before["documentation"]
    done = console.act(f"/configs/topic/{topic}/set", key="max.message.bytes", value="60000")
    assert done["text"] == f"max.message.bytes of topic {topic} is set."
    after = config(console, f"topic/{topic}", "max.message.bytes")
    assert (after["value"], after["default"], after["source"], after["is_own"]) == ("60000", "1048588", "topic", True)
    only_set = console.json(f"/configs/topic/{topic}?only_set=true")["configs"]["rows"]
    assert [row["key"] for row in only_set] == ["max.message.bytes"]
    console.act(f"/configs/topic/{topic}/set", key="max.message.bytes", reset=True)
    assert config(console, f"topic/{topic}", "max.message.bytes") == before


def test_brokers_groups_and_subscriptions(console: RunningConsole, topic: str) -> None:
    node = console.json("/configs")["brokers"][0]
    console.act("/configs/broker/default/set", key="log.cleaner.threads", value="2")
    both = config(console, f"broker/{node}", "log.cleaner.threads")
    assert (both["value"], both["source"]) == ("2", "dynamic default broker")
    console.act("/configs/broker/default/set", key="log.cleaner.threads", reset=True)
    listeners = config(console, f"broker/{node}", "listeners")
    assert listeners["is_read_only"] is True
    assert listeners["source"] == "static broker"
    console.act(f"/configs/group/{topic}/set", key="consumer.session.timeout.ms", value="50000")
    console.act(f"/configs/client-metrics/{topic}/set", key="interval.ms", value="30000")
    listed = console.json("/configs")
    assert topic in listed["groups"]
    assert topic in listed["client_metrics"]


def test_a_key_without_effect_is_marked(console: RunningConsole) -> None:
    node = console.json("/configs")["brokers"][0]
    rows = console.json(f"/configs/broker/{node}?size=1000")["configs"]["rows"]
    kept = next(row["key"] for row in rows if not row["is_acted_on"] and not row["is_read_only"])
    console.act("/configs/broker/default/set", key=kept, reset=True)
    assert "The broker keeps this key and does not act on it" in console.text(f"/configs/broker/{node}?edit={kept}")


def test_what_is_wrong_is_a_sentence(console: RunningConsole, broker, topic: str) -> None:
    with Cluster(broker.bootstrap) as cluster:
        create_topic(cluster, topic)
    refused = console.act(f"/configs/topic/{topic}/set", key="retention.ms", value="x", status=400)
    assert "Invalid value x for configuration retention.ms" in refused["error"]
    assert console.json("/configs/topic/nowhere", status=404)["error"] == "there is no topic 'nowhere'"
    assert "there is no key 'x'" in console.json(f"/configs/topic/{topic}?edit=x", status=400)["error"]
    assert "a broker is named by its id" in console.json("/configs/broker/x", status=400)["error"]
    assert "kind" in console.json("/configs/planet/mars", status=400)["error"]


@pytest.mark.browser
def test_configs_in_the_browser(browser: Browser, console: RunningConsole, broker, topic: str) -> None:
    with Cluster(broker.bootstrap) as cluster:
        create_topic(cluster, topic)
    browser.open(f"/configs/topic/{topic}")
    browser.fill("[data-search]", "cleanup.policy")
    browser.click("a[aria-label='Edit cleanup.policy']")
    browser.fill("#value", "shred")
    browser.click("button.primary")
    browser.one(".outcome .failure")
    browser.fill("#value", "compact")
    browser.click("button.primary")
    browser.shows(f"cleanup.policy of topic {topic} is set.")
    assert config(console, f"topic/{topic}", "cleanup.policy")["value"] == "compact"
    browser.looks("/configs/broker/1?edit=log.retention.ms", "configs")
    browser.looks("/configs", "configs-list")
