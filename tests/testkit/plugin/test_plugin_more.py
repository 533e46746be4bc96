"""More of the pytest plugin, in runs of its own: log-ins, a running broker, seed files, what a failure keeps."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from barnabas.testing import Broker, SeedError
from barnabas.testing.seed_files import read_seed
from tests.support.cases import for_each
from tests.support.processes.commands import run_barnabas
from tests.testkit.plugin.inner_pytest import run

WITH_A_LOG_IN = """
import pytest

pytestmark = pytest.mark.kafka(auth="scram", tls=True)

def test_confluent(kafka, confluent, kafka_client_config, kafka_options):
    assert kafka_client_config["security.protocol"] == "SASL_SSL"
    assert kafka_client_config["sasl.username"] == kafka.access.username
    assert kafka_options["kafka.sasl.mechanism"] == "SCRAM-SHA-512"
    producer = confluent.producer()
    producer.produce("orders", "x"); producer.flush(10)
    kafka.topic("orders").assert_produced("x")

def test_kafka_python(kafka, kafka_python):
    kafka_python.producer().send("orders", b"x").get(10)

def test_aiokafka(kafka, aio):
    import asyncio
    async def main():
        async with aio.producer() as producer:
            await producer.send_and_wait("orders", b"x")
    asyncio.run(main())
"""


def test_clients_of_the_fixtures_log_in(tmp_path: Path) -> None:
    assert "3 passed" in run(tmp_path, WITH_A_LOG_IN)


OF_A_RUNNING_BROKER = """
def test_clients(kafka_bootstrap_servers, kafka_client_config, kafka_options, confluent):
    assert kafka_client_config == {"bootstrap.servers": kafka_bootstrap_servers}
    assert kafka_options == {"kafka.bootstrap.servers": kafka_bootstrap_servers}
    producer = confluent.producer()
    producer.produce("orders", "x"); assert producer.flush(10) == 0

def test_the_kit(kafka):
    pass
"""


def test_a_broker_without_a_control_channel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Broker() as running:
        monkeypatch.setenv("BARNABAS_TEST_BOOTSTRAP_SERVERS", running.bootstrap_servers)
        shown = run(tmp_path, OF_A_RUNNING_BROKER, code=1)
        assert "1 passed, 1 error" in shown
        assert f"_TEST_BOOTSTRAP_SERVERS names the broker {running.bootstrap_servers}, which clients can use" in shown
        running.topic("orders").assert_produced("x")


def test_a_broker_with_one_has_the_config_keys_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "def test_it(kafka):\n    kafka.topic('t').produce('x', partition=2)\n"
    with Broker() as running:
        channel = running._link.channel
        monkeypatch.setenv("BARNABAS_CONTROL", f"http://{channel.token}@{channel.url.removeprefix('http://')}")
        assert "1 passed" in run(tmp_path, text, "--barnabas-config", "num.partitions=3")
        monkeypatch.setenv("BARNABAS_CONTROL", channel.url)
        assert "BARNABAS_CONTROL must be http://TOKEN@HOST:PORT" in run(tmp_path, text, code=1)


def test_the_host_of_all_clusters(tmp_path: Path) -> None:
    text = """
import socket
def test_it(kafka, barnabas_broker):
    host, port = kafka.bootstrap_servers.split(":")
    assert host == "127.0.0.1"
    socket.create_connection(("127.0.0.2", int(port))).close()  # all addresses of the loopback, so it is 0.0.0.0
"""
    assert "1 passed" in run(tmp_path, text, "--barnabas-host", "0.0.0.0")
    assert "1 failed" in run(tmp_path, text, code=1)


SEEDED = """
import pytest

@pytest.mark.parametrize("number", [1, 2])
def test_it(kafka, number):
    first, second = kafka.topic("orders").records()
    assert (first.key, first.value, first.header("source"), first.timestamp) == (b"7", b'{"id": 7}', b"shop", 1000)
    assert (second.partition, second.value, second.key) == (2, b"\\xff", None)
    kafka.topic("orders").produce("another")
    assert [one.value for one in kafka.topic("states").records()] == [None]
"""


def test_seed_files(tmp_path: Path) -> None:
    headers = [{"name": "source", "value": "shop"}]
    orders = [
        {"partition": 0, "offset": 4, "timestamp": 1000, "key": "7", "value": '{"id": 7}', "headers": headers},
        {"partition": 2, "key": None, "value_base64": "/w=="},
        {"topic": "states", "key": "a", "value": None},
    ]
    (tmp_path / "orders.jsonl").write_text("".join(json.dumps(order) + "\n" for order in orders))
    (tmp_path / "pytest.ini").write_text("[pytest]\nbarnabas_load = orders.jsonl\n")
    assert "2 passed" in run(tmp_path, SEEDED)


def test_a_seed_file_is_what_consume_writes(tmp_path: Path) -> None:
    with Broker() as kafka:
        kafka.topic("orders").create(3)
        kafka.topic("orders").produce(b"\xff\xfe", key="a", headers={"h": b"\x00", "none": None}, partition=1)
        kafka.topic("orders").produce(None, key="b", partition=2)
        command = ["consume", "orders", "-b", kafka.bootstrap_servers, "--json", "-o", "start", "-e"]
        written = run_barnabas(command, os.environ)
        assert written.returncode == 0
        (tmp_path / "seed.jsonl").write_bytes(written.stdout)
        records = kafka.topic("orders").records()
    with Broker() as kafka:
        kafka.load(tmp_path / "seed.jsonl")
        again = kafka.topic("orders").records()
    assert again == records
    assert [record.timestamp for record in again] == [record.timestamp for record in records]


@for_each(
    ("line", "sentence"),
    [
        ("{", "seed.jsonl, line 2: Expecting"),
        ("[]", "seed.jsonl, line 2: a record is an object of JSON"),
        ('{"keys": "a"}', "seed.jsonl, line 2: a record has no keys; it has headers, key, key_base64, offset"),
        ('{"value": {"id": 7}}', "seed.jsonl, line 2: value must be a text or null, not {'id': 7}"),
        (
            '{"headers": [{"value": "x"}]}',
            "seed.jsonl, line 2: headers are a list of objects, each with a name and a value",
        ),
        ('{"partition": "0"}', "seed.jsonl, line 2: partition must be a whole number, not '0'"),
        ('{"value_base64": "?"}', "seed.jsonl, line 2: value_base64 must be base64"),
    ],
)
def test_lines_that_are_no_records(tmp_path: Path, line: str, sentence: str) -> None:
    (tmp_path / "seed.jsonl").write_text('{"value": "x"}\n' + line + "\n")
    with pytest.raises(SeedError, match=re.escape(sentence)):
        read_seed(tmp_path / "seed.jsonl")


def test_a_seed_file_that_is_not_there(tmp_path: Path) -> None:
    shown = run(tmp_path, "def test_it(kafka): pass\n", "--barnabas-load", "none.jsonl", code=1)
    assert "Cannot read the seed file" in shown


def test_the_cluster_of_a_failed_test_is_kept(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nbarnabas_keep_on_failure = kept\n")
    text = """
import pytest
@pytest.mark.parametrize("name", ["a/b", "good"])
def test_it(kafka, name):
    kafka.topic("orders").produce(name)
    assert name == "good"
"""
    for _ in range(2):  # the second run takes the place of the first
        shown = run(tmp_path, text, code=1)
        (directory,) = (tmp_path / "kept").iterdir()
        assert f"It is kept: barnabas serve --data-dir {directory}" in shown
    container = Broker({"log.dirs": str(directory)})
    with container as kafka:
        assert [record.text for record in kafka.topic("orders").records()] == ["a/b"]


def test_a_fixture_that_fails_shows_what_clients_did(tmp_path: Path) -> None:
    text = """
import pytest
@pytest.fixture
def service(kafka, confluent):
    producer = confluent.producer(**{"client.id": "shop"})
    producer.produce("orders", "a"); producer.flush(10)
    raise RuntimeError("it does not start")
def test_it(service): pass
"""
    assert "shop" in run(tmp_path, text, code=1).partition("- Barnabas: what clients did -")[2]


def test_a_forked_process_uses_the_cluster_beside_the_test(tmp_path: Path) -> None:
    text = """
import multiprocessing
def count(kafka):
    for number in range(50):
        kafka.topic("child").produce(str(number))
def test_it(kafka):
    kafka.topic("parent").produce("x")  # so there are connections to copy
    child = multiprocessing.get_context("fork").Process(target=count, args=(kafka,))
    child.start()
    for number in range(50):
        assert len(kafka.topic("parent").produce(str(number)).text) < 3
    child.join()
    assert child.exitcode == 0
    assert len(kafka.topic("child").records()) == 50 and len(kafka.topic("parent").records()) == 51
"""
    assert "1 passed" in run(tmp_path, text)


def test_a_failure_shows_records_and_groups(tmp_path: Path) -> None:
    text = """
def test_it(kafka, confluent):
    for number in range(5):
        kafka.topic("orders").produce(str(number))
    for name in "abcdef":
        kafka.topic(name).create(2)
    consumer = confluent.consumer("orders", group_id="billing")
    while consumer.poll(1) is None: pass
    assert False
"""
    shown = run(tmp_path, text, code=1)
    there = shown.partition("- Barnabas: what is there -")[2].partition("- Barnabas: what clients did -")[0]
    assert "a: 2 partitions, 0 offsets" in there
    assert "and 2 more topics" in there
    assert "Group billing: classic group, Stable; " in there
    assert "has {'orders': [0]}" in there
    alone = run(tmp_path, text.replace('"abcdef"', '""'), code=1)
    assert "orders: 1 partition, 5 offsets\n  orders-0@2 key=null value='2'\n" in alone
