"""Reads PKCS12 stores, as keytool and OpenSSL write them; the `cryptography` package is imported for nothing else."""

from __future__ import annotations

from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates, load_pkcs12

from barnabas.wire.configdef import ConfigError


def key_and_chain(data: bytes, password: str, where: str) -> tuple[str, str]:
    """The private key, not encrypted, and the chain of its certificates, as PEM. ConfigError if there is none."""
    store = _load(data, password, where)
    if store.key is None or store.cert is None:
        raise ConfigError(f"There is no private key with a certificate in {where}")
    key = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    certificates = [store.cert, *store.additional_certs]
    return key, "".join(one.certificate.public_bytes(Encoding.PEM).decode() for one in certificates)


def trusted_certificates(data: bytes, password: str | None, where: str) -> list[str]:
    """The certificates as PEM. ConfigError if the store cannot be read."""
    store = _load(data, password, where)
    certificates = [*([store.cert] if store.cert is not None else []), *store.additional_certs]
    return [one.certificate.public_bytes(Encoding.PEM).decode() for one in certificates]


def _load(data: bytes, password: str | None, where: str) -> PKCS12KeyAndCertificates:
    try:
        return load_pkcs12(data, None if password is None else password.encode())
    except ValueError as error:
        raise ConfigError(f"Cannot read {where} as PKCS12: {error}") from error
