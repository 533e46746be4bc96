"""TLS and every SASL mechanism against a broker, and what each mistake says."""

from __future__ import annotations

from pathlib import Path
from time import monotonic

import pytest

from barnabas.client.admin.topics import list_topics
from barnabas.client.admin.users import set_credential
from barnabas.client.cluster import Cluster
from barnabas.client.errors import AuthenticationFailed, TlsFailed
from barnabas.client.security.scram import credential
from barnabas.client.security.settings import security_from
from tests.support.processes.commands import run_command
from tests.support.processes.secured import SESSION_MS, Secured
from tests.support.security.certificates import Authority

SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
ADMIN = {"sasl_mechanism": "PLAIN", "sasl_username": "admin", "sasl_password": "admin-secret"}
LOGIN = {"sasl_mechanism": "PLAIN", "sasl_username": "alice", "sasl_password": "alice-secret"}
TOKEN = 'x.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="admin";'


def connected(
    secured: Secured, protocol: str, *, to: str | None = None, host: str = "127.0.0.1", **more: str
) -> Cluster:
    properties = secured.properties(protocol, **more)
    return Cluster(secured.address(to or protocol, host), timeout_s=10, security=security_from(properties))


def works(cluster: Cluster) -> bool:
    with cluster:
        return cluster.metadata([], monotonic() + 10).cluster_id is not None


def failure(cluster: Cluster, kind: type[Exception]) -> str:
    with pytest.raises(kind) as failed, cluster:
        cluster.retry(lambda deadline: cluster.metadata([], deadline))
    return str(failed.value)


@pytest.fixture(scope="module")
def scram_user(secured: Secured) -> str:
    with secured.server.administration.barnabas(timeout_s=30) as cluster:
        for mechanism in SCRAM:
            set_credential(cluster, "bob,=x", credential(mechanism, "bob-secret", 4096))
    return "bob,=x"


# --- what works


def test_tls_with_a_trust_store_of_each_kind(secured: Secured, tmp_path: Path) -> None:
    assert works(connected(secured, "SSL"))
    store = tmp_path / "trust.p12"
    store.write_bytes(secured.authority.trust_store("changeit"))
    assert works(
        Cluster(
            secured.address("SSL"),
            security=security_from(
                {
                    "security.protocol": "SSL",
                    "ssl.truststore.location": str(store),
                    "ssl.truststore.password": "changeit",
                    "ssl.truststore.type": "PKCS12",
                }
            ),
        )
    )
    inline = {"security.protocol": "SSL", "ssl.truststore.certificates": secured.authority.pem.replace("\n", " ")}
    assert works(Cluster(secured.address("SSL"), security=security_from(inline)))


def test_a_client_certificate_is_shown(secured: Secured, tmp_path: Path) -> None:
    own = secured.authority.sign("carol")
    encrypted = own.write(tmp_path / "own.pem", "key-secret")
    assert works(connected(secured, "SSL", ssl_keystore_location=encrypted, ssl_key_password="key-secret"))
    store = tmp_path / "own.p12"
    store.write_bytes(own.pkcs12("changeit"))
    assert works(connected(secured, "SSL", ssl_keystore_location=str(store), ssl_keystore_password="changeit"))
    stranger = Authority("strangers").sign("mallory").write(tmp_path / "stranger.pem")
    text = failure(connected(secured, "SSL", ssl_keystore_location=stranger), TlsFailed)
    assert "does not accept the client's certificate" in text


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_each_version_of_tls(secured: Secured, version: str) -> None:
    assert works(connected(secured, "SSL", ssl_enabled_protocols=version))


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_plain_and_oauthbearer(secured: Secured, protocol: str) -> None:
    plain = 'x.PlainLoginModule required username="alice" password="alice-secret";'
    assert works(connected(secured, protocol, sasl_mechanism="PLAIN", sasl_jaas_config=plain))
    assert works(connected(secured, protocol, sasl_mechanism="OAUTHBEARER", sasl_jaas_config=TOKEN))


@pytest.mark.parametrize("mechanism", SCRAM)
def test_scram(secured: Secured, scram_user: str, mechanism: str) -> None:
    more = {"sasl_mechanism": mechanism, "sasl_username": scram_user}
    assert works(connected(secured, "SASL_SSL", sasl_password="bob-secret", **more))
    text = failure(connected(secured, "SASL_SSL", sasl_password="bob-secre", **more), AuthenticationFailed)
    assert "invalid credentials" in text
    assert "bob-secre" not in text


def test_a_token_of_a_file_is_read_at_each_log_in(secured: Secured, tmp_path: Path) -> None:
    from barnabas.client.security.oauth import _unsecured

    path = tmp_path / "token of a client"
    more = {
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_oauthbearer_token_endpoint_url": "file://" + str(path).replace(" ", "%20"),
    }
    cluster = connected(secured, "SASL_SSL", **more)
    assert "no such file" in failure(cluster, AuthenticationFailed)
    path.write_text("not.a.token\n")
    assert "invalid_token" in failure(cluster, AuthenticationFailed)
    path.write_text(_unsecured({"unsecuredLoginStringClaim_sub": "admin"}) + "\n")
    assert works(cluster)


def test_records_of_megabytes_through_tls(secured: Secured, topic: str, admin, config_file) -> None:
    """Produced and consumed by the command line, with a trailing record that is only a part of one of TLS."""
    admin("topic", "create", topic).ok()
    file = config_file(secured.properties("SASL_SSL", **ADMIN) | {"bootstrap.servers": secured.address("SASL_SSL")})
    lines = [chr(97 + number) * 300_000 for number in range(20)]
    run_command("produce", topic, "--command-config", file, stdin="\n".join(lines) + "\n").ok()
    assert run_command("consume", topic, "-e", "-f", "%v\\n", "--command-config", file).ok().lines == lines


def test_a_log_in_is_renewed_before_its_lifetime_ends(secured: Secured) -> None:
    """The broker closes a connection that goes on after the lifetime without a new log-in."""
    with connected(secured, "SASL_PLAINTEXT", **ADMIN) as cluster:
        first = cluster.any_node(monotonic() + 10)
        end = monotonic() + SESSION_MS / 1000 * 1.5
        while monotonic() < end:
            list_topics(cluster)
        assert first.is_open
        assert cluster.any_node(monotonic() + 10) is first


# --- mistakes


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_a_wrong_password(secured: Secured, protocol: str) -> None:
    more = {"sasl_mechanism": "PLAIN", "sasl_username": "alice", "sasl_password": "wrong-secret"}
    text = failure(connected(secured, protocol, **more), AuthenticationFailed)
    assert "Invalid username or password" in text
    assert "wrong-secret" not in text


def test_another_name_and_an_unknown_ca(secured: Secured, tmp_path: Path) -> None:
    assert "is for another name" in failure(connected(secured, "SSL", host="localhost"), TlsFailed)
    assert works(connected(secured, "SSL", host="localhost", ssl_endpoint_identification_algorithm=""))
    other = Authority("others").write(tmp_path / "other.pem")
    properties = {"security.protocol": "SSL", "ssl.truststore.location": str(other)}
    cluster = Cluster(secured.address("SSL"), security=security_from(properties))
    assert "is not signed by a CA that is trusted" in failure(cluster, TlsFailed)
    cluster = Cluster(secured.address("SSL"), security=security_from({"security.protocol": "SSL"}))
    assert "is not signed by a CA that is trusted" in failure(cluster, TlsFailed)


@pytest.mark.parametrize(
    ("protocol", "to", "kind", "words"),
    [
        ("PLAINTEXT", "SSL", TlsFailed, "expects TLS"),
        ("PLAINTEXT", "SASL_SSL", TlsFailed, "expects TLS"),
        (
            "PLAINTEXT",
            "SASL_PLAINTEXT",
            AuthenticationFailed,
            "expects a log-in: set security.protocol to SASL_PLAINTEXT",
        ),
        ("SSL", "PLAINTEXT", TlsFailed, "is it a listener with TLS?"),
        ("SSL", "SASL_SSL", AuthenticationFailed, "set security.protocol to SASL_SSL"),
        ("SASL_PLAINTEXT", "PLAINTEXT", AuthenticationFailed, "has no SASL"),
        ("SASL_PLAINTEXT", "SSL", TlsFailed, "expects TLS"),
        ("SASL_SSL", "SSL", AuthenticationFailed, "has no SASL"),
        ("SASL_SSL", "SASL_PLAINTEXT", TlsFailed, "is it a listener with TLS?"),
    ],
)
def test_the_wrong_protocol(secured: Secured, protocol: str, to: str, kind: type[Exception], words: str) -> None:
    started = monotonic()
    login = LOGIN if protocol.startswith("SASL") else {}
    assert words in failure(connected(secured, protocol, to=to, **login), kind)
    assert monotonic() - started < 8, "it must not be tried until the time limit"


def test_a_mechanism_that_the_listener_does_not_have(secured: Secured) -> None:
    security = security_from(secured.properties("SASL_SSL", **LOGIN))
    assert security is not None
    security._sasl = security._sasl._replace(mechanism="SCRAM-SHA-1")  # type: ignore[union-attr]
    text = failure(Cluster(secured.address("SASL_SSL"), security=security), AuthenticationFailed)
    assert "does not have sasl.mechanism=SCRAM-SHA-1" in text
    assert "SCRAM-SHA-512" in text


def test_every_kind_of_command_logs_in(secured: Secured, admin, config_file, topic: str) -> None:
    """`doctor`, `cat` with kcat's names of the keys, and a tool of Kafka's."""
    admin("topic", "create", topic).ok()
    address = secured.address("SASL_SSL")
    file = config_file(secured.properties("SASL_SSL", **ADMIN))
    examined = run_command("doctor", "-b", address, "--command-config", file).ok()
    assert "failed" not in examined.stdout
    ran = run_command("doctor", "-b", address)
    assert (ran.code, "expects TLS" in ran.stdout) == (3, True)

    keys = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanisms": "PLAIN",
        "sasl.username": "admin",
        "sasl.password": "admin-secret",
        "ssl.ca.location": secured.ca,
    }
    options = [word for key, value in keys.items() for word in ("-X", f"{key}={value}")]
    run_command("cat", "-P", "-b", address, "-t", topic, *options, stdin="one\n").ok()
    assert run_command("cat", "-C", "-b", address, "-t", topic, "-e", "-q", *options).ok().stdout == "one\n"
    tool = run_command("kafka-topics", "--bootstrap-server", address, "--command-config", file, "--list").ok()
    assert topic in tool.lines
