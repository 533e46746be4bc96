"""SCRAM (RFC 5802, KIP-84): the client's side of a log-in, and credentials made from a password.

A server that does not know the password is found out: its signature is checked. No password leaves the client, neither
here nor in a credential.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from typing import Final, NamedTuple

HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
MECHANISM_NUMBERS: Final = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
"""As in the requests of KIP-554."""
MIN_ITERATIONS, MAX_ITERATIONS, DEFAULT_ITERATIONS = 4096, 16384, 4096
"""Kafka's limits: a broker refuses others, and none counts more than 16384."""
SALT_BYTES = 32


class ScramError(ValueError):
    """The server's message is not SCRAM's, or it does not know the password; the text is a part of a sentence."""


class Credential(NamedTuple):
    """What a broker stores of a password."""

    mechanism: str
    iterations: int
    salt: bytes
    salted_password: bytes


def credential(mechanism: str, password: str, iterations: int, salt: bytes | None = None) -> Credential:
    """A credential with a new salt, or the given one."""
    used = secrets.token_bytes(SALT_BYTES) if salt is None else salt
    return Credential(mechanism, iterations, used, salted(mechanism, password, used, iterations))


def salted(mechanism: str, password: str, salt: bytes, iterations: int) -> bytes:
    """Hi(password) of RFC 5802. Passwords are not normalized, as in Kafka's client."""
    return hashlib.pbkdf2_hmac(HASHES[mechanism], password.encode(), salt, iterations)


class ScramClient:
    """One log-in: `first`, then `answer` for the server's first message, then `check` of its last."""

    def __init__(
        self, mechanism: str, user: str, password: str, *, is_token: bool = False, nonce: str | None = None
    ) -> None:
        self._mechanism = mechanism
        self._hash = HASHES[mechanism]
        self._password = password
        self._nonce = nonce or base64.b64encode(secrets.token_bytes(24)).decode().rstrip("=")
        name = user.replace("=", "=3D").replace(",", "=2C")
        self._bare = f"n={name},r={self._nonce}" + (",tokenauth=true" if is_token else "")
        self._signature = b""

    def first(self) -> bytes:
        """The first message."""
        return f"n,,{self._bare}".encode()

    def answer(self, server_first: bytes) -> bytes:
        """The proof that the password is known. `ScramError` for a message of another form."""
        try:
            parts = dict(part.split("=", 1) for part in server_first.decode().split(","))
            nonce, salt, iterations = parts["r"], base64.b64decode(parts["s"], validate=True), int(parts["i"])
        except (ValueError, KeyError):
            raise ScramError("its SCRAM message cannot be read") from None
        if not nonce.startswith(self._nonce) or not 0 < iterations <= 1_000_000:
            raise ScramError("its SCRAM message does not answer ours")
        if iterations < MIN_ITERATIONS:
            raise ScramError(f"it asks for {iterations} iterations, and fewer than {MIN_ITERATIONS} are not safe")
        final = f"c=biws,r={nonce}"
        about = f"{self._bare},{server_first.decode()},{final}".encode()
        key = salted(self._mechanism, self._password, salt, iterations)
        client_key = self._mac(key, b"Client Key")
        proof = self._mac(hashlib.new(self._hash, client_key).digest(), about)
        self._signature = self._mac(self._mac(key, b"Server Key"), about)
        text = base64.b64encode(bytes(a ^ b for a, b in zip(client_key, proof, strict=True))).decode()
        return f"{final},p={text}".encode()

    def check(self, server_final: bytes) -> None:
        """`ScramError` unless the server knows the credential as well."""
        text = server_final.decode(errors="replace")
        if text.startswith("e="):
            raise ScramError(f"it says {text[2:]}")
        wanted = "v=" + base64.b64encode(self._signature).decode()
        if not self._signature or not hmac.compare_digest(text.split(",")[0].encode(), wanted.encode()):
            raise ScramError("it does not know the password itself: it is not the broker that it claims to be")

    def _mac(self, key: bytes, data: bytes) -> bytes:
        return hmac.new(key, data, self._hash).digest()
