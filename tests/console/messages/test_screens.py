"""The screens of messages over HTTP: pages, records, parts, comparisons, exports, produced records, schemas, tails."""

from __future__ import annotations

import csv
import io
import json
from base64 import b64encode
from urllib.parse import quote

from barnabas.client.admin.topics import create_topic
from barnabas.client.cluster import Cluster
from barnabas.client.producer import Producer
from barnabas.wire.clients.partitioners import RoundRobin
from tests.support.console.running import RunningConsole

T0 = 1_763_000_000_000


def fill(
    broker, topic: str, values: list[bytes | None], partitions: int = 1, configs: dict[str, str] | None = None
) -> None:
    with Cluster(broker.bootstrap) as cluster:
        create_topic(cluster, topic, partitions=partitions, configs={"retention.ms": "-1"} | (configs or {}))
        producer = Producer(cluster, RoundRobin, batch_bytes=2_000_000)
        for number, value in enumerate(values):
            headers = [("source", b"web" if number % 2 else b"app")]
            key = b"key-%d" % number
            producer.send(topic, value, key, headers, partition=number % partitions, timestamp_ms=T0 + number)
        producer.flush()


def orders(count: int) -> list[bytes | None]:
    return [json.dumps({"amount": number, "items": [{"sku": f"s{number}"}]}).encode() for number in range(count)]


def test_pages_by_every_start_and_filter(console: RunningConsole, broker, topic: str) -> None:
    fill(broker, topic, orders(120), partitions=2)
    base = f"/messages/{topic}"

    def amounts(query: str) -> list[int]:
        return [record["value"]["content"]["amount"] for record in console.json(f"{base}?{query}")["records"]]

    newest = console.json(base)
    assert [record["value"]["content"]["amount"] for record in newest["records"]] == list(range(119, 69, -1))
    older = console.json(newest["older"])
    assert older["records"][0]["offset"] == 34
    assert console.json(older["newer"])["records"][0]["offset"] == 35
    assert amounts("start=oldest&limit=3") == [0, 1, 2]
    assert amounts("start=offset&at=50&partitions=1") == [101, 103, 105, 107, 109, 111, 113, 115, 117, 119]
    assert amounts(f"start=time&at={T0 + 100}&limit=2") == [100, 101]
    expression = quote('value.amount > 100 and headers.source == "web"')
    assert amounts(f"start=oldest&filter={expression}&limit=3") == [101, 103, 105]
    assert amounts("key=key-11&value=/amount.*11[56]/") == [116, 115]
    assert amounts("header=source%3Dapp&limit=2") == [118, 116]
    assert amounts(f"since={T0 + 30}&until={T0 + 32}") == [31, 30]
    text = console.text(f"{base}?filter=value.amount%20%3D%3D%2077")
    assert "1 record, newest first" in text
    assert "120 of 120 looked at" in text
    lacking = console.json(f"{base}?filter=value.amont%20%3D%3D%2077")
    assert (lacking["unusable"], lacking["records"]) == (120, [])
    assert console.json(f"/messages?search={topic}")["topics"]["rows"] == [
        {"name": topic, "partitions": 2, "records": 120}
    ]
    for query, said in (
        ("filter=value.amount%20%3E", "filter: 'value.amount >' is not an expression"),
        ("key=/(/", "key: '(' is not a regular expression"),
        ("start=offset&at=x", "at: 'x' is not an offset"),
        ("start=time&at=soon", "at: 'soon' is not a time"),
        ("start=group", "at: name the group"),
        ("after=1", "after: '1' is not a position"),
        ("value_format=avro:none", "value_format: there is no schema 'none'"),
        ("value_format=xml", "value_format: there is no format 'xml'"),
        ("partitions=a", "partitions: such as 0,2-5, not 'a'"),
        ("limit=5000", "limit:"),
    ):
        assert said in console.json(f"{base}?{query}", status=400)["error"]
        is_converted = said == "limit:"  # no query was made of it, so there is no form with it
        assert said.split(":")[0] in console.text(f"{base}?{query}", status=400 if is_converted else 200)
    wrong = console.html(f"{base}?filter=value.amount%20%3E&key=key-1")
    assert 'value="value.amount &gt;"' in wrong, "the page has the filter, to be put right"
    assert 'value="key-1"' in wrong
    assert 'class="record"' not in wrong
    assert "has no partition 7" in console.json(f"{base}?partitions=7", status=404)["error"]
    assert "there is no topic" in console.json("/messages/nowhere", status=404)["error"]


def test_a_record_its_parts_and_another_beside_it(console: RunningConsole, broker, topic: str) -> None:
    large = b"[" + b",".join(b"%d" % number for number in range(400_000)) + b"]"
    values = [b'{"a": 1, "b": 2}', b'{"a": 1, "b": 3}', None, b"\x00\xff\x10", large, "é".encode() * 700_000]
    fill(broker, topic, values, configs={"max.message.bytes": "10000000"})
    base = f"/messages/{topic}"
    record = console.json(f"{base}/0/0")["record"]
    assert record["value"]["text"] == '{\n  "a": 1,\n  "b": 2\n}'
    assert record["value"]["content"] == {"a": 1, "b": 2}
    assert record["key"]["text"] == "key-0"
    assert record["headers"][0]["value"]["text"] == "app"
    assert record["batch"]["record_count"] == 5
    assert record["batch"]["producer_id"] >= 0
    assert console.json(f"{base}/0/2")["record"]["value"]["format"] == "null"
    assert console.json(f"{base}/0/3")["record"]["value"]["text"] == "00 ff 10"
    assert "there is no offset 6" in console.json(f"{base}/0/6", status=404)["error"]

    assert console.json(f"{base}/0/4")["record"]["value"]["is_cut"]
    parts, at = [], 0
    while at >= 0:
        part = console.json(f"{base}/0/4/part?form=text&length=1000000&at={at}")
        parts.append(part["text"])
        at = part["next"]
    assert "".join(parts).encode() == large
    odd = console.json(f"{base}/0/5/part?form=text&length=4097")
    assert (odd["text"], odd["next"]) == ("é" * 2048, 4096)
    assert console.json(f"{base}/0/3/part?form=hex")["text"].startswith("00000000  00 ff 10 ")
    assert console.client.get(f"{base}/0/4/raw").content == large
    text = console.text(f"{base}?limit=20")
    assert len(text) < 20_000

    compared = console.json(f"{base}/compare?left=0:0&right=0:1")
    lines = {line["kind"]: (line["left"], line["right"]) for line in compared["parts"][1]["lines"]}
    assert lines["changed"] == ('  "b": 2', '  "b": 3')
    assert "1 line differs" in console.text(f"{base}/compare?left=0:0&right=0:1")
    assert "named by partition and offset" in console.json(f"{base}/compare?left=x&right=0:1", status=400)["error"]
    snippets = {each["name"]: each["text"] for each in console.json(f"{base}/0/0")["snippets"]}
    assert snippets["curl"] == f"curl -s {console.url}/api/messages/{topic}/0/0"
    port = console.url.rpartition(":")[2]
    elsewhere = console.client.get(f"/api{base}/0/0", headers={"host": f"localhost:{port}"}).json()["snippets"]
    assert elsewhere[0]["text"] == f"curl -s http://localhost:{port}/api/messages/{topic}/0/0"
    assert f"barnabas consume {topic} -b {broker.bootstrap} -p 0 -o 0:1 --json" == snippets["cli"]
    compile(snippets["confluent"], "snippet", "exec")
    compile(snippets["confluent-produce"], "snippet", "exec")


def test_exports(console: RunningConsole, broker, topic: str, monkeypatch) -> None:
    fill(broker, topic, [*orders(50), b"\xff\x00", None], partitions=2)
    path = f"/messages/{topic}/export"
    response = console.client.get(f"{path}?id=one")
    lines = [json.loads(line) for line in response.text.splitlines()]
    assert response.headers["content-disposition"] == f"attachment; filename*=UTF-8''{topic}.jsonl"
    assert [line["key"] for line in lines] == [f"key-{number}" for number in range(52)]
    assert lines[50]["value_base64"] == b64encode(b"\xff\x00").decode()
    assert console.json(f"/messages/{topic}/export-progress?id=one") == {
        "is_known": True, "scanned": 52, "total": 52, "records": 52, "size": len(response.content), "is_done": True,
        "failure": "",
    }  # fmt: skip
    assert not console.json(f"/messages/{topic}/export-progress?id=two")["is_known"]
    rows = list(csv.DictReader(io.StringIO(console.client.get(f"{path}?format=csv&filter=value.amount>47").text)))
    assert [(row["offset"], json.loads(row["value"])["amount"]) for row in rows] == [("24", 48), ("24", 49)]
    decoded = console.client.get(f"{path}?exact=false&limit=1").text
    assert json.loads(decoded)["value"] == {"amount": 0, "items": [{"sku": "s0"}]}
    page = console.json(f"/messages/{topic}?limit=4")
    shown = console.client.get(f"{path}?after={page['low']}&up_to={page['high']}").text
    assert [json.loads(line)["key"] for line in shown.splitlines()] == ["key-48", "key-49", "key-50", "key-51"]
    import pyarrow.parquet as pq

    table = pq.read_table(io.BytesIO(console.client.get(f"{path}?format=parquet").content))
    assert table.num_rows == 52
    assert table["value"].to_pylist()[50:] == [b"\xff\x00", None]
    monkeypatch.setattr("barnabas.console.messages.exports.find_spec", lambda _: None)
    response = console.client.get(f"{path}?format=parquet")
    assert response.status_code == 400
    assert "Parquet needs pyarrow" in response.text


def test_records_are_produced_as_written_and_again(console: RunningConsole, broker, topic: str) -> None:
    fill(broker, topic, [b'{"a": 1}', b"\x81\xa1a\x01", b"\xff\xfe", None], partitions=1)
    base = f"/messages/{topic}"
    form = console.json(f"{base}/new-record?copy=0:1")
    assert (form["value"]["format"], json.loads(form["value"]["text"])) == ("messagepack", {"a": 1})
    assert console.json(f"{base}/new-record?copy=0:2")["value"] == {"text": "fffe", "format": "hex"}
    assert console.json(f"{base}/new-record?copy=0:3")["value"]["format"] == "null"
    assert form["headers"] == "source: web"
    done = console.act(
        f"{base}/produce",
        value='{"a": 2}',
        value_format="messagepack",
        key="k",
        headers="source: web\nempty\nraw: 0x00ff",
    )
    assert done == {"text": "Produced a record: partition 0, offset 4.", "location": f"{base}/0/4"}
    record = console.json(f"{base}/0/4")["record"]
    assert (record["value"]["format"], record["value"]["content"]) == ("messagepack", {"a": 2})
    assert [header["value"]["format"] for header in record["headers"]] == ["text", "null", "hex"]
    assert "tombstone" in console.act(f"{base}/produce", key="k", value_format="null")["text"]
    assert console.json(f"{base}/0/5")["record"]["value"]["format"] == "null"
    page = console.submit(
        f"{base}/produce", {"key": "k", "value": "one\r\ntwo", "key_format": "text", "value_format": "text"}
    )
    assert "Produced a record: partition 0, offset 6." in page
    assert console.json(f"{base}/0/6")["record"]["value"]["text"] == "one\ntwo"
    for fields, said in (
        ({"value": "{", "value_format": "json"}, "value: it is not JSON"),
        ({"value": "xx", "value_format": "hex"}, "value:"),
        ({"headers": ": a"}, "headers: a line is"),
        ({"timestamp": "soon"}, "timestamp: 'soon' is not a time"),
    ):
        assert said in console.act(f"{base}/produce", status=400, **fields)["error"]
    assert "has no partition 9" in console.act(f"{base}/produce", status=404, partition=9)["error"]


ORDER_PROTO = """syntax = "proto3"; package shop;
message Order { int64 id = 1; string sku = 2; repeated Line lines = 3; message Line { double price = 1; } }
"""


def test_values_with_schemas(console: RunningConsole, broker, topic: str) -> None:
    schema = {
        "type": "record",
        "name": "Order",
        "fields": [{"name": "id", "type": "long"}, {"name": "sku", "type": "string"}],
    }
    console.act("/schemas/add", name="order.avsc", kind="avro", text=json.dumps(schema))
    console.act("/schemas/add", name="order.proto", kind="protobuf", text=ORDER_PROTO)
    assert "not a .proto file: line 1" in console.act("/schemas/add", 400, name="x", kind="protobuf", text="{")["error"]
    assert "not an Avro schema" in console.act("/schemas/add", 400, name="x", kind="avro", text="{}")["error"]
    fill(broker, topic, [])
    base = f"/messages/{topic}"
    written = '{"id": 5, "sku": "a"}'
    console.act(f"{base}/produce", value=written, value_format="avro:order.avsc")
    console.act(f"{base}/produce", value=written, value_format="protobuf:order.proto#shop.Order")
    avro = console.json(f"{base}?value_format=avro:order.avsc&filter=value.id==5")
    assert [record["value"]["content"] for record in avro["records"]] == [{"id": 5, "sku": "a"}]
    protobuf = console.json(f"{base}/0/1?value_format=protobuf:order.proto")["record"]["value"]
    assert protobuf["content"] == {"id": 5, "sku": "a", "lines": []}
    assert protobuf["schema"] == "order.proto#shop.Order"
    assert console.json(f"{base}/0/1?value_format=json")["record"]["value"]["problem"].startswith("not json:")
    assert "order.proto#shop.Order.Line" in console.text("/schemas")
    console.act("/schemas/remove", name="order.avsc")
    assert "there is no schema" in console.act("/schemas/remove", 400, name="order.avsc")["error"]


def test_what_arrives_is_streamed(console: RunningConsole, broker, topic: str) -> None:
    fill(broker, topic, orders(10))
    with console.client.stream("GET", f"/messages/{topic}/events?after=0:4&filter=value.amount>=100") as response:
        events = response.iter_lines()
        seen: list[dict] = []
        with Cluster(broker.bootstrap) as cluster:
            for line in events:
                if not line.startswith("data:"):
                    continue
                seen.append(json.loads(line[5:]))
                if len(seen) == 1:
                    producer = Producer(cluster, RoundRobin)
                    for amount in (5, 100, 101):
                        producer.send(topic, b'{"amount": %d}' % amount, partition=0)
                    producer.flush()
                elif sum(len(event["rows"]) for event in seen[1:]) == 2:
                    break
    assert seen[0] == {"positions": "0:10", "missed": 6}
    assert [row["offset"] for event in seen[1:] for row in event["rows"]] == [11, 12]
