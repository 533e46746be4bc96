"""Sessions of real clients, recorded and answered from the recording, in runs of pytest of their own."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Producer

from barnabas.testing import Broker, Cluster
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.headers import RequestHeader
from tests.testkit.plugin.inner_pytest import run

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


@pytest.fixture(autouse=True)
def _one_broker(barnabas_broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The inner runs use the broker of this one, which spares the start of a process for each."""
    channel = barnabas_broker.channel
    monkeypatch.setenv("BARNABAS_CONTROL", f"http://{channel.token}@{channel.url.removeprefix('http://')}")


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
    shown = run(tmp_path, changed, code=1)
    assert "orders.cassette has no answer to what was asked (--barnabas-record-mode all records anew):" in shown
    assert "Produce to orders-" in shown
    assert " of a record with key '" in shown
    assert ", value 'invoice " in shown
    assert "; next comes key '" in shown
    run(tmp_path, changed, "--barnabas-record-mode", "all")
    assert "1 passed" in run(tmp_path, changed)


def test_a_request_that_the_cassette_does_not_have(tmp_path: Path) -> None:
    text = """
import pytest
from confluent_kafka.admin import NewTopic

@pytest.mark.kafka(cassette="orders")
def test_it(kafka, confluent):
    admin = confluent.admin()
    admin.create_topics([NewTopic("NAME", 1)])["NAME"].result(30)
"""
    same = text.replace("NAME", "orders")
    run(tmp_path, same)
    assert "1 passed" in run(tmp_path, same)
    shown = run(tmp_path, text.replace("NAME", "other"), code=1)
    assert "CreateTopics v" in shown
    assert "'name': 'other'" in shown
    assert "next comes CreateTopics v" in shown
    assert "'name': 'orders'" in shown


def test_modes(tmp_path: Path) -> None:
    """The modes are as in vcr.py; `new_episodes` is refused."""
    text = confluent("classic")
    file = tmp_path / "cassettes" / "orders.cassette"
    shown = run(tmp_path, text, "--barnabas-record-mode", "none", code=1)
    assert "orders.cassette: it is not there, and barnabas_record_mode=none records nothing" in shown
    run(tmp_path, text, "-o", "barnabas_record_mode=once")
    first = file.read_text()
    run(tmp_path, text, "--barnabas-record-mode", "none")
    assert file.read_text() == first
    run(tmp_path, text, "--barnabas-record-mode", "all")
    assert file.read_text() != first
    shown = run(tmp_path, text, "--barnabas-record-mode", "new_episodes", code=4)
    assert "barnabas_record_mode must be once, none or all, not 'new_episodes'" in shown
    assert [path.name for path in file.parent.iterdir()] == ["orders.cassette"]


def test_a_cassette_with_the_name_of_its_test(tmp_path: Path) -> None:
    text = """
import pytest

@pytest.mark.parametrize("topic", ["a/b", "c"])
@pytest.mark.kafka(cassette=True, cassette_timing="recorded")
def test_topics(kafka, confluent, topic):
    assert confluent.admin().list_topics(timeout=10).brokers
"""
    for _ in range(2):
        assert "2 passed" in run(tmp_path, text)
    names = {path.name for path in (tmp_path / "cassettes").iterdir()}
    assert names == {"test_it.test_topics-a-b.cassette", "test_it.test_topics-c.cassette"}
    wrong = text.replace('"recorded"', '"slow"')
    assert "cassette_timing must be fast or recorded, not 'slow'" in run(tmp_path, wrong, code=1)


def test_an_edited_cassette(tmp_path: Path) -> None:
    """What consumers are given is what the file says."""
    text = """
import pytest

@pytest.mark.kafka(cassette="orders", topics={"orders": 1})
def test_it(kafka, confluent):
    if PRODUCES:
        producer = confluent.producer()
        producer.produce("orders", "first")
        producer.flush(20)
    consumer = confluent.consumer("orders")
    while (message := consumer.poll(1)) is None: pass
    assert message.value() == b"VALUE"
"""
    run(tmp_path, text.replace("PRODUCES", "True").replace("VALUE", "first"))
    file = tmp_path / "cassettes" / "orders.cassette"
    file.write_text(file.read_text().replace('"value": "first"', '"value": "edited"'))
    run(tmp_path, text.replace("PRODUCES", "False").replace("VALUE", "edited"))


def test_a_cassette_holds_no_password(barnabas_broker: Broker) -> None:
    """Log-ins by PLAIN are recorded without what was sent, and anybody may log in at the replay."""
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="the-password";'
    keys = {"sasl.enabled.mechanisms": "PLAIN", "listener.name.sasl_plaintext.plain.sasl.jaas.config": jaas}
    recorded = barnabas_broker.open(keys | {"listeners": "SASL_PLAINTEXT://127.0.0.1:0"}, record=True)
    assert send_as_alice(recorded, "the-password") is None
    cassette = recorded.end().cassette
    assert cassette is not None
    assert '"api": "SaslAuthenticate"' in cassette
    assert "the-password" not in cassette
    replayed = barnabas_broker.open(cassette=cassette)
    assert send_as_alice(replayed, "another") is None
    assert replayed.end().missing == []


def test_a_failed_test_writes_no_cassette(tmp_path: Path) -> None:
    run(tmp_path, confluent("classic") + "    assert False\n", code=1)
    assert not (tmp_path / "cassettes").exists()
    skipped = 'import pytest\n@pytest.mark.kafka(cassette="orders")\ndef test_it(kafka): pytest.skip("not now")\n'
    run(tmp_path, skipped)
    assert not (tmp_path / "cassettes").exists()


@pytest.mark.parametrize(
    ("cassette", "sentence"),
    [
        ("no JSON\n", 'it is no cassette: its first line must be {"cassette": 1}'),
        ('{"cassette": 2}\n', "it is a cassette of version 2, and this Barnabas reads version 1"),
        ('{"cassette": 1}\n{\n  "connection": 1,\n', "it is cut: the request that begins on line 2 has no end"),
        ('{"cassette": 1}\n{"a":\n}\n', "the request that begins on line 2 is not JSON"),
    ],
)
def test_a_file_that_is_no_cassette(tmp_path: Path, cassette: str, sentence: str) -> None:
    (tmp_path / "cassettes").mkdir()
    (tmp_path / "cassettes" / "orders.cassette").write_text(cassette)
    text = 'import pytest\n@pytest.mark.kafka(cassette="orders")\ndef test_it(kafka): pass\n'
    shown = run(tmp_path, text, code=1)
    assert f"cassettes/orders.cassette: the cassette cannot be used: {sentence}" in shown
    assert "Traceback" not in shown


def test_a_question_that_the_cassette_does_not_have(tmp_path: Path) -> None:
    run(tmp_path, confluent("classic"))
    cassette = tmp_path / "cassettes" / "orders.cassette"
    head, *requests = cassette.read_text().split("\n{\n")
    remaining = [line for line in requests if '"api": "FindCoordinator"' not in line]
    cassette.write_text("\n{\n".join([head, *remaining]))
    text = confluent("classic").replace("while len(values) < 20:", "for _ in range(2):")
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
    assert send(recorded) is None
    cassette = recorded.end().cassette
    for _ in range(2):
        replayed = barnabas_broker.open(cassette=cassette)
        assert send(replayed) is None
        assert send(replayed) == "INVALID_REQUEST"
        missing = replayed.end().missing
        assert any(
            "Produce to orders-0 of a record with key null, value 'x'; none comes any more" in sentence
            for sentence in missing
        )


def send(cluster: Cluster, **config: str) -> str | None:
    """Send a record; the error that it was refused with."""
    refused: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 0} | config)
    producer.produce("orders", "x", partition=0, on_delivery=lambda error, _: refused.append(error))
    assert producer.flush(30) == 0
    return None if refused[0] is None else refused[0].name()


def send_as_alice(cluster: Cluster, password: str) -> str | None:
    """Send a record after a log-in by PLAIN."""
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
    return send(cluster, **login, **{"sasl.username": "alice", "sasl.password": password})
