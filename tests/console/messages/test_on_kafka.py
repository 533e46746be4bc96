"""Messages on Apache Kafka 4.4.0: pages, states of transactions, a search, a tail, records produced."""

from __future__ import annotations

import json

import pytest

from barnabas.client.admin.topics import create_topic
from barnabas.client.cluster import Cluster
from barnabas.client.producer import Producer
from barnabas.wire.clients.partitioners import RoundRobin
from tests.support.console.running import RunningConsole


@pytest.mark.jvm
def test_messages_of_kafka(kafka_console: RunningConsole) -> None:
    console = kafka_console
    with Cluster(console.settings.bootstrap) as cluster:
        create_topic(cluster, "messages", partitions=2)
        for codec, outcome in ((4, True), (0, False)):
            producer = Producer(cluster, RoundRobin, codec=codec, transactional_id=f"writer-{codec}")
            producer.open("messages")
            for number in range(30):
                producer.send("messages", b'{"number": %d}' % number, b"%d" % codec, partition=number % 2)
            producer.flush()
            assert producer.transaction is not None
            producer.transaction.end(commit=outcome)
            producer.transaction.wait_until_visible()
        page = console.json("/messages/messages?limit=10")
        assert [record["state"] for record in page["records"]] == ["aborted"] * 10
        assert [record["key"]["text"] for record in console.json(page["older"])["records"]] == ["0"] * 10
        committed = console.json("/messages/messages?isolation=read_committed&filter=value.number%3E25")["records"]
        assert sorted(record["value"]["content"]["number"] for record in committed) == [26, 27, 28, 29]
        assert {(record["state"], record["batch"]["codec"]) for record in committed} == {("committed", "zstd")}
        control = console.json("/messages/messages?control=true&start=oldest&limit=100")["records"]
        assert {record["control"].partition(" ")[0] for record in control} == {"", "COMMIT", "ABORT"}
        done = console.act("/messages/messages/produce", value="[1]", key="k", value_format="json", partition=0)
        assert console.json(done["location"])["record"]["value"]["content"] == [1]
        lines = console.client.get("/messages/messages/export?key=k").text.splitlines()
        assert [json.loads(line)["value"] for line in lines] == ["[1]"]
        with console.client.stream("GET", "/messages/messages/events") as response:
            for line in response.iter_lines():
                if line.startswith("event: following"):
                    console.act("/messages/messages/produce", value="tail")
                elif line.startswith("data:") and "rows" in line:
                    assert json.loads(line[5:])["rows"][0]["value"] == "tail"
                    break
