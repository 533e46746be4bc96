"""Key stores and trust stores: PEM (RFC 7468, KIP-651) and PKCS12 as bytes and a password, JKS to be refused.

The one reader, for brokers, clients and the pipeline. It says what a store holds; which config keys go together, and
the sentence about a mistake, are the caller's, since Kafka has other ones for brokers than for clients.
PEM text of a configuration may have lost its line breaks, or have blanks in their place, as in Kafka: each block is
written again with lines that OpenSSL reads. `cryptography` is imported in the functions that need it, because a start
with PEM stores needs none of it.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final, NamedTuple

PEM_BEGIN: Final = b"-----BEGIN "
ENCRYPTED_KEY: Final = "-----BEGIN ENCRYPTED PRIVATE KEY-----"
_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----((?:[^-]|-(?!----))*)-----END \1-----")
_LINE: Final = 64
_JKS_MAGIC: Final = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")  # JKS, JCEKS


class Entries(NamedTuple):
    """What a store holds, each entry a block of PEM."""

    keys: list[str]
    """The private keys, which may be encrypted in PEM; of PKCS12 the key that has a certificate."""
    certificates: list[str]
    """The certificates in their order, in PKCS12 that of the key first."""


def pem_entries(text: str) -> Entries:
    """The entries of PEM text. Blocks are not checked; everything around them is skipped."""
    blocks = [(label, _block(label, body)) for label, body in _BLOCK.findall(text)]
    return Entries(
        [block for label, block in blocks if label.endswith("PRIVATE KEY")],
        [block for label, block in blocks if label.endswith("CERTIFICATE")],
    )


def _block(label: str, body: str) -> str:
    if ":" in body:  # the header lines of the old form of an encrypted key (RFC 1421), which OpenSSL still reads
        lines = [line.strip() for line in body.strip().splitlines()]
    else:
        joined = "".join(body.split())
        lines = [joined[at : at + _LINE] for at in range(0, len(joined), _LINE)]
    return "\n".join((f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", ""))


def to_der(block: str) -> bytes:
    """The bytes of one block of PEM. ValueError if they are not Base64."""
    try:
        return base64.b64decode("".join(block.splitlines()[1:-1]), validate=True)
    except ValueError as error:  # binascii.Error, or characters that are not ASCII
        raise ValueError(f"it is not valid Base64: {error}") from error


def pkcs12_entries(data: bytes, password: str | None) -> Entries:
    """The entries of a store that keytool or OpenSSL has written. ValueError if it cannot be read."""
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
    from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12

    store = load_pkcs12(data, None if password is None else password.encode())
    keys = []
    if store.key is not None and store.cert is not None:
        keys.append(store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode())
    certificates = [*([store.cert] if store.cert is not None else []), *store.additional_certs]
    return Entries(keys, [entry.certificate.public_bytes(Encoding.PEM).decode() for entry in certificates])


def decrypted(key: str, password: str) -> str:
    """An encrypted private key without its encryption (PKCS #8). ValueError if the password does not decrypt it."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        load_pem_private_key,
    )

    try:
        private_key = load_pem_private_key(key.encode(), password.encode())
    except UnsupportedAlgorithm as error:
        raise ValueError(str(error)) from error
    return private_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def is_jks(data: bytes) -> bool:
    """Whether a store is of Java's own types, which only Java reads."""
    return data.startswith(_JKS_MAGIC)


def conversion_of_jks(path: str) -> str:
    """The command that converts a JKS store to PKCS12."""
    target = Path(path).with_suffix(".p12")
    return f"keytool -importkeystore -srckeystore {path} -destkeystore {target} -deststoretype PKCS12"


@contextmanager
def key_file(content: str) -> Iterator[str]:
    """A path from which only this process or user can read a private key, as long as it is used. OSError.

    OpenSSL takes keys from paths only through Python's ssl module. The file is in memory where the system has such
    files, so that the key is not written to a disk.
    """
    if not hasattr(os, "memfd_create"):
        with NamedTemporaryFile() as file:  # it has the mode 0600
            file.write(content.encode())
            file.flush()
            yield file.name
        return
    descriptor = os.memfd_create("key")
    try:
        os.write(descriptor, content.encode())
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
