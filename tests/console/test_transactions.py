"""The screens of transactions: what is open and whom it holds back, abort, hanging ones, producers of a topic."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.client.admin.topics import create_topic
from barnabas.client.admin.transactions import describe_producers
from barnabas.client.cluster import Cluster
from barnabas.client.groups.consumer_groups import commit_offsets
from barnabas.client.producer import Producer
from tests.support.console.browser import Browser
from tests.support.console.groups import hang, write, write_in_transaction
from tests.support.console.running import RunningConsole
from tests.support.waiting import wait_for


@pytest.fixture
def cluster(broker) -> Iterator[Cluster]:
    with Cluster(broker.bootstrap) as connected:
        yield connected


def open_ids(console: RunningConsole) -> list[str]:
    return [row["transactional_id"] for row in console.json("/transactions")["open"]]


def test_an_open_transaction_shows_what_it_holds_back_until_it_is_aborted(
    console: RunningConsole, cluster: Cluster, topic: str
) -> None:
    create_topic(cluster, topic, partitions=1)
    commit_offsets(cluster, f"{topic}-readers", {(topic, 0): 0})
    write(cluster, topic, 2)
    writer: Producer = write_in_transaction(cluster, topic, f"{topic}-pay")
    write(cluster, topic, 3)
    expected = [("Ongoing", 4, [f"{topic}-readers"])]

    def shows_it() -> bool:
        rows = [row for row in console.json("/transactions")["open"] if row["transactional_id"] == f"{topic}-pay"]
        return [(row["state"], row["held"], part["groups"]) for row in rows for part in row["partitions"]] == expected

    wait_for(shows_it, "the collector has seen the transaction and what it holds back")
    shown = console.json(f"/transactions/{topic}-pay")
    assert shown["partitions"] == [
        {
            "topic": topic,
            "partition": 0,
            "last_stable_offset": 2,
            "high_watermark": 6,
            "held": 4,
            "groups": [f"{topic}-readers"],
        }
    ]
    assert "4 offsets wait behind it" in console.text(f"/transactions/{topic}-pay")
    assert "Holds back" in console.text("/transactions")
    producers = console.json(f"/topics/{topic}/producers")["producers"]["rows"]
    assert writer.transaction is not None
    assert [(each["producer_id"]) for each in producers if each["open_since"] == 2] == [
        writer.transaction.identity.producer_id
    ]
    done = console.act(f"/transactions/{topic}-pay/abort")
    assert done["text"] == f"The transaction of {topic}-pay was aborted and its producer is fenced."
    assert console.json(f"/transactions/{topic}-pay")["partitions"] == []
    wait_for(lambda: f"{topic}-pay" not in open_ids(console), "the collector has seen the end")
    assert "There was no open transaction" in console.act(f"/transactions/{topic}-pay/abort")["text"]
    assert console.json("/transactions?state=Ongoing")["ids"]["total"] == 0
    assert console.json("/transactions/nobody", status=404)["error"] == "there is no transactional id 'nobody'"


def test_a_hanging_transaction_is_found_and_aborted(console: RunningConsole, cluster: Cluster, topic: str) -> None:
    create_topic(cluster, topic, partitions=1)
    hang(cluster, topic)
    assert console.json(f"/hanging?topic={topic}")["partitions"] is None
    shown = console.json(f"/hanging?search=true&topic={topic}&idle_s=0")
    assert [(row["topic"], row["partition"], row["start_offset"]) for row in shown["hanging"]] == [(topic, 0, 0)]
    assert "Since offset" in console.text(f"/hanging?search=true&topic={topic}&idle_s=0")
    assert (
        "no transaction is open"
        in console.act("/hanging/abort", 404, topic=topic, partition=0, start_offset=9)["error"]
    )
    console.act("/hanging/abort", topic=topic, partition=0, start_offset=0)
    (state,) = describe_producers(cluster, [(topic, 0)])[topic, 0]
    assert state.current_txn_start_offset == -1
    assert "there is no topic 'nowhere'" in console.json("/hanging?search=true&topic=nowhere", status=404)["error"]


@pytest.mark.browser
def test_transactions_in_the_browser(browser: Browser, cluster: Cluster, topic: str) -> None:
    create_topic(cluster, topic, partitions=1)
    commit_offsets(cluster, f"{topic}-readers", {(topic, 0): 0})
    name = f"{topic}-pay"
    write_in_transaction(cluster, topic, name)
    write(cluster, topic, 3)
    browser.open("/transactions")
    browser.shows("4 offsets")  # without a reload
    browser.looks("/transactions", "transactions", ready=".badge.warn")
    browser.size(1280)
    browser.click(f"a[href='/transactions/{name}']")
    browser.shows("Held back")
    browser.check()
    browser.click("[data-open=abort]")
    browser.check()
    browser.click("dialog[open] button.danger")
    browser.shows("was aborted and its producer is fenced.")
    browser.open(f"/topics/{topic}/producers")
    browser.shows("Last sequence")
    browser.check()
    browser.open("/hanging?search=true")
    browser.shows("No transaction hangs in")
    browser.check()
