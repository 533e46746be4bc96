"""PEM text: the certificates and private keys in it, each as a block of its own (RFC 7468).

Inline values may have lost their line breaks, or have blanks in place of them, as in Kafka; blocks are written again
with lines that OpenSSL reads.
"""

from __future__ import annotations

import base64
import re
from typing import Final

from barnabas.wire.configdef import ConfigError

_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----([^-]*)-----END \1-----")
_LINE: Final = 64
CERTIFICATE: Final = "CERTIFICATE"
PRIVATE_KEY: Final = "PRIVATE KEY"


def certificates_in(text: str) -> list[str]:
    """The certificates, in their order."""
    return [_block(label, body) for label, body in _BLOCK.findall(text) if label.endswith(CERTIFICATE)]


def keys_in(text: str) -> list[str]:
    """The private keys, encrypted or not."""
    return [_block(label, body) for label, body in _BLOCK.findall(text) if label.endswith(PRIVATE_KEY)]


def _block(label: str, body: str) -> str:
    if ":" in body:
        raise ConfigError(
            "A private key is encrypted in the old form of OpenSSL (Proc-Type). Convert it with: openssl pkcs8 -topk8 "
            "-in KEY -out NEW_KEY"
        )
    text = "".join(body.split())
    lines = [text[at : at + _LINE] for at in range(0, len(text), _LINE)]
    return "\n".join((f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", ""))


def to_der(block: str) -> bytes:
    """The bytes of one block. ConfigError if they are not Base64."""
    try:
        return base64.b64decode("".join(block.splitlines()[1:-1]), validate=True)
    except ValueError as error:  # binascii.Error, or characters that are not ASCII
        raise ConfigError(f"A certificate in PEM is not valid Base64: {error}") from error


def to_pem(certificate: bytes) -> str:
    """A certificate as a block."""
    return _block(CERTIFICATE, base64.b64encode(certificate).decode())
