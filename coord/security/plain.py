"""PLAIN: a user name and a password in one token (RFC 4616).

An unknown user takes the same comparison as a known one, so neither the response nor its time shows whether a user
exists. Source: Kafka 4.4 `PlainSaslServer`.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from hashlib import sha256
from typing import Final

from barnabas.coord.security.exchange import AuthenticationFailed, Identity, InvalidCredentials
from barnabas.wire.principal import USER_TYPE, KafkaPrincipal

PLAIN: Final = "PLAIN"
_PARTS: Final = 3  # authorization id, user name, password


class PlainExchange:
    """The server's side of PLAIN."""

    __slots__ = ("_users", "identity")

    def __init__(self, users: Mapping[str, str]) -> None:
        """`users` are the passwords by user name."""
        self._users = users
        self.identity: Identity | None = None

    def step(self, token: bytes, _now_ms: int) -> bytes:
        """Check the only token."""
        authorization_id, name, password = _parts(token)
        if not name:
            raise AuthenticationFailed("Authentication failed: username not specified")
        if not password:
            raise AuthenticationFailed("Authentication failed: password not specified")
        expected = self._users.get(name)
        is_right = hmac.compare_digest(_digest(password), _digest(expected or "")) and expected is not None
        if not is_right:
            raise AuthenticationFailed("Authentication failed: Invalid username or password")
        if authorization_id not in {"", name}:
            raise AuthenticationFailed(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        self.identity = Identity(KafkaPrincipal(USER_TYPE, name))
        return b""


def plain_token(name: str, password: str) -> bytes:
    """The client's token."""
    return f"\0{name}\0{password}".encode()


def _parts(token: bytes) -> list[str]:
    try:
        parts = token.decode().split("\0")
    except UnicodeDecodeError:
        raise InvalidCredentials("a token that is not UTF-8") from None
    if len(parts) != _PARTS:
        raise AuthenticationFailed(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}")
    return parts


def _digest(text: str) -> bytes:
    """Of one length, so that a comparison takes the same time for passwords of any."""
    return sha256(text.encode("utf-8", "surrogatepass")).digest()
