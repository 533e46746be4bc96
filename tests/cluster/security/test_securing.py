"""SASL_SSL between all nodes, and a running cluster that is secured by rolling, as docs/securing.md says."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from barnabas.wire.properties import parse_properties
from tests.cluster.conftest import KINDS
from tests.support.blocks import parse_blocks
from tests.support.cluster.clusters import Cluster
from tests.support.cluster.quorums import IN_PROCESS
from tests.support.processes.ports import free_port
from tests.support.processes.server import Server
from tests.support.security.certificates import Authority
from tests.support.security.ssl_changes import alter, replace_all
from tests.support.security.token_issuer import AUDIENCE, ISSUER, jwk, signed, write_jwks
from tests.support.waiting import ANY_ERROR, wait_for

PAGE = Path(__file__).parents[3] / "docs" / "securing.md"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
NODE = f'{PLAIN} username="node" password="node-secret" user_node="node-secret" user_alice="alice-secret";'
WAIT_S = 60


def stores(path: Path, authority: Authority) -> dict[str, str]:
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": authority.sign("node").write(path / "node.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": authority.write(path / "ca.pem"),
    }


def login(path: Path, address: str, mechanism: str, name: str, **options: Any) -> dict[str, Any]:
    return {
        "bootstrap.servers": address,
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(path / "ca.pem"),
        "sasl.mechanism": mechanism,
        "sasl.username": name,
        "sasl.password": f"{name}-secret",
        **options,
    }


@pytest.fixture(params=KINDS)
def secured(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cluster]:
    """Every listener of every node is SASL_SSL, and the authorizer is on."""
    config = stores(tmp_path, Authority()) | {
        "listener.security.protocol.map": "CONTROLLER:SASL_SSL,PLAINTEXT:SASL_SSL",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.controller.plain.sasl.jaas.config": NODE,
        "listener.name.plaintext.plain.sasl.jaas.config": NODE,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:node",
    }
    with Cluster(tmp_path, kind=request.param, brokers=2, config=config) as cluster:
        yield cluster


def test_all_nodes_speak_sasl_ssl_and_the_authorizer_guards_them(secured: Cluster, tmp_path: Path) -> None:
    admin = AdminClient(login(tmp_path, secured.bootstrap, "PLAIN", "node"))
    admin.create_topics([NewTopic("t", 1, 2)])["t"].result(WAIT_S)
    wait_for(lambda: in_sync(admin, "t") == [1, 2], "both replicas are in sync", errors=ANY_ERROR)
    producer = Producer(login(tmp_path, secured.bootstrap, "PLAIN", "node", acks="all"))
    producer.produce("t", b"value")
    assert producer.flush(WAIT_S) == 0
    alice = AdminClient(login(tmp_path, secured.bootstrap, "PLAIN", "alice"))
    assert "t" not in alice.list_topics(timeout=WAIT_S).topics
    name = "listener.name.plaintext.ssl.keystore.location"
    for change in (lambda: alter(alice, name, "/etc/passwd"), lambda: replace_all(alice, {name: "/etc/passwd"})):
        with pytest.raises(KafkaException) as refused:
            change()
        assert refused.value.args[0].code() == KafkaError.CLUSTER_AUTHORIZATION_FAILED, "a file was looked at"
    assert "node-secret" not in secured.log()


def in_sync(admin: AdminClient, topic: str) -> list[int]:
    (partition,) = admin.list_topics(topic, timeout=WAIT_S).topics[topic].partitions.values()
    return sorted(partition.isrs)


class Writer:
    """Writes one record after the other until it is stopped; `config` may change while it works."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.written = 0
        self.errors: list[object] = []
        self._config = config
        self._is_stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def use(self, config: dict[str, Any]) -> None:
        """Write with another client from now on."""
        self._config = config

    def go_on(self) -> None:
        """Wait for some more records."""
        target = self.written + 5
        wait_for(lambda: self.written >= target or bool(self.errors), "records are written", errors=ANY_ERROR)
        assert self.errors == []

    def stop(self) -> None:
        self._is_stopped.set()
        self._thread.join()

    def _run(self) -> None:
        config = None
        while not self._is_stopped.is_set():
            if config is not self._config:
                config = self._config
                producer = Producer({**config, "acks": "all", "linger.ms": 0})
            producer.produce("t", b"value", on_delivery=self._delivered)
            producer.flush(WAIT_S)

    def _delivered(self, error: KafkaError | None, _message: object) -> None:
        if error is None:
            self.written += 1
        else:
            self.errors.append(error)


def page_keys(number: int, node: Server, secure: int, path: Path) -> dict[str, str]:
    """The keys of a step of the page, with the addresses and files of this test."""
    blocks = parse_blocks(PAGE.read_text(encoding="utf-8"), "docs/securing.md")
    (block,) = [candidate for candidate in blocks if candidate.argument == f"secure-{number}.properties"]
    text = block.text.replace("localhost:9092", node.bootstrap).replace("localhost:9093", f"127.0.0.1:{secure}")
    return {
        key: str(path / value) if value in ("node.pem", "ca.pem") else value
        for key, value in parse_properties(text).items()
    }


@pytest.mark.parametrize("kind", KINDS)
def test_a_running_cluster_is_secured_by_rolling(kind: str, tmp_path: Path) -> None:
    stores(tmp_path, Authority())
    with Cluster(tmp_path, kind=kind, brokers=2) as cluster:
        ports = {number: free_port() for number in cluster.brokers}
        plaintext = {"bootstrap.servers": cluster.bootstrap}
        admin = AdminClient(plaintext)
        admin.create_topics([NewTopic("t", 1, 2)])["t"].result(WAIT_S)
        writer = Writer(plaintext)
        try:
            roll(cluster, admin, ports, 1, writer)
            for name in ("node", "alice"):
                info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
                user = UserScramCredentialUpsertion(name, info, f"{name}-secret".encode())
                admin.alter_user_scram_credentials([user])[name].result(WAIT_S)
            roll(cluster, admin, ports, 2, writer)
            address = ",".join(f"127.0.0.1:{port}" for port in ports.values())
            secure = login(tmp_path, address, "SCRAM-SHA-512", "alice")
            writer.use(secure)
            writer.go_on()
            roll(cluster, AdminClient(secure), ports, 3, writer)
            if kind == IN_PROCESS:
                secure_controller(cluster, AdminClient(secure), writer, tmp_path)
        finally:
            writer.stop()
        assert writer.errors == []
        assert "node-secret" not in cluster.log()


def roll(cluster: Cluster, admin: AdminClient, ports: dict[int, int], step: int, writer: Writer) -> None:
    """Take a step of the page at each broker."""
    for number, node in cluster.brokers.items():
        change(cluster, node, page_keys(step, node, ports[number], cluster.folder))
        wait_for(
            lambda: in_sync(admin, "t") == [1, 2],
            f"both replicas are in sync after step {step} at {number}",
            errors=ANY_ERROR,
        )
        writer.go_on()


def change(cluster: Cluster, node: Server, keys: dict[str, str]) -> None:
    port = node.port
    assert node.stop() == 0, cluster.log()
    node.config.update(keys)
    node.start()
    node.port = port  # of the plaintext listener, which the page names


def secure_controller(cluster: Cluster, admin: AdminClient, writer: Writer, path: Path) -> None:
    """The controllers' listener: both, then brokers move, then the old one goes; then the authorizer."""
    (node_id, controller), port = next(iter(cluster.quorum.servers.items())), free_port()
    plain = f"CONTROLLER://127.0.0.1:{controller.port}"
    protocols = "PLAINTEXT:PLAINTEXT,SECURE:SASL_SSL,CONTROLLER:PLAINTEXT,SAFE:SASL_SSL"
    jaas = f'{SCRAM} username="node" password="node-secret";'
    safe = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(path / "node.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(path / "ca.pem"),
        "listener.security.protocol.map": protocols,
        "listener.name.safe.sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.safe.scram-sha-512.sasl.jaas.config": jaas,
        "sasl.mechanism.controller.protocol": "SCRAM-SHA-512",
    }
    both = {"listeners": f"{plain},SAFE://127.0.0.1:{port}", "controller.listener.names": "CONTROLLER,SAFE"}
    change(cluster, controller, safe | both)
    writer.go_on()
    only = {
        "controller.listener.names": "SAFE",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{port}",
        "controller.quorum.voters": f"{node_id}@127.0.0.1:{port}",
    }
    for node in cluster.brokers.values():
        change(cluster, node, safe | only)
        wait_for(lambda: in_sync(admin, "t") == [1, 2], "both replicas are in sync", errors=ANY_ERROR)
        writer.go_on()
    authorizer = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:node;User:alice",
    }
    change(cluster, controller, only | authorizer | {"listeners": f"SAFE://127.0.0.1:{port}"})
    writer.go_on()
    for node in cluster.brokers.values():
        change(cluster, node, authorizer)
        wait_for(lambda: in_sync(admin, "t") == [1, 2], "both replicas are in sync", errors=ANY_ERROR)
        writer.go_on()


@pytest.mark.soak
def test_nodes_log_in_with_the_token_of_a_file(tmp_path: Path) -> None:
    """A session ends with its token: brokers go on with the next one, which replaces it in the file."""
    url = write_jwks(tmp_path / "jwks.json", jwk("RSA", "one"))
    token = tmp_path / "token"

    def renew() -> None:
        now = int(time.time())
        fresh = tmp_path / "fresh"
        fresh.write_text(signed(sub="node", iat=now, exp=now + 25))
        fresh.replace(token)

    renew()
    config = {
        "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT,PLAINTEXT:SASL_PLAINTEXT,CLIENTS:PLAINTEXT",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.mechanism.controller.protocol": "OAUTHBEARER",
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": url,
        "sasl.oauthbearer.expected.issuer": ISSUER,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "sasl.oauthbearer.token.endpoint.url": token.as_uri(),
        "inter.broker.listener.name": "PLAINTEXT",
    }
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"
    config |= {f"listener.name.{name}.oauthbearer.sasl.jaas.config": module for name in ("controller", "plaintext")}
    cluster = Cluster(tmp_path, kind=IN_PROCESS, brokers=2, config=config)
    ports = {number: free_port() for number in cluster.brokers}
    for number, node in cluster.brokers.items():
        node.config["listeners"] = f"PLAINTEXT://{node.bootstrap},CLIENTS://127.0.0.1:{ports[number]}"
    with cluster:
        clients = {"bootstrap.servers": f"127.0.0.1:{ports[1]}"}
        admin = AdminClient(clients)
        admin.create_topics([NewTopic("t", 1, 2)])["t"].result(WAIT_S)
        writer = Writer(clients)
        try:
            end = time.time() + 30
            while time.time() < end:  # longer than the first token is valid
                renew()
                writer.go_on()
            assert in_sync(admin, "t") == [1, 2]
        finally:
            writer.stop()
        assert writer.errors == []
        logs = "".join(node.log() for node in cluster.nodes)
        assert token.read_text() not in logs
        assert "Authentication at" not in logs, "a node was refused"
