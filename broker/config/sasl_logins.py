"""How this node logs in at other nodes: user name and password of the JAAS line of their listener.

Source: Kafka 4.4 `ChannelBuilders.clientChannelBuilder`, which uses the JAAS context of the listener, as a server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.config.keys.controller import CONTROLLER_LISTENER_NAMES
from barnabas.broker.config.keys.general import SECURITY_INTER_BROKER_PROTOCOL
from barnabas.broker.config.keys.network import INTER_BROKER_LISTENER_NAME
from barnabas.broker.config.keys.security import (
    SASL_MECHANISM_CONTROLLER_PROTOCOL,
    SASL_MECHANISM_INTER_BROKER_PROTOCOL,
)
from barnabas.broker.config.listeners import SASL_PROTOCOLS
from barnabas.broker.config.sasl_settings import jaas_key, login_module
from barnabas.wire.configdef import ConfigError

if TYPE_CHECKING:
    from barnabas.broker.config.server_config import ServerConfig

_OUTGOING: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


class Credentials(NamedTuple):
    """How this node logs in at other nodes."""

    mechanism: str
    name: str
    password: str
    is_token: bool = False

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
    name, password = module.options.get("username"), module.options.get("password")
    if not name or not password:
        raise ConfigError(
            f"{jaas_key(listener, mechanism)} has no username and password, with which this node logs in at other nodes"
        )
    return Credentials(mechanism, name, password, module.options.get("tokenauth", "").lower() == "true")


def check_logins(config: ServerConfig) -> None:
    """Raise ConfigError if this node has to log in at others and cannot."""
    if config.is_standalone or "broker" not in config.roles:
        return
    inter_broker_login(config)
    if config.roles == {"broker"}:
        controller_login(config)
