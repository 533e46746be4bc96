"""OAUTHBEARER: one message with a bearer token (RFC 7628, KIP-255).

A refused token is answered with a JSON object, after which the client sends the byte 1 and the authentication fails;
Kafka would take another token then, without end.
`unsecured_claims` reads tokens without a signature, which are only for tests. Source: Kafka 4.4
`OAuthBearerSaslServer`, `OAuthBearerUnsecuredJws`.
"""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64decode
from collections.abc import Callable
from typing import Any, Final

from barnabas.coord.security.claims import TokenRefused
from barnabas.coord.security.exchange import AuthenticationFailed, Identity, InvalidCredentials
from barnabas.coord.security.scram import unescaped

OAUTHBEARER: Final = "OAUTHBEARER"
WHY_CHARACTERS: Final = 200
"""The most of a reason that is logged: it may quote the token's header."""
_CONTROL_A: Final = b"\x01"
_INITIAL: Final = re.compile(
    r"n,(?:a=(?P<authorization_id>(?:[\x01-\x7f](?<![=,])|=2C|=3D)+))?,\x01"
    r"(?P<pairs>(?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*)\x01"
)
_AUTH: Final = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)")
_NO_SIGNATURE_PARTS: Final = 3


class OAuthBearerExchange:
    """The server's side of OAUTHBEARER."""

    __slots__ = ("_error", "_validate", "_why", "identity")

    def __init__(self, validate: Callable[[str, int], Identity]) -> None:
        """`validate` returns the principal of a token at this time, or raises TokenRefused."""
        self._validate = validate
        self._error: str | None = None
        self._why = ""
        self.identity: Identity | None = None

    def step(self, token: bytes, now_ms: int) -> bytes:
        """Take the token, or the client's answer to its refusal."""
        if self._error is not None:
            if token == _CONTROL_A:
                raise AuthenticationFailed(self._error, self._why)
            raise InvalidCredentials("another answer to the refusal than the byte 1")
        authorization_id, bearer = parse_initial(token)
        try:
            identity = self._validate(bearer, now_ms)
        except TokenRefused as error:
            scope = "" if error.scope is None else f', "scope":"{error.scope}"'
            self._error = f'{{"status":"{error.status}"{scope}}}'
            self._why = str(error)[:WHY_CHARACTERS]
            return self._error.encode()
        if authorization_id not in {"", identity.principal.name}:
            raise AuthenticationFailed(
                f"Authentication failed: Client requested an authorization id ({authorization_id}) that is different "
                f"from the token's principal name ({identity.principal.name})"
            )
        self.identity = identity
        return b""


def parse_initial(message: bytes) -> tuple[str, str]:
    """The authorization id, often empty, and the bearer token. InvalidCredentials for another message."""
    try:
        match = _INITIAL.fullmatch(message.decode("ascii"))
    except UnicodeDecodeError:
        match = None
    if match is None:
        raise InvalidCredentials("Invalid OAUTHBEARER client first message")
    pairs = dict(pair.split("=", 1) for pair in match["pairs"].split("\x01") if pair)
    auth = _AUTH.fullmatch(pairs.get("auth", ""))
    if auth is None or auth["scheme"].lower() != "bearer":
        raise InvalidCredentials("Invalid OAUTHBEARER client first message: 'auth' not specified, or no bearer token")
    return unescaped(match["authorization_id"] or ""), auth["token"]


def unsecured_claims(token: str) -> dict[str, Any]:
    """The claims of a token with `alg` none. TokenRefused for any other."""
    parts = token.split(".")
    if len(parts) != _NO_SIGNATURE_PARTS or parts[2]:
        raise TokenRefused("a token with a signature, where none is expected")
    header, claims = json_object(parts[0]), json_object(parts[1])
    if header.get("alg") != "none":
        raise TokenRefused("the token has a signature, but no key is configured to verify it")
    return claims


def json_object(part: str) -> dict[str, Any]:
    """A part of a token. TokenRefused if it is no JSON object."""
    try:
        value = json.loads(urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (ValueError, RecursionError):
        raise TokenRefused("a part of the token is no JSON") from None
    if not isinstance(value, dict):
        raise TokenRefused("a part of the token is no JSON object")
    return value
