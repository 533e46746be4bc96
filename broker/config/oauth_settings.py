"""The config keys of OAUTHBEARER on a listener (KIP-255, KIP-768): how tokens are verified, and their required claims.

Tokens are signed, with keys of `sasl.oauthbearer.jwks.endpoint.url`. Tokens without a signature are accepted only where
there is no such key and the JAAS line asks for them with an option of Kafka's unsecured validator. Kafka accepts them
without being asked. Source: Kafka 4.4 `OAuthBearerValidatorCallbackHandler`,
`OAuthBearerUnsecuredValidatorCallbackHandler`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from barnabas.broker.config.keys.security import (
    SASL_JAAS_CONFIG,
    SASL_OAUTHBEARER_ALLOW_UNVERIFIED_AUDIENCE,
    SASL_OAUTHBEARER_ALLOW_UNVERIFIED_ISSUER,
    SASL_OAUTHBEARER_CLOCK_SKEW_SECONDS,
    SASL_OAUTHBEARER_EXPECTED_AUDIENCE,
    SASL_OAUTHBEARER_EXPECTED_ISSUER,
    SASL_OAUTHBEARER_JWKS_ENDPOINT_REFRESH_MS,
    SASL_OAUTHBEARER_JWKS_ENDPOINT_RETRY_BACKOFF_MAX_MS,
    SASL_OAUTHBEARER_JWKS_ENDPOINT_RETRY_BACKOFF_MS,
    SASL_OAUTHBEARER_JWKS_ENDPOINT_URL,
    SASL_OAUTHBEARER_SCOPE_CLAIM_NAME,
    SASL_OAUTHBEARER_SUB_CLAIM_NAME,
    SASL_SERVER_CALLBACK_HANDLER_CLASS,
)
from barnabas.broker.config.listener_keys import sasl_key
from barnabas.coord.security.claims import ClaimRules
from barnabas.coord.security.jaas import OAUTHBEARER_LOGIN, parse_jaas
from barnabas.coord.security.oauthbearer import OAUTHBEARER
from barnabas.wire.configdef import ConfigError

if TYPE_CHECKING:
    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.wire.configdef import ConfigKey

_UNSECURED: Final = "unsecuredValidator"
_SCHEMES: Final = ("file://", "http://", "https://")
_SIGNED_HANDLER: Final = "OAuthBearerValidatorCallbackHandler"


class OAuthSettings(NamedTuple):
    """How the tokens of OAUTHBEARER are checked."""

    jwks_url: str | None
    """The URL of the keys; None: tokens have no signature."""
    rules: ClaimRules
    refresh_s: float = 3600.0
    retry_s: float = 0.1
    max_retry_s: float = 10.0


def oauth_settings(config: ServerConfig, listener: str) -> OAuthSettings:
    """The settings of a listener. ConfigError for settings that cannot work."""

    def value(key: ConfigKey[Any]) -> Any:
        return config.of_mechanism(key, listener, OAUTHBEARER)

    url = value(SASL_OAUTHBEARER_JWKS_ENDPOINT_URL)
    if not url:
        return _unsecured(config, listener)
    if not url.startswith(_SCHEMES):
        raise ConfigError(f"{SASL_OAUTHBEARER_JWKS_ENDPOINT_URL.name} must begin with one of {', '.join(_SCHEMES)}")
    issuer, audience = value(SASL_OAUTHBEARER_EXPECTED_ISSUER), value(SASL_OAUTHBEARER_EXPECTED_AUDIENCE)
    for expected, needed, allowed in (
        (issuer, SASL_OAUTHBEARER_EXPECTED_ISSUER, SASL_OAUTHBEARER_ALLOW_UNVERIFIED_ISSUER),
        (audience, SASL_OAUTHBEARER_EXPECTED_AUDIENCE, SASL_OAUTHBEARER_ALLOW_UNVERIFIED_AUDIENCE),
    ):
        if not expected and not value(allowed):
            raise ConfigError(
                f"Listener {listener} has OAUTHBEARER, but {needed.name} is not set: set it, or {allowed.name}=true to "
                "accept tokens whatever they say"
            )
    return OAuthSettings(
        url,
        ClaimRules(
            value(SASL_OAUTHBEARER_CLOCK_SKEW_SECONDS),
            issuer or None,
            audience,
            value(SASL_OAUTHBEARER_SCOPE_CLAIM_NAME),
            value(SASL_OAUTHBEARER_SUB_CLAIM_NAME),
        ),
        refresh_s=value(SASL_OAUTHBEARER_JWKS_ENDPOINT_REFRESH_MS) / 1000,
        retry_s=value(SASL_OAUTHBEARER_JWKS_ENDPOINT_RETRY_BACKOFF_MS) / 1000,
        max_retry_s=value(SASL_OAUTHBEARER_JWKS_ENDPOINT_RETRY_BACKOFF_MAX_MS) / 1000,
    )


def _unsecured(config: ServerConfig, listener: str) -> OAuthSettings:
    """The settings for tokens without a signature, from the options of the JAAS line."""
    key = sasl_key(SASL_JAAS_CONFIG, listener, OAUTHBEARER).name
    text = config.of_mechanism(SASL_JAAS_CONFIG, listener, OAUTHBEARER)
    handler = config.of_mechanism(SASL_SERVER_CALLBACK_HANDLER_CLASS, listener, OAUTHBEARER) or ""
    module = parse_jaas(key, text) if text else None
    options = {} if module is None or module.name != OAUTHBEARER_LOGIN else module.options
    if not any(name.startswith(_UNSECURED) for name in options) or handler.endswith(f".{_SIGNED_HANDLER}"):
        raise ConfigError(
            f"Listener {listener} has OAUTHBEARER, but {SASL_OAUTHBEARER_JWKS_ENDPOINT_URL.name} is not set. (Tokens "
            f"without a signature, for tests, are accepted if {key} has an option of {_UNSECURED}, as "
            f'{_UNSECURED}AllowableClockSkewMs="3000")'
        )
    skew_ms = options.get(f"{_UNSECURED}AllowableClockSkewMs", "0")
    if not (skew_ms.isascii() and skew_ms.isdecimal()):
        raise ConfigError(f"{key}: {_UNSECURED}AllowableClockSkewMs must be a number of milliseconds")
    rules = ClaimRules(
        int(skew_ms) / 1000,
        scope_claim=options.get(f"{_UNSECURED}ScopeClaimName", "scope"),
        sub_claim=options.get(f"{_UNSECURED}PrincipalClaimName", "sub"),
        required_scope=tuple(options.get(f"{_UNSECURED}RequiredScope", "").split()),
        requires_issue_time=False,
    )
    return OAuthSettings(None, rules)
