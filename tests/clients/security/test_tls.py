"""Real clients over TLS: large records byte by byte, certificates of clients, refusals, and a rotation in mid-run."""

from __future__ import annotations

import asyncio  # noqa: TID251 - aiokafka
import os
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, ConfigResource

from tests.support.jvm.kafka_tools import output
from tests.support.processes.server import BarnabasServer
from tests.support.security.certificates import Authority, Signed
from tests.support.security.ssl_changes import WAIT_S, alter, replace_all
from tests.support.waiting import wait_for

LARGE = 10_000_000
LIMIT = "12000000"
SIZES = {"message.max.bytes": LIMIT, "replica.fetch.max.bytes": LIMIT}


class TlsBroker:
    """A broker with a listener of the protocol SSL, and the files of its clients."""

    def __init__(self, path: Path, authority: Authority, keys: dict[str, str]) -> None:
        self.authority, self.path = authority, path
        self.ca = authority.write(path / "ca.pem")
        self.key_store = path / "server.pem"
        authority.sign("server").write(self.key_store)
        self.client = authority.sign("client").write(path / "client.pem")
        settings = {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.key_store),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.ca,
            "ssl.client.auth": "required",
            **SIZES,
            **keys,
        }
        self.server = BarnabasServer(path / "data", config=settings, listener="SSL")
        self.server.start()

    def wait_for_log(self, text: str) -> None:
        """Wait until the broker's log has a text: the client may know of a failure before the broker does."""
        wait_for(lambda: text in self.server.log(), lambda: f"{text!r} in {self.server.log()}")

    @property
    def address(self) -> tuple[str, int]:
        return self.server.host, self.server.port

    def client_config(self, **others: Any) -> dict[str, Any]:
        """The configuration of a confluent-kafka client with a certificate."""
        return {
            "bootstrap.servers": self.server.bootstrap,
            "security.protocol": "ssl",
            "ssl.ca.location": self.ca,
            "ssl.certificate.location": self.client,
            "ssl.key.location": self.client,
            **others,
        }

    def context(self) -> ssl.SSLContext:
        """The same for Python's ssl."""
        context = ssl.create_default_context(cafile=self.ca)
        context.load_cert_chain(self.client)
        return context

    def certificate(self) -> bytes:
        """The certificate (DER) that a new connection is shown."""
        plain = socket.create_connection(self.address, WAIT_S)
        with self.context().wrap_socket(plain, server_hostname="localhost") as secured:
            shown = secured.getpeercert(binary_form=True)
        assert shown is not None
        return shown


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsBroker]:
    broker = TlsBroker(tmp_path_factory.mktemp("tls"), Authority(), {})
    yield broker
    broker.server.stop()


def produce(config: dict[str, Any], topic: str, values: list[bytes]) -> None:
    producer = Producer({"message.max.bytes": LIMIT, **config})
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failures.append(error)

    for value in values:
        producer.produce(topic, value, partition=0, on_delivery=delivered)
    assert producer.flush(WAIT_S) == 0
    assert failures == []


def consume(config: dict[str, Any], topic: str, count: int) -> list[bytes]:
    settings = {"group.id": f"{topic}-readers", "auto.offset.reset": "earliest", "fetch.message.max.bytes": 20_000_000}
    consumer = Consumer({**settings, "receive.message.max.bytes": 200_000_000, **config})
    consumer.subscribe([topic])
    values: list[bytes] = []
    while len(values) < count:
        for message in consumer.consume(count, WAIT_S):
            assert message.error() is None
            values.append(message.value() or b"")
    consumer.close()
    return values


def connection_error(config: dict[str, Any]) -> str:
    """The first error that a client reports which cannot connect."""
    errors: list[KafkaError] = []
    client = AdminClient({**config, "error_cb": errors.append})
    while not errors:
        assert client.poll(WAIT_S) > 0, "no error was reported"
    return str(errors[0])


def test_large_and_small_records_are_the_same_bytes_again(secured: TlsBroker, topic: str) -> None:
    """10 MB in one record is more than the buffers of both sockets: both directions wait for each other's window."""
    values = [
        os.urandom(LARGE),
        *(os.urandom(size) for size in (1, 100, 16_383, 16_384, 16_385, 70_000)),
        b"\0" * LARGE,
    ]
    produce(secured.client_config(), topic, values)
    assert consume(secured.client_config(), topic, len(values)) == values


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_both_versions_of_tls_are_spoken(secured: TlsBroker, version: ssl.TLSVersion) -> None:
    context = secured.context()
    context.minimum_version = context.maximum_version = version
    plain = socket.create_connection(secured.address, WAIT_S)
    with context.wrap_socket(plain, server_hostname="127.0.0.1") as connection:
        assert connection.version() == version.name.replace("_", ".")


def test_kafka_python(secured: TlsBroker, topic: str) -> None:
    kafka = pytest.importorskip("kafka")
    config = {
        "bootstrap_servers": secured.server.bootstrap,
        "security_protocol": "SSL",
        "ssl_cafile": secured.ca,
        "ssl_certfile": secured.client,
        "ssl_keyfile": secured.client,
    }
    values = [os.urandom(size) for size in (10, 500_000, 900_000)]
    producer = kafka.KafkaProducer(**config)
    for value in values:
        producer.send(topic, value).get(WAIT_S)
    producer.close()
    consumer = kafka.KafkaConsumer(topic, auto_offset_reset="earliest", **config)
    assert [next(consumer).value for _ in values] == values
    consumer.close()


def test_aiokafka(secured: TlsBroker, topic: str) -> None:
    aiokafka = pytest.importorskip("aiokafka")
    values = [os.urandom(size) for size in (10, 500_000, 900_000)]

    async def exchange() -> list[bytes]:
        config = {
            "bootstrap_servers": secured.server.bootstrap,
            "security_protocol": "SSL",
            "ssl_context": secured.context(),
        }
        async with aiokafka.AIOKafkaProducer(**config) as producer:
            for value in values:
                await producer.send_and_wait(topic, value)
        async with aiokafka.AIOKafkaConsumer(topic, auto_offset_reset="earliest", **config) as consumer:
            return [(await consumer.getone()).value for _ in values]

    assert asyncio.run(exchange()) == values


@pytest.mark.jvm
def test_the_java_client(secured: TlsBroker, topic: str, tmp_path: Path) -> None:
    """Its key stores may be PEM too. The records are more than one fetch."""
    keys = {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": secured.ca,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": secured.client,
    }
    settings = tmp_path / "client.properties"
    settings.write_text("".join(f"{name}={value}\n" for name, value in keys.items()))
    server = f"--bootstrap-server={secured.server.bootstrap}"
    produced = output(
        "ProducerPerformance", server, "--topic", topic, "--num-records=20", "--record-size=500000",
        "--throughput=-1", "--command-config", str(settings),
    )  # fmt: skip
    assert "20 records sent" in produced
    consumed = output(
        "ConsumerPerformance", server, "--topic", topic, "--num-records=20", "--command-config", str(settings),
        "--timeout=60000",
    )  # fmt: skip
    assert ", 9.5367, " in consumed  # MB


def test_a_client_without_a_certificate_is_refused_with_the_reason_in_the_log(secured: TlsBroker) -> None:
    config = secured.client_config()
    del config["ssl.certificate.location"], config["ssl.key.location"]
    assert connection_error(config)
    secured.wait_for_log("Failed authentication with 127.0.0.1:")
    secured.wait_for_log("(SSL handshake failed): the peer has sent no certificate, but ssl.client.auth=required")


def test_a_client_of_another_authority_is_refused(secured: TlsBroker, tmp_path: Path) -> None:
    stranger = Authority("another").sign("stranger").write(tmp_path / "stranger.pem")
    assert connection_error(
        secured.client_config(**{"ssl.certificate.location": stranger, "ssl.key.location": stranger})
    )
    secured.wait_for_log("(SSL handshake failed): the certificate of the peer is not valid: ")


def test_a_client_that_trusts_another_authority_says_so_and_the_log_too(secured: TlsBroker, tmp_path: Path) -> None:
    other = Authority("another").write(tmp_path / "other.pem")
    config = secured.client_config(**{"ssl.ca.location": other})
    assert "verify failed" in connection_error(config)
    # a client that closes with something unread resets the connection, and its alert with it
    sentence = "does not trust the certificate of this node (alert unknown ca)"
    wait_for(lambda: connection_error(config) and sentence in secured.server.log(), "the line in the log")


def test_a_plaintext_client_gets_a_closed_connection_and_the_log_says_why(secured: TlsBroker) -> None:
    assert connection_error({"bootstrap.servers": secured.server.bootstrap})
    secured.wait_for_log("(SSL handshake failed): the client does not speak TLS: set security.protocol=SSL")


def test_secrets_are_neither_described_nor_logged(tmp_path: Path) -> None:
    authority = Authority()
    signed = authority.sign("server")
    key, chain = signed.key_pem("s3cret-word"), signed.chain_pem
    keys = {
        "listener.name.ssl.ssl.keystore.type": "PEM",
        "listener.name.ssl.ssl.keystore.key": key,
        "listener.name.ssl.ssl.keystore.certificate.chain": chain,
        "listener.name.ssl.ssl.key.password": "s3cret-word",
        "ssl.key.password": "an0ther-word",
        "ssl.client.auth": "none",
    }
    server = BarnabasServer(tmp_path / "data", config=keys, listener="SSL")
    server.start()
    try:
        config = {"bootstrap.servers": server.bootstrap, "security.protocol": "ssl"}
        admin = AdminClient({**config, "ssl.ca.location": authority.write(tmp_path / "ca.pem")})
        resource = ConfigResource(ConfigResource.Type.BROKER, "1")
        entries = admin.describe_configs([resource])[resource].result(WAIT_S)
        assert entries["ssl.key.password"].is_sensitive
        assert all(entry.value is None for entry in entries.values() if entry.is_sensitive)
        body = key.splitlines()[1]
        shown = server.log() + repr({name: str(entry) for name, entry in entries.items()})
        assert not [secret for secret in ("s3cret-word", "an0ther-word", body) if secret in shown]
    finally:
        server.stop()


class Rotation:
    """A producer in a thread that counts what was delivered, while certificates change."""

    def __init__(self, config: dict[str, Any], topic: str) -> None:
        self.errors: list[KafkaError] = []
        self.delivered = 0
        self._progress = threading.Condition()
        self._is_ended = False
        self._producer = Producer({"linger.ms": 0, **config})
        self._topic = topic
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Rotation:
        self._thread.start()
        return self

    def _run(self) -> None:
        while not self._is_ended:
            self._producer.produce(self._topic, b"x", on_delivery=self._done)
            self._producer.flush(WAIT_S)

    def _done(self, error: KafkaError | None, _: Message) -> None:
        with self._progress:
            if error is None:
                self.delivered += 1
            else:
                self.errors.append(error)
            self._progress.notify_all()

    def go_on(self, count: int = 20) -> None:
        """Wait until so many more records are delivered."""
        with self._progress:
            goal = self.delivered + count
            assert self._progress.wait_for(lambda: self.errors or self.delivered >= goal, WAIT_S)

    def __exit__(self, *_: object) -> None:
        self._is_ended = True
        self._thread.join()


def rotate(secured: TlsBroker, signed: Signed) -> None:
    """Put a new certificate in place, as tools do: a file beside it, then a rename."""
    new = secured.path / "new.pem"
    signed.write(new)
    new.replace(secured.key_store)


def test_a_certificate_is_rotated_in_mid_run_and_an_incompatible_one_is_refused(tmp_path: Path, topic: str) -> None:
    secured = TlsBroker(tmp_path, Authority(), {})
    try:
        with Rotation(secured.client_config(), topic) as producer:
            producer.go_on()
            before = secured.certificate()
            renewed = secured.authority.sign("server", ("localhost", "127.0.0.1", "kafka"))
            rotate(secured, renewed)
            wait_for(lambda: producer.go_on() or secured.certificate() != before, "the new certificate")
            assert secured.certificate() == renewed.der
            producer.go_on()
            rotate(secured, secured.authority.sign("another"))
            wait_for(lambda: producer.go_on() or "are refused" in secured.server.log(), "the refusal")
            assert secured.certificate() == renewed.der
            assert (
                "Keystore DistinguishedName does not match: existing={DN=CN=server,O=Barnabas}" in secured.server.log()
            )
            producer.go_on()
        assert producer.errors == []
    finally:
        secured.server.stop()


def test_a_dynamic_config_replaces_the_certificate_or_is_refused(tmp_path: Path) -> None:
    secured = TlsBroker(tmp_path, Authority(), {})
    try:
        admin = AdminClient(secured.client_config())
        renewed = secured.authority.sign("server")
        path = renewed.write(tmp_path / "renewed.pem")
        before = secured.certificate()
        alter(admin, "listener.name.ssl.ssl.keystore.location", path)
        wait_for(lambda: admin.list_topics(timeout=WAIT_S) and secured.certificate() != before, "the new certificate")
        assert secured.certificate() == renewed.der
        another = secured.authority.sign("another").write(tmp_path / "another.pem")
        for name, value, why in (
            ("ssl.keystore.location", path, "Cannot update these configs dynamically"),
            ("listener.name.ssl.ssl.keystore.location", another, "Keystore DistinguishedName does not match"),
            ("listener.name.ssl.ssl.keystore.location", "/nowhere", "Cannot read /nowhere"),
            ("listener.name.ssl.ssl.enabled.protocols", "TLSv1", "TLSv1.2 and TLSv1.3 are"),
        ):
            with pytest.raises(KafkaException, match=why) as refused:
                alter(admin, name, value)
            assert refused.value.args[0].code() == KafkaError.INVALID_REQUEST
            with pytest.raises(KafkaException, match=why) as refused:
                replace_all(admin, {name: value})
            assert refused.value.args[0].code() == KafkaError.INVALID_REQUEST
        first = secured.authority.sign("server", ("localhost",)).write(tmp_path / "fewer.pem")
        with pytest.raises(KafkaException, match="SubjectAltNames do not match"):
            replace_all(admin, {"listener.name.ssl.ssl.keystore.location": first})
        assert secured.certificate() == renewed.der
        secured.server.stop()
        secured.server.start()
        assert secured.certificate() == renewed.der
    finally:
        secured.server.stop()
