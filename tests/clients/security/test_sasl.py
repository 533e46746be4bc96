"""Real clients on a listener with SASL: every mechanism that they have, and their errors when authentication fails."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import jwt
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from barnabas.wire.messages.metadata import MetadataRequest
from tests.clients.security.scram_users import WAIT_S, add_scram, login
from tests.support.lazy import lazy, skip_without
from tests.support.memory.secure_broker import PLAIN_USERS
from tests.support.processes.server import Server
from tests.support.requests.raw_client import RawClient
from tests.support.security.token_issuer import jwk, private_key, write_jwks

skip_without("kafka")
kafka = lazy("kafka")
PREFIX = "listener.name.plaintext."
ISSUER, AUDIENCE = "https://issuer.example", "kafka"


@pytest.fixture(scope="module")
def secured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A broker whose listener has all mechanisms, with alice in each of them."""
    if request.config.getoption("--against") == "kafka":
        pytest.skip("Kafka's users of SCRAM are made when a directory is formatted")
    from tests.support.processes.server import BarnabasServer

    folder = tmp_path_factory.mktemp("sasl")
    config = {
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        f"{PREFIX}plain.sasl.jaas.config": PLAIN_USERS,
        f"{PREFIX}oauthbearer.sasl.oauthbearer.jwks.endpoint.url": write_jwks(folder / "jwks.json", jwk("RSA", "one")),
        "sasl.oauthbearer.expected.issuer": ISSUER,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
    }
    with BarnabasServer(folder / "broker", config=config) as server:
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            add_scram(server, mechanism)
        yield server


def token(**changes: Any) -> tuple[str, float]:
    now = time.time()
    claims = {"sub": "alice", "iss": ISSUER, "aud": AUDIENCE, "iat": now, "exp": now + 3600, **changes}
    return jwt.encode(claims, private_key("RSA", 0), "RS256", headers={"kid": "one"}), now + 3600


MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka(secured: Server, mechanism: str, topic: str) -> None:
    options = login(secured, mechanism)
    if mechanism == "OAUTHBEARER":
        options = {**login(secured, mechanism), "oauth_cb": lambda _: token()}
        del options["sasl.username"], options["sasl.password"]
    producer = Producer({**options, "acks": "all"})
    producer.produce(topic, b"value")
    deadline = time.monotonic() + WAIT_S
    while len(producer):  # `flush` does not call `oauth_cb`
        producer.poll(0.1)
        assert time.monotonic() < deadline
    consumer = Consumer({**options, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    (record,) = consumer.consume(1, WAIT_S)
    assert record.value() == b"value"
    consumer.commit(record, asynchronous=False)
    (committed,) = consumer.committed([TopicPartition(topic, 0)], WAIT_S)
    assert committed.offset == 1
    consumer.close()


def refusal(options: dict[str, Any]) -> str:
    """The error that a client of librdkafka reports."""
    errors: list[KafkaError] = []
    client = AdminClient({**options, "error_cb": errors.append})
    while not any(error.code() == KafkaError._AUTHENTICATION for error in errors):
        assert client.poll(WAIT_S) > 0, f"no authentication error within {WAIT_S} s, only {errors}"
    return next(str(error) for error in errors if error.code() == KafkaError._AUTHENTICATION)


@pytest.mark.parametrize(
    ("mechanism", "name", "password", "text"),
    [
        ("PLAIN", "alice", "wrong", "Invalid username or password"),
        ("PLAIN", "mallory", "alice-secret", "Invalid username or password"),
        ("SCRAM-SHA-256", "alice", "wrong", "invalid credentials with SASL mechanism SCRAM-SHA-256"),
        ("SCRAM-SHA-512", "mallory", "alice-secret", "invalid credentials with SASL mechanism SCRAM-SHA-512"),
    ],
)
def test_librdkafka_reports_a_refusal(secured: Server, mechanism: str, name: str, password: str, text: str) -> None:
    assert text in refusal(login(secured, mechanism, name, password))


def test_librdkafka_reports_a_token_that_does_not_hold(secured: Server) -> None:
    options = login(secured, "OAUTHBEARER")
    del options["sasl.username"], options["sasl.password"]
    assert '{"status":"invalid_token"}' in refusal({**options, "oauth_cb": lambda _: token(aud="other")})


def test_a_client_without_sasl_is_not_served(secured: Server) -> None:
    client = RawClient(secured.bootstrap)
    with pytest.raises(ConnectionError):
        client(MetadataRequest(topics=[]), 12)
    client.socket.close()


def test_users_are_made_described_and_deleted_while_the_broker_runs(secured: Server) -> None:
    admin = AdminClient(login(secured, "PLAIN", "admin", "admin-secret"))
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 8192)
    admin.alter_user_scram_credentials([UserScramCredentialUpsertion("carol", info, b"first")])["carol"].result(WAIT_S)
    described = admin.describe_user_scram_credentials(["carol"])["carol"].result(WAIT_S)
    assert [(entry.mechanism, entry.iterations) for entry in described.scram_credential_infos] == [
        (info.mechanism, 8192)
    ]
    carol = AdminClient(login(secured, "SCRAM-SHA-256", "carol", "first"))
    assert carol.list_topics(timeout=WAIT_S).brokers
    admin.alter_user_scram_credentials([UserScramCredentialUpsertion("carol", info, b"second")])["carol"].result(WAIT_S)
    assert "invalid credentials" in refusal(login(secured, "SCRAM-SHA-256", "carol", "first"))
    assert AdminClient(login(secured, "SCRAM-SHA-256", "carol", "second")).list_topics(timeout=WAIT_S).brokers
    deletion = UserScramCredentialDeletion("carol", ScramMechanism.SCRAM_SHA_256)
    admin.alter_user_scram_credentials([deletion])["carol"].result(WAIT_S)
    with pytest.raises(KafkaException) as error:
        admin.describe_user_scram_credentials(["carol"])["carol"].result(WAIT_S)
    assert error.value.args[0].code() == KafkaError.RESOURCE_NOT_FOUND
    with pytest.raises(KafkaException) as error:
        admin.alter_user_scram_credentials([deletion])["carol"].result(WAIT_S)
    assert error.value.args[0].code() == KafkaError.RESOURCE_NOT_FOUND


@pytest.mark.parametrize("mechanism", MECHANISMS[:3])
def test_kafka_python(secured: Server, mechanism: str, topic: str) -> None:
    options = {
        "bootstrap_servers": secured.bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": "alice",
        "sasl_plain_password": "alice-secret",
    }
    producer = kafka.KafkaProducer(**options)
    producer.send(topic, b"value").get(WAIT_S)
    producer.close()
    consumer = kafka.KafkaConsumer(topic, **options, auto_offset_reset="earliest", consumer_timeout_ms=WAIT_S * 1000)
    assert next(consumer).value == b"value"
    consumer.close()


AIOKAFKA = """
import asyncio, sys
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
address, mechanism, password, topic = sys.argv[1:]
options = dict(bootstrap_servers=address, security_protocol="SASL_PLAINTEXT", sasl_mechanism=mechanism,
               sasl_plain_username="alice", sasl_plain_password=password)

async def main():
    producer = AIOKafkaProducer(**options)
    try:
        await producer.start()
        await producer.send_and_wait(topic, b"value")
    finally:
        await producer.stop()
    consumer = AIOKafkaConsumer(topic, **options, auto_offset_reset="earliest")
    await consumer.start()
    print((await consumer.getone()).value.decode())
    await consumer.stop()

asyncio.run(main())
"""


def aiokafka(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", AIOKAFKA, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=False)


@pytest.mark.parametrize("mechanism", MECHANISMS[:3])
def test_aiokafka(secured: Server, mechanism: str, topic: str) -> None:
    done = aiokafka(secured.bootstrap, mechanism, "alice-secret", topic)
    assert done.stdout.strip() == "value", done.stderr


def test_aiokafka_reports_a_refusal(secured: Server, topic: str) -> None:
    assert "invalid credentials" in aiokafka(secured.bootstrap, "SCRAM-SHA-256", "wrong", topic).stderr


def test_the_log_has_no_secret(secured: Server, topic: str) -> None:
    refusal(login(secured, "PLAIN", "alice", "a-wrong-secret"))
    assert "Failed authentication with /127.0.0.1" in secured.log()
    assert "-secret" not in secured.log()
