"""Verifies signed bearer tokens (RFC 7515): RS, PS and ES with SHA-2, by the keys of a JWKS document.

The token names the algorithm, which must fit the kind of the key; tokens without a signature, or signed with a shared
secret, are never accepted. A verification takes about 0.1 ms. Source: Kafka 4.4 `BrokerJwtValidator`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

import jwt

from barnabas.coord.security.claims import ClaimRules, TokenRefused, identity_of

if TYPE_CHECKING:
    from barnabas.broker.security.jwks import Jwk, Jwks
    from barnabas.coord.security.exchange import Identity

logger = logging.getLogger("kafka.security.oauthbearer.BrokerJwtValidator")

CURVES: Final = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}
ALGORITHMS: Final = {
    **{f"{family}{bits}": "RSA" for family in ("RS", "PS") for bits in (256, 384, 512)},
    **dict.fromkeys(CURVES, "EC"),
}
"""The accepted algorithms with the kind of their keys."""
_NO_CHECKS: Final = {f"verify_{claim}": False for claim in ("exp", "nbf", "iat", "aud", "iss", "sub", "jti")}
"""The claims are checked by `identity_of`, at the broker's own time."""


class SignedTokens:
    """Verifies tokens and returns their bearers."""

    def __init__(self, jwks: Jwks, rules: ClaimRules) -> None:
        self._jwks = jwks
        self._rules = rules
        self._keys: dict[tuple[int, int, str], jwt.PyJWK] = {}

    def validate(self, token: str, now_ms: int) -> Identity:
        """The bearer. TokenRefused if the token is not valid, for any reason."""
        try:
            return identity_of(self._verified(token), self._rules, now_ms)
        except TokenRefused as error:
            logger.debug("Could not validate the access token: %s", error)
            raise
        except Exception as error:  # a hostile token may have the library fail in any way
            logger.debug("Could not validate the access token: %s", error)
            raise TokenRefused(str(error)) from error

    def _verified(self, token: str) -> dict[str, Any]:
        """The claims of a token, after its signature was verified."""
        header = jwt.get_unverified_header(token)
        algorithm, key_id = header.get("alg"), header.get("kid")
        kind = ALGORITHMS.get(algorithm) if isinstance(algorithm, str) else None
        if kind is None:
            raise TokenRefused(f"the algorithm {algorithm} is not accepted")
        assert isinstance(algorithm, str)
        jwk = self._jwks.find(key_id, kind)
        if jwk is None:
            raise TokenRefused("no key for the token is known")
        key = self._key(jwk, algorithm)
        claims: dict[str, Any] = jwt.decode(token, key, algorithms=[algorithm], options=_NO_CHECKS)  # type: ignore[arg-type]
        return claims

    def _key(self, jwk: Jwk, algorithm: str) -> jwt.PyJWK:
        name = (self._jwks.generation, id(jwk), algorithm)
        key = self._keys.get(name)
        if key is not None:
            return key
        if jwk.get("alg", algorithm) != algorithm or jwk.get("crv") != CURVES.get(algorithm):
            raise TokenRefused(f"the key is not for {algorithm}")
        if any(generation != name[0] for generation, _, _ in self._keys):
            self._keys.clear()
        key = self._keys[name] = jwt.PyJWK(jwk, algorithm=algorithm)
        return key
