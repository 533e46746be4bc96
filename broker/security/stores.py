"""Key stores and trust stores, read from files and inline values: PEM (KIP-651) and PKCS12.

The rules which keys may be set together, and the error texts, are from Kafka's `DefaultSslEngineFactory`. Kafka's
default type is JKS: as in Java, a file of that type may as well be PKCS12; a real JKS file is refused with the command
that converts it. Stores are read in a thread, or before the broker serves.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from barnabas.broker.security.der import parse_certificate
from barnabas.broker.security.pem import certificates_in, keys_in, to_der
from barnabas.wire.configdef import ConfigError

PEM: Final = "PEM"
PKCS12: Final = "PKCS12"
JKS: Final = "JKS"
_JKS_MAGIC: Final = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")  # JKS, JCEKS
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
        return _pem_key_store(settings.key, settings.chain or "", settings.key_password, "ssl.keystore.key")
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
        text = _read(settings.location, "ssl.keystore.location").decode("utf-8", "replace")
        return _pem_key_store(text, text, settings.key_password, settings.location)
    if settings.password is None:
        raise ConfigError("SSL key store is specified, but key store password is not specified.")
    data = _read_binary(settings.location, kind, "ssl.keystore")
    from barnabas.broker.security.pkcs12 import key_and_chain

    key, chain = key_and_chain(data, settings.password, settings.location)
    return _pem_key_store(key, chain, None, settings.location)


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


def _pem_key_store(key_text: str, chain_text: str, key_password: str | None, where: str) -> KeyStore:
    keys = keys_in(key_text)
    if len(keys) != 1:
        raise ConfigError(f"One private key is expected in {where}, but there are {len(keys)}")
    chain = certificates_in(chain_text)
    if not chain:
        raise ConfigError(f"At least one certificate expected, but none found in {where}")
    store = KeyStore("".join((*keys, *chain)), key_password or "", tuple(map(to_der, chain)))
    _check_certificates(store.chain, where)
    return store


def load_trust_store(settings: TrustStoreSettings) -> tuple[bytes, ...] | None:
    """The trusted certificates (DER), None if no store is set. ConfigError as for `load_key_store`."""
    kind = settings.type.upper()
    if settings.certificates is not None:
        if kind != PEM:
            raise ConfigError(f"SSL trust store certs can be specified only for PEM, but trust store type is {kind}.")
        if settings.location is not None:
            raise ConfigError("Both SSL trust store location and separate trust certificates are specified.")
        where, found = "ssl.truststore.certificates", certificates_in(settings.certificates)
    elif settings.location is None:
        if settings.password is not None:
            raise ConfigError("SSL trust store is not specified, but trust store password is specified.")
        return None
    elif kind == PEM:
        where = settings.location
        found = certificates_in(_read(where, "ssl.truststore.location").decode("utf-8", "replace"))
    else:
        where = settings.location
        data = _read_binary(where, kind, "ssl.truststore")
        from barnabas.broker.security.pkcs12 import trusted_certificates

        found = trusted_certificates(data, settings.password, where)
    if kind == PEM and settings.password is not None:
        raise ConfigError("SSL trust store password cannot be specified for PEM format.")
    if not found:
        raise ConfigError(f"At least one certificate expected, but none found in {where}")
    trusted = tuple(map(to_der, found))
    _check_certificates(trusted, where)
    return trusted


def _check_certificates(certificates: tuple[bytes, ...], where: str) -> None:
    for certificate in certificates:
        try:
            parse_certificate(certificate)
        except ValueError as error:
            raise ConfigError(f"Cannot read a certificate in {where}: {error}") from error


def _read(path: str, key: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise UnreadableError(f"Cannot read {path} ({key}): {error.strerror}") from error


def _read_binary(path: str, kind: str, store: str) -> bytes:
    """The content of a PKCS12 file, which may be said to be JKS as in Java. ConfigError for every other type."""
    data = _read(path, f"{store}.location")
    if kind not in {PKCS12, JKS}:
        raise ConfigError(f"{store}.type={kind} is not supported: use PEM or PKCS12")
    if data.startswith(_JKS_MAGIC):
        raise ConfigError(
            f"{path} is a key store of type JKS, which only Java reads. Convert it with: keytool -importkeystore "
            f"-srckeystore {path} -destkeystore {Path(path).with_suffix('.p12')} -deststoretype PKCS12, and set "
            f"{store}.type=PKCS12 and the new {store}.location"
        )
    if not data.startswith(_DER_SEQUENCE):
        hint = f": it seems to be PEM, so set {store}.type=PEM" if b"-----BEGIN " in data else ""
        default = ", the default," if kind == JKS else ""
        raise ConfigError(f"{path} is no key store of the type {kind}{default} that {store}.type says{hint}")
    return data
