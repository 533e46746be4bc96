"""`barnabas serve --secure`: the printed commands work as they are, and other clients are refused."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import AdminClient

from barnabas.broker.event_loop.steps import run_in_place
from barnabas.coord.security.scram_changes import FIRST_METADATA_VERSION
from barnabas.tools.secure.client_texts import LOGIN_MODULE
from barnabas.wire.messages.records.metadata_records import FeatureLevelRecord
from tests.secure.serving import SecureServe
from tests.support.cases import for_each
from tests.support.lazy import lazy, skip_without
from tests.support.memory.broker import MemoryBroker
from tests.support.processes.commands import run_command

skip_without("kafka")
kafka = lazy("kafka")


WAIT_S = 30


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureServe]:
    with SecureServe(tmp_path_factory.mktemp("secure")) as broker:
        yield broker


def user(serving: SecureServe, name: str, password: str) -> dict[str, Any]:
    """The configuration of another user for confluent-kafka."""
    return serving.python("confluent-kafka") | {"sasl.username": name, "sasl.password": password}


def log_in_error(config: dict[str, Any]) -> KafkaError:
    """The first error of a client that cannot log in."""
    errors: list[KafkaError] = []
    client = AdminClient({**config, "error_cb": errors.append})
    while not errors:
        assert client.poll(WAIT_S) > 0, "no error was reported"
    return errors[0]


def can_log_in(config: dict[str, Any]) -> bool:
    return AdminClient(config).list_topics(timeout=WAIT_S).cluster_id is not None


def test_confluent_kafka_works_with_what_is_printed(serving: SecureServe) -> None:
    secured = serving.python("confluent-kafka")
    producer = Producer(secured)
    producer.produce("of-confluent", b"hello")
    assert producer.flush(WAIT_S) == 0
    consumer = Consumer(secured | {"group.id": "my-group", "auto.offset.reset": "earliest"})
    consumer.subscribe(["of-confluent"])
    message = consumer.poll(WAIT_S)
    assert message is not None
    assert message.value() == b"hello"
    consumer.close()


def test_kafka_python_works_with_what_is_printed(serving: SecureServe) -> None:
    secured = serving.python("kafka-python")
    producer = kafka.KafkaProducer(**secured)
    producer.send("of-kafka-python", b"hello").get(WAIT_S)
    producer.close()
    consumer = kafka.KafkaConsumer("of-kafka-python", **secured, auto_offset_reset="earliest")
    assert next(consumer).value == b"hello"
    consumer.close()


def test_the_commands_take_the_file(serving: SecureServe) -> None:
    run_command("topic", "create", "of-cli", "--command-config", serving.command_config).ok()
    ran = run_command("kafka-topics", "--bootstrap-server", serving.java()["bootstrap.servers"], "--list",
                      "--command-config", serving.command_config).ok()  # fmt: skip
    assert "of-cli" in ran.lines


def test_the_lines_for_java_are_the_file_and_those_for_spark(serving: SecureServe) -> None:
    properties = serving.java()
    assert properties["ssl.truststore.location"] == str(serving.files / "ca.pem")
    text = (serving.files / "client.properties").read_text()
    assert text in serving.shown
    options = dict(re.findall(r'^  \.option\("kafka\.([^"]+)", "(.*)"\)$', serving.shown, re.MULTILINE))
    assert {key: value.replace('\\"', '"') for key, value in options.items()} == properties


def test_anonymous_clients_and_wrong_passwords_are_refused(serving: SecureServe) -> None:
    secured = serving.python("confluent-kafka")
    assert log_in_error(secured | {"sasl.password": "wrong"}).code() == KafkaError._AUTHENTICATION
    ca = secured["ssl.ca.location"]
    bootstrap = secured["bootstrap.servers"]
    log_in_error({"bootstrap.servers": bootstrap, "security.protocol": "SSL", "ssl.ca.location": ca})
    log_in_error({"bootstrap.servers": bootstrap})


def test_files_are_readable_by_their_owner_only(serving: SecureServe) -> None:
    assert stat.S_IMODE(serving.files.stat().st_mode) == 0o700
    files = {path.name: stat.S_IMODE(path.stat().st_mode) for path in serving.files.iterdir()}
    assert {"ca.key", "ca.pem", "client.properties", "clients.txt", "server.pem"} <= set(files)
    assert set(files.values()) == {0o600}


def test_the_password_is_in_no_log_and_no_config(serving: SecureServe) -> None:
    password = serving.python("confluent-kafka")["sasl.password"]
    ran = run_command("config", "get", "broker", "1", "--all", "-o", "json", "--command-config", serving.command_config)
    assert "ssl.keystore.location" in ran.ok().stdout
    assert password not in ran.stdout
    assert password not in serving.log.read_text()
    command_line = Path(f"/proc/{serving.process.pid}/cmdline")
    if command_line.exists():
        assert password.encode() not in command_line.read_bytes()


def test_the_next_start_uses_everything_again_and_prints_no_password(tmp_path: Path) -> None:
    with SecureServe(tmp_path) as first:
        secured = first.python("confluent-kafka")
        before = {name: (first.files / name).read_bytes() for name in ("ca.pem", "ca.key", "server.pem")}
    with SecureServe(tmp_path) as second:
        assert secured["sasl.password"] not in second.shown
        assert {name: (second.files / name).read_bytes() for name in before} == before
        again = second.python("confluent-kafka", (second.files / "clients.txt").read_text())
        assert again == secured | {"bootstrap.servers": "{}:{}".format(*second.address)}
        assert can_log_in(again)
        run_command("topic", "list", "--command-config", second.command_config).ok()


def test_a_lost_folder_is_made_again(tmp_path: Path) -> None:
    with SecureServe(tmp_path) as first:
        secured = first.python("confluent-kafka")
    first.files.rename(tmp_path / "lost")
    first.files.mkdir()
    first.files.chmod(0o755)
    with SecureServe(tmp_path) as second:
        anew = second.python("confluent-kafka")
        assert anew["sasl.password"] != secured["sasl.password"]
        assert stat.S_IMODE(second.files.stat().st_mode) == 0o700
        assert can_log_in(anew)


def test_another_address_gets_into_the_certificate(tmp_path: Path) -> None:
    with SecureServe(tmp_path) as first:
        first_certificate = first.certificate()
    with SecureServe(tmp_path, "--listen", "127.0.0.2:0") as second:
        assert second.certificate() != first_certificate
        assert can_log_in(second.python("confluent-kafka", (second.files / "clients.txt").read_text()))


def test_users_are_added_changed_and_may_do_what_acls_say(tmp_path: Path) -> None:
    with SecureServe(tmp_path, "--user", "alice:secret", "--user", "bob", BARNABAS_USER_PASSWORD="of:bob") as first:
        assert can_log_in(user(first, "alice", "secret"))
        assert can_log_in(user(first, "bob", "of:bob"))
        assert can_log_in(first.python("confluent-kafka"))
        run_command("topic", "create", "orders", "--command-config", first.command_config).ok()
        assert "orders" not in AdminClient(user(first, "alice", "secret")).list_topics(timeout=WAIT_S).topics
        assert "secret" not in first.log.read_text()
    end = metadata_size(first)
    with SecureServe(tmp_path, "--user", "alice:secret") as second:
        admin = second.python("confluent-kafka", (second.files / "clients.txt").read_text())
        assert can_log_in(admin | {"sasl.username": "alice", "sasl.password": "secret"})
        assert can_log_in(admin | {"sasl.username": "bob", "sasl.password": "of:bob"})
    assert metadata_size(second) - end < 1000, "credentials that are the same were written again"
    with SecureServe(tmp_path, "--user", "alice:changed", "--user", 'admin:with "quotes" and \\') as third:
        admin = third.python("confluent-kafka", (third.files / "clients.txt").read_text())
        assert admin["sasl.password"] == 'with "quotes" and \\'
        assert can_log_in(admin)
        run_command("topic", "list", "--command-config", third.command_config).ok()
        assert can_log_in(admin | {"sasl.username": "alice", "sasl.password": "changed"})
        wrong = admin | {"sasl.username": "alice", "sasl.password": "secret"}
        assert log_in_error(wrong).code() == KafkaError._AUTHENTICATION


def metadata_size(serving: SecureServe) -> int:
    return sum(path.stat().st_size for path in serving.data.glob("__cluster_metadata-0/*.log"))


CLUSTER = [
    *("--set", "process.roles=broker", "--set", "controller.quorum.bootstrap.servers=127.0.0.1:1"),
    *("--set", "controller.listener.names=CONTROLLER", "--set", "security.inter.broker.protocol=SASL_SSL"),
    *("--set", f"listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config={LOGIN_MODULE} required username=a password=b;"),
    *("--set", "sasl.mechanism.inter.broker.protocol=SCRAM-SHA-512", "--listen", "127.0.0.1:0"),
]


@for_each(
    ("options", "sentence"),
    [
        (["--user", "alice:x"], "--user is for a broker with --secure"),
        (["--secure"], "it needs --data-dir DIR"),
        (["--secure", "--data-dir", "DIR", "--brokers", "3"], "cannot be used with --brokers"),
        (["--secure", "--data-dir", "DIR", "--in-container"], "cannot be used with --in-container"),
        (["--secure", "--data-dir", "DIR", "--check"], "cannot be used with --check"),
        (["--secure", "--data-dir", "DIR", "--set", "listeners=PLAINTEXT://:1"], "cannot be used with --set listeners"),
        (["--secure", "--data-dir", "DIR", "--set", "super.users=User:x"], "--secure sets super.users itself"),
        (["--secure", "--data-dir", "DIR", "--user", ":x"], "--user must be NAME:PASSWORD or NAME"),
        (["--secure", "--data-dir", "DIR", "--user", "alice:"], "the password of --user alice is empty"),
        (["--secure", "--data-dir", "DIR", "--user", "a:1", "--user", "a:2"], "--user a is given twice"),
        (["--secure", "--data-dir", "DIR", "--user", "alice"], "set BARNABAS_USER_PASSWORD"),
        (["--secure", "--data-dir", "DIR", "--listen", "x"], "--listen must be HOST:PORT"),
        (["--secure", "--data-dir", "DIR", *CLUSTER], "without process.roles"),
        (["--secure", "--data-dir", "/dev/null/data"], "Cannot use /dev/null"),
    ],
)
def test_a_mistake_is_one_sentence(options: list[str], sentence: str, tmp_path: Path) -> None:
    ran = run_command("serve", *(str(tmp_path / "data") if word == "DIR" else word for word in options))
    assert ran.code == 2
    assert ran.stdout == ""
    assert sentence in ran.stderr
    assert ran.stderr.count("\n") == 1
    assert not (tmp_path / "data").exists()


def test_a_folder_that_cannot_be_used_is_one_sentence(tmp_path: Path) -> None:
    with SecureServe(tmp_path):
        pass
    files = tmp_path / "data-secure"
    properties = (files / "client.properties").read_text()
    for name, text, sentence in (
        ("client.properties", "a=b", "remove the file, and admin gets a new one"),
        ("server.pem", "nothing", "server.pem has no certificate in PEM"),
        ("ca.pem", "nothing", "ca.key and ca.pem cannot be read"),
    ):
        (files / name).write_text(text)
        ran = run_command("serve", "--secure", "--data-dir", str(tmp_path / "data"), "--listen", "127.0.0.1:0")
        assert (ran.code, ran.stderr.count("\n")) == (2, 1)
        assert sentence in ran.stderr
        (files / name).write_text(properties if name == "client.properties" else text)
        if name == "server.pem":
            (files / name).unlink()


def refused_start(tmp_path: Path, *options: str) -> str:
    """The last line of a start that ends with exit code 2, and has no traceback."""
    ran = run_command("serve", "--secure", "--data-dir", str(tmp_path / "data"), "--listen", "127.0.0.1:0", *options)
    assert ran.code == 2, ran.stderr
    assert ran.stdout == ""
    assert "Traceback" not in ran.stderr
    return ran.stderr.splitlines()[-1]


def test_a_file_that_fails_late_is_one_sentence_and_the_next_start_works(tmp_path: Path) -> None:
    """The configurations are written when the broker serves."""
    clients = tmp_path / "data-secure" / "clients.txt"
    (clients / "in the way").mkdir(parents=True)
    assert refused_start(tmp_path) == f"barnabas serve: Cannot use {clients}: Is a directory"
    (clients / "in the way").rmdir()
    clients.rmdir()
    with SecureServe(tmp_path) as broker:
        assert can_log_in(broker.python("confluent-kafka"))


def test_a_ready_file_that_fails_late_is_one_sentence(tmp_path: Path) -> None:
    ready = tmp_path / ("x" * 255)
    assert "Cannot write the ready file" in refused_start(tmp_path, "--ready-file", str(ready))


def test_metadata_that_cannot_have_users_is_one_sentence(tmp_path: Path) -> None:
    memory = MemoryBroker(tmp_path / "data")
    low = FeatureLevelRecord(name="metadata.version", feature_level=FIRST_METADATA_VERSION - 1)
    run_in_place(memory.broker.controller._log.write([low]))
    memory.close()
    assert "cannot have: start without it and raise metadata.version" in refused_start(tmp_path)
