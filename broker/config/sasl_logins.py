"""How this node logs in at other nodes: with name and password of the JAAS line of their listener, or a file's token.

Source: Kafka 4.4 `ChannelBuilders.clientChannelBuilder`, which uses the JAAS context of the listener, as a server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote, urlsplit

from barnabas.broker.config.keys.controller import CONTROLLER_LISTENER_NAMES
from barnabas.broker.config.keys.general import SECURITY_INTER_BROKER_PROTOCOL
from barnabas.broker.config.keys.network import INTER_BROKER_LISTENER_NAME
from barnabas.broker.config.keys.security import (
    SASL_MECHANISM_CONTROLLER_PROTOCOL,
    SASL_MECHANISM_INTER_BROKER_PROTOCOL,
    SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL,
)
from barnabas.broker.config.listener_keys import sasl_key
from barnabas.broker.config.listeners import SASL_PROTOCOLS
from barnabas.broker.config.sasl_settings import OAUTHBEARER, jaas_key, login_module
from barnabas.wire.configdef import ConfigError

if TYPE_CHECKING:
    from barnabas.broker.config.server_config import ServerConfig

_OUTGOING: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", OAUTHBEARER)


class Credentials(NamedTuple):
    """How this node logs in at other nodes."""

    mechanism: str
    name: str
    password: str
    is_token: bool = False
    token_file: str = ""
    """The file with the token of OAUTHBEARER."""

    def __repr__(self) -> str:
        return f"Credentials({self.mechanism}, {self.name})"


def inter_broker_login(config: ServerConfig) -> Credentials | None:
    """How this broker logs in at other brokers; None if their listener takes no SASL."""
    listener = (config[INTER_BROKER_LISTENER_NAME] or config[SECURITY_INTER_BROKER_PROTOCOL]).upper()
    return _login(
        config, listener, config[SASL_MECHANISM_INTER_BROKER_PROTOCOL], SASL_MECHANISM_INTER_BROKER_PROTOCOL.name
    )


def controller_login(config: ServerConfig) -> Credentials | None:
    """How this broker logs in at the controllers; None if their listener takes no SASL."""
    names = config[CONTROLLER_LISTENER_NAMES]
    if not names:
        return None
    mechanism = config[SASL_MECHANISM_CONTROLLER_PROTOCOL]
    return _login(config, names[0].upper(), mechanism, SASL_MECHANISM_CONTROLLER_PROTOCOL.name)


def _login(config: ServerConfig, listener: str, mechanism: str, key: str) -> Credentials | None:
    if config.security_protocols.get(listener) not in SASL_PROTOCOLS:
        return None
    if mechanism not in _OUTGOING:
        raise ConfigError(
            f"{key}={mechanism} is not supported for connections to other nodes, which the listener {listener} is for: "
            f"set it to one of {', '.join(_OUTGOING)}"
        )
    module = login_module(config, listener, mechanism)
    if mechanism == OAUTHBEARER:
        return Credentials(mechanism, "", "", token_file=_token_file(config, listener))
    name, password = module.options.get("username"), module.options.get("password")
    if not name or not password:
        raise ConfigError(
            f"{jaas_key(listener, mechanism)} has no username and password, with which this node logs in at other nodes"
        )
    return Credentials(mechanism, name, password, module.options.get("tokenauth", "").lower() == "true")


def _token_file(config: ServerConfig, listener: str) -> str:
    parts = urlsplit(config.of_mechanism(SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL, listener, OAUTHBEARER) or "")
    if parts.scheme != "file" or parts.netloc or not parts.path:
        key = sasl_key(SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL, listener, OAUTHBEARER).name
        raise ConfigError(
            f"{key} must be file:///PATH of a file with the token with which this node logs in at other nodes: it asks "
            "no server for one"
        )
    return unquote(parts.path)


def check_logins(config: ServerConfig) -> None:
    """Raise ConfigError if this node has to log in at others and cannot."""
    if config.is_standalone or "broker" not in config.roles:
        return
    inter_broker_login(config)
    if config.roles == {"broker"}:
        controller_login(config)
