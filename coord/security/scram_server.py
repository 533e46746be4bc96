"""The server's side of SCRAM: one credential is looked up, then the client's proof is checked.

A user without a credential gets a salt like every other user and fails in the last step, with the same answer after the
same work. The salt is an HMAC of the name, so that it is the same each time (`FakeCredentials`). KIP-48: with the
extension `tokenauth=true` the name is the id of a delegation token. Source: Kafka 4.4 `ScramSaslServer`.

No thread computes it: the server's digests of a log-in take 9 µs, and to hand a job to a thread takes 8 to 22. What
takes milliseconds, PBKDF2, is the client's part.
"""

from __future__ import annotations

import hmac
from binascii import b2a_base64
from collections.abc import Callable
from typing import Final, NamedTuple

from barnabas.coord.security.exchange import AuthenticationFailed, Identity, InvalidCredentials
from barnabas.coord.security.scram import (
    ClientFirst,
    ScramMechanism,
    ServerFirst,
    parse_client_final,
    parse_client_first,
    xor,
)
from barnabas.wire.principal import USER_TYPE, KafkaPrincipal

NO_BINDING: Final = b"n,,"
TOKEN_AUTH: Final = "tokenauth"  # noqa: S105 (the name of an extension)
_NONCE_BYTES: Final = 18
_BASE_36: Final = b"0123456789abcdefghijklmnopqrstuvwxyz"


class Credential(NamedTuple):
    """The stored form of a password."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int


class TokenCredential(NamedTuple):
    """A delegation token as a credential: whose it is, and until when it can be used."""

    credential: Credential
    owner: KafkaPrincipal
    expires_ms: int


class ScramExchange:
    """The server's side of SCRAM."""

    __slots__ = (
        "_credential",
        "_find",
        "_find_token",
        "_first",
        "_mechanism",
        "_nonce",
        "_owner",
        "_server",
        "_server_nonce",
        "identity",
    )

    def __init__(
        self,
        mechanism: ScramMechanism,
        find: Callable[[str], tuple[Credential, bool]],
        find_token: Callable[[str], TokenCredential | None],
        random_bytes: Callable[[int], bytes],
    ) -> None:
        """`find` returns a user's credential; or a false one, which no password matches, and False."""
        self._mechanism = mechanism
        self._find = find
        self._find_token = find_token
        self._nonce = b2a_base64(random_bytes(_NONCE_BYTES), newline=False).decode()
        self._first: ClientFirst | None = None
        self._server = self._server_nonce = ""  # the server's first message, and what both nonces make in it
        self._credential: Credential | None = None
        self._owner: Identity | None = None
        self.identity: Identity | None = None

    def step(self, token: bytes, now_ms: int) -> bytes:
        """Answer the client's first message with salt and iterations, its last one with the server's signature."""
        return self._begin(token, now_ms) if self._first is None else self._end(token)

    def _begin(self, token: bytes, now_ms: int) -> bytes:
        first = parse_client_first(token)
        if first.authorization_id and first.authorization_id != first.name:
            raise AuthenticationFailed(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        credential, is_real = self._find(first.name)
        owner = Identity(KafkaPrincipal(USER_TYPE, first.name))
        if first.extensions and first.extensions.get(TOKEN_AUTH, "").lower() == "true":
            token_credential = self._find_token(first.name)
            is_real = token_credential is not None and token_credential.expires_ms > now_ms
            if token_credential is not None:
                credential = token_credential.credential
                owner = Identity(
                    token_credential.owner._replace(is_token_authenticated=True), token_credential.expires_ms
                )
        self._first, self._credential = first, credential
        self._owner = owner if is_real else None
        self._server_nonce = first.nonce + self._nonce
        self._server = str(ServerFirst(self._server_nonce, credential.salt, credential.iterations))
        return self._server.encode()

    def _end(self, token: bytes) -> bytes:
        first, credential = self._first, self._credential
        assert first is not None
        assert credential is not None
        final = parse_client_final(token)
        if final.nonce != self._server_nonce:
            raise InvalidCredentials("Invalid client nonce in the final client message.")
        if final.binding not in (NO_BINDING, first.header.encode()):
            raise InvalidCredentials("another channel binding than at the beginning")
        mechanism = self._mechanism
        message = f"{first.bare},{self._server},{final.unproved}".encode()
        client_key = xor(final.proof, mechanism.hmac(credential.stored_key, message))
        is_proved = hmac.compare_digest(mechanism.digest(client_key), credential.stored_key)
        signature = mechanism.hmac(credential.server_key, message)
        if not is_proved or self._owner is None:
            raise InvalidCredentials("Invalid client credentials")
        self.identity = self._owner
        return b"v=" + b2a_base64(signature, newline=False)


class FakeCredentials:
    """Credentials for users that do not exist, which look like credentials of users that do."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def credential(self, mechanism: ScramMechanism, name: str, like: Credential | None) -> Credential:
        """The credential of a name: its salt has length and alphabet of `like`, which an existing user has."""
        material = hmac.digest(self._secret, f"{mechanism.name} {name}".encode(), "sha512")
        size = len(like.salt) if like is not None else 26
        stretched = (material * (size // len(material) + 1))[:size]
        if like is None or (like.salt.isalnum() and like.salt == like.salt.lower()):  # made by Kafka's admin client
            stretched = bytes(_BASE_36[byte % 36] for byte in stretched)
        key = mechanism.digest(material)
        return Credential(stretched, key, key, mechanism.min_iterations if like is None else like.iterations)
