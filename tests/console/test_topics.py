"""The screens of topics: the list, one topic, create, clone, grow, empty, delete."""

from __future__ import annotations

import pytest

from barnabas.client.admin.topics import create_topic, describe_topics
from barnabas.client.cluster import Cluster
from barnabas.client.groups.consumer_groups import commit_offsets
from barnabas.console.screens.topics import listing
from tests.support.console.browser import Browser
from tests.support.console.running import RunningConsole, running_console
from tests.support.processes.commands import call_command
from tests.support.waiting import wait_for


def produce(bootstrap: str, topic: str, *values: str) -> None:
    """Send one record for each value."""
    call_command("produce", topic, stdin="\n".join(values) + "\n", bootstrap=bootstrap).ok()


def test_the_list_and_a_topic_are_pages_and_json(console: RunningConsole, broker, topic: str) -> None:
    with Cluster(broker.bootstrap) as cluster:
        create_topic(cluster, topic, partitions=3)
    produce(broker.bootstrap, topic, "one", "two")
    rows = console.json(f"/topics?search={topic}")["topics"]["rows"]
    assert [(row["name"], row["partitions"], row["records"], row["cleanup_policy"]) for row in rows] == [
        (topic, 3, 2, "delete")
    ]
    assert rows[0]["size"] > 0
    assert topic in console.text(f"/topics?search={topic}")
    described = console.json(f"/topics/{topic}")
    assert sum(row["records"] for row in described["partitions"]["rows"]) == described["records"] == 2
    assert {setting["key"]: setting["is_set"] for setting in described["settings"]}["cleanup.policy"] is False
    assert f'<h1 class="name">{topic}</h1>' in console.html(f"/topics/{topic}")


def test_the_list_is_sorted_searched_and_paged(
    console: RunningConsole, broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"{topic}-{letter}" for letter in "abcde"]
    with Cluster(broker.bootstrap) as cluster:
        for count, name in enumerate(names, 1):
            create_topic(cluster, name, partitions=count)

    def shown(query: str) -> list[str]:
        page = console.json(f"/topics?search={topic}-&{query}")["topics"]
        assert page["matched"] == 5
        return [row["name"] for row in page["rows"]]

    assert shown("size=2") == names[:2]
    assert shown("size=2&page=3") == shown("size=2&page=99") == names[4:]
    assert shown("sort=partitions&desc=true") == names[::-1]
    produce(broker.bootstrap, names[3], "one", "two")
    produce(broker.bootstrap, names[1], "one")
    assert shown("sort=records&desc=true&size=2") == [names[3], names[1]]
    assert shown("sort=size&desc=true&size=1") == [names[3]]
    with monkeypatch.context() as patched:
        patched.setattr(listing, "MAX_SORTED", 14)
        assert "are too many to be sorted by size" in console.json("/topics?sort=size", status=400)["error"]
    with Cluster(broker.bootstrap) as cluster:
        commit_offsets(cluster, f"{topic}-readers", {(names[3], 0): 1})

    def groups() -> list[int]:
        return [row["groups"] for row in console.json(f"/topics?search={topic}-")["topics"]["rows"]]

    wait_for(lambda: groups() == [0, 0, 0, 1, 0], "the collector knows the group")
    page = console.text(f"/topics?search={topic}-&size=2&page=2")
    assert "Page 2 of 3" in page
    assert names[2] in page
    assert names[0] not in page


def test_a_topic_is_created_cloned_grown_emptied_and_deleted(console: RunningConsole, broker, topic: str) -> None:
    done = console.act("/new-topic", name=topic, partitions=2, configs={"retention.ms": "1000000"})
    assert done == {"text": f"Topic {topic} is created with 2 partitions.", "location": f"/topics/{topic}"}
    produce(broker.bootstrap, topic, "one", "two", "three")
    begins_with = console.json(f"/new-topic?like={topic}")
    assert begins_with["partitions"] == 2
    assert begins_with["configs"] == {"retention.ms": "1000000"}
    clone = f"{topic}-clone"
    fields = {"name": clone, "partitions": "", "config_lines": "retention.ms=1000000\r\n\r\nmax.message.bytes=5000\r\n"}
    assert f"Topic {clone} is created" in console.submit("/new-topic", fields)
    settings = {row["key"]: row["value"] for row in console.json(f"/topics/{clone}")["settings"]}
    assert settings["retention.ms"], settings["max.message.bytes"] == ("1000000", "5000")

    assert "has 4 partitions" in console.act(f"/topics/{topic}/add-partitions", total=4)["text"]
    assert "3 offsets are deleted" in console.act(f"/topics/{topic}/empty")["text"]
    assert console.json(f"/topics/{topic}")["records"] == 0
    refused = console.act(f"/topics/{topic}/delete", confirm="other", status=400)
    assert refused["error"] == f"confirm: type the name of the topic, {topic}, to delete it"
    assert f"Topic {topic} is deleted." in console.submit(f"/topics/{topic}/delete", {"confirm": topic})
    assert console.json(f"/topics/{topic}", status=404) == {"error": f"there is no topic {topic!r}"}


def test_what_is_wrong_is_a_sentence(console: RunningConsole, broker, topic: str) -> None:
    assert console.json("/topics/nowhere", status=404) == {"error": "there is no topic 'nowhere'"}
    assert "there is no topic 'nowhere'" in console.text("/topics/nowhere", status=404)
    assert console.json("/topics?page=0", status=400) == {"error": "page: expected `int` >= 1, not '0'"}
    assert "there is no column 'x'" in console.json("/topics?sort=x", status=400)["error"]
    assert "Not Found" in console.text("/nowhere", status=404)
    with Cluster(broker.bootstrap) as cluster:
        create_topic(cluster, topic)
    for path, fields, status, sentence in (
        ("/new-topic", {"name": topic}, 409, "TOPIC_ALREADY_EXISTS"),
        ("/new-topic", {"name": "a b"}, 400, "INVALID_TOPIC_EXCEPTION"),
        ("/new-topic", {"name": "x", "configs": {"no.such": "1"}}, 400, "no.such"),
        ("/new-topic", {"name": "x", "partitions": 0}, 400, "partitions: expected `int` >= 1"),
        ("/new-topic", {}, 400, "name is missing"),
        ("/new-topic", {"name": "x", "colour": "red"}, 400, "there is no field 'colour'"),
        ("/new-topic", {"name": "x", "config_lines": "novalue"}, 400, "a line must be KEY=VALUE, not 'novalue'"),
        (f"/topics/{topic}/add-partitions", {"total": 1}, 400, "INVALID_PARTITIONS"),
        (f"/topics/{topic}/empty", {"partitions": [7]}, 400, "has no partition 7"),
        ("/topics/nowhere/empty", {}, 404, "there is no topic 'nowhere'"),
    ):
        assert sentence in console.act(path, status=status, **fields)["error"]
    response = console.client.post("/api/new-topic", content=b"{", headers={"x-csrf-token": console.csrf_token})
    assert response.status_code == 400
    assert "the body is not JSON" in response.json()["error"]


@pytest.mark.browser
def test_topics_in_the_browser(browser: Browser, console: RunningConsole, broker, topic: str) -> None:
    browser.open("/topics")
    browser.click("a[href='/new-topic']")
    browser.fill("#name", topic)
    browser.fill("#partitions", "2")
    browser.fill("#config_lines", "retention.ms=oops")
    browser.click("button.primary")
    browser.shows("retention.ms")  # the broker's sentence, in the form, which keeps what was typed
    browser.one(".outcome .failure")
    browser.fill("#config_lines", "retention.ms=3600000")
    browser.click("button.primary")
    browser.shows(f"Topic {topic} is created with 2 partitions.")
    produce(broker.bootstrap, topic, *map(str, range(20)))
    browser.looks(f"/topics/{topic}", "topic")
    browser.size(1280)
    browser.open(f"/topics/{topic}")
    browser.click("[data-open=grow]")
    browser.check()
    browser.fill("#total", "5")
    browser.click("dialog[open] button.primary")
    browser.shows(f"Topic {topic} has 5 partitions.")
    browser.click("[data-open=empty]")
    browser.click("dialog[open] button.danger")
    browser.shows("20 offsets are deleted")

    browser.open("/topics")
    browser.keys("/")
    browser.type(topic[:-1] + "x")
    browser.shows("Nothing contains")
    browser.fill("[data-search]", topic)
    browser.shows(topic)
    assert topic in browser.driver.current_url
    browser.looks("/topics", "topics")
    browser.looks(f"/new-topic?like={topic}", "new-topic")

    browser.size(1280)
    browser.open(f"/topics/{topic}")
    browser.click("[data-open=delete]")
    browser.fill("#confirm", "other")
    browser.click("dialog[open] button.danger")
    browser.shows(f"type the name of the topic, {topic}")
    browser.fill("#confirm", topic)
    browser.click("dialog[open] button.danger")
    browser.shows(f"Topic {topic} is deleted.")
    with Cluster(broker.bootstrap) as cluster, pytest.raises(Exception, match="there is no topic"):
        describe_topics(cluster, [topic])


def test_topics_are_listed_though_their_leader_is_not_reached(start_broker, topic: str) -> None:
    server = start_broker(config={"advertised.listeners": "PLAINTEXT://broker.invalid:9092"})
    bootstrap = f"127.0.0.1:{server.port}"
    with Cluster(bootstrap) as cluster:
        create_topic(cluster, topic)
    with running_console(bootstrap, timeout_s=1.0) as console:
        for path in ("/topics", "/messages", "/topics?sort=size"):
            view = console.json(path)
            assert [(row["name"], row["records"]) for row in view["topics"]["rows"]] == [(topic, None)]
            assert "broker.invalid:9092" in view["unknown"]
            assert "this is the address that node 1 advertises" in console.text(path)
