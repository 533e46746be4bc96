"""The identities of a node: settings with prefixes, errors at the start, and which identity may replace another."""

from __future__ import annotations

import datetime as dt
import logging
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.broker.config.config_schema import config_schema
from barnabas.broker.config.load import load
from barnabas.broker.security.tls import Tls
from barnabas.broker.security.tls_contexts import client_context, server_context
from barnabas.broker.security.tls_settings import tls_settings
from barnabas.coord.cluster.resources import BROKER
from barnabas.wire.configdef import PASSWORD, ConfigError
from tests.security.tls_node import CA, SERVER, TlsNode, shakes_hands
from tests.support.cases import for_each
from tests.support.security.certificates import Authority, Signed


def inline(signed: Signed = SERVER, **others: str) -> dict[str, str]:
    keys = {
        "listeners": "SSL://localhost:9093",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": signed.key_pem(),
        "ssl.keystore.certificate.chain": signed.chain_pem,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": CA.pem,
    }
    return keys | {name.replace("_", "."): value for name, value in others.items()}


def test_a_listeners_own_key_comes_before_the_brokers() -> None:
    own = CA.sign("own")
    keys = inline() | {
        "listeners": "SSL://localhost:9093,OTHER://localhost:9094",
        "listener.security.protocol.map": "SSL:SSL,OTHER:SSL",
        "listener.name.other.ssl.keystore.key": own.key_pem(),
        "listener.name.other.ssl.keystore.certificate.chain": own.chain_pem,
    }
    identities = Tls(load(keys, {}, None)).identities
    shown = {name: shakes_hands(identity.context, identity.client_context) for name, identity in identities.items()}
    assert {name: side.getpeercert(binary_form=True) for name, side in shown.items()} == {
        "SSL": SERVER.der,
        "OTHER": own.der,
    }


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_only_enabled_versions_are_spoken(version: str) -> None:
    only = Tls(load(inline(ssl_enabled_protocols=version), {}, None)).identities["SSL"]
    both = Tls(load(inline(), {}, None)).identities["SSL"]
    assert shakes_hands(only.context, both.client_context).version() == version
    assert shakes_hands(both.context, only.client_context).version() == version


def test_java_s_names_of_cipher_suites_are_those_of_openssl() -> None:
    suites = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"
    identity = Tls(load(inline(ssl_cipher_suites=suites), {}, None)).identities["SSL"]
    client = Tls(load(inline(), {}, None)).identities["SSL"].client_context
    chosen = shakes_hands(identity.context, client).cipher()
    assert chosen is not None
    assert chosen[:2] == ("ECDHE-ECDSA-AES128-GCM-SHA256", "TLSv1.2")


def test_the_name_of_the_other_node_is_checked_unless_that_is_turned_off() -> None:
    here = Tls(load(inline(), {}, None)).identities["SSL"]
    with pytest.raises(ssl.SSLCertVerificationError, match="elsewhere"):
        shakes_hands(here.context, here.client_context, "elsewhere")
    settings = tls_settings(load(inline(ssl_endpoint_identification_algorithm=""), {}, None), "SSL")
    unchecked = client_context(settings, here.current.keys, here.current.trusted)
    shakes_hands(here.context, unchecked, "elsewhere")


def test_an_encrypted_key_needs_its_password() -> None:
    keys = inline(ssl_keystore_key=SERVER.key_pem("secret"))
    identity = Tls(load(keys | {"ssl.key.password": "secret"}, {}, None)).identities["SSL"]
    shakes_hands(identity.context, identity.client_context)
    for password, hint in (
        ({}, "it needs ssl.key.password"),
        ({"ssl.key.password": "wr0ng"}, "is ssl.key.password ri"),
    ):
        with pytest.raises(ConfigError, match=hint) as refused:
            Tls(load(keys | password, {}, None))
        assert "wr0ng" not in str(refused.value)


@for_each(
    ("others", "sentence"),
    [
        ({"ssl_enabled_protocols": "TLSv1.1"}, "TLSv1.2 and TLSv1.3 are"),
        ({"ssl_protocol": "SSLv3"}, "ssl.protocol=SSLv3 is not supported"),
        ({"ssl_endpoint_identification_algorithm": "LDAPS"}, "use https, or an empty value"),
        ({"ssl_cipher_suites": "TLS_RSA_WITH_RC4_128_MD5"}, "RC4_128_MD5, which is unknown or too weak"),
        ({"ssl_cipher_suites": "TLS_AES_256_GCM_SHA384"}, "has some suites of TLS 1.3, but not TLS_AES_128_GCM"),
        (
            {"ssl_cipher_suites": "TLS_RSA_WITH_AES_128_GCM_SHA256", "ssl_enabled_protocols": "TLSv1.3"},
            "no suite of a version in ssl.enabled.protocols",
        ),
        ({"ssl_principal_mapping_rules": "nonsense"}, "Invalid rule: nonsense"),
        ({"ssl_keystore_key": CA.sign("server").key_pem()}, "key values mismatch"),
        ({"ssl_keystore_key": "", "ssl_keystore_certificate_chain": ""}, "there is no key store: set ssl.keystore"),
    ],
)
def test_what_is_refused_at_the_start(others: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError, match=f"TLS of the listener SSL: .*{sentence}"):
        Tls(load(inline(**others), {}, None))


def test_brokers_must_trust_the_certificate_of_their_own_listener() -> None:
    keys = inline(ssl_truststore_certificates=Authority("another").pem)
    Tls(load(keys, {}, None))
    with pytest.raises(ConfigError, match="must trust the node's own certificate"):
        Tls(load(keys | {"security.inter.broker.protocol": "SSL"}, {}, None))


def test_a_listener_with_sasl_asks_for_certificates_only_if_that_is_set_for_it_alone() -> None:
    """KIP-684."""
    keys = {"listener.security.protocol.map": "SSL:SASL_SSL", "ssl.client.auth": "required"}
    config = load(inline() | {"listeners": "PLAINTEXT://:1"} | {"ssl.client.auth": "required"}, {}, None)
    assert tls_settings(config, "SSL").client_auth == "required"
    config = load(
        inline()
        | {"listeners": "PLAINTEXT://:1"}
        | keys
        | {"listener.security.protocol.map": "SSL:SASL_SSL,PLAINTEXT:PLAINTEXT"},
        {},
        None,
    )
    assert tls_settings(config, "SSL").client_auth == "none"
    config = config.with_dynamic({"listener.name.ssl.ssl.client.auth": "requested"}, {})
    assert tls_settings(config, "SSL").client_auth == "requested"


class Held:
    """Runs nothing before the test says so, in the order that it wants."""

    def __init__(self) -> None:
        self.works: list[Callable[[], None]] = []

    def submit(self, work: Callable[[], None], then: Callable[[Exception | None], None]) -> None:
        def run() -> None:
            work()
            then(None)

        self.works.append(run)


@pytest.fixture
def node(tmp_path: Path) -> TlsNode:
    return TlsNode(tmp_path)


def test_a_changed_file_is_used_for_new_connections(node: TlsNode) -> None:
    renewed = CA.sign("server", ("localhost", "127.0.0.1", "more"))
    node.wait()
    renewed.write(node.key_store)
    assert node.shown == SERVER.der
    node.wait()
    assert node.shown == renewed.der
    again = CA.sign("server", ("localhost", "127.0.0.1", "more"))
    again.write(node.key_store)
    node.wait()
    assert node.shown == again.der


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (
            CA.sign("other").pem(),
            "DistinguishedName does not match: existing={DN=CN=server,O=Barnabas}, new={DN=CN=oth",
        ),
        (CA.sign("server", ("localhost",)).pem(), "SubjectAltNames do not match: 1 of the existing ones"),
        (Authority("another").sign("server").pem(), "must trust the node's own certificate"),
        ("half a fi", "One private key is expected"),
    ],
)
def test_an_incompatible_file_is_refused_once_and_the_old_one_stays(
    node: TlsNode, caplog, content: str, sentence: str
) -> None:
    node.key_store.write_text(content)
    node.wait()
    node.wait()
    assert node.shown == SERVER.der
    (record,) = [entry for entry in caplog.records if entry.levelno == logging.ERROR]
    assert "New certificates of the listener SSL are refused, the old ones stay" in record.getMessage()
    assert sentence in record.getMessage()
    renewed = CA.sign("server")
    renewed.write(node.key_store)
    node.wait()
    assert node.shown == renewed.der


@pytest.mark.parametrize(
    ("year", "sentence"),
    [(2121, "it has ended at 2120-01-01T00:00:00Z"), (2019, "it begins at 2020-01-01T00:00:00Z"), (2026, None)],
)
def test_a_certificate_that_clients_will_refuse_is_told(
    tmp_path: Path, caplog, year: int, sentence: str | None
) -> None:
    """At the start and for a new one; it is used, as by Kafka."""
    node = TlsNode(tmp_path, at_ms=int(dt.datetime(year, 6, 1, tzinfo=dt.UTC).timestamp() * 1000))
    renewed = CA.sign("server")
    renewed.write(node.key_store)
    node.wait()
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    start = "The certificate of the listener SSL is not valid now, clients will refuse it: "
    assert warnings == ([] if sentence is None else [start + sentence] * 2)
    assert node.shown == renewed.der


def test_other_names_are_accepted_where_that_is_allowed(tmp_path: Path) -> None:
    node = TlsNode(tmp_path, ssl_allow_dn_changes="true", ssl_allow_san_changes="true")
    other = CA.sign("other", ("localhost",))
    other.write(node.key_store)
    node.wait()
    assert node.shown == other.der


def test_a_trust_store_that_does_not_trust_this_node_is_refused(node: TlsNode, caplog) -> None:
    Authority("another").write(node.trust_store)
    node.wait()
    assert node.shown == SERVER.der
    assert "must trust the node's own certificate" in caplog.text


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_the_last_dynamic_config_wins_whichever_thread_ends_last(tmp_path: Path, order: tuple[int, ...]) -> None:
    """A changed file is being read when two dynamic configs follow."""
    held = Held()
    node = TlsNode(tmp_path, held)
    CA.sign("server").write(node.key_store)
    node.wait()
    node.change_key_store(CA.sign("server").write(tmp_path / "first.pem"))
    last = CA.sign("server")
    node.change_key_store(last.write(tmp_path / "last.pem"))
    for index in order:
        held.works[index]()
    assert node.shown == last.der
    again = CA.sign("server")
    again.write(tmp_path / "last.pem")
    held.works.clear()
    node.wait()
    for work in held.works:
        work()
    assert node.shown == again.der


def test_a_missing_file_is_waited_for(node: TlsNode, caplog) -> None:
    """Tools that replace a file may remove it first."""
    node.key_store.unlink()
    node.wait()
    assert caplog.text == ""
    renewed = CA.sign("server")
    renewed.write(node.key_store)
    node.wait()
    assert node.shown == renewed.der


def test_every_secret_is_a_password() -> None:
    keys = config_schema(["SSL"]).keys[BROKER]
    secret = {
        name for name in keys if "ssl." in name and name.endswith((".password", ".key", ".chain", ".certificates"))
    }
    assert len(secret) == 12
    assert {keys[name].type for name in secret} == {PASSWORD}


def test_a_key_store_says_nothing_of_its_key() -> None:
    identity = Tls(load(inline(), {}, None)).identities["SSL"].current
    assert SERVER.key_pem().splitlines()[1] not in repr(identity.keys)
    assert identity.keys is not None
    server_context(identity.settings, identity.keys, identity.trusted)
