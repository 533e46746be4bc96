"""The key stores and trust stores of a node's configuration, in files or inline (`wire.key_stores` reads them).

The rules which keys may be set together, and the error texts, are from Kafka's `DefaultSslEngineFactory`. Kafka's
default type is JKS: as in Java, a file of that type may as well be PKCS12; a real JKS file is refused with the command
that converts it. Stores are read in a thread, or before the broker serves.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from barnabas.broker.security.certificate import parse_certificate
from barnabas.wire.configdef import ConfigError
from barnabas.wire.key_stores import (
    PEM_BEGIN,
    Entries,
    conversion_of_jks,
    is_jks,
    pem_entries,
    pkcs12_entries,
    to_der,
)

PEM: Final = "PEM"
PKCS12: Final = "PKCS12"
JKS: Final = "JKS"
_DER_SEQUENCE: Final = b"\x30"


class UnreadableError(ConfigError):
    """A file or descriptor failed, which may pass: the content may be fine."""


class KeyStoreSettings(NamedTuple):
    """The values of the keys about a key store."""

    type: str
    location: str | None
    password: str | None
    chain: str | None
    key: str | None
    key_password: str | None


class TrustStoreSettings(NamedTuple):
    """The values of the keys about a trust store."""

    type: str
    location: str | None
    password: str | None
    certificates: str | None


class KeyStore(NamedTuple):
    """A private key and its chain of certificates."""

    pem: str
    """Key and chain; the key may be encrypted."""
    password: str
    """The password of the key, empty without one."""
    chain: tuple[bytes, ...]
    """The certificates (DER), the key's own first."""

    def __repr__(self) -> str:
        return f"KeyStore({len(self.chain)} certificates)"


def load_key_store(settings: KeyStoreSettings) -> KeyStore | None:
    """The key store, None if none is set. ConfigError if the keys do not fit together or the store cannot be used."""
    kind = settings.type.upper()
    if settings.key is not None:
        _check_inline_key(settings, kind)
        entries = Entries(pem_entries(settings.key).keys, pem_entries(settings.chain or "").certificates)
        return _key_store(entries, settings.key_password, "ssl.keystore.key")
    if settings.chain is not None:
        raise ConfigError("SSL certificate chain is specified, but private key is not specified")
    if settings.location is None:
        if settings.password is not None:
            raise ConfigError("SSL key store is not specified, but key store password is specified.")
        return None
    if kind == PEM:
        if settings.password is not None:
            raise ConfigError(
                "SSL key store password cannot be specified with PEM format, only key password may be specified"
            )
        return _key_store(_read_pem(settings.location, "ssl.keystore"), settings.key_password, settings.location)
    if settings.password is None:
        raise ConfigError("SSL key store is specified, but key store password is not specified.")
    entries = _read_pkcs12(settings.location, settings.password, kind, "ssl.keystore")
    if not entries.keys:
        raise ConfigError(f"There is no private key with a certificate in {settings.location}")
    return _key_store(entries, None, settings.location)


def _check_inline_key(settings: KeyStoreSettings, kind: str) -> None:
    if kind != PEM:
        raise ConfigError(f"SSL private key can be specified only for PEM, but key store type is {kind}.")
    if settings.chain is None:
        raise ConfigError("SSL private key is specified, but certificate chain is not specified.")
    if settings.location is not None:
        raise ConfigError("Both SSL key store location and separate private key are specified.")
    if settings.password is not None:
        raise ConfigError(
            "SSL key store password cannot be specified with PEM format, only key password may be specified."
        )


def _key_store(entries: Entries, key_password: str | None, where: str) -> KeyStore:
    if len(entries.keys) != 1:
        raise ConfigError(f"One private key is expected in {where}, but there are {len(entries.keys)}")
    if ":" in entries.keys[0]:
        raise ConfigError(
            "A private key is encrypted in the old form of OpenSSL (Proc-Type). Convert it with: openssl pkcs8 -topk8 "
            "-in KEY -out NEW_KEY"
        )
    chain = _certificates(entries, where)
    return KeyStore("".join((*entries.keys, *entries.certificates)), key_password or "", chain)


def load_trust_store(settings: TrustStoreSettings) -> tuple[bytes, ...] | None:
    """The trusted certificates (DER), None if no store is set. ConfigError as for `load_key_store`."""
    kind = settings.type.upper()
    if settings.certificates is not None:
        if kind != PEM:
            raise ConfigError(f"SSL trust store certs can be specified only for PEM, but trust store type is {kind}.")
        if settings.location is not None:
            raise ConfigError("Both SSL trust store location and separate trust certificates are specified.")
        where, entries = "ssl.truststore.certificates", pem_entries(settings.certificates)
    elif settings.location is None:
        if settings.password is not None:
            raise ConfigError("SSL trust store is not specified, but trust store password is specified.")
        return None
    elif kind == PEM:
        where, entries = settings.location, _read_pem(settings.location, "ssl.truststore")
    else:
        where = settings.location
        entries = _read_pkcs12(where, settings.password, kind, "ssl.truststore")
    if kind == PEM and settings.password is not None:
        raise ConfigError("SSL trust store password cannot be specified for PEM format.")
    return _certificates(entries, where)


def _certificates(entries: Entries, where: str) -> tuple[bytes, ...]:
    """The certificates (DER). ConfigError if there are none, or one cannot be read."""
    if not entries.certificates:
        raise ConfigError(f"At least one certificate expected, but none found in {where}")
    try:
        certificates = tuple(map(to_der, entries.certificates))
        for certificate in certificates:
            parse_certificate(certificate)
    except ValueError as error:
        raise ConfigError(f"Cannot read a certificate in {where}: {error}") from error
    return certificates


def _read(path: str, store: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise UnreadableError(f"Cannot read {path} ({store}.location): {error.strerror}") from error


def _read_pem(path: str, store: str) -> Entries:
    return pem_entries(_read(path, store).decode("utf-8", "replace"))


def _read_pkcs12(path: str, password: str | None, kind: str, store: str) -> Entries:
    """The entries of a PKCS12 file, which may be said to be JKS as in Java. ConfigError for every other type."""
    data = _read(path, store)
    if kind not in {PKCS12, JKS}:
        raise ConfigError(f"{store}.type={kind} is not supported: use PEM or PKCS12")
    if is_jks(data):
        raise ConfigError(
            f"{path} is a key store of type JKS, which only Java reads. Convert it with: {conversion_of_jks(path)}, "
            f"and set {store}.type=PKCS12 and the new {store}.location"
        )
    if not data.startswith(_DER_SEQUENCE):
        hint = f": it seems to be PEM, so set {store}.type=PEM" if PEM_BEGIN in data else ""
        default = ", the default," if kind == JKS else ""
        raise ConfigError(f"{path} is no key store of the type {kind}{default} that {store}.type says{hint}")
    try:
        return pkcs12_entries(data, password)
    except ValueError as error:
        raise ConfigError(f"Cannot read {path} as PKCS12: {error}") from error
