"""The settings of SASL on a listener from its config keys: mechanisms, users, and how long a session lasts.

`sasl_settings` reads the keys of one listener, each with `listener.name.<listener>.<mechanism>.`,
`listener.name.<listener>.` or without a prefix; ConfigError for settings that cannot work. Source: Kafka 4.4
`JaasContext`, `SaslChannelBuilder`, `KafkaConfig.validateValues`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.config.keys.network import CONNECTIONS_MAX_REAUTH_MS
from barnabas.broker.config.keys.security import (
    SASL_ENABLED_MECHANISMS,
    SASL_JAAS_CONFIG,
    SASL_SERVER_CALLBACK_HANDLER_CLASS,
    SASL_SERVER_MAX_RECEIVE_SIZE,
)
from barnabas.broker.config.listener_keys import MECHANISMS, sasl_key
from barnabas.coord.security.jaas import LOGIN_MODULES, LoginModule, parse_jaas
from barnabas.wire.configdef import ConfigError

if TYPE_CHECKING:
    from barnabas.broker.config.oauth_settings import OAuthSettings
    from barnabas.broker.config.server_config import ServerConfig

PLAIN: Final = "PLAIN"
OAUTHBEARER: Final = "OAUTHBEARER"
_PACKAGE: Final = "org.apache.kafka.common.security."
_HANDLERS: Final = {
    "PLAIN": {f"{_PACKAGE}plain.internals.PlainServerCallbackHandler"},
    "SCRAM-SHA-256": {f"{_PACKAGE}scram.internals.ScramServerCallbackHandler"},
    "SCRAM-SHA-512": {f"{_PACKAGE}scram.internals.ScramServerCallbackHandler"},
    OAUTHBEARER: {
        f"{_PACKAGE}oauthbearer.OAuthBearerValidatorCallbackHandler",
        f"{_PACKAGE}oauthbearer.secured.OAuthBearerValidatorCallbackHandler",
        f"{_PACKAGE}oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler",
    },
}
"""Kafka's own classes, whose behaviour is here as well."""


class SaslSettings(NamedTuple):
    """SASL on one listener."""

    mechanisms: tuple[str, ...]
    plain_users: dict[str, str]
    max_receive_bytes: int
    max_reauth_ms: dict[str, int]
    """connections.max.reauth.ms by mechanism; 0 is unlimited."""
    oauth: OAuthSettings | None
    """How tokens are checked; None without OAUTHBEARER."""

    def __repr__(self) -> str:
        return f"SaslSettings({', '.join(self.mechanisms)})"  # without passwords


def sasl_settings(config: ServerConfig, listener: str) -> SaslSettings:
    """The settings of a listener. ConfigError for settings that cannot work."""
    mechanisms = config.of_mechanism(SASL_ENABLED_MECHANISMS, listener)
    _check_mechanisms(listener, mechanisms)
    users: dict[str, str] = {}
    for mechanism in mechanisms:
        _check_handler(config, listener, mechanism)
    if PLAIN in mechanisms:
        users = login_module(config, listener, PLAIN).users
    oauth = None
    if OAUTHBEARER in mechanisms:
        from barnabas.broker.config.oauth_settings import oauth_settings

        oauth = oauth_settings(config, listener)
    return SaslSettings(
        mechanisms,
        users,
        config.of_mechanism(SASL_SERVER_MAX_RECEIVE_SIZE, listener),
        {mechanism: config.of_mechanism(CONNECTIONS_MAX_REAUTH_MS, listener, mechanism) for mechanism in mechanisms},
        oauth,
    )


def _check_mechanisms(listener: str, mechanisms: Sequence[str]) -> None:
    unsupported = [mechanism for mechanism in mechanisms if mechanism not in MECHANISMS]
    if mechanisms and not unsupported:
        return
    key = sasl_key(SASL_ENABLED_MECHANISMS, listener).name
    names = ["GSSAPI (Kerberos; Kafka's default)" if name == "GSSAPI" else name for name in unsupported]
    what = f"has {', '.join(names)}, which Barnabas does not support" if names else "is empty"
    raise ConfigError(
        f"Listener {listener}: sasl.enabled.mechanisms {what}: set {key} to one or more of {', '.join(MECHANISMS)}"
    )


def _check_handler(config: ServerConfig, listener: str, mechanism: str) -> None:
    handler = config.of_mechanism(SASL_SERVER_CALLBACK_HANDLER_CLASS, listener, mechanism)
    if handler is not None and handler not in _HANDLERS[mechanism]:
        raise ConfigError(
            f"Listener {listener}: {SASL_SERVER_CALLBACK_HANDLER_CLASS.name} of {mechanism} is {handler}, but Barnabas "
            "cannot load Java classes"
        )


def jaas_key(listener: str, mechanism: str) -> str:
    return sasl_key(SASL_JAAS_CONFIG, listener, mechanism).name


def login_module(config: ServerConfig, listener: str, mechanism: str) -> LoginModule:
    """The JAAS line of a mechanism; ConfigError if there is none, or one of another mechanism."""
    key = jaas_key(listener, mechanism)
    text = config.of_mechanism(SASL_JAAS_CONFIG, listener, mechanism)
    expected = LOGIN_MODULES[mechanism]
    if not text:
        raise ConfigError(f"Listener {listener} has {mechanism}, but {key} is not set: it needs a line with {expected}")
    module = parse_jaas(key, text)
    if module.name != expected:
        raise ConfigError(f"{key} has the login module {module.name}: {mechanism} needs {expected}")
    return module
