"""Keys and certificates of a client: PEM (KIP-651) in files or in the configuration itself, and PKCS12 stores.

A store whose type is not given is recognized by its content, as Java's own stores do. JKS is refused with the command
that converts it. No error shows a password or a key.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

JKS_MAGIC: Final = b"\xfe\xed\xfe\xed"
PEM_BEGIN: Final = b"-----BEGIN "


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
    data, is_pem = _content(store)
    if not is_pem:
        data = _pkcs12_certificates(store, data)
    try:
        context.load_verify_locations(cadata=data.decode("ascii"))
    except (ssl.SSLError, UnicodeDecodeError, ValueError):
        raise StoreError(f"{_name(store)} has no certificates that can be read") from None


def identify(context: ssl.SSLContext, store: Store) -> None:
    """Use the private key and the certificate chain of a store. `StoreError` if they cannot be read."""
    data, is_pem = _content(store)
    password = store.key_password or (store.password if is_pem else None)
    if not is_pem:
        data, password = _pkcs12_identity(store, data), None
    with _private_file(data) as path:
        try:
            # An empty password in place of none: OpenSSL would ask on the terminal.
            context.load_cert_chain(path, password=lambda: password or "")
        except ssl.SSLError as error:
            raise StoreError(f"{_name(store)} {_identity_trouble(error, data, password)}") from None


def _identity_trouble(error: ssl.SSLError, data: bytes, password: str | None) -> str:
    if b"ENCRYPTED" in data:
        return "has a key for which ssl.key.password is missing" if not password else "has a key with another password"
    if error.reason == "KEY_VALUES_MISMATCH":
        return "has a private key that is not the one of its certificate"
    return "must have a private key and its certificate chain"


def _content(store: Store) -> tuple[bytes, bool]:
    """The bytes of a store, and whether they are PEM."""
    declared = store.type.upper()
    if declared not in ("", "PEM", "PKCS12", "JKS"):
        raise StoreError(f"ssl.{store.kind}.type must be PEM or PKCS12, not {store.type!r}")
    if store.pem:
        # A configuration may have line breaks as blanks within a PEM block, as Kafka's examples have them.
        return _line_breaks(store.pem).encode(), True
    try:
        data = Path(store.location).read_bytes()
    except OSError as error:
        raise StoreError(f"{store.location}: {(error.strerror or str(error)).lower()}") from None
    if data.startswith(JKS_MAGIC):
        raise StoreError(
            f"{store.location} is a JKS store, which only Java reads; convert it: keytool -importkeystore "
            f"-srckeystore {store.location} -destkeystore {Path(store.location).stem}.p12 -deststoretype PKCS12"
        )
    is_pem = PEM_BEGIN in data
    if (declared == "PEM") != is_pem and declared in ("PEM", "PKCS12"):
        raise StoreError(f"{store.location} is not a {declared} store, as ssl.{store.kind}.type says")
    return data, is_pem


def _line_breaks(text: str) -> str:
    """A PEM text with its markers on lines of their own, and blanks within its base64 as line breaks."""
    import re

    def block(match: re.Match[str]) -> str:
        head, body, foot = match.groups()
        return f"{head}\n" + "\n".join(body.split()) + f"\n{foot}\n"

    if "\n" in text.strip():
        return "\n".join(line.strip() for line in text.strip().splitlines()) + "\n"
    return re.sub(r"(-----BEGIN [A-Z0-9 ]+-----)(.*?)(-----END [A-Z0-9 ]+-----)\s*", block, text.strip())


def _name(store: Store) -> str:
    return store.location or (
        "ssl.truststore.certificates" if store.kind == "truststore" else "the PEM of ssl.keystore.key and its chain"
    )


@contextmanager
def _private_file(data: bytes) -> Iterator[str]:
    """A file that only this user can read, for the moment in which OpenSSL reads it: it takes keys from files only."""
    descriptor, path = tempfile.mkstemp(prefix="barnabas-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        yield path
    finally:
        Path(path).unlink()


# --- PKCS12, with the package cryptography


def _pkcs12_certificates(store: Store, data: bytes) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    key, certificate, others = _pkcs12(store, data)
    del key
    certificates = ([certificate] if certificate is not None else []) + others
    return b"".join(each.public_bytes(Encoding.PEM) for each in certificates)  # type: ignore[attr-defined]


def _pkcs12_identity(store: Store, data: bytes) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key, certificate, others = _pkcs12(store, data)
    if key is None or certificate is None:
        raise StoreError(f"{_name(store)} must have a private key and its certificate chain")
    parts = [key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())]  # type: ignore[attr-defined]
    parts += [each.public_bytes(Encoding.PEM) for each in (certificate, *others)]  # type: ignore[attr-defined]
    return b"".join(parts)


def _pkcs12(store: Store, data: bytes) -> tuple[object | None, object | None, list[object]]:
    from cryptography.hazmat.primitives.serialization.pkcs12 import load_key_and_certificates

    password = None if store.password is None else store.password.encode()
    try:
        key, certificate, others = load_key_and_certificates(data, password)
    except ValueError:
        known = "has another password" if password else f"needs ssl.{store.kind}.password"
        raise StoreError(f"{_name(store)} is not a PKCS12 store that can be read, or {known}") from None
    return key, certificate, list(others)
