"""The checks of a bearer token's claims, and the principal that they give (RFC 7519).

Times are compared with a tolerated difference of clocks. Source: Kafka 4.4 `BrokerJwtValidator`,
`OAuthBearerUnsecuredValidatorCallbackHandler`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from barnabas.coord.security.exchange import Identity
from barnabas.wire.principal import USER_TYPE, KafkaPrincipal

INVALID_TOKEN: Final = "invalid_token"  # noqa: S105 (a status of RFC 6750)
INSUFFICIENT_SCOPE: Final = "insufficient_scope"
_MAX_TIME: Final = 2**40
"""Seconds; no token is from so late a time."""


class TokenRefused(Exception):  # noqa: N818 (an answer)
    """A token is not accepted; the text is for a debugger, the status for the client."""

    def __init__(self, reason: str, status: str = INVALID_TOKEN, scope: str | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.scope = scope


class ClaimRules(NamedTuple):
    """The config keys about claims."""

    clock_skew_s: float = 30.0
    issuer: str | None = None
    """The only accepted issuer; None: any."""
    audience: tuple[str, ...] = ()
    """Accepted audiences, of which a token must be for one; none: any."""
    scope_claim: str = "scope"
    sub_claim: str = "sub"
    required_scope: tuple[str, ...] = ()
    requires_issue_time: bool = True


def identity_of(claims: Mapping[str, Any], rules: ClaimRules, now_ms: int) -> Identity:
    """The identity of the bearer. TokenRefused if a claim does not hold."""
    now, skew = now_ms / 1000, rules.clock_skew_s
    expires = _time(claims, "exp")
    if expires is None or expires + skew <= now:
        raise TokenRefused("the token has expired, or does not say when")
    issued = _time(claims, "iat")
    if issued is None and rules.requires_issue_time:
        raise TokenRefused("the token does not say when it was issued")
    if issued is not None and issued - skew > now:
        raise TokenRefused("the token was issued in the future")
    not_before = _time(claims, "nbf")
    if not_before is not None and not_before - skew > now:
        raise TokenRefused("the token does not hold yet")
    _check_origin(claims, rules)
    name = claims.get(rules.sub_claim)
    if not isinstance(name, str) or not name.strip() or not _is_text(name):
        raise TokenRefused(f"the token has no claim {rules.sub_claim}")
    return Identity(KafkaPrincipal(USER_TYPE, name), int(expires * 1000))


def _check_origin(claims: Mapping[str, Any], rules: ClaimRules) -> None:
    """Issuer, audience and scope."""
    if rules.issuer is not None and claims.get("iss") != rules.issuer:
        raise TokenRefused("the token is from another issuer")
    if rules.audience and not set(_texts(claims.get("aud"))) & set(rules.audience):
        raise TokenRefused("the token is for another audience")
    scope = claims.get(rules.scope_claim)
    granted = scope.split() if isinstance(scope, str) else _texts(scope)
    if not set(rules.required_scope) <= set(granted):
        raise TokenRefused("the token has not the scope", INSUFFICIENT_SCOPE, " ".join(rules.required_scope))


def _is_text(name: str) -> bool:
    r"""Whether a name can be written: JSON may have half a character (`\ud800`), which UTF-8 has not."""
    return not any("\ud800" <= character <= "\udfff" for character in name)


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def _time(claims: Mapping[str, Any], name: str) -> float | None:
    """Seconds since 1970 of a claim; None if it has none. TokenRefused for anything but a number."""
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < _MAX_TIME:
        raise TokenRefused(f"the claim {name} is no time")
    return float(value)
