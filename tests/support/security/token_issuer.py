"""Makes bearer tokens and the JWKS document that verifies them."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from functools import cache
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from tests.support.world import START_MS

ISSUER, AUDIENCE = "https://issuer.example", "kafka"


@cache
def private_key(kind: str, number: int) -> Any:
    """A key for RSA, or of a curve; always the same in one process."""
    if kind == "RSA":
        return rsa.generate_private_key(65537, 2048)
    return ec.generate_private_key({"P-256": ec.SECP256R1(), "P-384": ec.SECP384R1(), "P-521": ec.SECP521R1()}[kind])


def jwk(kind: str, key_id: str, number: int = 0, **more: str) -> dict[str, Any]:
    """The public half of a key."""
    algorithm = jwt.get_algorithm_by_name("RS256" if kind == "RSA" else "ES256")
    return {**algorithm.to_jwk(private_key(kind, number).public_key(), as_dict=True), "kid": key_id, **more}


def write_jwks(path: Path, *keys: dict[str, Any]) -> str:
    """Write a document; its URL."""
    path.write_text(json.dumps({"keys": list(keys)}))
    return path.as_uri()


def claims(**changes: Any) -> dict[str, Any]:
    """Claims that hold for ten minutes of the broker's clock; None leaves one out."""
    now = START_MS // 1000
    claims_of_token = {"sub": "alice", "iss": ISSUER, "aud": AUDIENCE, "iat": now, "exp": now + 600, **changes}
    return {name: value for name, value in claims_of_token.items() if value is not None}


def signed(
    algorithm: str = "RS256", kind: str = "RSA", key_id: str | None = "one", number: int = 0, **changes: Any
) -> str:
    """A token."""
    headers = None if key_id is None else {"kid": key_id}
    return jwt.encode(claims(**changes), private_key(kind, number), algorithm, headers=headers)


def unsecured(header: dict[str, Any] | None = None, signature: str = "", **changes: Any) -> str:
    """A token without a signature."""
    parts = [header or {"alg": "none"}, claims(**changes)]
    encoded = [urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join([*encoded, signature])
