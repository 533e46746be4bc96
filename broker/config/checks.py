"""Checks a configuration before the broker starts. Texts are Kafka's where Kafka has the same check."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.config.keys import AUTHORIZER_KEYS, BROKER_KEYS
from barnabas.broker.config.keys.controller import CONTROLLER_LISTENER_NAMES
from barnabas.broker.config.keys.general import AUTHORIZER_CLASS_NAME
from barnabas.broker.config.keys.groups import GROUP_COORDINATOR_REBALANCE_PROTOCOLS
from barnabas.broker.config.keys.network import (
    INTER_BROKER_LISTENER_NAME,
    LISTENERS,
    MAX_CONNECTIONS_PER_IP,
    MAX_CONNECTIONS_PER_IP_OVERRIDES,
)
from barnabas.broker.config.keys.own import METRICS_LISTENER
from barnabas.broker.config.listener_keys import PER_LISTENER, split
from barnabas.broker.config.listeners import (
    SASL_PROTOCOLS,
    check_advertised,
    check_ports,
    check_protocols,
    parse_address,
    parse_endpoints,
)
from barnabas.broker.config.profiles import CLAMPED_IN_DEV
from barnabas.broker.config.roles import check_roles
from barnabas.broker.config.server_config import base_key
from barnabas.storage.topic_keys import SYNONYMS
from barnabas.wire.configdef import ConfigError

if TYPE_CHECKING:
    from barnabas.broker.config.listeners import Endpoint
    from barnabas.broker.config.server_config import ServerConfig


def check(config: ServerConfig) -> None:
    """Raise ConfigError if a broker cannot start with these settings; adds to `config.warnings`."""
    for name, text in config.static.items():
        key = base_key(name)
        if key is not None:
            value = key.parse(text)
            if config.clamps_replicas and name in CLAMPED_IN_DEV and value > 1:
                config.warnings.append(f"{name}={value} is larger than the number of brokers: 1 is used (profile dev)")
    if config.node_id < 0:
        raise ConfigError(f"node.id must be at least 0, not {config.node_id}")
    _check_retention(config)
    _check_groups(config)
    endpoints = parse_endpoints(LISTENERS.name, config[LISTENERS])
    check_ports(endpoints)
    check_roles(config, endpoints)
    opened = [*config.listeners, *config.controller_listeners]
    if len(endpoints) > len(opened):
        unopened = ",".join(str(e) for e in endpoints if e not in opened)
        config.warnings.append(f"Controller listener {unopened} is not opened: the controller is in this process")
    _check_connections(config)
    _check_metrics_listener(config, opened)
    _check_authorizer(config)
    check_protocols(opened, config.security_protocols)
    _check_sasl(config, [endpoint.name for endpoint in opened])
    check_advertised(list(config.advertised_listeners.values()), config.listeners)


def _check_metrics_listener(config: ServerConfig, opened: list[Endpoint]) -> None:
    address = config[METRICS_LISTENER]
    if address is not None:
        check_ports([*opened, parse_address(METRICS_LISTENER.name, address)])


def _check_sasl(config: ServerConfig, opened: list[str]) -> None:
    """Check SASL on the listeners of this node, and on the controllers' listeners that it connects to."""
    protocols = config.security_protocols
    names = {*opened, *(name.upper() for name in config[CONTROLLER_LISTENER_NAMES])}
    if any(protocols.get(name) in SASL_PROTOCOLS for name in names):
        from barnabas.broker.config.sasl_logins import check_logins
        from barnabas.broker.config.sasl_settings import sasl_settings

        for name in opened:
            if protocols[name] in SASL_PROTOCOLS:
                sasl_settings(config, name)
        check_logins(config)


def _check_connections(config: ServerConfig) -> None:
    """Check the limits of connections, and the names of listeners in keys."""
    names = [endpoint.name for endpoint in (*config.listeners, *config.controller_listeners)]
    known = {*names, config.controllers_listener}
    check_broker_configs({key.name: config[key] for key in (MAX_CONNECTIONS_PER_IP, MAX_CONNECTIONS_PER_IP_OVERRIDES)})
    inter_broker = config[INTER_BROKER_LISTENER_NAME]
    if inter_broker is not None and "broker" in config.roles and inter_broker.upper() not in names:
        raise ConfigError(
            "inter.broker.listener.name must be a listener name defined in listeners. "
            f"The valid options based on currently configured listeners are {','.join(names)}, not {inter_broker}"
        )
    for name in sorted(config.static):
        parts = split(name)
        if parts is not None and parts[1] in PER_LISTENER and parts[0].upper() not in known:
            config.warnings.append(f"{name} has no effect: there is no listener {parts[0].upper()}")


def check_broker_configs(values: Mapping[str, Any]) -> None:
    """Check values of broker keys, by name, that depend on each other or have a form of their own. ConfigError."""
    overrides = parse_overrides(values.get(MAX_CONNECTIONS_PER_IP_OVERRIDES.name, ""))
    if values.get(MAX_CONNECTIONS_PER_IP.name) == 0 and not overrides:
        raise ConfigError(
            "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides property is set."
        )


_LIMIT: Final = re.compile(r"\d{1,10}", re.ASCII)


def parse_overrides(text: str) -> dict[str, int]:
    """The limits of connections by host, of max.connections.per.ip.overrides. ConfigError for an invalid pair."""
    limits: dict[str, int] = {}
    for pair in filter(None, (item.strip() for item in text.split(","))):
        host, colon, number = pair.rpartition(":")
        if not (host and colon and _LIMIT.fullmatch(number.strip())):
            raise ConfigError(
                f"Invalid value {text} for configuration max.connections.per.ip.overrides: '{pair}' is not host:number"
            )
        limits[host.strip().removeprefix("[").removesuffix("]")] = int(number)
    return limits


def _check_authorizer(config: ServerConfig) -> None:
    if not {AUTHORIZER_CLASS_NAME.name, *AUTHORIZER_KEYS}.isdisjoint(config.static):
        from barnabas.broker.config.authorizer import check_authorizer

        check_authorizer(config)


def _check_retention(config: ServerConfig) -> None:
    """The first of the three keys of the retention time that is set must be positive or -1, as in Kafka."""
    for name, _ in SYNONYMS["retention.ms"]:
        if config.text(name) is not None:
            if config[BROKER_KEYS[name]] == 0:
                raise ConfigError(f"{name} must be unlimited (-1) or, equal or greater than 1")
            return


def _check_groups(config: ServerConfig) -> None:
    """The classic protocol must be enabled, and defaults of groups must be within their limits."""
    if "classic" not in config[GROUP_COORDINATOR_REBALANCE_PROTOCOLS]:
        raise ConfigError("Disabling the 'classic' protocol is not supported.")
    if any(name.startswith(("group.consumer.", "group.share.", "group.streams.")) for name in config.static):
        from barnabas.broker.config.group_limits import check_limits

        check_limits(config.__getitem__)
