"""Groups, transactions and figures on Apache Kafka 4.4.0: everything but the loads, which only our brokers tell."""

from __future__ import annotations

import pytest

from barnabas.client.admin.configs import SET, ConfigChange, alter_config
from barnabas.client.admin.topics import create_topic
from barnabas.client.cluster import Cluster
from barnabas.client.groups.consumer_groups import commit_offsets, committed_offsets
from tests.support.console.groups import RELEASE, ShareReader, join_streams, joined, write, write_in_transaction
from tests.support.console.running import RunningConsole
from tests.support.waiting import wait_for


@pytest.mark.jvm
def test_groups_and_transactions_of_kafka(kafka_console: RunningConsole) -> None:
    console = kafka_console
    with Cluster(console.settings.bootstrap) as cluster:
        create_topic(cluster, "orders", partitions=2)
        write(cluster, "orders", 10)
        commit_offsets(cluster, "readers", {("orders", 0): 4, ("orders", 1): 0})
        _lags_are_seen_and_offsets_are_changed(console, cluster)
        _a_transaction_is_seen_and_aborted(console, cluster)
        _share_and_streams_groups_are_seen(console, cluster)
    figures = console.json("/figures")
    (broker,) = figures["brokers"]
    assert (broker["answers"], broker["cpu"], broker["uptime_s"]) == (True, None, None)
    assert 0 < broker["disk"] < 1  # from DescribeLogDirs
    assert figures["bytes_in"]["times"] == []
    assert figures["messages_in"]["times"]
    assert [warning for warning in figures["warnings"] if warning["kind"] in ("refused", "unreachable")] == []


def _lags_are_seen_and_offsets_are_changed(console: RunningConsole, cluster: Cluster) -> None:
    def lag() -> object:
        return {row["group"]: row["lag"] for row in console.json("/groups")["groups"]["rows"]}.get("readers")

    wait_for(lambda: lag() == 6, "the collector has the lag")
    member = joined(cluster, "readers", "orders")
    busy = console.act("/groups/readers/offsets", status=409, moves=["orders:0=1"])["error"]
    assert busy == "Group readers has 1 member: barnabas at /127.0.0.1. Stop them first."
    member.leave()
    (move, _) = console.json("/groups/readers/offsets?to=latest")["moves"]
    assert (move["before"], move["after"], move["change"]) == (4, 10, 6)
    console.act("/groups/readers/offsets", moves=["orders:0=10"])
    assert committed_offsets(cluster, "readers")["orders", 0] == 10
    wait_for(lambda: lag() == 0, "the collector has the change")


def _a_transaction_is_seen_and_aborted(console: RunningConsole, cluster: Cluster) -> None:
    write_in_transaction(cluster, "orders", "pay")
    wait_for(
        lambda: any(row["held"] for row in console.json("/transactions")["open"]), "the collector has the transaction"
    )
    (row,) = console.json("/transactions")["open"]
    assert (row["transactional_id"], row["state"]) == ("pay", "Ongoing")
    assert [(part["topic"], part["held"], part["groups"]) for part in row["partitions"]] == [("orders", 1, ["readers"])]
    console.act("/transactions/pay/abort")
    wait_for(lambda: not console.json("/transactions")["open"], "the collector has the end")


def _share_and_streams_groups_are_seen(console: RunningConsole, cluster: Cluster) -> None:
    alter_config(cluster, "group", "queue", [ConfigChange("share.auto.offset.reset", SET, "earliest")])
    reader = ShareReader(cluster, "queue", "orders")
    wait_for(reader.fetch, "records are acquired")
    reader.fetch([(0, 1, RELEASE)])
    wait_for(lambda: console.json("/groups/queue")["deliveries"]["rows"], "the release is stored")
    rows = console.json("/groups/queue")["deliveries"]["rows"]
    assert (rows[0]["first"], rows[0]["state"], rows[0]["deliveries"]) == (0, "available", 1)
    create_topic(cluster, "lines", partitions=2)
    join_streams(cluster, "words", "lines")
    (task,) = console.json("/groups/words")["streams"]["tasks"]
    assert task["active"] == ["0_0", "0_1"]
    kinds = console.json("/groups")["kinds"]
    assert kinds == {"classic": 1, "share": 1, "streams": 1}
