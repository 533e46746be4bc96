"""SCRAM-SHA-256 and SCRAM-SHA-512: credentials, keys and messages (RFC 5802, RFC 7677, KIP-84).

There is no channel binding: clients say `n`, as Kafka's do. The server has only keys that are derived from the password
(`StoredKey`, `ServerKey`), and computes HMACs; the thousand iterations are the client's work.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from binascii import a2b_base64, b2a_base64
from functools import cache
from typing import Any, Final, NamedTuple

from barnabas.coord.security.exchange import InvalidCredentials

MAX_ITERATIONS: Final = 16384
"""More are refused when a credential is made: each log-in of a client would be slow (KIP-554)."""


@cache
def _hash_function(name: str) -> Any:
    """A hash function, found faster than by its name; not before it is used, since OpenSSL is loaded for it."""
    return getattr(hashlib, name)


class ScramMechanism(NamedTuple):
    """One of the two mechanisms."""

    name: str
    id: int
    """Its number in Kafka's requests and records."""
    hash: str
    """The name of its hash function, as `hashlib` has it."""
    min_iterations: int = 4096

    def digest(self, data: bytes) -> bytes:
        """The hash function H."""
        digest: bytes = _hash_function(self.hash)(data).digest()
        return digest

    def hmac(self, key: bytes, data: bytes) -> bytes:
        """HMAC."""
        return hmac.digest(key, data, _hash_function(self.hash))

    def salted_password(self, password: str, salt: bytes, iterations: int) -> bytes:
        """The function Hi: takes about a millisecond for 4,096 iterations."""
        return hashlib.pbkdf2_hmac(self.hash, password.encode("utf-8"), salt, iterations)

    def client_key(self, salted_password: bytes) -> bytes:
        """ClientKey, whose hash the server has."""
        return self.hmac(salted_password, b"Client Key")

    def stored_key(self, salted_password: bytes) -> bytes:
        """StoredKey, by which the server checks a client."""
        return self.digest(self.client_key(salted_password))

    def server_key(self, salted_password: bytes) -> bytes:
        """ServerKey, by which a client checks the server."""
        return self.hmac(salted_password, b"Server Key")


SCRAM_SHA_256: Final = ScramMechanism("SCRAM-SHA-256", 1, "sha256")
SCRAM_SHA_512: Final = ScramMechanism("SCRAM-SHA-512", 2, "sha512")
SCRAM_MECHANISMS: Final = {mechanism.name: mechanism for mechanism in (SCRAM_SHA_256, SCRAM_SHA_512)}
SCRAM_BY_ID: Final = {mechanism.id: mechanism for mechanism in SCRAM_MECHANISMS.values()}

_ITEM: Final = r"(?:,[A-Za-z]+=[^=,\x00]+)*"
_FIRST: Final = re.compile(
    rf"(?P<header>n,(?:a=(?P<authorization_id>(?:[^=,\x00]|=2C|=3D)+))?,)"
    rf"(?P<bare>n=(?P<name>(?:[^=,\x00]|=2C|=3D)+),r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+)(?P<extensions>{_ITEM}))"
)
_FINAL: Final = re.compile(  # of the proof `_decoded` says whether it is base64
    rf"(?P<unproved>c=(?P<binding>[A-Za-z0-9+/=]+),r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+){_ITEM}),p=(?P<proof>[^,\x00]+)"
)
_SERVER_FIRST: Final = re.compile(
    r"r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+),s=(?P<salt>[A-Za-z0-9+/=]+),i=(?P<iterations>[1-9][0-9]{0,8})"
)


class ClientFirst(NamedTuple):
    """The first message of a client."""

    header: str
    bare: str
    name: str
    authorization_id: str
    nonce: str
    extensions: dict[str, str]


class ClientFinal(NamedTuple):
    """The last message of a client."""

    unproved: str
    """The message without its proof."""
    binding: bytes
    nonce: str
    proof: bytes


class ServerFirst(NamedTuple):
    """The server's first message."""

    nonce: str
    salt: bytes
    iterations: int

    def __str__(self) -> str:
        return f"r={self.nonce},s={str(b2a_base64(self.salt, newline=False), 'ascii')},i={self.iterations}"


def parse_client_first(token: bytes) -> ClientFirst:
    """InvalidCredentials if this is no first message of a client."""
    match = _FIRST.fullmatch(_text(token))
    if match is None:
        raise InvalidCredentials("Invalid SCRAM client first message format")
    header, authorization_id, bare, name, nonce, items = match.groups()
    extensions = dict(item.split("=", 1) for item in items.split(",") if item) if items else {}
    return ClientFirst(header, bare, unescaped(name), unescaped(authorization_id or ""), nonce, extensions)


def parse_client_final(token: bytes) -> ClientFinal:
    """InvalidCredentials if this is no last message of a client."""
    match = _FINAL.fullmatch(_text(token))
    if match is None:
        raise InvalidCredentials("Invalid SCRAM client final message format")
    unproved, binding, nonce, proof = match.groups()
    return ClientFinal(unproved, _decoded(binding), nonce, _decoded(proof))


def parse_server_first(token: bytes) -> ServerFirst:
    """InvalidCredentials if this is no first message of a server."""
    match = _SERVER_FIRST.fullmatch(_text(token))
    if match is None:
        raise InvalidCredentials("Invalid SCRAM server first message format")
    return ServerFirst(match["nonce"], _decoded(match["salt"]), int(match["iterations"]))


def escaped(name: str) -> str:
    """A user name in a message."""
    return name.replace("=", "=3D").replace(",", "=2C")


def unescaped(name: str) -> str:
    """The user name that a message has."""
    return name.replace("=2C", ",").replace("=3D", "=")


def xor(first: bytes, other: bytes) -> bytes:
    """InvalidCredentials for different lengths."""
    if len(first) != len(other):
        raise InvalidCredentials("a proof of another length")
    size = len(first)
    return (int.from_bytes(first, "big") ^ int.from_bytes(other, "big")).to_bytes(size, "big")


def _text(token: bytes) -> str:
    try:
        return token.decode()
    except UnicodeDecodeError:
        raise InvalidCredentials("a message that is not UTF-8") from None


def _decoded(text: str) -> bytes:
    try:
        return a2b_base64(text, strict_mode=True)
    except ValueError:
        raise InvalidCredentials("a value that is not base64") from None
