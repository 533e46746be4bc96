"""Sessions of real clients, recorded and answered from the recording, in runs of pytest of their own."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from confluent_kafka import Producer

from barnabas.testing import Broker, Cluster
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.headers import RequestHeader
from tests.testkit.test_plugin import run

CONFLUENT = """
import pytest

@pytest.mark.kafka(cassette="orders", topics={"orders": 2})
def test_it(kafka, confluent):
    producer = confluent.producer(**{"enable.idempotence": True})
    for number in range(20):
        producer.produce("orders", VALUE % number, key=str(number))
    assert producer.flush(20) == 0
    consumer = confluent.consumer("orders", group_id="billing", **CONFIG)
    values = set()
    while len(values) < 20:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            values.add(message.value().decode())
            consumer.commit(message, asynchronous=False)
    assert values == {VALUE % number for number in range(20)}
    producer.list_topics(timeout=10)
"""
PYTHON = """
import pytest

@pytest.mark.kafka(cassette="orders", topics={"orders": 2})
def test_it(kafka, kafka_python):
    producer = kafka_python.producer()
    for number in range(20):
        producer.send("orders", b"%d" % number, key=b"k%d" % number)
    producer.flush(20)
    consumer = kafka_python.consumer("orders", group_id="billing")
    assert {int(next(consumer).value) for _ in range(20)} == set(range(20))
"""
AIO = """
import asyncio, pytest

@pytest.mark.kafka(cassette="orders", topics={"orders": 2})
def test_it(kafka, aio):
    async def main():
        async with aio.producer() as producer:
            for number in range(20):
                await producer.send_and_wait("orders", b"%d" % number, key=b"k%d" % number)
        async with aio.consumer("orders", group_id="billing") as consumer:
            assert {int((await consumer.getone()).value) for _ in range(20)} == set(range(20))
    asyncio.run(main())
"""


def confluent(protocol: str, value: str = "order %d") -> str:
    """A test of a producer and a consumer with this group protocol."""
    return f"VALUE = {value!r}\nCONFIG = {{'group.protocol': {protocol!r}}}\n{CONFLUENT}"


@pytest.mark.parametrize(
    "text",
    [confluent("classic"), confluent("consumer"), PYTHON, AIO],
    ids=["confluent-classic", "confluent-consumer", "kafka-python", "aiokafka"],
)
def test_a_session_is_answered_from_its_recording(tmp_path: Path, text: str) -> None:
    assert "1 passed" in run(tmp_path, text)
    file = tmp_path / "cassettes" / "orders.cassette"
    recorded = file.read_text()
    for _ in range(2):
        assert "1 passed" in run(tmp_path, text)
    assert file.read_text() == recorded


def test_a_record_that_the_cassette_does_not_have(tmp_path: Path) -> None:
    run(tmp_path, confluent("classic"))
    changed = confluent("classic", "invoice %d")
    shown = run(tmp_path, changed.replace("flush(20)", "flush(5)"), code=1)
    assert "orders.cassette has no answer to what was asked (--barnabas-record records anew):" in shown
    assert "Produce to orders-" in shown
    assert " of a record with key '" in shown
    assert ", value 'invoice " in shown
    assert "; next comes key '" in shown
    run(tmp_path, changed, "--barnabas-record")
    assert "1 passed" in run(tmp_path, changed)


def test_a_request_that_the_cassette_does_not_have(tmp_path: Path) -> None:
    text = """
import pytest
from confluent_kafka.admin import NewTopic

@pytest.mark.kafka(cassette="orders")
def test_it(kafka, confluent):
    admin = confluent.admin()
    admin.create_topics([NewTopic("NAME", 1)])["NAME"].result(TIMEOUT)
"""
    same = text.replace("NAME", "orders").replace("TIMEOUT", "30")
    run(tmp_path, same)
    assert "1 passed" in run(tmp_path, same)
    shown = run(tmp_path, text.replace("NAME", "other").replace("TIMEOUT", "5"), code=1)
    assert "CreateTopics v" in shown
    assert "'name': 'other'" in shown
    assert "next comes CreateTopics v" in shown
    assert "'name': 'orders'" in shown


def test_a_failed_test_writes_no_cassette(tmp_path: Path) -> None:
    run(tmp_path, confluent("classic") + "    assert False\n", code=1)
    assert not (tmp_path / "cassettes").exists()
    skipped = 'import pytest\n@pytest.mark.kafka(cassette="orders")\ndef test_it(kafka): pytest.skip("not now")\n'
    run(tmp_path, skipped)
    assert not (tmp_path / "cassettes").exists()


@pytest.mark.parametrize(
    ("cassette", "sentence"),
    [
        ("no JSON\n", "The cassette cannot be read: line 1 is not JSON"),
        ("{}\n", 'it is no cassette: its first line must be {"cassette": 1}'),
        ('{"cassette": 1}\n{"connection": 1}\n', "line 2 is no request of a session: KeyError: 'at'"),
    ],
)
def test_a_file_that_is_no_cassette(tmp_path: Path, cassette: str, sentence: str) -> None:
    (tmp_path / "cassettes").mkdir()
    (tmp_path / "cassettes" / "orders.cassette").write_text(cassette)
    text = 'import pytest\n@pytest.mark.kafka(cassette="orders")\ndef test_it(kafka): pass\n'
    assert sentence in run(tmp_path, text, code=1)


def test_a_request_without_a_response_is_closed(tmp_path: Path) -> None:
    run(tmp_path, confluent("classic"))
    cassette = tmp_path / "cassettes" / "orders.cassette"
    lines = [line for line in cassette.read_text().splitlines() if '"FIND_COORDINATOR"' not in line]
    cassette.write_text("\n".join(lines) + "\n")
    text = confluent("classic").replace("while len(values) < 20:", "for _ in range(5):")
    assert "no FindCoordinator comes any more" in run(tmp_path, text, code=1)


def test_a_replay_has_no_log(tmp_path: Path) -> None:
    text = 'import pytest\n@pytest.mark.kafka(cassette="orders")\ndef test_it(kafka): kafka.topic("t").records()\n'
    run(tmp_path, text)
    assert "This cluster answers from a cassette: there is no broker to ask, and no log" in run(tmp_path, text, code=1)


def test_a_cassette_needs_a_name(tmp_path: Path) -> None:
    text = 'import pytest\n@pytest.mark.kafka(cassette="../orders")\ndef test_it(kafka): pass\n'
    assert "cassette must be a name, as orders, not '../orders'" in run(tmp_path, text, code=1)


def ask_later(cluster: Cluster) -> bytes:
    """What a client is answered that asks with an ApiVersions of version 9, with correlation id 7."""
    host, port = cluster.bootstrap_servers.rsplit(":", 1)
    body = RequestHeader(request_api_key=18, request_api_version=9, correlation_id=7, client_id="later").encode(2)
    body += ApiVersionsRequest(client_software_name="later", client_software_version="9").encode(4)
    with socket.create_connection((host, int(port)), timeout=10) as connection, connection.makefile("rb") as answers:
        connection.sendall(len(body).to_bytes(4, "big") + body)
        return answers.read(int.from_bytes(answers.read(4), "big"))


def test_a_client_of_a_later_version(barnabas_broker: Broker) -> None:
    """Its ApiVersions is answered in version 0 (KIP-511), in the recording and from it."""
    recorded = barnabas_broker.open(record=True)
    first = ask_later(recorded)
    replayed = barnabas_broker.open(cassette=recorded.end().cassette)
    assert ask_later(replayed) == first
    assert first[:6] == b"\0\0\0\7\0\x23"
    assert replayed.end().missing == []


def test_two_sessions_of_one_cassette(barnabas_broker: Broker) -> None:
    """Each has a state of its own: the record is sent once in each, and the second time in the same one is refused."""
    recorded = barnabas_broker.open(record=True)
    assert send(recorded, 10) == 0
    cassette = recorded.end().cassette
    for _ in range(2):
        replayed = barnabas_broker.open(cassette=cassette)
        assert send(replayed, 10) == 0
        assert send(replayed, 3) == 1
        missing = replayed.end().missing
        assert any(
            "Produce to orders-0 of a record with key null, value 'x'; none comes any more" in one for one in missing
        )


def send(cluster: Cluster, seconds: float) -> int:
    """Send a record; how many were not acknowledged in time."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 0})
    producer.produce("orders", "x", partition=0)
    return producer.flush(seconds)
