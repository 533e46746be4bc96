"""The screens of groups: list, one group of each kind, offsets with their preview, deletion; in the browser too."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import pytest

from barnabas.client.admin.configs import SET, ConfigChange, alter_config
from barnabas.client.admin.topics import create_topic
from barnabas.client.cluster import Cluster
from barnabas.client.groups.consumer_groups import commit_offsets, committed_offsets
from barnabas.console.screens.groups.one import ranges
from tests.support.console.browser import Browser
from tests.support.console.groups import RELEASE, ShareReader, join_streams, joined, write
from tests.support.console.running import RunningConsole
from tests.support.waiting import wait_for

HOSTILE = "<b onclick=alert(1)>g/r?o%u&p\u202e</b>"


@pytest.fixture
def cluster(broker) -> Iterator[Cluster]:
    with Cluster(broker.bootstrap) as connected:
        yield connected


def test_partitions_are_shown_as_ranges() -> None:
    assert ranges([("b", 1), ("a", 3), ("a", 0), ("a", 1), ("b", 1)]) == ["a:0-1", "a:3", "b:1"]
    assert ranges([]) == []


def test_offsets_are_previewed_and_set_while_the_group_has_no_members(
    console: RunningConsole, cluster: Cluster, topic: str
) -> None:
    group, page = f"{topic}{HOSTILE}", f"/groups/{quote(topic + HOSTILE, safe='')}"
    create_topic(cluster, topic, partitions=2)
    write(cluster, topic, 10)
    commit_offsets(cluster, group, {(topic, 0): 4, (topic, 1): 0})
    commit_offsets(cluster, f"{topic}-other", {(topic, 0): 7})

    def after(query: str) -> list[tuple[int, int | None, int, int | None]]:
        moves = console.json(f"{page}/offsets?{query}")["moves"]
        return [(move["partition"], move["before"], move["after"], move["change"]) for move in moves]

    assert after("to=earliest") == [(0, 4, 0, -4), (1, 0, 0, 0)]
    assert after("to=latest") == [(0, 4, 10, 6), (1, 0, 0, 0)]
    assert after("to=shift&value=%2B2") == [(0, 4, 6, 2), (1, 0, 0, 0)]
    assert after("to=time&value=2020-01-01") == [(0, 4, 0, -4), (1, 0, 0, 0)]
    assert after(f"to=offset&value=3&topic={topic}&partitions=0") == [(0, 4, 3, -1)]
    assert after(f"to=group&value={topic}-other") == [(0, 4, 7, 3)]
    assert (
        console.json(f"{page}/offsets?to=offset&value=99")["notes"][0] == f"{topic}-0: 99 is after the end; 10 is used"
    )
    for query, sentence in {
        "to=offset&value=x": "value: expected a number, not 'x'",
        "to=time&value=soon": "value: expected a date as 2026-12-24T18:00, not 'soon'",
        f"to=earliest&topic={topic}&partitions=9": f"partitions: topic '{topic}' has no partition 9, it has 2",
        "to=earliest&partitions=0": "partitions: name their topic as well",
        "to=group": "value: name the other group",
    }.items():
        assert console.json(f"{page}/offsets?{query}", status=400)["error"] == sentence
        html = console.html(f"{page}/offsets?{query}")
        assert 'class="failure" role="alert"' in html
        assert 'name="value"' in html, "the form stays, so that it can be put right"

    member = joined(cluster, group, topic)
    busy = console.json(f"{page}/offsets?to=latest")["busy"]
    assert busy == f"Group {group} has 1 member: barnabas at /127.0.0.1. Stop them first."
    assert console.act(f"{page}/offsets", status=409, moves=[f"{topic}:0=1"])["error"] == busy
    assert console.act(f"{page}/delete", status=409)["error"].endswith("it has members; stop them first")
    shown = console.json(page)
    assert (shown["kind"], shown["members_in_all"], shown["lag"]) == ("classic", 1, 6)
    assert [(row["client_id"], row["assigned"]) for row in shown["members"]] == [("barnabas", [f"{topic}:0-1"])]
    member.leave()
    wait_for(lambda: not console.json(page)["members"], "the member has left")

    html = console.html(f"{page}/offsets?to=latest")
    assert "<b onclick" not in html
    assert "\\u202e" in console.text(f"{page}/offsets?to=latest")
    moves = f"{topic}:0=10\n{topic}:1=0\n"
    assert f"2 offsets of group {topic}<b onclick" in console.submit(f"{page}/offsets", {"moves": moves})
    assert committed_offsets(cluster, group) == {(topic, 0): 10, (topic, 1): 0}
    assert "expected TOPIC:PARTITION=OFFSET" in console.act(f"{page}/offsets", status=400, moves=["x"])["error"]
    console.act(f"{page}/forget", topic=topic)
    assert committed_offsets(cluster, group) == {}
    assert console.json("/groups/nobody", status=404)["error"] == "there is no group 'nobody'"


def test_a_share_group_shows_how_often_its_records_were_delivered(
    console: RunningConsole, cluster: Cluster, topic: str
) -> None:
    create_topic(cluster, topic, partitions=1)
    write(cluster, topic, 3)
    group = f"{topic}-queue"
    alter_config(cluster, "group", group, [ConfigChange("share.auto.offset.reset", SET, "earliest")])
    reader = ShareReader(cluster, group, topic)
    wait_for(reader.fetch, "records are acquired")
    reader.fetch([(0, 1, RELEASE)])
    wait_for(lambda: console.json(f"/groups/{group}")["deliveries"]["rows"], "the release is stored")
    shown = console.json(f"/groups/{group}")
    assert shown["kind"] == "share"
    row = shown["deliveries"]["rows"][0]
    assert (row["topic"], row["first"], row["state"], row["deliveries"]) == (topic, 0, "available", 1)
    assert "share-reader" in console.text(f"/groups/{group}")
    assert "Stop them first" in console.act(f"/groups/{group}/offsets", status=409, moves=[f"{topic}:0=1"])["error"]
    reader.leave()
    wait_for(lambda: not console.json(f"/groups/{group}")["members"], "the member has left")
    console.act(f"/groups/{group}/offsets", moves=[f"{topic}:0=2"])
    assert [(part["committed"], part["lag"]) for part in console.json(f"/groups/{group}")["partitions"]["rows"]] == [
        (2, 1)
    ]


def test_a_streams_group_shows_its_topology_and_tasks(console: RunningConsole, cluster: Cluster, topic: str) -> None:
    create_topic(cluster, topic, partitions=2)
    group = f"{topic}-words"
    join_streams(cluster, group, topic)
    shown = console.json(f"/groups/{group}")
    assert (shown["kind"], shown["streams"]["topology_epoch"]) == ("streams", 1)
    assert [(part["subtopology"], part["sources"]) for part in shown["streams"]["subtopologies"]] == [("0", [topic])]
    assert [(task["process_id"], task["active"]) for task in shown["streams"]["tasks"]] == [
        ("process-1", ["0_0", "0_1"])
    ]
    assert "process-1" in console.text(f"/groups/{group}")


@pytest.mark.browser
def test_groups_in_the_browser(browser: Browser, cluster: Cluster, topic: str) -> None:
    create_topic(cluster, topic, partitions=3)
    for partition in range(3):
        write(cluster, topic, 5 * (partition + 1), partition)
    group = f"{topic}-readers"
    commit_offsets(cluster, group, {(topic, partition): 1 for partition in range(3)})
    browser.open("/groups")
    browser.fill("[data-search]", group)
    wait_for(lambda: len(browser.all("tbody a")) == 1, "the table has the group alone, as soon as it is sampled")
    browser.click(f"a[href='/groups/{group}']")
    browser.shows("Members")
    browser.one("[data-chart] canvas")  # the collector has samples of it
    write(cluster, topic, 4)
    wait_for(lambda: browser.one("[data-text=lag]").text == "31", "the lag follows without a reload")
    browser.looks(f"/groups/{group}", "group", ready="[data-chart] canvas")
    browser.size(1280)
    browser.click(f"a[href='/groups/{group}/offsets']")
    browser.click("form.inline button")
    browser.shows("Preview")
    browser.check()
    browser.click("form.action[aria-label='Set offsets'] button")
    browser.shows("3 offsets of group")
    assert committed_offsets(cluster, group) == dict.fromkeys([(topic, index) for index in range(3)], 0)
    browser.looks(f"/groups?search={topic}", "groups", ready="[data-chart] canvas")
    browser.size(1280)
    browser.open(f"/groups/{group}")
    browser.click("[data-open=delete]")
    browser.check()
    browser.click("dialog[open] button.danger")
    browser.shows(f"Group {group} was deleted.")
