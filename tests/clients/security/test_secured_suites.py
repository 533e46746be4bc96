"""Whole suites of clients over secured listeners, with the certificate replaced meanwhile: `compat/run NAME --secure`.

`make test` has one of them, `make soak` one more of each client that takes seconds; `compat/run NAME --secure all` runs
every combination of a client.
"""

from __future__ import annotations

from pathlib import Path
from time import monotonic

import pytest

from barnabas.client.admin.acls import list_acls
from barnabas.client.admin.topics import create_topic
from barnabas.client.admin.users import list_credentials
from barnabas.wire.errors import ErrorCode, KafkaError
from compat import suite
from compat.go_program import has_go
from tests.clients.security.secured_suites import RUN_TIMEOUT_S, run
from tests.support.cases import for_each
from tests.support.processes.commands import KCAT, run_command
from tests.support.processes.secured_broker import ASK_TIMEOUT_S, SecuredBroker
from tests.support.processes.security import EVERY, OF_CLIENT, ClientSettings, Combination, Security, combination

SLOW = [
    ("aiokafka", "SASL_SSL/OAUTHBEARER"),
    ("kafka_python", "SSL/mTLS"),
    ("kcat", "SASL_SSL/OAUTHBEARER-UNSECURED"),
    ("franz-go", "SASL_SSL/SCRAM-SHA-512"),
]
MODULES = {"aiokafka": "aiokafka", "kafka_python": "kafka", "confluent_kafka": "confluent_kafka"}


def passes(name: str, secure: str) -> None:
    """Run a suite; all listed tests must pass, and rotations take place if there are certificates."""
    if name in MODULES:
        pytest.importorskip(MODULES[name])
    # kafka-python leaves TLS sockets that were closed in a handshake to the collection of garbage.
    left_open = ("-W", "ignore::pytest.PytestUnraisableExceptionWarning", "-W", "ignore::ResourceWarning")
    done = run(name, "--secure", secure, "--rotate", "0.5", "-p", "no:cacheprovider", *left_open)
    assert done.returncode == 0, done.stdout + done.stderr
    count = len(suite.allowed(name))
    assert f"{name}: {count} of {count} listed tests passed" in done.stdout
    assert (f"{name}: certificate rotated " in done.stdout) == combination(secure).has_tls


@pytest.mark.timeout(RUN_TIMEOUT_S)
def test_a_suite_over_tls_with_scram() -> None:
    passes("confluent_kafka", "SASL_SSL/SCRAM-SHA-256")


@pytest.mark.soak
@pytest.mark.timeout(RUN_TIMEOUT_S)
@pytest.mark.parametrize(("name", "secure"), SLOW)
def test_suites_of_other_clients(name: str, secure: str) -> None:
    if (name == "kcat" and KCAT is None) or (name == "franz-go" and not has_go()):
        pytest.skip(f"{name} is not installed")
    passes(name, secure)


@for_each(
    ("arguments", "sentence"),
    [
        (["kcat", "--secure", "TLS"], "argument --secure: there is no 'TLS': choose one of SSL, SSL/mTLS, "),
        (["kcat", "--secure", "SASL_SSL"], "argument --secure: there is no 'SASL_SSL': choose one of "),
        (["kcat", "--secure", "SASL_SSL/OAUTHBEARER"], "kcat does not have SASL_SSL/OAUTHBEARER: it has SSL, "),
        (["kcat", "--rotate", "2"], "--rotate needs --secure"),
        (["transactions", "--secure", "SSL"], "--secure is for the suites of one client: "),
        (["kcat", "--secure", "SSL", "--brokers", "3"], "--secure is for one broker"),
    ],
)
def test_what_cannot_be_secured_is_refused_in_one_sentence(arguments: list[str], sentence: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(f"compat/run: error: {sentence}")


def settings(one: Combination) -> ClientSettings:
    return ClientSettings("127.0.0.1:9093", Security(one, "ca.pem", "client.pem", "alice", "secret", "/token.jwt"))


@for_each("one", EVERY, ids=str)
def test_settings_name_the_protocol_and_the_mechanism(one: Combination) -> None:
    client_settings = settings(one)
    mechanism = one.mechanism or None
    for configuration, protocol_key, mechanism_key in (
        (client_settings.librdkafka(), "security.protocol", "sasl.mechanism"),
        (client_settings.java(), "security.protocol", "sasl.mechanism"),
        (client_settings.spark(), "kafka.security.protocol", "kafka.sasl.mechanism"),
    ):
        assert configuration[protocol_key] == one.protocol
        assert configuration.get(mechanism_key) == mechanism
        assert ("ca.pem" in configuration.values()) == one.has_tls
    assert combination(str(one)) == one


@pytest.mark.soak
@pytest.mark.parametrize("one", EVERY, ids=str)
def test_the_command_line_and_its_client_use_the_same_properties(one: Combination, tmp_path: Path) -> None:
    """A certificate is replaced between two questions."""
    secured = SecuredBroker("barnabas", tmp_path / "data", {}, one)
    secured.start()
    try:
        properties = secured.server.clients.write(tmp_path / "client.properties")
        options = ("topic", "list", "--command-config", str(properties))
        assert run_command(*options, bootstrap=secured.server.bootstrap).code == 0
        if one.has_tls:
            renewed = secured.replace("config")
            while secured.shown() != renewed:  # the broker answers before it has read the file
                pass
            assert run_command(*options, bootstrap=secured.server.bootstrap).code == 0
    finally:
        secured.server.stop()


@pytest.mark.parametrize("kind", ["barnabas", pytest.param("kafka", marks=[pytest.mark.jvm, pytest.mark.soak])])
def test_who_has_no_principal_may_do_nothing(kind: str, tmp_path: Path) -> None:
    """So a client whose principal is lost fails its suite: the users of the suites may do everything."""
    secured = SecuredBroker(kind, tmp_path / "data", {}, combination("SASL_SSL/PLAIN"))
    secured.start()
    try:
        with secured.server.administration.barnabas(ASK_TIMEOUT_S) as administrator:
            create_topic(administrator, "orders")
        with ClientSettings(secured.plaintext).barnabas(ASK_TIMEOUT_S) as nobody:
            assert nobody.metadata(None, monotonic() + ASK_TIMEOUT_S).topics == []
            for refused, code in (
                (lambda: nobody.find_topic("orders"), ErrorCode.TOPIC_AUTHORIZATION_FAILED),
                (lambda: create_topic(nobody, "bills"), ErrorCode.TOPIC_AUTHORIZATION_FAILED),
                (lambda: list_credentials(nobody), ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
                (lambda: list_acls(nobody), ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
            ):
                with pytest.raises(KafkaError) as heard:
                    refused()
                assert heard.value.code == code
    finally:
        secured.server.stop()


def test_settings_without_security_are_addresses_only() -> None:
    client_settings = ClientSettings("127.0.0.1:9092")
    assert client_settings.librdkafka() == client_settings.java() == {"bootstrap.servers": "127.0.0.1:9092"}
    assert client_settings.kafka_python() == client_settings.aiokafka() == {"bootstrap_servers": "127.0.0.1:9092"}
    assert client_settings.spark() == {"kafka.bootstrap.servers": "127.0.0.1:9092"}
    assert client_settings.kcat() == ["-b", "127.0.0.1:9092"]
    assert client_settings.franz_go() == client_settings.security_properties() == {}


def test_every_suite_has_its_combinations() -> None:
    assert sorted(OF_CLIENT) == suite.NAMES
    assert all(set(combinations) <= set(EVERY) for combinations in OF_CLIENT.values())
