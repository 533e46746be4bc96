"""Trust stores and key stores in PEM (KIP-651): checked before Spark starts, since Java names neither file nor key.

A store is a file, or texts in the configuration. Other types are refused, because librdkafka does not read them. An
encrypted key is decrypted for Java, since Java before 19 does not know the encryption of keys that OpenSSL writes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

CERTIFICATE: Final = "-----BEGIN CERTIFICATE-----"
ENCRYPTED: Final = "-----BEGIN ENCRYPTED PRIVATE KEY-----"
PRIVATE_KEYS: Final = ("-----BEGIN PRIVATE KEY-----", ENCRYPTED)
_ENCRYPTED_KEY: Final = re.compile(f"{ENCRYPTED}.*?-----END ENCRYPTED PRIVATE KEY-----", re.DOTALL)
_CERTIFICATES: Final = re.compile(rf"{CERTIFICATE}.*?-----END CERTIFICATE-----\s*", re.DOTALL)
CERTIFICATES, CHAIN, KEY = "ssl.truststore.certificates", "ssl.keystore.certificate.chain", "ssl.keystore.key"


def check_trust_store(values: dict[str, str]) -> None:
    """Check the trust store, and set its type. ValueError, a sentence, if it cannot be used."""
    if (text := _text(values, "truststore", (CERTIFICATES,))) is not None:
        _require(CERTIFICATE in text, values, "truststore", "has no certificate in PEM")


def check_key_store(values: dict[str, str]) -> None:
    """Check the key store, and set its type. ValueError, a sentence, if it cannot be used."""
    if (text := _text(values, "keystore", (KEY, CHAIN))) is None:
        if "ssl.key.password" in values:
            raise ValueError("ssl.key.password has no effect without ssl.keystore.location or ssl.keystore.key")
        return
    _require(CERTIFICATE in text, values, "keystore", "has no certificate in PEM")
    _require(
        any(begin in text for begin in PRIVATE_KEYS),
        values,
        "keystore",
        "has no private key as PKCS #8 in PEM, which 'openssl pkcs8 -topk8' writes",
    )
    if ENCRYPTED not in text:
        values.pop("ssl.key.password", None)  # Java takes it as that of an encrypted key
        return
    if not values.get("ssl.key.password"):
        raise ValueError("ssl.key.password is missing: the private key is encrypted")
    _decrypted(text, values["ssl.key.password"])


def for_java(values: Mapping[str, str]) -> dict[str, str]:
    """The keys for Java: an encrypted private key is in the configuration itself, decrypted."""
    config = dict(values)
    password = config.pop("ssl.key.password", None)
    if password is None:
        return config
    text = _text(config, "keystore", (KEY, CHAIN)) or ""
    config.pop("ssl.keystore.location", None)
    return config | {KEY: _decrypted(text, password), CHAIN: "".join(_CERTIFICATES.findall(text))}


def _decrypted(text: str, password: str) -> str:
    encrypted = _ENCRYPTED_KEY.search(text)
    if encrypted is None:
        raise ValueError("the private key has no end")
    try:
        key = load_pem_private_key(encrypted[0].encode(), password.encode())
    except (ValueError, UnsupportedAlgorithm):
        raise ValueError("ssl.key.password does not decrypt the private key") from None
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def _require(condition: bool, values: dict[str, str], kind: str, problem: str) -> None:
    if not condition:
        raise ValueError(f"{values.get(f'ssl.{kind}.location', f'the {kind}')} {problem}")


def _text(values: dict[str, str], kind: str, inline: tuple[str, ...]) -> str | None:
    """The content of a store; None if there is none."""
    location, type_ = f"ssl.{kind}.location", f"ssl.{kind}.type"
    texts = [key for key in inline if key in values]
    if values.get(type_, "PEM").upper() != "PEM":
        convert = "'openssl pkcs12 -in STORE -out STORE.pem' converts PKCS12"
        raise ValueError(f"{type_} is PEM, not {values[type_]}: {convert}")
    if location in values and texts:
        raise ValueError(f"{location} and {texts[0]} exclude each other")
    if location not in values and not texts:
        values.pop(type_, None)
        return None
    if texts and len(texts) < len(inline):
        raise ValueError(f"{texts[0]} needs {' and '.join(key for key in inline if key not in texts)}")
    values[type_] = "PEM"
    if texts:
        return "\n".join(values[key] for key in texts)
    try:
        return Path(values[location]).read_text(encoding="ascii", errors="replace")
    except OSError as error:
        raise ValueError(f"{location}: {values[location]} cannot be read: {error.strerror or error}") from None
