"""Keys and certificates of a client: PEM (KIP-651) in files or in the configuration itself, and PKCS12 stores.

A store whose type is not given is recognized by its content, as Java's own stores do. JKS is refused with the command
that converts it. No error shows a password or a key.
"""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import NamedTuple

from barnabas.wire.key_stores import (
    PEM_BEGIN,
    Entries,
    conversion_of_jks,
    is_jks,
    key_file,
    pem_entries,
    pkcs12_entries,
    to_der,
)


class StoreError(ValueError):
    """A store cannot be used; the text is one sentence."""


class Store(NamedTuple):
    """A trust store or a key store: a file, or PEM texts of the configuration."""

    kind: str
    """`truststore` or `keystore`, as in the keys of the configuration."""
    location: str = ""
    type: str = ""
    password: str | None = None
    pem: str = ""
    """Certificates; of a key store the private key and its certificate chain."""
    key_password: str | None = None


def trust(context: ssl.SSLContext, store: Store) -> None:
    """Trust the CAs of a store. `StoreError` if it cannot be read, or has no certificate."""
    entries, _ = _read(store)
    try:
        context.load_verify_locations(cadata=b"".join(map(to_der, entries.certificates)))
    except (ssl.SSLError, ValueError):
        raise StoreError(f"{_name(store)} has no certificates that can be read") from None


def identify(context: ssl.SSLContext, store: Store) -> None:
    """Use the private key and the certificate chain of a store. `StoreError` if they cannot be read."""
    entries, is_pem = _read(store)
    password = store.key_password or store.password if is_pem else None
    pem = "".join((*entries.keys, *entries.certificates))
    with key_file(pem) as path:
        try:
            # An empty password in place of none: OpenSSL would ask on the terminal.
            context.load_cert_chain(path, password=lambda: password or "")
        except ssl.SSLError as error:
            raise StoreError(f"{_name(store)} {_identity_trouble(error, pem, password)}") from None


def _identity_trouble(error: ssl.SSLError, pem: str, password: str | None) -> str:
    if "ENCRYPTED" in pem:
        return "has a key for which ssl.key.password is missing" if not password else "has a key with another password"
    if error.reason == "KEY_VALUES_MISMATCH":
        return "has a private key that is not the one of its certificate"
    return "must have a private key and its certificate chain"


def _read(store: Store) -> tuple[Entries, bool]:
    """The entries of a store, and whether it is PEM."""
    declared = store.type.upper()
    if declared not in ("", "PEM", "PKCS12", "JKS"):
        raise StoreError(f"ssl.{store.kind}.type must be PEM or PKCS12, not {store.type!r}")
    if store.pem:
        return pem_entries(store.pem), True
    try:
        data = Path(store.location).read_bytes()
    except OSError as error:
        raise StoreError(f"{store.location}: {(error.strerror or str(error)).lower()}") from None
    if is_jks(data):
        raise StoreError(
            f"{store.location} is a JKS store, which only Java reads; convert it: {conversion_of_jks(store.location)}"
        )
    is_pem = PEM_BEGIN in data
    if (declared == "PEM") != is_pem and declared in ("PEM", "PKCS12"):
        raise StoreError(f"{store.location} is not a {declared} store, as ssl.{store.kind}.type says")
    if is_pem:
        return pem_entries(data.decode("utf-8", "replace")), True
    try:
        return pkcs12_entries(data, store.password), False
    except ValueError:
        problem = "has another password" if store.password else f"needs ssl.{store.kind}.password"
        raise StoreError(f"{_name(store)} is not a PKCS12 store that can be read, or {problem}") from None


def _name(store: Store) -> str:
    return store.location or (
        "ssl.truststore.certificates" if store.kind == "truststore" else "the PEM of ssl.keystore.key and its chain"
    )
