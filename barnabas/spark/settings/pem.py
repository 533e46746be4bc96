"""Trust stores and key stores in PEM (KIP-651): checked before Spark starts, since Java names neither file nor key.

A store is a file, or texts in the configuration. Other types are refused, because librdkafka does not read them. An
encrypted key is decrypted for Java, since Java before 19 does not know the encryption of keys that OpenSSL writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from barnabas.wire.key_stores import ENCRYPTED_KEY, Entries, decrypted, pem_entries

PRIVATE_KEYS: Final = ("-----BEGIN PRIVATE KEY-----", ENCRYPTED_KEY)
CERTIFICATES, CHAIN, KEY = "ssl.truststore.certificates", "ssl.keystore.certificate.chain", "ssl.keystore.key"


def check_trust_store(values: dict[str, str]) -> None:
    """Check the trust store, and set its type. ValueError, a sentence, if it cannot be used."""
    if (entries := _entries(values, "truststore", (CERTIFICATES,))) is not None:
        _require(entries.certificates, values, "truststore", "has no certificate in PEM")


def check_key_store(values: dict[str, str]) -> None:
    """Check the key store, and set its type. ValueError, a sentence, if it cannot be used."""
    if (entries := _entries(values, "keystore", (KEY, CHAIN))) is None:
        if "ssl.key.password" in values:
            raise ValueError("ssl.key.password has no effect without ssl.keystore.location or ssl.keystore.key")
        return
    _require(entries.certificates, values, "keystore", "has no certificate in PEM")
    _require(
        [key for key in entries.keys if key.startswith(PRIVATE_KEYS)],
        values,
        "keystore",
        "has no private key as PKCS #8 in PEM, which 'openssl pkcs8 -topk8' writes",
    )
    key = _encrypted(entries)
    if key is None:
        values.pop("ssl.key.password", None)  # Java takes it as that of an encrypted key
        return
    if not values.get("ssl.key.password"):
        raise ValueError("ssl.key.password is missing: the private key is encrypted")
    _decrypted(key, values["ssl.key.password"])


def for_java(values: Mapping[str, str]) -> dict[str, str]:
    """The keys for Java: an encrypted private key is in the configuration itself, decrypted."""
    java = dict(values)
    password = java.pop("ssl.key.password", None)
    if password is None:
        return java
    entries = _entries(java, "keystore", (KEY, CHAIN))
    key = None if entries is None else _encrypted(entries)
    if entries is None or key is None:  # the file was replaced since the check
        raise ValueError("ssl.key.password does not decrypt the private key")
    java.pop("ssl.keystore.location", None)
    return java | {KEY: _decrypted(key, password), CHAIN: "".join(entries.certificates)}


def _encrypted(entries: Entries) -> str | None:
    return next((key for key in entries.keys if key.startswith(ENCRYPTED_KEY)), None)


def _decrypted(key: str, password: str) -> str:
    try:
        return decrypted(key, password)
    except ValueError:
        raise ValueError("ssl.key.password does not decrypt the private key") from None


def _require(entries: list[str], values: dict[str, str], kind: str, problem: str) -> None:
    if not entries:
        raise ValueError(f"{values.get(f'ssl.{kind}.location', f'the {kind}')} {problem}")


def _entries(values: dict[str, str], kind: str, inline: tuple[str, ...]) -> Entries | None:
    """The entries of a store; None if there is none."""
    location, type_ = f"ssl.{kind}.location", f"ssl.{kind}.type"
    inline_set = [key for key in inline if key in values]
    if values.get(type_, "PEM").upper() != "PEM":
        convert = "'openssl pkcs12 -in STORE -out STORE.pem' converts PKCS12"
        raise ValueError(f"{type_} is PEM, not {values[type_]}: {convert}")
    if location in values and inline_set:
        raise ValueError(f"{location} and {inline_set[0]} exclude each other")
    if location not in values and not inline_set:
        values.pop(type_, None)
        return None
    if inline_set and len(inline_set) < len(inline):
        raise ValueError(f"{inline_set[0]} needs {' and '.join(key for key in inline if key not in inline_set)}")
    values[type_] = "PEM"
    if inline_set:
        return pem_entries("\n".join(values[key] for key in inline_set))
    try:
        return pem_entries(Path(values[location]).read_text(encoding="ascii", errors="replace"))
    except OSError as error:
        raise ValueError(f"{location}: {values[location]} cannot be read: {error.strerror or error}") from None
