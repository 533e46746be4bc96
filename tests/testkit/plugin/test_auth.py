"""Clusters that require authentication: the fixtures of all clients authenticate; other clients are refused."""

from __future__ import annotations

import asyncio  # noqa: TID251 - aiokafka runs on it
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from barnabas.testing import Broker, Cluster, RefusedError
from barnabas.testing.fixtures.clients import AiokafkaClients, ConfluentClients, KafkaPythonClients
from barnabas.testing.process import BrokerProcess
from tests.support.processes.commands import run_barnabas

WAYS = [("plain", False), ("scram", False), ("scram-sha-256", True), ("scram", True), (None, True)]
AUTHORIZER = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}


@pytest.fixture(params=WAYS, ids=lambda way: f"{way[0]}-{'tls' if way[1] else 'plaintext'}")
def secured(request: pytest.FixtureRequest, barnabas_broker: Broker) -> Iterator[Cluster]:
    auth, tls = request.param
    kafka = barnabas_broker.open(auth=auth, tls=tls)
    yield kafka
    kafka.close()


def test_confluent_kafka(secured: Cluster) -> None:
    with ConfluentClients(secured.access) as clients:
        producer, consumer = clients.producer(), clients.consumer("orders")
        producer.produce("orders", "x")
        assert producer.flush(20) == 0
        while (message := consumer.poll(1)) is None or message.error():
            pass
        assert message.value() == b"x"
        assert "orders" in clients.admin().list_topics(timeout=20).topics


def test_kafka_python(secured: Cluster) -> None:
    pytest.importorskip("kafka")
    with KafkaPythonClients(secured.access) as clients:
        clients.producer().send("orders", b"x").get(20)
        assert next(iter(clients.consumer("orders"))).value == b"x"


def test_aiokafka(secured: Cluster) -> None:
    pytest.importorskip("aiokafka")
    clients = AiokafkaClients(secured.access)

    async def main() -> None:
        async with clients.producer() as producer:
            await producer.send_and_wait("orders", b"x")
        async with clients.consumer("orders") as consumer:
            assert (await consumer.getone()).value == b"x"

    asyncio.run(main())


def test_java_by_its_properties(secured: Cluster) -> None:
    """`barnabas` reads Java's client.properties, as Spark's options have them."""
    secured.topic("orders").produce("x")
    options = [word for key, value in secured.access.java().items() for word in ("-X", f"{key}={value}")]
    listed = run_barnabas(["topic", "list", *options, "-b", secured.bootstrap_servers], os.environ)
    assert b"orders" in listed.stdout, listed.stderr
    assert secured.access.spark()["kafka.security.protocol"] == secured.access.security["protocol"]


@pytest.mark.parametrize("auth", ["plain", "scram"])
def test_who_has_another_password_is_refused(barnabas_broker: Broker, auth: str) -> None:
    kafka = barnabas_broker.open(auth=auth)
    errors = []
    config = kafka.access.confluent() | {"sasl.password": "another", "error_cb": errors.append, "log_level": 0}
    producer = Producer(config)
    producer.produce("orders", "x")
    while not errors:
        producer.poll(0.1)
    assert "_AUTHENTICATION" in {error.name() for error in errors}
    producer.purge()
    assert kafka.topic("orders").records() == []
    kafka.close()


def test_what_a_test_does_itself_needs_no_acl(barnabas_broker: Broker) -> None:
    kafka = barnabas_broker.open(AUTHORIZER, auth="scram")
    kafka.topic("orders").create(2)
    kafka.topic("orders").produce("x")
    assert len(kafka.topic("orders").records()) == 1
    admin = AdminClient(kafka.access.confluent() | {"log_level": 2})
    assert "orders" not in admin.list_topics(timeout=20).topics, "the user of the clients has no right"
    kafka.close()


@pytest.mark.parametrize("how", ["variables", "file"])
def test_an_authorizer_of_the_environment_or_a_file(how: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    keys = AUTHORIZER | {"super.users": "User:admin"}
    file = tmp_path / "server.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in keys.items()), encoding="utf-8")
    variables = {f"KAFKA_{key.upper().replace('.', '_')}": value for key, value in keys.items()}
    arguments, variables = (["--config", str(file)], {}) if how == "file" else ([], variables)
    process = BrokerProcess({}, arguments, variables=variables)
    try:
        monkeypatch.setenv("BARNABAS_CONTROL", f"http://{process.control['token']}@{process.control['control'][7:]}")
        broker = Broker()
        with broker as own, broker.open() as opened:
            for kafka in (own, opened):
                kafka.topic("orders").create(2)
                kafka.topic("orders").produce("x")
                assert len(kafka.topic("orders").records()) == 1
                admin = AdminClient(kafka.access.confluent() | {"log_level": 2})
                assert "orders" not in admin.list_topics(timeout=20).topics
    finally:
        process.stop()


def test_a_fork_and_a_restored_cluster_know_the_user(barnabas_broker: Broker) -> None:
    kafka = barnabas_broker.open(auth="scram", tls=True)
    kafka.topic("orders").produce("x")
    snapshot = kafka.snapshot()
    kafka.restore(snapshot)
    fork = kafka.fork()
    for cluster in (kafka, fork):
        admin = AdminClient(cluster.access.confluent() | {"log_level": 2})
        assert "orders" in admin.list_topics(timeout=20).topics
        cluster.close()


def test_what_there_is_not(barnabas_broker: Broker) -> None:
    with pytest.raises(RefusedError, match=r"auth must be plain, scram, .*, not 'kerberos'"):
        barnabas_broker.open(auth="kerberos")
    with pytest.raises(RefusedError, match="auth and tls are for clusters with one broker"):
        barnabas_broker.open(auth="scram", brokers=3)
    with pytest.raises(RefusedError, match="a session of clients that log in or speak TLS is not recorded"):
        barnabas_broker.open(tls=True, record=True)
    with pytest.raises(RefusedError, match="listeners"):
        barnabas_broker.open({"listeners": "PLAINTEXT://127.0.0.1:0"}, auth="scram")
