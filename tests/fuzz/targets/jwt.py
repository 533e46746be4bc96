"""Bearer tokens (JWT), signed and unsecured, and the JWKS document with the keys.

Only TokenRefused, ValueError for the document. A token that is accepted gives a name that can be written into a log and
a time at which it expires; a signed one is accepted only with the signature of a key of the document.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from functools import cache
from types import SimpleNamespace
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec

from barnabas.broker.security.jwks import keys_of
from barnabas.broker.security.signed_tokens import SignedTokens
from barnabas.coord.security.claims import ClaimRules, TokenRefused, identity_of
from barnabas.coord.security.oauthbearer import unsecured_claims
from tests.fuzz.targets import Input, is_sayable

MAX_BYTES = 2048
RULES = ClaimRules(issuer=None, audience=("kafka",), required_scope=("write",))
NOW_MS = 1_700_000_000_000
CLAIMS: dict[str, Any] = {"sub": "alice", "exp": 1_700_000_600, "iat": 1_700_000_000, "aud": "kafka", "scope": "write"}
P256_G = ec.derive_private_key(7, ec.SECP256R1())
"""A key that is the same in every run."""


def _jwk() -> dict[str, Any]:
    key: dict[str, Any] = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(P256_G.public_key()))
    return key | {"kid": "one", "use": "sig"}


@cache
def tokens() -> SignedTokens:
    """A validator with one key."""
    document = SimpleNamespace(
        generation=1, find=lambda key_id, kind: _JWK if (key_id, kind) == ("one", "EC") else None
    )
    return SignedTokens(document, RULES)  # type: ignore[arg-type]


_JWK = _jwk()


def check(data: bytes) -> None:
    """The first byte: a signed token, an unsecured one, claims that are put into one, or a document."""
    source = Input(data)
    kind = source.number(4)
    if kind == 3:
        _document(source.rest)
        return
    token = _unsecured(source.rest) if kind == 2 else source.rest.decode("latin-1")
    try:
        if kind == 0:
            identity = tokens().validate(token, NOW_MS)
            signed = jwt.decode(
                token, P256_G.public_key(), algorithms=["ES256"], options={"verify_signature": True} | NO
            )
            assert signed["sub"] == identity.principal.name
        else:
            identity = identity_of(unsecured_claims(token), RULES, NOW_MS)
    except TokenRefused as error:
        is_sayable(error.status, error.scope or "")
        return
    is_sayable(identity.principal.name)
    assert type(identity.expires_ms) is int


NO = {f"verify_{claim}": False for claim in ("exp", "nbf", "iat", "aud", "iss", "sub", "jti")}


def _unsecured(claims: bytes) -> str:
    return ".".join((_part(b'{"alg":"none"}'), _part(claims), ""))


def _part(content: bytes) -> str:
    return urlsafe_b64encode(content).decode().rstrip("=")


def _document(data: bytes) -> None:
    try:
        keys = keys_of(data)
    except ValueError:
        return
    validator = SignedTokens(SimpleNamespace(generation=1, find=lambda *_: keys[0] if keys else None), RULES)  # type: ignore[arg-type]
    for algorithm in ("ES256", "RS256"):
        token = ".".join((_part(json.dumps({"alg": algorithm}).encode()), _part(b"{}"), _part(bytes(64))))
        try:
            validator.validate(token, NOW_MS)
        except TokenRefused:
            continue
        raise AssertionError("a token without a signature is accepted")


def seeds() -> Iterator[bytes]:
    """Tokens that are accepted, and others."""
    yield b"\0" + jwt.encode(CLAIMS, P256_G, algorithm="ES256", headers={"kid": "one"}).encode()
    yield b"\0" + jwt.encode(CLAIMS, "0" * 32, algorithm="HS256", headers={"kid": "one"}).encode()
    yield b"\x01" + jwt.encode(CLAIMS, None, algorithm="none").encode()
    for change in ({}, {"sub": "\u00fc"}, {"exp": 1e300}, {"aud": ["kafka", "x"]}, {"scope": ["write"]}, {"nbf": 0}):
        yield b"\x02" + json.dumps(CLAIMS | change).encode()
    yield b"\x03" + json.dumps({"keys": [_JWK]}).encode()
    yield (
        b"\x03"
        + json.dumps({"keys": [{"kty": "RSA", "kid": "r", "e": "AQAB", "n": _part(bytes(range(1, 129)))}]}).encode()
    )
