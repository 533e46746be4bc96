"""Key stores and trust stores: which keys may be set together, and the errors of refused ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.broker.security.stores import (
    KeyStoreSettings,
    TrustStoreSettings,
    load_key_store,
    load_trust_store,
)
from barnabas.wire.configdef import ConfigError
from tests.support.cases import for_each
from tests.support.security.certificates import Authority

CA = Authority()
SERVER = CA.sign("server")
NOTHING = KeyStoreSettings("JKS", None, None, None, None, None)
NO_TRUST = TrustStoreSettings("JKS", None, None, None)


def test_inline_pem_may_have_lost_its_line_breaks() -> None:
    for blank in ("\n", " ", "\r\n"):
        key, chain = (text.replace("\n", blank) for text in (SERVER.key_pem(), SERVER.chain_pem))
        store = load_key_store(NOTHING._replace(type="PEM", key=key, chain=chain))
        assert store is not None
        assert store.chain == (SERVER.der,)


def test_a_file_of_pem_has_key_and_chain_in_any_order(tmp_path: Path) -> None:
    file = tmp_path / "server.pem"
    for text in (SERVER.pem() + CA.pem, SERVER.chain_pem + CA.pem + SERVER.key_pem()):
        file.write_text(text)
        store = load_key_store(NOTHING._replace(type="pem", location=str(file)))
        assert store is not None
        assert store.chain == (SERVER.der, CA.der)


@pytest.mark.parametrize("kind", ["PKCS12", "JKS"])
def test_pkcs12_is_read_also_if_it_is_said_to_be_jks_as_in_java(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "server.p12"
    file.write_bytes(SERVER.pkcs12("secret"))
    store = load_key_store(NOTHING._replace(type=kind, location=str(file), password="secret"))
    assert store is not None
    assert store.chain == (SERVER.der, CA.der)
    trust = tmp_path / "trust.p12"
    trust.write_bytes(CA.java_trust_store("secret"))
    assert load_trust_store(NO_TRUST._replace(type=kind, location=str(trust), password="secret")) == (CA.der,)


def test_a_jks_file_is_refused_with_the_command_that_converts_it(tmp_path: Path) -> None:
    file = tmp_path / "server.jks"
    file.write_bytes(b"\xfe\xed\xfe\xed\x00\x00\x00\x02")
    with pytest.raises(ConfigError) as refused:
        load_key_store(NOTHING._replace(location=str(file), password="secret"))
    command = f"keytool -importkeystore -srckeystore {file} -destkeystore {tmp_path}/server.p12 -deststoretype PKCS12"
    assert command in str(refused.value)
    assert "ssl.keystore.type=PKCS12" in str(refused.value)


def test_pem_without_its_type_is_refused_with_the_type_to_set(tmp_path: Path) -> None:
    """Kafka's default type is JKS."""
    path = SERVER.write(tmp_path / "server.pem")
    with pytest.raises(ConfigError, match=r"JKS, the default, .* it seems to be PEM, so set ssl\.keystore\.type=PEM"):
        load_key_store(NOTHING._replace(location=path, password="secret"))


@for_each(
    ("settings", "sentence"),
    [
        (NOTHING._replace(key="k", chain="c"), "only for PEM, but key store type is JKS"),
        (NOTHING._replace(type="PEM", key="k"), "certificate chain is not specified"),
        (NOTHING._replace(type="PEM", chain="c"), "but private key is not specified"),
        (NOTHING._replace(type="PEM", key="k", chain="c", location="f"), "Both SSL key store location and separate"),
        (NOTHING._replace(type="PEM", key="k", chain="c", password="p"), "only key password may be specified"),
        (NOTHING._replace(type="PEM", location="f", password="p"), "only key password may be specified"),
        (NOTHING._replace(password="p"), "SSL key store is not specified, but key store password is specified"),
        (NOTHING._replace(location="f"), "SSL key store is specified, but key store password is not specified"),
        (NOTHING._replace(type="PEM", location="/nowhere"), r"Cannot read /nowhere \(ssl.keystore.location\)"),
        (NOTHING._replace(type="PEM", key="k", chain="c"), "One private key is expected in ssl.keystore.key"),
        (NOTHING._replace(type="PEM", key=SERVER.key_pem(), chain="c"), "At least one certificate expected"),
        (NOTHING._replace(type="BCFKS", location=__file__, password="p"), "BCFKS is not supported"),
    ],
)
def test_key_stores_that_are_refused(settings: KeyStoreSettings, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        load_key_store(settings)


@for_each(
    ("settings", "sentence"),
    [
        (NO_TRUST._replace(certificates=CA.pem), "only for PEM, but trust store type is JKS"),
        (NO_TRUST._replace(type="PEM", certificates=CA.pem, location="f"), "Both SSL trust store location"),
        (NO_TRUST._replace(type="PEM", certificates=CA.pem, password="p"), "cannot be specified for PEM"),
        (NO_TRUST._replace(password="p"), "SSL trust store is not specified"),
        (NO_TRUST._replace(type="PEM", certificates="none"), "At least one certificate expected"),
        (
            NO_TRUST._replace(type="PEM", certificates=CA.pem.replace("MII", "AAA", 1)),
            "Cannot read a certificate in ssl.truststore.certificates",
        ),
    ],
)
def test_trust_stores_that_are_refused(settings: TrustStoreSettings, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        load_trust_store(settings)


def test_wrong_passwords_are_told_without_the_password(tmp_path: Path) -> None:
    file = tmp_path / "server.p12"
    file.write_bytes(SERVER.pkcs12("secret"))
    with pytest.raises(ConfigError) as refused:
        load_key_store(NOTHING._replace(type="PKCS12", location=str(file), password="wr0ng"))
    assert "as PKCS12" in str(refused.value)
    assert "wr0ng" not in str(refused.value)


def test_no_store_is_none() -> None:
    assert load_key_store(NOTHING) is None
    assert load_trust_store(NO_TRUST) is None
