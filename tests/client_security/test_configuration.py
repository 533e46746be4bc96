"""A client's configuration: valid keys, the error of each mistake, and that no error shows a secret."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from barnabas.client.security.jaas import JaasError, login_line, parse_jaas
from barnabas.client.security.keys import SecurityError
from barnabas.client.security.scram import login
from barnabas.client.security.settings import security_from
from barnabas.coord.security.exchange import InvalidCredentials
from tests.support.cases import for_each
from tests.support.security.certificates import Authority

SECRET = "s3cr3t-of-the-test"


def refusal(properties: dict[str, str]) -> str:
    with pytest.raises(SecurityError) as refused:
        security_from(properties)
    assert SECRET not in str(refused.value)
    return str(refused.value)


# --- JAAS


def test_a_line_of_jaas_has_its_options() -> None:
    line = ' a.b.ScramLoginModule  required username="al\\"ice;=" password = x tokenauth=true ; '
    assert parse_jaas(line) == ("a.b.ScramLoginModule", {"username": 'al"ice;=', "password": "x", "tokenauth": "true"})
    assert parse_jaas("a.B required;").class_name == "B"


def test_the_line_of_a_user_takes_every_text_as_it_is() -> None:
    for text in ('a"; b="c', "\\", '\\"', " x ", "\n\r\t\x007", "ü'💥//", '" tokenauth="true'):
        options = parse_jaas(login_line("PLAIN", text, text)).options
        assert options == {"username": text, "password": text}


@for_each(
    "line",
    [
        "",
        "a.B",
        "a.B needed;",
        f'a.B required password="{SECRET}"',
        f'a.B required password="{SECRET};',
        f"a.B required password {SECRET};",
        f'a.B required password="{SECRET}"; c.D required;',
        f'a.B required password;="{SECRET}";',
    ],
)
def test_another_form_is_refused_without_its_password(line: str) -> None:
    with pytest.raises(JaasError) as refused:
        parse_jaas(line)
    assert SECRET not in str(refused.value)


# --- SCRAM


@pytest.mark.parametrize("iterations", [1, 999_999_999])
def test_a_broker_cannot_make_scram_weak_or_slow(iterations: int) -> None:
    client = login("SCRAM-SHA-256", "user", SECRET)
    nonce = client.first().decode().rpartition("r=")[2]
    with pytest.raises(InvalidCredentials, match=f"asks for {iterations} iterations"):
        client.step(f"r={nonce}more,s=AAAA,i={iterations}".encode())


# --- keys


def test_without_keys_of_security_nothing_is_secured() -> None:
    assert security_from({"acks": "all"}) is None
    assert security_from({"security.protocol": "plaintext", "sasl.username": "x"}) is None


@for_each(
    ("properties", "words"),
    [
        ({"security.protocol": "TLS"}, "must be one of PLAINTEXT, SSL"),
        ({"security.protocl": "SSL"}, "security.protocl is not among the keys"),
        ({"ssl.cipher.suites": "x", "security.protocol": "SSL"}, "ssl.cipher.suites is not among"),
        ({"sasl.password": SECRET}, "sasl.password has no effect with PLAINTEXT"),
        ({"ssl.key.password": SECRET}, "ssl.key.password has no effect with PLAINTEXT"),
        ({"security.protocol": "SASL_SSL"}, "sasl.mechanism must be one of"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"}, "not GSSAPI"),
        ({"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}, "needs a user and a password"),
        (
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.jaas.config": f'x.ScramLoginModule required username="a" password="{SECRET}";',
            },
            "must have PlainLoginModule",
        ),
        (
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.oauthbearer.token.endpoint.url": "https://idp.example/token",
            },
            "must be file:///PATH",
        ),
        ({"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}, "OAUTHBEARER needs"),
        ({"security.protocol": "SSL", "ssl.enabled.protocols": "TLSv1.1"}, "not 'TLSv1.1'"),
        ({"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "LDAPS"}, "must be https or empty"),
        ({"security.protocol": "SSL", "ssl.truststore.location": "/no/such.pem"}, "/no/such.pem: no such file"),
        ({"security.protocol": "SSL", "ssl.truststore.certificates": SECRET}, "no certificates that can be read"),
        ({"security.protocol": "SSL", "ssl.keystore.key": SECRET}, "are given together"),
    ],
)
def test_a_mistake_is_one_sentence(properties: dict[str, str], words: str) -> None:
    assert words in refusal(properties)


# --- stores


def test_a_jks_store_is_refused_with_the_command_that_converts_it(tmp_path: Path) -> None:
    store = tmp_path / "trust.jks"
    store.write_bytes(b"\xfe\xed\xfe\xed" + bytes(20))
    text = refusal({"security.protocol": "SSL", "ssl.truststore.location": str(store)})
    assert f"keytool -importkeystore -srckeystore {store}" in text


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ({}, "needs ssl.keystore.password"),
        ({"ssl.keystore.password": SECRET}, "has another password"),
        ({"ssl.keystore.type": "PEM"}, "is not a PEM store"),
    ],
)
def test_a_pkcs12_store_needs_its_password(tmp_path: Path, own: dict[str, str], words: str) -> None:
    store = tmp_path / "own.p12"
    store.write_bytes(Authority().sign("carol").pkcs12("changeit"))
    properties = {"security.protocol": "SSL", "ssl.keystore.location": str(store)}
    assert words in refusal(properties | own)
    assert security_from(properties | {"ssl.keystore.password": "changeit"}) is not None


def test_an_encrypted_key_needs_its_password(tmp_path: Path) -> None:
    store = Authority().sign("carol").write(tmp_path / "own.pem", "key-secret")
    properties = {"security.protocol": "SSL", "ssl.keystore.location": store}
    assert "ssl.key.password is missing" in refusal(properties)
    assert "another password" in refusal(properties | {"ssl.key.password": SECRET})
    assert security_from(properties | {"ssl.key.password": "key-secret"}) is not None


def test_a_key_of_another_certificate_is_refused() -> None:
    authority = Authority()
    carol, dave = authority.sign("carol"), authority.sign("dave")
    properties = {"security.protocol": "SSL", "ssl.keystore.key": carol.key_pem()}
    text = refusal(properties | {"ssl.keystore.certificate.chain": dave.chain_pem})
    assert "private key that is not the one of its certificate" in text
    assert security_from(properties | {"ssl.keystore.certificate.chain": carol.chain_pem}) is not None


def test_names_are_checked_unless_that_is_turned_off() -> None:
    for algorithm, checks in (("https", True), ("HTTPS", True), ("", False)):
        security = security_from({"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": algorithm})
        assert security is not None
        assert security._context is not None
        assert security._context.check_hostname is checks
        assert security._context.verify_mode is ssl.CERT_REQUIRED
