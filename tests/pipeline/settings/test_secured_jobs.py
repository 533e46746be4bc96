"""Jobs against a broker with SASL_SSL: they read, write, and send dead letters, and leave no secret anywhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic, ScramCredentialInfo, ScramMechanism
from confluent_kafka.admin import UserScramCredentialUpsertion as Upsertion

from barnabas.pipeline import read_topic, write_topic
from barnabas.spark.errors import BrokerSilentError, MistakeError, NotAuthorizedError
from barnabas.spark.settings.security import SecurityTable, secured_broker
from barnabas.spark.topics.cluster import Cluster
from tests.pipeline.runs import Process, consume, produce, run_here, toml
from tests.support.memory.secure_broker import PLAIN_USERS
from tests.support.processes.server import BarnabasServer, Server
from tests.support.security.certificates import Authority
from tests.support.spark.session import frame_of

WAIT_S = 60.0
PASSWORD = 'alice"s-scram-secret'
KEY_PASSWORD = "secret-of-the-key"


class SecuredPipeline:
    """A broker with one SASL_SSL listener that asks for certificates, the user alice, and files of a client."""

    def __init__(self, path: Path) -> None:
        authority = Authority()
        self.ca = authority.write(path / "ca.pem")
        self.client = path / "client.pem"
        self.client.write_text(authority.sign("client").pem(KEY_PASSWORD))
        self.server = BarnabasServer(
            path / "data",
            config={
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": authority.sign("server").write(path / "server.pem"),
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": self.ca,
                "ssl.client.auth": "required",
                "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
                "listener.name.sasl_ssl.plain.sasl.jaas.config": PLAIN_USERS,
                "security.inter.broker.protocol": "SASL_SSL",
            },
            listener="SASL_SSL",
        )
        self.server.start()
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        self.admin = AdminClient(self.librdkafka(self.keys("PLAIN", "admin", "admin-secret")))
        upsertion = Upsertion("alice", info, PASSWORD.encode())
        self.admin.alter_user_scram_credentials([upsertion])["alice"].result(WAIT_S)

    def keys(self, mechanism: str = "SCRAM-SHA-512", name: str = "alice", password: str = PASSWORD) -> dict[str, str]:
        """The keys of [security]."""
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": mechanism,
            "sasl.username": name,
            "sasl.password": password,
            "ssl.truststore.location": self.ca,
            "ssl.keystore.location": str(self.client),
            "ssl.key.password": KEY_PASSWORD,
        }

    def librdkafka(self, keys: dict[str, str]) -> dict[str, str]:
        """The configuration of a client of librdkafka."""
        broker = secured_broker(self.server.bootstrap, SecurityTable.model_validate(keys))
        return broker.for_librdkafka()

    def fill(self, topic: str, values: list[bytes], partitions: int = 2) -> None:
        """Create a topic and produce to it."""
        self.admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(WAIT_S)
        producer = Producer(self.librdkafka(self.keys()))
        for n, value in enumerate(values):
            producer.produce(topic, value, str(n), partition=n % partitions)
        assert producer.flush(WAIT_S) == 0


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredPipeline]:
    broker = SecuredPipeline(tmp_path_factory.mktemp("secured"))
    yield broker
    broker.server.stop()


def lines(keys: dict[str, str], table: str = "security") -> list[str]:
    """The keys as a table of a job's file."""
    return [f"[{table}]", *(f"{key} = {json.dumps(value)}" for key, value in keys.items())]


def values(secured: SecuredPipeline, topic: str) -> list[bytes]:
    return sorted(m.value() for m in consume(secured.server, topic, more=secured.librdkafka(secured.keys())))


@pytest.mark.soak
def test_a_transactional_copy_leaves_no_secret(
    spark_jars: Path, secured: SecuredPipeline, topic_name: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = topic_name(), topic_name()
    secured.fill(source, [b"%d" % n for n in range(100)])
    monkeypatch.setenv("ALICES_PASSWORD", PASSWORD)
    config = tmp_path / "job.toml"
    keys = {**secured.keys(), "sasl.password": "${env:ALICES_PASSWORD}"}
    toml(config, [f'checkpoint = "{tmp_path}/checkpoint"', "[source]", f'topic = "{source}"', "[target]",
                  f'topic = "{target}"', "partitions = 2", 'delivery = "transactional"', *lines(keys)])  # fmt: skip
    report = tmp_path / "report.html"
    with Process("copy", secured.server.bootstrap, config, "--once", "--report", str(report)) as process:
        process.end()
    assert values(secured, target) == sorted(b"%d" % n for n in range(100))
    config.unlink()
    shown = "".join(process.lines).encode()
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert (tmp_path / "checkpoint" / "spark.log").stat().st_size
    assert report.exists()
    for secret in (PASSWORD, PASSWORD.replace('"', '\\"'), KEY_PASSWORD):
        assert all(secret.encode() not in content for content in (shown, *written))


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_reading_and_dead_letters(
    spark: Any, secured: SecuredPipeline, topic_name: Any, tmp_path: Path, mechanism: str
) -> None:
    source, dead = topic_name(), topic_name()
    secured.fill(source, [b'{"id": 1}', b"nothing"])
    keys = secured.keys() if mechanism != "PLAIN" else secured.keys("PLAIN", "alice", "alice-secret")
    config = toml(
        tmp_path / "job.toml",
        [f'checkpoint = "{tmp_path}/checkpoint"', "[source]", f'topic = "{source}"', "[schema]",
         'fields = "id INT NOT NULL"', "[output]", f'path = "{tmp_path}/out"', "[dead_letters]", f'topic = "{dead}"',
         *lines(keys)],
    )  # fmt: skip
    run_here(spark, "etl", secured.server.bootstrap, config)
    assert spark.read.parquet(f"{tmp_path}/out").count() == 1
    assert values(secured, dead) == [b"nothing"]


@pytest.mark.soak
def test_a_copy_to_a_cluster_with_security_of_its_own(
    spark: Any, secured: SecuredPipeline, broker: Server, create: Any, topic_name: Any, tmp_path: Path
) -> None:
    source, target = create(), topic_name()
    produce(broker, source, [(b"k", b"v")])
    config = toml(
        tmp_path / "job.toml",
        [f'checkpoint = "{tmp_path}/checkpoint"', "[source]", f'topic = "{source}"', "[target]",
         f'topic = "{target}"', 'delivery = "transactional"', f'bootstrap = "{secured.server.bootstrap}"',
         *lines(secured.keys(), "target.security")],
    )  # fmt: skip
    run_here(spark, "copy", broker.bootstrap, config)
    assert values(secured, target) == [b"v"]


def test_notebooks(spark: Any, secured: SecuredPipeline, topic_name: Any, tmp_path: Path) -> None:
    where: dict[str, Any] = {"bootstrap": secured.server.bootstrap}
    properties = tmp_path / "client.properties"
    properties.write_text("".join(f"{key}={value}\n" for key, value in secured.keys().items()))
    topic = topic_name()
    write_topic(frame_of(spark, [("v",)], "value STRING"), topic, security=secured.keys(), **where)
    frame = read_topic(topic, security=properties, spark=spark, **where)
    assert [bytes(row.value) for row in frame.collect()] == [b"v"]
    stream = read_topic(topic, security=properties, stream=True, spark=spark, **where)
    plan = frame._jdf.queryExecution().toString()
    assert "Relation" in plan
    assert "secret" not in plan
    assert "kafka.sasl.jaas.config=*********(redacted)" in stream._jdf.queryExecution().toString()
    with pytest.raises(
        MistakeError, match=r"security: there is no key or table sasl\.pasword; did you mean sasl\.password"
    ):
        read_topic(topic, security={"sasl.pasword": "x"}, spark=spark, **where)
    with pytest.raises(MistakeError, match=r"security: sasl\.password has no effect"):
        read_topic(topic, security={"sasl.password": "x"}, spark=spark, **where)


def topics(address: str, keys: dict[str, str]) -> dict[str, int]:
    return Cluster(secured_broker(address, SecurityTable.model_validate(keys))).topics()


def test_a_refused_user_is_told_at_once(secured: SecuredPipeline) -> None:
    address = secured.server.bootstrap
    with pytest.raises(NotAuthorizedError, match=r"refuses the log-in of \[security\]: .*[Aa]uthentication") as refused:
        topics(address, secured.keys(password="a-wrong-secret"))
    assert "a-wrong-secret" not in str(refused.value)
    with pytest.raises(MistakeError, match=r"\[security\] ssl.key.password does not decrypt") as unreadable:
        topics(address, {**secured.keys(), "ssl.key.password": "a-wrong-secret"})
    assert "a-wrong-secret" not in str(unreadable.value)


@pytest.mark.soak
def test_a_client_of_another_protocol_is_told_what_it_tried(secured: SecuredPipeline, broker: Server) -> None:
    address = secured.server.bootstrap
    with pytest.raises(BrokerSilentError, match=r"of a listener with PLAINTEXT \(\[security\] security.protocol\)"):
        topics(address, {})
    untrusting = {key: value for key, value in secured.keys().items() if key != "ssl.truststore.location"}
    with pytest.raises(BrokerSilentError, match=r"of a listener with SASL_SSL .*certificate verify failed"):
        topics(address, untrusting)
    with pytest.raises(BrokerSilentError, match="of a listener with SASL_SSL"):
        topics(broker.bootstrap, secured.keys())
